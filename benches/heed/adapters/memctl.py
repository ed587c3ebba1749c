"""memctl, driven by the hook events that Claude Code sends. `MEMCTL` names the program."""
import json
import os
import subprocess

from heed import Memory
from hooks import environment, event_of, said

PROGRAM = os.environ.get("MEMCTL", "memctl")


class Memctl(Memory):
    def __init__(self, project, home):
        super().__init__(project, home)
        self.environment = environment(home)
        self.calls = 0
        subprocess.run(["git", "init", "-q"], cwd=project, env=self.environment, check=True)
        self.run("init")

    def run(self, *arguments, given=None):
        done = subprocess.run([PROGRAM, *arguments], cwd=self.project, env=self.environment, input=given,
                              capture_output=True, text=True, timeout=60)
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json") or "{}")

    def event(self, session, name, **fields):
        event = event_of(self, session, name, **fields)
        return said(self.run("hook", "claude-code", given=json.dumps(event, ensure_ascii=False)))

    def start(self, session):
        return self.event(session, "SessionStart", source="startup")

    def message(self, session, text):
        return self.event(session, "UserPromptSubmit", prompt=text)

    def answer(self, session, record):
        if record:
            self.run("correct", "--heard", json.dumps(record, ensure_ascii=False))

    def end(self, session):
        self.event(session, "SessionEnd", reason="prompt_input_exit")

    def before(self, session, call):
        self.calls += 1
        return self.event(session, "PreToolUse", call=call)

    def after(self, session, call, output, is_error):
        if is_error:
            return self.event(session, "PostToolUseFailure", call=call, error=output or "Exit code 1")
        answer = {"stdout": output, "stderr": "", "interrupted": False}
        return self.event(session, "PostToolUse", call=call, tool_response=answer)

    def rules(self):
        listed = self.json("list", "rules")
        found = []
        for record in listed.get("records", []):
            shown = self.json("show", record["id"])
            rule = shown.get("record", {})
            words = [rule.get(name) or "" for name in ("rule", "applies_when", "mistake")]
            is_active = (shown.get("status") or record.get("status")) == "active"
            found.append({"id": record["id"], "text": " ".join(words).strip(), "active": is_active})
        return found

    def accept(self, rule_id):
        self.run("approve", rule_id)
