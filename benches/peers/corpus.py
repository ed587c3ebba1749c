"""Notes, rules and questions that every memory gets."""
SERVICES = ["orders", "billing", "catalog", "search", "mailer", "ledger", "pricing", "stock", "returns", "loyalty",
            "gateway", "accounts", "reports", "media", "checkout", "shipping", "audit", "tickets", "partners",
            "exports", "imports", "sessions", "surveys", "vouchers", "metering"]
# A note, the keywords that ask for it, and a question in other words. `{s}` is a service, `{v}` the answer.
FACTS = [
    ("The nightly backup of {s} goes to the bucket {v}.", "{s} nightly backup bucket", "where do we back up {s}?"),
    ("Releases of {s} are signed with the key {v}.", "{s} releases signed key", "which key signs a {s} release?"),
    ("The staging database of {s} is named {v}.", "{s} staging database", "what is the staging db of {s} called?"),
    ("Logs of {s} are shipped to the index {v}.", "{s} logs index", "in which index are the logs of {s}?"),
    ("The feature flags of {s} are read from {v}.", "{s} feature flags", "where do {s} feature flags come from?"),
    ("Slow queries of {s} are reported to {v}.", "{s} slow queries", "who hears of slow queries in {s}?"),
    ("Integration tests of {s} need the container {v}.", "{s} integration tests container",
     "which container must run for the integration tests of {s}?"),
    ("Certificates of {s} are renewed by the job {v}.", "{s} certificates renewed job",
     "what renews the certificates of {s}?"),
    ("The metrics of {s} are on the dashboard {v}.", "{s} metrics dashboard", "where can I see metrics of {s}?"),
    ("Test accounts of {s} are listed in the page {v}.", "{s} test accounts page", "which test accounts has {s}?"),
    ("Failed messages of {s} wait in the queue {v}.", "{s} failed messages queue",
     "where do messages of {s} end up when they fail?"),
    ("Load tests of {s} run on the machine {v}.", "{s} load tests machine", "where do we load-test {s}?"),
    ("Migrations of {s} are locked by the table {v}.", "{s} migrations table", "what locks the migrations of {s}?"),
    ("The manual of {s} is built from the branch {v}.", "{s} manual branch", "which branch has the manual of {s}?"),
    ("Cached pages of {s} are kept in the cluster {v}.", "{s} cached pages cluster", "where is the page cache of {s}?"),
    ("Invoices of {s} are rendered by the worker {v}.", "{s} invoices worker", "what renders invoices in {s}?"),
    ("Clients of {s} are rate limited by the rule {v}.", "{s} clients rate limited", "what limits the rate in {s}?"),
    ("Crash reports of {s} go to the project {v}.", "{s} crash reports project", "where do crashes of {s} go?"),
    ("Translations of {s} are pulled from {v}.", "{s} translations pulled", "where do translations of {s} come from?"),
    ("The health check of {s} is answered by {v}.", "{s} health check", "what answers the health check of {s}?"),
]
WORDS = ["kestrel", "otter", "juniper", "basalt", "heron", "maple", "cobalt", "lynx", "willow", "granite"]
RULES = [
    ("Never run git push --force here. Use git push --force-with-lease.", r"\bgit push\b.* --force( |$)"),
    ("Never run npm publish by hand. Use make release.", r"\bnpm publish\b"),
    ("Never use npm install here. Use pnpm add.", r"\bnpm install\b"),
]
FOUND = 5  # a note counts as found if it is among so many


def corpus():
    """Returns the notes with their answers, and the questions: `(keywords, question, answer)`."""
    notes, asked = [], []
    for index in range(len(SERVICES) * len(FACTS)):
        # Every pair once, and neighbours share neither the service nor the fact.
        at = index % len(SERVICES)
        service = SERVICES[at]
        text, keywords, question = FACTS[(index // len(SERVICES) + at) % len(FACTS)]
        answer = f"{WORDS[index % len(WORDS)]}-{100 + index}"
        notes.append(text.format(s=service, v=answer))
        asked.append((keywords.format(s=service), question.format(s=service), answer))
    return notes, asked[::23]
