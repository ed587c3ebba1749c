"""Where a memory runs: a home of its own, and the server of its tools."""
import contextlib
import glob
import json
import os
import re
import select
import subprocess
import time


def peak_of(process):
    """The peak of a process that runs, in MB; nothing where there is no `/proc`."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024
    except OSError:
        return None


def peak_of_all(process):
    """The sum of the peaks of a process and of those that it started, in MB."""
    total, left = 0, [process]
    while left:
        at = left.pop()
        total += peak_of(at) or 0
        for children in glob.glob(f"/proc/{at}/task/*/children"):
            with contextlib.suppress(OSError), open(children, encoding="utf-8") as file:
                left += [int(each) for each in file.read().split()]
    return total or None


class Place:
    """An empty home with a project in it."""

    def __init__(self, root):
        self.home, self.project = os.path.join(root, "home"), os.path.join(root, "home", "shop")
        os.makedirs(self.project)
        os.makedirs(os.path.join(self.home, ".claude"))
        kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
        self.environment = {**kept, "HOME": self.home, "DO_NOT_TRACK": "1"}
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)
        self.run(["git", "init", "-q"])

    def run(self, command, given=None):
        done = subprocess.run(command, cwd=self.project, env=self.environment, input=given, capture_output=True,
                              text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{command[:3]}: {done.stderr[-400:] or done.stdout[-400:]}")
        return done.stdout

    def write_sessions(self, texts):
        """The sessions of Claude Code in which a person said these texts, ten in each."""
        folder = os.path.join(self.home, ".claude", "projects", re.sub(r"[^A-Za-z0-9]", "-", self.project))
        os.makedirs(folder)
        for index, text in enumerate(texts):
            session = f"5e551000-0000-4000-8000-{index // 10:012}"
            day = f"2026-{5 + index // 250:02}-{index // 10 % 25 + 1:02}"
            for role, content in (("user", text), ("assistant", [{"type": "text", "text": "Noted."}])):
                line = {"type": role, "sessionId": session, "cwd": self.project, "uuid": f"{role}-{index}",
                        "timestamp": f"{day}T10:{index % 10:02}:{30 * (role == 'assistant'):02}.000Z",
                        "message": {"role": role, "content": content}}
                with open(os.path.join(folder, session + ".jsonl"), "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


class Tools:
    """An MCP server that stays open, as the host keeps it."""

    def __init__(self, command, place):
        self.server = subprocess.Popen(command, cwd=place.project, env=place.environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.number, self.rest = 0, b""
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "compare", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.listed = self.ask("tools/list", {})["tools"]

    def send(self, message):
        self.server.stdin.write(json.dumps(message).encode() + b"\n")
        self.server.stdin.flush()

    def ask(self, method, parameters):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": parameters})
        until = time.monotonic() + 60
        while time.monotonic() < until:
            line, found, rest = self.rest.partition(b"\n")
            if found:
                self.rest = rest
                message = json.loads(line)
                if message.get("id") == self.number:
                    return message.get("result", {})
            elif select.select([self.server.stdout], [], [], 1)[0]:
                self.rest += os.read(self.server.stdout.fileno(), 1 << 20)
        raise RuntimeError(f"no answer to {method}")

    def call(self, name, **arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        return "\n".join(part.get("text", "") for part in result.get("content", []))

    def peak(self):
        return peak_of(self.server.pid)

    def close(self):
        self.server.stdin.close()
        try:
            self.server.wait(5)
        except subprocess.TimeoutExpired:
            self.server.kill()
