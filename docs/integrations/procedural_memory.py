"""Error -> fix patterns for agents that run code, over HTTP.

    memctl serve &
    export MEMCTL_URL=http://127.0.0.1:8787
    export MEMCTL_TOKEN=$(memctl token --sub me --scope '*')
    python3 procedural_memory.py

Nothing but the standard library. `memory` may fail (no server, no token, too many requests): an agent
goes on without hints then, so every method swallows what goes wrong on the way and keeps it in `trouble`.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass


@dataclass(frozen=True)
class PatternHint:
    """What worked when a similar error came before."""

    error_key: str
    failing_code: str
    working_code: str
    success_output: str
    score: float


class ProceduralMemory:
    """The failures and successes of one session, and the hints for the last failure."""

    def __init__(self, url: str | None = None, token: str | None = None, session: str | None = None) -> None:
        self.url = (url or os.environ.get("MEMCTL_URL", "http://127.0.0.1:8787")).rstrip("/")
        self.token = token or os.environ.get("MEMCTL_TOKEN", "")
        # A restored session has its name; a new one gets one that nobody else has.
        self.session = session or uuid.uuid4().hex
        self.trouble: str | None = None
        self._hints: list[PatternHint] = []
        self._pitfalls: list[str] = []

    def record_failure(self, code: str, error: str) -> None:
        """Keeps a failure until a success answers it, and looks up what worked before."""
        self._hints = []
        reply = self._post("/v1/failures", {"code": code, "error": error, "session": self.session})
        if reply is None:
            return
        fields = PatternHint.__dataclass_fields__
        self._hints = [PatternHint(**{name: hint[name] for name in fields}) for hint in reply["hints"]]
        self._pitfalls = reply["pitfalls"]

    def record_success(self, code: str, output: str) -> list[str]:
        """Makes a fix of the failure before it; answers the ids of what was learned or seen again."""
        self._hints = []
        reply = self._post("/v1/successes", {"code": code, "output": output, "session": self.session})
        return reply["learned"] + reply["merged"] if reply else []

    def select_hints(self, max_hints: int = 5) -> list[PatternHint]:
        """The hints for the last failure, best first."""
        return self._hints[:max_hints]

    def render_hints(self, max_hints: int = 5) -> str:
        """The hints as a model is shown them; empty where there are none."""
        hints = self.select_hints(max_hints)
        if not hints:
            return ""
        lines = ["CODE HINTS (learned from prior errors -- use these patterns):"]
        for hint in hints:
            lines += ["", f"  ERROR: {hint.error_key}"]
            for name, code in (("WRONG", hint.failing_code), ("CORRECT", hint.working_code)):
                lines.append(f"  {name}:")
                lines += [f"    {line}" for line in code.splitlines()]
        return "\n".join(lines)

    def render_pitfalls(self, max_rules: int = 8) -> str:
        """The rules of the classes of errors that this session has met."""
        return "\n".join(f"- {rule}" for rule in self._pitfalls[:max_rules])

    def save(self, path: str) -> None:
        """Keeps the session: its name, and the rules that it has met. What it learned is in the memory."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"session": self.session, "pitfalls": self._pitfalls}, file)

    @classmethod
    def restore(cls, path: str, url: str | None = None, token: str | None = None) -> ProceduralMemory:
        """The session as `save` kept it."""
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        memory = cls(url, token, kept["session"])
        memory._pitfalls = kept["pitfalls"]
        return memory

    def _post(self, path: str, body: dict) -> dict | None:
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        self.trouble = None
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            self.trouble = f"{error.code}: {error.read().decode(errors='replace')}"
        except (OSError, ValueError) as error:
            self.trouble = str(error)
        return None


if __name__ == "__main__":
    wrong = 'print(drugs["mechanism"])'
    right = 'for row in await drugs.search("kinase"): print(row["mechanism"])'
    error = "TypeError: string indices must be integers"

    memory = ProceduralMemory(session="first")
    memory.record_failure(code=wrong, error=error)
    learned = memory.record_success(code=right, output="ALK inhibitor\nBRAF inhibitor\n")
    print("learned:", ", ".join(learned) or memory.trouble or "nothing")

    # Another session, or another agent, the next day.
    memory = ProceduralMemory(session="second")
    memory.record_failure(code=wrong, error=error)
    print(memory.render_hints() or memory.trouble or "no hints")
    print(memory.render_pitfalls())
