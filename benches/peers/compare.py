#!/usr/bin/env python3
"""memctl beside other memories on one machine: what an agent's host waits for, and what it costs.

    compare.py --memctl memctl --deja deja --cass cass --mem0 PYTHON --claude-mem DIR --agentrecall DIR

Every memory gets the same 500 notes, in 50 sessions of ten, and the same three rules, in the way in which it
takes them; then the same events of sessions, calls and questions, in turns. No model and no key: what a
memory does with a model of its own is not measured. Nothing is fetched. Programs that are not named are
looked for on the PATH, and those that are missing are named at the end.

    --mem0         a Python that has the package `mem0ai`. Its vectors come from here, over loopback and in
                   no time: a vector counts the words of a text. Its search in fact takes longer, by a
                   vector of the query.
    --claude-mem   the directory of the plugin that `npx claude-mem install` leaves, with `hooks` and
                   `scripts`; `node` and `bun` have to be on the PATH
    --minilm       the directory of the model all-MiniLM-L6-v2 that Chroma has fetched for claude-mem,
                   `~/.cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx`. Without it, its vectors are off.
    --agentrecall  a checkout of AgentRecall that has been built: `packages/cli/dist/index.js`

Times are medians of `--runs` cold processes, in the form in which the host runs them: hooks of one event side
by side, until the last of them that the host waits for. Characters are those that the agent reads.
A dash: it has nothing of the kind, or nothing for which the host waits.
"""
import argparse
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from corpus import FOUND, RULES, corpus
from memories import AgentRecall, Cass, ClaudeMem, DejaVu, Mem0, Memctl, MemctlWords
from place import Place, peak_of_all

def timed(work, *given):
    start = time.perf_counter()
    out = work(*given)
    return time.perf_counter() - start, out


def read_by_agent(output):
    """What the agent reads of a hook's answer."""
    output = output.strip()
    try:
        own = json.loads(output).get("hookSpecificOutput") or {}
    except (ValueError, AttributeError):
        return output
    return "\n".join(own[name] for name in ("additionalContext", "permissionDecisionReason") if own.get(name))


PLAIN, FORBIDDEN = "make part7 OPT=3", "git push --force origin main"
EVENTS = {
    "a session starts": ("SessionStart", {"source": "startup"}),
    "a prompt": ("UserPromptSubmit", {}),
    "before a call": ("PreToolUse", {"command": PLAIN}),
    "before a call that a rule forbids": ("PreToolUse", {"command": FORBIDDEN}),
    "after a call": ("PostToolUse", {"command": PLAIN}),
}


def event_of(memory, title, session, prompt):
    name, fields = EVENTS[title]
    event = {"session_id": session, "transcript_path": os.path.join(memory.place.home, "none.jsonl"),
             "cwd": memory.place.project, "permission_mode": "default", "hook_event_name": name}
    if name in ("PreToolUse", "PostToolUse"):
        answer = {"tool_response": {"stdout": "built part7", "stderr": "", "interrupted": False}}
        return {**event, "tool_name": "Bash", "tool_input": fields, "tool_use_id": "toolu_1",
                **(answer if name == "PostToolUse" else {})}
    return {**event, **fields, **({"prompt": prompt} if name == "UserPromptSubmit" else {})}


def hook(memory, title, session, prompt, wrapper=()):
    """Runs the hooks of an event side by side. Returns the milliseconds that the host waits, those that
    hooks take for which it does not wait, and the text."""
    event = event_of(memory, title, session, prompt)
    commands = memory.hooks(event["hook_event_name"], event.get("tool_name"))
    environment = {**memory.place.environment, "CLAUDE_SESSION_ID": session, "CLAUDE_PROJECT_DIR": event["cwd"]}
    start = time.perf_counter()
    waited, others = [], []
    for command, waits in commands:
        plain = not set(command) & set("$;&|<>`(){}")
        argv = [*wrapper, *(shlex.split(command) if plain else ["bash", "-c", command])]
        process = subprocess.Popen(argv, cwd=event["cwd"], env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            process.stdin.write(json.dumps(event).encode())
            process.stdin.close()
        except BrokenPipeError:
            pass
        (waited if waits else others).append(process)
    texts = [read_by_agent(process.stdout.read().decode()) for process in waited]
    for process in waited:
        process.wait()
    took = (time.perf_counter() - start) * 1000
    for process in others:
        process.stdout.read()
        process.wait()
    beside = (time.perf_counter() - start) * 1000
    return (took if waited else None), (beside if others else None), "\n".join(text for text in texts if text)


def size_of(paths):
    """What the files take on the disk, in MB."""
    total = 0
    for path in paths:
        for folder, _, names in os.walk(path):
            total += sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in names)
    return total / 1e6


def peak_with(wrapped):
    """The peak in MB of what `wrapped` runs when it is given a command in front; nothing without `time`."""
    program = shutil.which("time")
    if not program:
        return None
    with tempfile.NamedTemporaryFile("r") as note:
        wrapped([program, "-a", "-f", "%M", "-o", note.name])
        peaks = [int(line) for line in note.read().split() if line.isdigit()]
    return max(peaks) / 1024 if peaks else None


class Report:
    def __init__(self, names):
        self.names, self.rows = names, []

    def row(self, title, values, form):
        cells = [form(values[name]) if values.get(name) is not None else "–" for name in self.names]
        self.rows.append((title, cells))

    def print(self):
        print("| | " + " | ".join(self.names) + " |")
        print("|---" * (len(self.names) + 1) + "|")
        for title, cells in self.rows:
            print(f"| {title} | " + " | ".join(cells) + " |")


def ms(value):
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def seconds(value):
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def megabytes(value):
    return f"{value:.1f} MB" if value < 10 else f"{value:.0f} MB"


def measure_hooks(memories, asked, runs, report, seen):
    for title in EVENTS:
        times, beside, texts = {}, {}, {}
        for turn in range(runs):
            for memory in memories:
                prompt = asked[turn % len(asked)][1]
                took, others, text = hook(memory, title, f"session-{title.replace(' ', '-')}-{turn}", prompt)
                if others is not None:
                    beside.setdefault(memory.NAME, []).append(others)
                if took is not None:
                    times.setdefault(memory.NAME, []).append(took)
                    texts.setdefault(memory.NAME, []).append(text)
        report.row(f"hook: {title}", {name: statistics.median(each) for name, each in times.items()}, ms)
        if beside:
            report.row("… in the background", {name: statistics.median(each) for name, each in beside.items()}, ms)
        if any(any(each) for each in texts.values()):
            report.row("… characters", {name: statistics.median(len(text) for text in each)
                                        for name, each in texts.items()}, lambda value: f"{value:,.0f}")
        for name, each in texts.items():
            seen.setdefault(name, {})[title] = each[-1]
    peaks = {}
    for memory in memories:
        if memory.hooks("SessionStart", None):
            peaks[memory.NAME] = peak_with(
                lambda front, memory=memory: [hook(memory, title, "peak", asked[0][1], front) for title in EVENTS])
    report.row("… peak memory of the hooks", peaks, megabytes)


def measure_search(memories, words, asked, runs, report, seen):
    def cold(memory, text):
        return subprocess.run(memory.query(text), cwd=memory.place.project, env=memory.place.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False).stdout

    for title, searched in (("search, a cold process", memories), ("… by keywords alone", words)):
        times = {}
        for turn in range(runs):
            for memory in searched:
                if memory.query("x"):
                    took, text = timed(cold, memory, asked[turn % len(asked)][0])
                    times.setdefault(memory.NAME, []).append(took * 1000)
                    seen.setdefault(memory.NAME, {})[title] = text
        report.row(title, {name: statistics.median(each) for name, each in times.items()}, ms)
    peaks = {}
    for memory in memories:
        if memory.query("x"):
            peaks[memory.NAME] = peak_with(lambda front, memory=memory: subprocess.run(
                [*front, *memory.query(asked[0][0])], cwd=memory.place.project, env=memory.place.environment,
                stdin=subprocess.DEVNULL, capture_output=True, check=False))
    report.row("… peak memory", peaks, megabytes)

    times, found, offered, peaks = {}, {"keywords": {}, "questions": {}}, {}, {}
    for memory in memories:
        tools = memory.tools()
        if not tools:
            continue
        if tools.listed is not None:
            offered[memory.NAME] = len(json.dumps(tools.listed, ensure_ascii=False))
        memory.ask(tools, asked[-1][0])
        each = []
        for turn in range(runs):
            took, _ = timed(memory.ask, tools, asked[turn % len(asked)][0])
            each.append(took * 1000)
        times[memory.NAME] = statistics.median(each)
        for column, kind in enumerate(found):
            answers = [(memory.ask(tools, each[column]), each[2]) for each in asked]
            found[kind][memory.NAME] = sum(answer in text for text, answer in answers)
            seen.setdefault(memory.NAME, {})[f"tool: {kind}"] = answers[-1][0]
        peaks[memory.NAME] = tools.peak()
        tools.close()
    for memory in memories:
        if memory.NAME not in times and memory.query("x"):
            for column, kind in enumerate(found):
                found[kind][memory.NAME] = sum(each[2] in cold(memory, each[column]) for each in asked)
    report.row("search, a call of a tool in an open server", times, ms)
    report.row("… peak memory of the server", peaks, megabytes)
    report.row("… characters of all its tools", offered, lambda value: f"{value:,}")
    for kind in found:
        report.row(f"… right note among {FOUND}, by {kind}", found[kind], lambda value: f"{value} of {len(asked)}")


def pause(wanted, what):
    """Lets the person quieten the machine."""
    if wanted:
        print(f"ready: {what}", file=sys.stderr, flush=True)
        sys.stdin.readline()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memctl", default="memctl")
    parser.add_argument("--deja", default="deja")
    parser.add_argument("--cass", default="cass")
    parser.add_argument("--mem0", default="", help="a Python")
    parser.add_argument("--claude-mem", default="", help="the plugin's directory")
    parser.add_argument("--minilm", default="", help="Chroma's directory of the model")
    parser.add_argument("--agentrecall", default="", help="a checkout that has been built")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pause", action="store_true", help="wait for a line before the hooks and the search")
    parser.add_argument("--show", action="store_true", help="print what each said last")
    given = parser.parse_args()

    def program(name):
        path = shutil.which(name)
        return path and [os.path.abspath(path)]

    def directory(path, needed):
        path = os.path.abspath(path) if path else ""
        return path if path and os.path.exists(os.path.join(path, needed)) else None

    python = given.mem0 and shutil.which(given.mem0)
    if python and subprocess.run([python, "-c", "import mem0"], capture_output=True, check=False).returncode:
        python = None
    kinds = [(Memctl, program(given.memctl)), (DejaVu, program(given.deja)),
             (ClaudeMem, directory(given.claude_mem, "hooks/hooks.json")), (Mem0, python and os.path.abspath(python)),
             (Cass, program(given.cass)), (AgentRecall, directory(given.agentrecall, "packages/cli/dist/index.js"))]
    ClaudeMem.MODEL = directory(given.minilm, "model.onnx")
    notes, asked = corpus()
    root = tempfile.mkdtemp(prefix="compare-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    memories, missing, times = [], [], {"set up": {}, "fill": {}}
    try:
        for kind, where in kinds:
            if not where:
                missing.append(kind.NAME)
                continue
            memory = kind(Place(os.path.join(root, kind.NAME)), where)
            memories.append(memory)
            took, made = timed(memory.set_up)
            if made is not False:
                times["set up"][kind.NAME] = took
            memory.prepare(notes, RULES)
            times["fill"][kind.NAME], _ = timed(memory.fill, notes, RULES)
        if not memories:
            sys.exit("none of the programs was found; see --help")
        report, seen = Report([memory.NAME for memory in memories]), {}
        report.row("version", {memory.NAME: memory.version() for memory in memories}, str)
        report.row("set-up in Claude Code", times["set up"], seconds)
        report.row(f"{len(notes)} notes taken in", times["fill"], seconds)
        report.row("… on the disk", {memory.NAME: size_of(memory.stored()) for memory in memories}, megabytes)
        pause(given.pause, "hooks")
        measure_hooks(memories, asked, given.runs, report, seen)
        pause(given.pause, "search")
        words = [MemctlWords(memory.place, memory.program) for memory in memories if type(memory) is Memctl]
        measure_search(memories, words, asked, given.runs, report, seen)
        pause(given.pause, "done")
        resident = {memory.NAME: memory.resident() for memory in memories}
        report.row("memory of processes that stay", {name: peak_of_all(pid) for name, pid in resident.items() if pid},
                   megabytes)
        report.print()
        print(f"\nMedians of {given.runs} runs, in turns, {time.strftime('%d %B %Y')}.")
        for name in missing:
            print(f"skipped: {name}: not found")
        if given.show:
            for name, said in seen.items():
                for title, text in said.items():
                    print(f"\n--- {name}: {title}\n{text[:1500]}")
    finally:
        for memory in memories:
            try:
                memory.close()
            except (OSError, RuntimeError) as error:
                print(f"{memory.NAME}: {error}", file=sys.stderr)
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
