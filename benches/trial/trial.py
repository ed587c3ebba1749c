#!/usr/bin/env python3
"""Agent trial: what does a memory save the second agent in a repository full of quirks?

    trial.py new DIR REPOSITORY first|second [--memory DIR]   a fresh repository DIR/work with the jobs of one session
    trial.py count DIR…                                        calls, failed calls and characters read of sessions

In DIR/work an agent works through `./sh`: `./sh --start`, then every command as `./sh 'COMMAND'`, then `./sh --end`.
`./sh --say 'TEXT'` is the agent's next message, as an agent host would write it to the transcript.
`./sh` passes the events of a session to `memctl hook claude-code` and prints what it answers in <memory>, as an agent host
would. REPOSITORY is a name of `repositories.py`. `first` keeps a memory of its own; `second` has none, or a copy of the
one that `--memory` names. $MEMCTL is the program. Python's standard library only.
"""
import argparse, json, os, shutil, subprocess, sys, time, uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent


def environment(work):
    """The user's environment with a home of its own, and memctl on the PATH."""
    home = work / '.trial/home'
    secret = lambda name: name.endswith('_API_KEY') or name == 'DATABASE_URL' or name.startswith(('MEMCTL_', 'AGENTURA'))
    env = {name: value for name, value in os.environ.items() if not secret(name)}
    env.update(HOME=str(home), XDG_CONFIG_HOME=f'{home}/config', XDG_DATA_HOME=f'{home}/data', XDG_STATE_HOME=f'{home}/state',
               PYTHONDONTWRITEBYTECODE='1', PATH=f'{work}/.trial/bin:{env["PATH"]}',
               CLAUDE_CODE_SESSION_ID=(work / '.trial/session').read_text(), CLAUDECODE='1')
    return env


class Session:
    """One session of an agent, as Claude Code would report it to a hook and write it to a transcript."""

    def __init__(self, work):
        self.work, self.env = work, environment(work)
        self.id = (work / '.trial/session').read_text()
        self.transcript = work / f'.trial/{self.id}.jsonl'

    def event(self, name, **fields):
        """Passes an event to the memory. Returns the text for the agent, and the reason if it may not stop yet."""
        if not (self.work / '.trial/on').exists():
            return '', None
        fields.update(hook_event_name=name, session_id=self.id, transcript_path=str(self.transcript), cwd=str(self.work), permission_mode='default')
        ran = subprocess.run(['memctl', 'hook', 'claude-code'], input=json.dumps(fields), env=self.env, cwd=self.work, capture_output=True, text=True)
        try:
            answer = json.loads(ran.stdout or '{}')
        except ValueError:
            return ran.stdout, None
        specific = answer.get('hookSpecificOutput', {})
        text = specific.get('additionalContext') or ''
        if specific.get('permissionDecision') in ('ask', 'deny'):
            text += f"\n[permission: {specific['permissionDecision']}: {specific.get('permissionDecisionReason')}]"
        stop = answer.get('reason') if answer.get('decision') == 'block' else None
        with open(self.work / '.trial/told.jsonl', 'a') as log:
            log.write(json.dumps({'event': name, 'call': fields.get('tool_input'), 'text': text, 'stop': stop}) + '\n')
        return text, stop

    def write(self, kind, content, **more):
        stamp = time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime())
        line = {'type': kind, 'sessionId': self.id, 'cwd': str(self.work), 'timestamp': stamp, 'uuid': str(uuid.uuid4()),
                'version': '2.1.329', 'message': {'role': kind, 'content': content}, **more}
        with open(self.transcript, 'a') as transcript:
            transcript.write(json.dumps(line) + '\n')

    def call(self, command):
        """Runs one command with the events before and after it."""
        name, given = 'Bash', {'command': command}
        call = {'tool_name': name, 'tool_input': given, 'tool_use_id': 'toolu_' + uuid.uuid4().hex[:20]}
        before, _ = self.event('PreToolUse', **call)
        self.write('assistant', [{'type': 'tool_use', 'id': call['tool_use_id'], 'name': name, 'input': given}])
        ran = subprocess.run(['bash', '-c', command], cwd=self.work, env=self.env, capture_output=True, text=True, errors='replace', timeout=120, stdin=subprocess.DEVNULL)
        output, failed = (ran.stdout + ran.stderr)[:20000], ran.returncode != 0
        shown = (f'Exit code {ran.returncode}\n' if failed else '') + output
        response = {'stdout': ran.stdout, 'stderr': ran.stderr, 'interrupted': False}
        self.write('user', [{'type': 'tool_result', 'tool_use_id': call['tool_use_id'], 'is_error': failed, 'content': shown}],
                   toolUseResult='Error: ' + shown if failed else response)
        own = command.lstrip().startswith('memctl')
        with open(self.work / '.trial/calls.jsonl', 'a') as calls:
            calls.write(json.dumps({'command': command, 'failed': failed, 'read': len(shown), 'memory': own}) + '\n')
        if failed:
            after, _ = self.event('PostToolUseFailure', error=shown, **call)
        else:
            after, _ = self.event('PostToolUse', tool_response=response, **call)
        for note, text in ((True, before), (False, shown), (True, after)):
            if text:
                print(f'<memory>\n{text}\n</memory>' if note else text, end='\n' if note else '')

    def start(self):
        self.write('user', (self.work / '.trial/task').read_text())
        text, _ = self.event('SessionStart', source='startup')
        print(f'<memory>\n{text}\n</memory>' if text else 'started')

    def say(self, text):
        (self.work / '.trial/message').write_text(text)
        self.write('assistant', [{'type': 'text', 'text': text}])
        print('said')

    def end(self):
        """Stops the session. The memory may ask once before."""
        asked = self.work / '.trial/asked'
        message = self.work / '.trial/message'
        text = message.read_text() if message.exists() else ''
        _, stop = self.event('Stop', stop_hook_active=asked.exists(), last_assistant_message=text)
        if stop and not asked.exists():
            asked.touch()
            print(f"<memory>\n{stop}\n</memory>\n(Answer with ./sh --say 'TEXT', then ./sh --end again.)")
            return
        self.event('SessionEnd', reason='other')
        print('ended')


def new(arguments):
    sys.path.insert(0, str(HERE))
    import repositories
    base = Path(arguments.dir).resolve()
    work = base / 'work'
    shutil.rmtree(base, ignore_errors=True)
    work.mkdir(parents=True)
    jobs = repositories.make(arguments.repository, work)
    trial = work / '.trial'
    (trial / 'home').mkdir(parents=True)
    (trial / 'bin').mkdir()
    program = os.environ.get('MEMCTL') or shutil.which('memctl') or sys.exit('no memctl: name the program in $MEMCTL')
    (trial / 'bin/memctl').symlink_to(Path(program).resolve())
    (trial / 'session').write_text(str(uuid.uuid4()))
    (trial / 'task').write_text(jobs[arguments.session])
    shell = work / 'sh'
    shell.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE}/trial.py sh {work} "$@"\n')
    shell.chmod(0o755)
    if arguments.session == 'first' or arguments.memory:
        (trial / 'on').touch()
        if arguments.memory:
            old = Path(arguments.memory).resolve() / 'work'
            shutil.copytree(old / '.agentura', work / '.agentura')
            shutil.copytree(old / '.trial/home', trial / 'home', dirs_exist_ok=True)
        else:
            subprocess.run(['memctl', 'init', '--quiet'], cwd=work, env=environment(work), check=True, stdout=subprocess.DEVNULL)
    print(work, jobs[arguments.session], sep='\n')


def count(arguments):
    for base in arguments.dirs:
        lines = (Path(base) / 'work/.trial/calls.jsonl').read_text().splitlines()
        calls = [call for call in map(json.loads, lines) if not call['memory']]
        failed = sum(call['failed'] for call in calls)
        print(json.dumps({'session': base, 'calls': len(calls), 'failed': failed, 'read': sum(call['read'] for call in calls)}))


def main():
    if sys.argv[1:2] == ['sh']:
        session, argument = Session(Path(sys.argv[2])), ' '.join(sys.argv[3:])
        if sys.argv[3:4] == ['--say']:
            session.say(' '.join(sys.argv[4:]))
            return
        {'--start': session.start, '--end': session.end}.get(argument, lambda: session.call(argument))()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser('new')
    verb.add_argument('dir')
    verb.add_argument('repository')
    verb.add_argument('session', choices=['first', 'second'])
    verb.add_argument('--memory')
    verb.set_defaults(run=new)
    verb = verbs.add_parser('count')
    verb.add_argument('dirs', nargs='+')
    verb.set_defaults(run=count)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == '__main__':
    main()
