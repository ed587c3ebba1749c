#!/usr/bin/env python3
"""Measures the search on sets of documents and queries, and prints a Markdown table.

    tests/eval.py MEMCTL SET …
    tests/eval.py MEMCTL --public SET …

SET is a directory with two files of JSON Lines: `docs.jsonl` with documents `{id, text, group?, created?}`, and
`queries.jsonl` with queries `{text, relevant: [id…], grades?: {id: number}, group?}`. A query searches its group only.
The documents of a group become the notes of a memory in a temporary directory, and `memctl search` finds them.

Each cell is recall@5 / nDCG@10; with `--public` hit@1 / hit@5 / all@5 / MRR@10, where `hit@k` is what LongMemEval
calls recall_any@k, and `all@k` its recall_all@k. Python's standard library is all that it needs.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# Distance from which a document without a word of the query is no match.
FLOOR = 0.3
# Constant of the reciprocal rank fusion.
K = 50


def lines(path):
    with open(path, encoding="utf-8-sig") as file:
        return [json.loads(line) for line in file if line.strip()]


class Memory:
    """The documents of a group as notes, in an order of their own ids."""

    def __init__(self, memctl, directory, documents):
        self.memctl, self.directory = memctl, directory
        self.ids = [str(document["id"]) for document in documents]
        entries = [{"id": f"MEM-{number:03}", "memory_type": "user_preferences", "content": document["text"],
                    "metadata": {}, "created_at": document.get("created") or "", "updated_at": "",
                    "expires_at": None} for number, document in enumerate(documents, 1)]
        memory = pathlib.Path(directory, ".agentura")
        memory.mkdir(parents=True)
        memory.joinpath("memories.json").write_text(json.dumps({"entries": entries}), encoding="utf-8")
        self.run("index", "--quiet")

    def run(self, *arguments):
        home = {"HOME": self.directory, "PATH": os.environ["PATH"]}
        done = subprocess.run([self.memctl, *arguments], cwd=self.directory, env=home, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"memctl {' '.join(arguments[:1])}: {done.stdout}{done.stderr}")
        return done.stdout

    def rankings(self, query):
        """The first ten documents by each way to combine both halves of the search."""
        answer = self.run("search", "--json", "--explain", "-n", str(len(self.ids)), "--", query)
        found = [(int(one["id"][4:]) - 1, one["explain"]["keyword"], one["explain"]["semantic"] or 0.0)
                 for one in json.loads(answer)["results"]]
        keyword = sorted((one for one in found if one[1] > 0), key=lambda one: (-one[1], one[0]))
        semantic = sorted((one for one in found if one[2] > 0), key=lambda one: (-one[2], one[0]))
        fused = {}
        for half in (keyword, [one for one in semantic if one[2] >= FLOOR or one[1] > 0]):
            for rank, (place, _, _) in enumerate(half, 1):
                fused[place] = fused.get(place, 0) + 1 / (K + rank)
        ranks = sorted(fused.items(), key=lambda one: (-one[1], one[0]))
        return {name: [self.ids[one[0]] for one in all[:10]] for name, all in
                (("keyword", keyword), ("semantic", semantic), ("ranks", ranks), ("default", found))}


def measures(ranking, relevant):
    gains = [relevant.get(id, 0) for id in ranking]
    discounted = lambda gains: sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))
    found = lambda k: sum(gain > 0 for gain in gains[:k])
    first = next((rank for rank, gain in enumerate(gains, 1) if gain > 0), None)
    best = sorted(relevant.values(), reverse=True)[:10]
    return {
        "recall@5": found(5) / len(relevant),
        "ndcg@10": discounted(gains) / discounted(best),
        "hit@1": min(found(1), 1),
        "hit@5": min(found(5), 1),
        "all@5": float(found(5) == len(relevant)),
        "mrr@10": 1 / first if first else 0,
    }


def row(memctl, directory, ways, names):
    groups = {}
    for document in lines(directory / "docs.jsonl"):
        groups.setdefault(document.get("group"), []).append(document)
    queries = [query for query in lines(directory / "queries.jsonl") if query["relevant"]]
    sums = {way: dict.fromkeys(names, 0.0) for way in ways}
    with tempfile.TemporaryDirectory() as scratch:
        memories = {group: Memory(memctl, os.path.join(scratch, str(number)), documents)
                    for number, (group, documents) in enumerate(groups.items())}

        def ask(query):
            memory = memories.get(query.get("group"))
            grades = query.get("grades") or {}
            relevant = {str(id): grades.get(str(id), 1) for id in query["relevant"]}
            rankings = memory.rankings(query["text"]) if memory else {}
            return {way: measures(rankings.get(way, []), relevant) for way in ways}

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for of_query in pool.map(ask, queries):
                for way in ways:
                    for name in names:
                        sums[way][name] += of_query[way][name]
    mean = lambda way: " / ".join(f"{sums[way][name] / max(len(queries), 1):.3f}" for name in names)
    return [directory.name, str(len(queries)), *map(mean, ways)]


def main(arguments):
    is_public = "--public" in arguments
    memctl, *sets = [one for one in arguments if one != "--public"]
    ways = ["keyword", "semantic", "default"] if is_public else ["keyword", "semantic", "ranks", "default"]
    names = ["hit@1", "hit@5", "all@5", "mrr@10"] if is_public else ["recall@5", "ndcg@10"]
    print("| set | queries |", " | ".join(ways), "|")
    print("|---" * (len(ways) + 2) + "|")
    for directory in sets:
        print("|", " | ".join(row(os.path.abspath(memctl), pathlib.Path(directory), ways, names)), "|", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1:])
