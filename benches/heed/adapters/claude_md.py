"""A folder with a CLAUDE.md, and the two ends of the scale. `heed` is heed.py, which loads this file."""
from heed import Memory


class ClaudeMd(Memory):
    """The agent writes what a model made of a message into CLAUDE.md, which every session reads at its start.
    Nothing is said at a call. Without recorded answers the person's own words go in."""

    def __init__(self, *place):
        super().__init__(*place)
        self.kept = []
        self.typed = ""
        self.lines = 0

    def keep(self, text):
        self.lines += 1
        self.kept.append({"id": f"line {self.lines}", "text": text, "active": True})

    def message(self, session, text):
        self.typed = text
        return ""

    def answer(self, session, record):
        self.typed = ""
        if not record:
            return
        if record.get("withdraws") or record.get("replaces"):
            self.kept.pop()
        if record["rule"]:
            self.keep(record["rule"])

    def end(self, session):
        if self.typed:
            self.keep(self.typed)
        self.typed = ""

    def rules(self):
        return list(self.kept)

    def start(self, session):
        return "\n".join(f"- {rule['text']}" for rule in self.kept)


class Silent(Memory):
    """Remembers nothing."""


class Echo(ClaudeMd):
    """Says everything before every call."""

    def before(self, session, call):
        return self.start(session)
