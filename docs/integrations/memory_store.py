"""The `MemoryStore` protocol of the Agentura SDK over the command `memctl`.

    from memory_store import get_scoped_store

    store = get_scoped_store(allowed_domains={"hr"})
    store.get_executions()                                # only hr/* executions
    store.add_reflexion("finance/expense-check", {...})   # PermissionError

Nothing but the standard library and `memctl` in `PATH`. The store is the one that `memctl` finds from `root`:
files, or PostgreSQL. What a program adds is stored as it is: `memctl correct` is the command that also learns a
rule from a correction and makes its test.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from datetime import datetime, timezone
from typing import Protocol

#: The fields of a rule that are texts.
TEXTS = ("rule", "applies_when", "mistake", "root_cause")
#: The kinds of records: their plural, the field with the id, and the field with the time.
KINDS = {
    "execution": ("executions", "execution_id", "timestamp"),
    "correction": ("corrections", "correction_id", "timestamp"),
    "reflexion": ("reflexions", "reflexion_id", "created_at"),
}


class MemoryStore(Protocol):
    """What the SDK asks of a store."""

    def log_execution(self, skill_path: str, data: dict) -> str: ...
    def add_correction(self, skill_path: str, data: dict) -> str: ...
    def add_reflexion(self, skill_path: str, data: dict) -> str: ...
    def get_reflexions(self, skill_path: str) -> list[dict]: ...
    def search_similar(self, skill_path: str, query: str, limit: int = 5) -> list[dict]: ...
    def get_executions(self, skill_path: str | None = None) -> list[dict]: ...
    def get_corrections(self, skill_path: str | None = None) -> list[dict]: ...
    def get_all_reflexions(self) -> list[dict]: ...
    def update_reflexion(self, reflexion_id: str, updates: dict) -> None: ...


class MemctlStore:
    """A store whose reads and writes the program limits to `allowed_domains`; `None` or `{"*"}` is all.

    A write to a skill of another domain is a `PermissionError`. Reads leave out what is of other domains.
    """

    def __init__(self, root: str | None = None, allowed_domains: set[str] | None = None, program: str = "memctl") -> None:
        self.allowed_domains = None if allowed_domains is None or "*" in allowed_domains else set(allowed_domains)
        self._command = [program] if root is None else [program, "--root", root]
        self._scope = [] if self.allowed_domains is None else ["--scope", ",".join(sorted(self.allowed_domains))]

    def log_execution(self, skill_path: str, data: dict) -> str:
        usual = {"input_summary": {}, "output_summary": {}, "outcome": "pending_review", "cost_usd": 0.0, "latency_ms": 0.0, "model_used": ""}
        return self._add("execution", skill_path, usual | data)

    def add_correction(self, skill_path: str, data: dict) -> str:
        return self._add("correction", skill_path, {"execution_id": "", "original_output": {}, "user_correction": ""} | data)

    def add_reflexion(self, skill_path: str, data: dict) -> str:
        usual = {"correction_id": "", "mistake": "", "root_cause": "", "rule": "", "applies_when": "", "confidence": 0.8,
                 "validated_by_test": False, "generated_test_ids": []}
        return self._add("reflexion", skill_path, usual | data)

    def get_reflexions(self, skill_path: str) -> list[dict]:
        return self._all("reflexion", skill_path)

    def search_similar(self, skill_path: str, query: str, limit: int = 5) -> list[dict]:
        """The rules of a skill that are nearest to the query, nearest first."""
        rules = {rule["reflexion_id"]: rule for rule in self.get_reflexions(skill_path)}
        if not rules:
            return []
        if limit < 1:
            return []
        # After `--`, a query that begins with a dash is no option.
        found = self._run("search", "--kind", "rule", "--skill", skill_path, "-n", str(limit), "--", query)["results"]
        return [rules[one["id"]] for one in found if one["id"] in rules]

    def get_executions(self, skill_path: str | None = None) -> list[dict]:
        return self._all("execution", skill_path)

    def get_corrections(self, skill_path: str | None = None) -> list[dict]:
        return self._all("correction", skill_path)

    def get_all_reflexions(self) -> list[dict]:
        return self._all("reflexion", None)

    def update_reflexion(self, reflexion_id: str, updates: dict) -> None:
        if self.allowed_domains is not None:
            # In its scope the program does not find a rule of another domain.
            self._check(json.loads(self._text("--json", "show", reflexion_id, scope=[]))["record"]["skill"])
            self._check(updates.get("skill"))
        if not updates:
            return
        for name, value in updates.items():
            if value is None or (name in TEXTS and not isinstance(value, str)):
                raise ValueError(f"`{name}` cannot be {value!r}")
        text = {name: value if isinstance(value, str) else json.dumps(value) for name, value in updates.items()}
        self._run("edit", reflexion_id, *(part for name, value in text.items() for part in ("--set", f"{name}={value}")))

    def _check(self, skill_path: str | None) -> None:
        if not self._may(skill_path):
            raise PermissionError(f"`{skill_path}` is outside the domains {sorted(self.allowed_domains)}")

    def _may(self, skill_path: str | None) -> bool:
        return self.allowed_domains is None or skill_path is None or str(skill_path).split("/")[0] in self.allowed_domains

    def _all(self, kind: str, skill_path: str | None) -> list[dict]:
        if not self._may(skill_path):
            return []
        arguments = ["memory", "export", "--output", "-", "--kind", kind]
        if skill_path is not None:
            arguments += ["--skill", skill_path]
        lines = [json.loads(line) for line in self._text(*arguments).splitlines()]
        return [line["entry"] for line in lines if line.get("kind") == kind and "entry" in line]

    def _add(self, kind: str, skill_path: str, data: dict) -> str:
        self._check(skill_path)
        self._check(data.get("skill"))
        plural, id_field, time_field = KINDS[kind]
        now = datetime.now(timezone.utc)
        new_id = data.get(id_field) or self._next_id(kind, plural, now)
        entry = {id_field: "", "skill": "", time_field: now.isoformat()} | data
        entry |= {id_field: new_id, "skill": data.get("skill") or skill_path}
        header = {"format": "memctl-export", "version": 1, "workspace": "memory_store.py", "exported_at": now.isoformat(), "counts": {plural: 1}}
        lines = [header, {"kind": kind, "id": new_id, "entry": entry}]
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "record.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            report = self._run("memory", "import", path, "--trust")
        if not report["imported"] and not report["duplicates"]:
            raise ValueError(f"not stored: {report['skipped']}")
        # Another program may have taken the id meanwhile.
        renamed = {one["from"]: one["to"] for one in report.get("renamed", [])}
        return renamed.get(new_id, new_id)

    def _next_id(self, kind: str, plural: str, now: datetime) -> str:
        if kind == "execution":
            return f"EXEC-{now:%Y%m%d%H%M%S}"
        newest = self._run("list", plural, "--limit", "1")["records"]
        last = newest[0]["id"].split("-")[1] if newest else "0"
        prefix = "CORR" if kind == "correction" else "REFL"
        return f"{prefix}-{int(last) + 1:03}"

    def _run(self, *arguments: str) -> dict:
        return json.loads(self._text("--json", *arguments))

    def _text(self, *arguments: str, scope: list[str] | None = None) -> str:
        command = self._command + (self._scope if scope is None else scope)
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, encoding="utf-8")
        if done.returncode == 0:
            return done.stdout
        if done.returncode == 5:
            raise PermissionError(done.stderr.strip() or done.stdout.strip())
        try:
            error = json.loads(done.stdout)["error"]
        except (ValueError, KeyError):
            raise RuntimeError(done.stderr.strip() or f"memctl ended with {done.returncode}") from None
        kinds = {"not_found": KeyError, "input": ValueError}
        raise kinds.get(error["kind"], RuntimeError)(error["message"])


def get_scoped_store(allowed_domains: set[str] | None = None, root: str | None = None, program: str = "memctl") -> MemctlStore:
    """A store of these domains: others are neither read nor written."""
    return MemctlStore(root=root, allowed_domains=allowed_domains, program=program)
