"""Any memory that registers hooks for Claude Code, driven as that host would: from its settings file.

A subclass names the command that registers the hooks. Sessions are written to the place where the host
keeps them, for memories that read those.
"""
import json
import os
import re
import subprocess

from heed import Memory


def environment(home):
    """The variables of a person with this home, and no key of anybody."""
    kept = {name: value for name, value in os.environ.items()
            if not name.endswith(("_API_KEY", "_TOKEN")) and name != "DATABASE_URL"}
    places = {"HOME": "", "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share",
              "XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache"}
    for name, place in places.items():
        kept[name] = os.path.join(home, place)
        os.makedirs(kept[name], exist_ok=True)
    return kept


def event_of(memory, session, name, call=None, **fields):
    """A hook event as Claude Code sends it. Paths of calls are made absolute."""
    event = {"session_id": session, "transcript_path": transcript(memory, session), "cwd": memory.project,
             "permission_mode": "default", "hook_event_name": name, **fields}
    if call:
        given = dict(call["input"])
        path = given.get("file_path")
        if path and not path.startswith("/"):
            given["file_path"] = os.path.normpath(os.path.join(memory.project, path))
        event.update(tool_name=call["tool"], tool_input=given, tool_use_id=f"toolu_{memory.calls}")
    return event


def transcript(memory, session):
    folder = re.sub(r"[^A-Za-z0-9]", "-", memory.project)
    return os.path.join(memory.home, ".claude", "projects", folder, session + ".jsonl")


def said(output):
    """What the agent or the person reads of a hook's answer."""
    output = output.strip()
    try:
        answer = json.loads(output)
    except ValueError:
        return output
    own = answer.get("hookSpecificOutput") or {}
    texts = (own.get("additionalContext"), own.get("permissionDecisionReason"),
             answer.get("systemMessage"), answer.get("reason"))
    return "\n".join(str(text) for text in texts if text)


class Hooks(Memory):
    INSTALL = None  # the command that registers the hooks
    AFTER = None  # the command that reads the sessions that have ended

    def __init__(self, project, home):
        super().__init__(project, home)
        self.environment = environment(home)
        self.calls = 0
        os.makedirs(os.path.join(home, ".claude"), exist_ok=True)
        subprocess.run(["git", "init", "-q"], cwd=project, env=self.environment, check=True)
        self.run(self.INSTALL)

    def run(self, command, given=None):
        shell = isinstance(command, str)
        done = subprocess.run(command, cwd=self.project, env=self.environment, input=given, shell=shell,
                              capture_output=True, text=True, timeout=120)
        return done.stdout

    def event(self, session, name, matched="", **fields):
        settings = os.path.join(self.home, ".claude", "settings.json")
        if not os.path.exists(settings):
            return ""
        with open(settings, encoding="utf-8") as file:
            registered = json.load(file).get("hooks", {}).get(name, [])
        event = json.dumps(event_of(self, session, name, **fields), ensure_ascii=False)
        answers = []
        for entry in registered:
            matcher = entry.get("matcher") or ""
            if matcher in ("", "*") or not matched or re.fullmatch(matcher, matched):
                answers += [said(self.run(hook["command"], event)) for hook in entry.get("hooks", [])]
        return "\n".join(answer for answer in answers if answer)

    def write(self, session, role, content):
        path = transcript(self, session)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        line = {"type": role, "sessionId": session, "cwd": self.project, "uuid": f"{session}-{self.calls}-{role}",
                "timestamp": "2026-03-02T10:00:00.000Z", "message": {"role": role, "content": content}}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def start(self, session):
        return self.event(session, "SessionStart", source="startup")

    def message(self, session, text):
        self.write(session, "user", text)
        return self.event(session, "UserPromptSubmit", prompt=text)

    def before(self, session, call):
        self.calls += 1
        use = {"type": "tool_use", "id": f"toolu_{self.calls}", "name": call["tool"], "input": call["input"]}
        self.write(session, "assistant", [use])
        return self.event(session, "PreToolUse", call["tool"], call=call)

    def after(self, session, call, output, is_error):
        result = {"type": "tool_result", "tool_use_id": f"toolu_{self.calls}", "content": output, "is_error": is_error}
        self.write(session, "user", [result])
        return self.event(session, "PostToolUse", call["tool"], call=call, tool_response={"stdout": output})

    def end(self, session):
        self.event(session, "SessionEnd", reason="prompt_input_exit")
        if self.AFTER:
            self.run(self.AFTER)


class DejaVu(Hooks):
    """deja-vu: `deja` has to be on the PATH. It keeps sessions and no rules, so that nothing is heard or
    complete; what it tells and says is measured by the words of the rule."""

    INSTALL = ["deja", "install", "--auto"]
    AFTER = ["deja", "index"]
