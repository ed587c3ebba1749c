#!/usr/bin/env python3
"""HeedBench: does a correction in one session change the calls of the next ones?

    python3 heed.py --memory adapters/memctl.py:Memctl --answers answers.jsonl
    python3 heed.py --memory adapters/claude_md.py:ClaudeMd -v
    python3 heed.py --memory adapters/hooks.py:DejaVu --kind after --json

Drives a memory through the sessions of each case and counts what it says where. No model, no network,
Python's standard library only. README.md explains the cases and the figures, and how to plug in another
memory.
"""
import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))


class Memory:
    """A memory in the place of one person and one project. What it returns is what the agent would read;
    an empty text is silence. `project` and `home` are empty directories of this case alone."""

    def __init__(self, project, home):
        self.project, self.home = project, home

    def start(self, session):
        """A session begins."""
        return ""

    def before(self, session, call):
        """The agent is about to make a call: `{'tool', 'input'}`."""
        return ""

    def after(self, session, call, output, is_error):
        """The call has been made."""
        return ""

    def message(self, session, text):
        """The person types."""
        return ""

    def answer(self, session, record):
        """What a model made of the last message, as the agent would pass it on; see README.md. `None` if it
        recorded nothing. Not called without recorded answers."""

    def end(self, session):
        """The session ends."""

    def rules(self):
        """What is stored: `[{'id', 'text', 'active'}]`. Empty for a memory without rules."""
        return []

    def accept(self, rule_id):
        """The person accepts a rule that waits."""


def flat(text):
    return re.sub(r"\s+", " ", text).lower()


def holds_all(patterns, text):
    return bool(patterns) and all(re.search(pattern, flat(text)) for pattern in patterns)


def is_whole(case, text):
    """Both halves of the rule are there, and nothing that must not be."""
    clean = not any(re.search(pattern, flat(text)) for pattern in case["must_not"])
    return clean and holds_all(case["must"], text)


def is_about(text, rules, must):
    """Is this text about one of these rules: by its id, its words, or all that a right wording holds?"""
    if not text:
        return False
    for rule in rules:
        words = flat(rule["text"])[:60]
        if rule["id"] in text or (len(words) > 8 and words in flat(text)):
            return True
    return holds_all(must, text)


class Play:
    """One case, played with one memory."""

    def __init__(self, case, memory, answers):
        self.case, self.memory, self.answers = case, memory, answers
        self.known = {}
        self.costs = []

    def timed(self, moment, *given):
        """What the memory says at this moment, whose time and length are kept."""
        began = time.perf_counter()
        said = getattr(self.memory, moment)(*given)
        self.costs.append({"moment": moment, "ms": (time.perf_counter() - began) * 1000, "characters": len(said)})
        return said

    def session(self, name, calls, message, answer):
        memory = self.memory
        memory.start(name)
        for call in calls:
            memory.before(name, call)
            memory.after(name, call, call["output"], call["is_error"])
        memory.message(name, message)
        if self.answers:
            memory.answer(name, answer)
        memory.end(name)

    def fresh(self):
        """Rules that are new or reworded since the last look."""
        return [rule for rule in self.memory.rules() if self.known.get(rule["id"]) != rule["text"]]

    def take(self, must):
        """The person accepts the new rules that hold any half of the right one; else all new ones."""
        fresh = self.fresh()
        near = [r for r in fresh if any(re.search(pattern, flat(r["text"])) for pattern in must)]
        for rule in near or fresh:
            if not rule["active"]:
                self.memory.accept(rule["id"])
        self.known = {rule["id"]: rule["text"] for rule in self.memory.rules()}
        # A memory may give a rule another id when it is accepted.
        ids = {rule["id"] for rule in near or fresh} | {rule["text"] for rule in near or fresh}
        return [rule for rule in self.memory.rules() if rule["id"] in ids or rule["text"] in ids]

    def run(self):
        case, memory = self.case, self.memory
        result = {key: case[key] for key in ("id", "kind", "lang", "lasting")}
        earlier, old = case.get("earlier"), []
        if earlier:
            answer = self.answers.get(case["id"] + "/earlier")
            self.session("earlier", earlier["before"], earlier["message"], answer)
            old = self.take(earlier["must"])
        self.session("correction", case["before"], case["message"], self.answers.get(case["id"]))
        fresh = self.fresh()
        active = {rule["id"] for rule in memory.rules() if rule["active"]}
        gone = [rule for rule in old if rule["id"] not in active]
        result["heard"] = bool(fresh or gone)
        accepted = self.take(case["must"]) if case["lasting"] else []
        told = self.timed("start", "next")
        withdrawn = case.get("withdrawn", False)
        if earlier:
            # Also a memory without rules can tell the old words.
            result["stale"] = is_about(told, [r for r in old if r["id"] not in {a["id"] for a in accepted}], [])
        if case["lasting"] and withdrawn:
            result["complete"] = result["told"] = bool(old) and not result["stale"]
        elif case["lasting"]:
            result["complete"] = is_whole(case, " \n".join(rule["text"] for rule in accepted))
            result["told"] = is_whole(case, told)
        spoken_of = memory.rules() if earlier else accepted or fresh
        must = [] if withdrawn else case["must"]
        result["calls"] = []
        for number, call in enumerate(case["later"]):
            name = f"later-{number}"
            self.timed("start", name)
            for prior in call.get("prior", []):
                memory.before(name, prior)
                memory.after(name, prior, "", False)
            text = self.timed("before", name, call)
            spoke = is_about(text, spoken_of, must)
            result["calls"].append({"verdict": call["verdict"], "spoke": spoke, "call": call["input"]})
        result["costs"] = self.costs
        return result


def play(case, make, answers):
    root = tempfile.mkdtemp(prefix="heed-")
    try:
        project, home = os.path.join(root, "src", case["project"]), os.path.join(root, "home")
        os.makedirs(project)
        os.makedirs(home)
        return Play(case, make(project, home), answers).run()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def share(hits, of):
    return {"hits": hits, "of": of, "share": round(hits / of, 3) if of else None}


def figures(results):
    lasting = [r for r in results if r["lasting"]]
    heard = [r for r in results if r["heard"]]
    amended = [r for r in results if "stale" in r]

    def spoke(*verdicts):
        calls = [c["spoke"] for r in results for c in r["calls"] if c["verdict"] in verdicts]
        return share(sum(calls), len(calls))

    return {
        "heard_precision": share(sum(r["lasting"] for r in heard), len(heard)),
        "heard_recall": share(sum(r["heard"] for r in lasting), len(lasting)),
        "complete": share(sum(r["complete"] for r in lasting), len(lasting)),
        "told_whole": share(sum(r["told"] for r in lasting), len(lasting)),
        "spoken_at_violations": spoke("violates"),
        "spoken_elsewhere": spoke("obeys", "unrelated"),
        "stale": share(sum(r["stale"] for r in amended), len(amended)),
    }


def costs(results):
    """Median time and length of what is said at the start of a later session, and before its call. Time is that of
    the adapter, with the start of its processes: compare it only within one run, with `--jobs 1`."""
    found = {}
    for moment in ("start", "before"):
        of = [cost for result in results for cost in result["costs"] if cost["moment"] == moment]
        found[moment] = {name: round(statistics.median(cost[name] for cost in of), 1) for name in ("ms", "characters")}
    return found


def groups(results):
    for key in ("kind", "lang"):
        by = defaultdict(list)
        for result in results:
            by[result[key] if key == "lang" or result["lasting"] else "control"].append(result)
        yield from by.items()


def page(results):
    def cell(value):
        return f"{value['share']:.2f} {value['hits']}/{value['of']}" if value["of"] else "–"

    total = figures(results)
    lines = [f"{name:22}{cell(value)}" for name, value in total.items()]
    lines += [f"{moment:22}{cost['ms']} ms, {cost['characters']:.0f} characters (medians)"
              for moment, cost in costs(results).items()]
    lines += ["", f"{'':10}" + "".join(f"{name:>22}" for name in total)]
    for name, of in groups(results):
        lines.append(f"{name:10}" + "".join(f"{cell(value):>22}" for value in figures(of).values()))
    return "\n".join(line.rstrip() for line in lines)


def misses(results):
    for r in results:
        wrong = [c for c in r["calls"] if c["spoke"] != (c["verdict"] == "violates")]
        if r["heard"] != r["lasting"] or not r.get("complete", True) or wrong:
            yield f"{r['id']} {r['kind']} {r['lang']}: heard {r['heard']}, complete {r.get('complete')}"
        for call in wrong:
            said = "spoke" if call["spoke"] else "silent"
            yield f"    {said} where it {call['verdict']}: {json.dumps(call['call'], ensure_ascii=False)[:100]}"


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def load(name):
    """The class that `FILE.py:Class` names."""
    path, _, cls = name.rpartition(":")
    sys.modules.setdefault("heed", sys.modules["__main__"])
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("heed_memory", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, cls)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--memory", required=True, metavar="FILE.py:CLASS", help="the adapter of a memory")
    parser.add_argument("--cases", default=os.path.join(HERE, "cases.jsonl"))
    parser.add_argument("--answers", help="recorded answers of a model: {id, record} a line")
    parser.add_argument("--kind", help="only cases of this kind")
    parser.add_argument("--id", help="only this case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-v", action="store_true", help="list each miss")
    options = parser.parse_args()
    make = load(options.memory)
    cases = [c for c in lines(options.cases)
             if options.kind in (None, c["kind"]) and options.id in (None, c["id"])]
    answers = {a["id"]: a["record"] for a in lines(options.answers)} if options.answers else {}
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda case: play(case, make, answers), cases))
    if options.json:
        by = {name: figures(of) for name, of in groups(results)}
        print(json.dumps({"total": figures(results), "costs": costs(results), "by": by, "cases": results}, ensure_ascii=False, indent=1))
        return
    print(page(results))
    if options.v:
        print(*misses(results), sep="\n")


if __name__ == "__main__":
    main()
