"""How each memory is set up, filled, asked and ended, and what the host runs of it."""
import base64
import http.server
import json
import math
import os
import re
import shlex
import socket
import struct
import subprocess
import threading
import time
import urllib.request
import zlib

from corpus import FOUND
from place import Tools, peak_of


class Memory:
    """What the memories have in common: hooks from the settings of Claude Code, or none."""

    NAME = ""
    SERVER = None  # the command of its MCP server
    SEARCH = None  # its tool that searches

    def __init__(self, place, program):
        self.place, self.program = place, program

    def version(self):
        return self.place.run([*self.program, "--version"]).split("\n")[0].strip()

    def set_up(self):
        """Makes it known to Claude Code. False for a memory that has no command for that."""
        return False

    def prepare(self, notes, rules):
        """What there is before `fill`, and is not its work: sessions on the disk."""

    def fill(self, notes, rules):
        """Takes in what it is to remember."""

    def hooks(self, event, tool):
        """The commands that the host runs at this event: `(command, whether it waits)`."""
        path = os.path.join(self.place.home, ".claude", "settings.json")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return registered(json.load(file).get("hooks", {}), event, tool)

    def query(self, text):
        """The command that searches, as a cold process."""
        return [*self.program, text]

    def tools(self):
        return Tools(self.SERVER, self.place) if self.SERVER else None

    def ask(self, tools, text):
        return tools.call(self.SEARCH, query=text, limit=FOUND)

    def stored(self):
        """The files and directories that it keeps."""
        return []

    def resident(self):
        """The process that stays in the background between sessions, if there is one."""

    def close(self):
        pass


def registered(hooks, event, tool):
    found = []
    for entry in hooks.get(event, []):
        matcher = entry.get("matcher") or ""
        if matcher in ("", "*") or not tool or re.fullmatch(matcher, tool):
            found += [(hook["command"], not hook.get("async")) for hook in entry["hooks"]]
    return found


class Memctl(Memory):
    NAME, SEARCH = "memctl", "search"

    def __init__(self, place, program):
        super().__init__(place, program)
        self.SERVER = [*program, "mcp"]

    def set_up(self):
        self.place.run([*self.program, "setup", "--yes", "claude-code"])

    def fill(self, notes, rules):
        lines = os.path.join(self.place.home, "notes.jsonl")
        with open(lines, "w", encoding="utf-8") as file:
            header = {"format": "memctl-export", "version": 1, "exported_at": "", "counts": {}}
            file.write(json.dumps(header) + "\n")
            for at, note in enumerate(notes, 1):
                entry = {"id": f"MEM-{at:03}", "memory_type": "user_preferences", "content": note, "metadata": {}}
                file.write(json.dumps({"kind": "memory", "id": entry["id"], "entry": entry}) + "\n")
        self.place.run([*self.program, "memory", "import", lines, "--trust"])
        for text, command in rules:
            added = json.loads(self.place.run([*self.program, "correct", text, "--command", command, "--json"]))
            self.place.run([*self.program, "approve", re.search(r"REFL-[\w-]+", json.dumps(added)).group()])
        self.place.run([*self.program, "index"])

    def query(self, text):
        return [*self.program, "search", text]

    def stored(self):
        return [os.path.join(self.place.project, ".agentura"), os.path.join(self.place.home, ".local/share/memctl")]


class MemctlWords(Memctl):
    """The same store, searched by keywords alone."""

    def query(self, text):
        return [*self.program, "search", "--keyword", text]


class DejaVu(Memory):
    NAME, SEARCH = "deja-vu", "recall"

    def __init__(self, place, program):
        super().__init__(place, program)
        self.SERVER = [*program, "mcp"]

    def version(self):
        return self.place.run([*self.program, "version"]).strip()

    def set_up(self):
        self.place.run([*self.program, "install", "--auto"])

    def prepare(self, notes, rules):
        self.place.write_sessions(notes)

    def fill(self, notes, rules):
        self.place.run([*self.program, "index"])
        for text, _ in rules:
            self.place.run([*self.program, "remember", text])

    def query(self, text):
        return [*self.program, "search", "--limit", str(FOUND), text]

    def stored(self):
        return [os.path.join(self.place.home, at) for at in (".cache/deja", ".local/share/deja")]


class Cass(Memory):
    """Reads the sessions of agents; nothing of it runs in a host."""

    NAME = "cass"

    def prepare(self, notes, rules):
        self.place.environment["CODING_AGENT_SEARCH_NO_UPDATE_PROMPT"] = "1"
        self.place.write_sessions(notes + [text for text, _ in rules])

    def fill(self, notes, rules):
        self.place.run([*self.program, "index", "--full", "--json"])

    def query(self, text):
        return [*self.program, "search", text, "--robot", "--limit", str(FOUND)]

    def stored(self):
        return [os.path.join(self.place.home, ".local/share/coding-agent-search")]


class ClaudeMem(Memory):
    """The hooks are those of its plugin. Observations are imported as a model would have worded them."""

    NAME, SEARCH = "claude-mem", "search"

    MODEL = None  # what `--minilm` names

    def __init__(self, place, plugin):
        super().__init__(place, ["node", os.path.join(plugin, "scripts", "bun-runner.js"),
                                 os.path.join(plugin, "scripts", "worker-service.cjs")])
        self.plugin, self.port = plugin, free_port()
        self.SERVER = ["node", os.path.join(plugin, "scripts", "mcp-server.cjs")]
        place.environment.update(
            CLAUDE_PLUGIN_ROOT=plugin, CLAUDE_MEM_TELEMETRY="false",
            CLAUDE_MEM_CHROMA_ENABLED="true" if self.MODEL else "false",
            CLAUDE_MEM_WORKER_PORT=str(self.port),
            CLAUDE_MEM_DATA_DIR=os.path.join(place.home, ".claude-mem"))
        if self.MODEL:
            models = os.path.join(place.home, ".cache", "chroma", "onnx_models", "all-MiniLM-L6-v2")
            os.makedirs(models)
            os.symlink(self.MODEL, os.path.join(models, "onnx"))

    def version(self):
        with open(os.path.join(self.plugin, "package.json"), encoding="utf-8") as file:
            return json.load(file)["version"]

    def set_up(self):
        self.place.run([*self.program, "start"], given="")

    def http(self, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body and json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def fill(self, notes, rules):
        project, start = os.path.basename(self.place.project), int(time.time() * 1000) - 86_400_000 * 30
        texts = [(note, "discovery") for note in notes] + [(text, "decision") for text, _ in rules]
        sessions, observations = [], []
        for at, (text, kind) in enumerate(texts):
            session, when = f"s{at // 10}", start + at * 60_000
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(when / 1000))
            if at % 10 == 0:
                sessions.append({
                    "content_session_id": session, "memory_session_id": session, "project": project,
                    "platform_source": "claude", "user_prompt": "Set the services up", "started_at": stamp,
                    "started_at_epoch": when, "completed_at": stamp, "completed_at_epoch": when,
                    "status": "completed"})
            observations.append({
                "memory_session_id": session, "project": project, "text": text, "type": kind, "title": text,
                "subtitle": None, "facts": json.dumps([text]), "narrative": text,
                "concepts": json.dumps(["how-it-works"]), "files_read": "[]", "files_modified": "[]",
                "prompt_number": 1, "discovery_tokens": 100, "created_at": stamp, "created_at_epoch": when})
        self.http("/api/import", {"sessions": sessions, "observations": observations})
        state, until = os.path.join(self.stored()[0], "chroma-sync-state.json"), time.monotonic() + 1200
        while self.MODEL and time.monotonic() < until:
            time.sleep(.2)
            if os.path.exists(state):
                with open(state, encoding="utf-8") as file:
                    if re.search(rf'"observations": {len(texts)}\b', file.read()):
                        return

    def hooks(self, event, tool):
        with open(os.path.join(self.plugin, "hooks", "hooks.json"), encoding="utf-8") as file:
            return registered(json.load(file)["hooks"], event, tool)

    def query(self, text):
        return None  # its command asks the server, as its tool does

    def ask(self, tools, text):
        return tools.call("search", query=text, limit=FOUND, project=os.path.basename(self.place.project))

    def stored(self):
        return [os.path.join(self.place.home, ".claude-mem")]

    def resident(self):
        with open(os.path.join(self.place.home, ".claude-mem", "worker.pid"), encoding="utf-8") as file:
            return json.load(file)["pid"]

    def close(self):
        self.place.run([*self.program, "stop"], given="")


class AgentRecall(Memory):
    NAME, SEARCH = "AgentRecall", "recall"
    HOOKS = {"SessionStart": ["hook-start"], "UserPromptSubmit": ["hook-ambient", "hook-correction"],
             "PreToolUse": ["hook-pretool"]}

    def __init__(self, place, checkout):
        super().__init__(place, ["node", os.path.join(checkout, "packages", "cli", "dist", "index.js")])
        self.SERVER = ["node", os.path.join(checkout, "packages", "mcp-server", "dist", "index.js")]

    def fill(self, notes, rules):
        # It keeps a file a day and finds one passage of each, so every ten notes get a day of their own.
        tools, project = self.tools(), os.path.basename(self.place.project)
        journal = os.path.join(self.stored()[0], "projects", project, "journal")
        for at, note in enumerate(notes):
            tools.call("remember", content=note, project=project)
            if at % 10 == 9:
                day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86_400 * (60 - at // 10)))
                for name in os.listdir(journal):
                    today = name[:10]
                    if "--capture--" in name and today >= time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86_400)):
                        with open(os.path.join(journal, name), encoding="utf-8") as file:
                            text = file.read().replace(today, day)
                        with open(os.path.join(journal, day + name[10:]), "w", encoding="utf-8") as file:
                            file.write(text)
                        os.remove(os.path.join(journal, name))
        tools.close()
        for text, _ in rules:
            self.place.run([*self.program, "correct", "what this project forbids", text])

    def hooks(self, event, tool):
        return [(shlex.join([*self.program, name]), True) for name in self.HOOKS.get(event, [])]

    def query(self, text):
        return [*self.program, "recall", text, "--project", os.path.basename(self.place.project)]

    def ask(self, tools, text):
        return tools.call("recall", query=text, limit=FOUND, project=os.path.basename(self.place.project))

    def stored(self):
        return [os.path.join(self.place.home, ".agent-recall")]


class Mem0(Memory):
    """A library. `query` is a process that opens the store and searches once, `tools` one that stays open."""

    NAME = "mem0"
    CODE = """
import importlib.metadata, json, logging, sys
logging.disable(logging.CRITICAL)
if sys.argv[1] == "version":
    print(importlib.metadata.version("mem0ai"))
    sys.exit()
from mem0 import Memory
place, port, limit = sys.argv[2], sys.argv[3], int(sys.argv[4])
asked = {"provider": "openai", "config": {"openai_base_url": f"http://127.0.0.1:{port}/v1", "api_key": "none"}}
memory = Memory.from_config({
    "vector_store": {"provider": "qdrant", "config": {"path": place + "/vectors", "on_disk": True}},
    "embedder": asked, "llm": asked, "history_db_path": place + "/history.db"})
for line in sys.stdin:
    if sys.argv[1] == "add":
        memory.add(json.loads(line), user_id="u", infer=False)
    else:
        found = memory.search(json.loads(line), filters={"user_id": "u"}, top_k=limit)
        print(json.dumps([each["memory"] for each in found["results"]]), flush=True)
"""

    def __init__(self, place, python):
        super().__init__(place, [python, "-c", self.CODE])
        self.vectors = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Vectors)
        threading.Thread(target=self.vectors.serve_forever, daemon=True).start()
        self.store = os.path.join(place.home, ".mem0")
        self.given = [self.store, str(self.vectors.server_port), str(FOUND)]
        place.environment.update(MEM0_TELEMETRY="False", MEM0_DIR=self.store)

    def version(self):
        return self.place.run([*self.program, "version"]).strip()

    def fill(self, notes, rules):
        texts = notes + [text for text, _ in rules]
        self.place.run([*self.program, "add", *self.given], "".join(json.dumps(text) + "\n" for text in texts))

    def query(self, text):
        command = shlex.join([*self.program, "search", *self.given])
        return ["sh", "-c", f"printf '%s\\n' {shlex.quote(json.dumps(text))} | {command}"]

    def tools(self):
        self.open = subprocess.Popen([*self.program, "search", *self.given], cwd=self.place.project,
                                     env=self.place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True)
        return self

    listed = None

    def ask(self, tools, text):
        self.open.stdin.write(json.dumps(text) + "\n")
        self.open.stdin.flush()
        return self.open.stdout.readline()

    def peak(self):
        return peak_of(self.open.pid)

    def close(self):
        if self.open:
            self.open.stdin.close()
            self.open.wait()
            self.open = None

    open = None

    def stored(self):
        return [self.store]


class Vectors(http.server.BaseHTTPRequestHandler):
    """Answers as a service of embeddings does: a vector counts the words of the text."""

    protocol_version = "HTTP/1.1"
    SIZE = 1536

    def log_message(self, *_):
        pass

    def vector(self, text):
        counts = [0.0] * self.SIZE
        for word in re.findall(r"\w+", text.lower()):
            counts[zlib.crc32(word.encode()) % self.SIZE] += 1
        length = math.sqrt(sum(each * each for each in counts)) or 1
        return [each / length for each in counts]

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        data = []
        for at, text in enumerate(texts):
            vector = self.vector(text)
            if asked.get("encoding_format") == "base64":
                vector = base64.b64encode(struct.pack(f"<{self.SIZE}f", *vector)).decode()
            data.append({"object": "embedding", "index": at, "embedding": vector})
        body = json.dumps({"object": "list", "data": data, "model": "words",
                           "usage": {"prompt_tokens": 0, "total_tokens": 0}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]
