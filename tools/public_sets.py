#!/usr/bin/env python3
"""Makes retrieval sets of the public benchmarks LoCoMo and LongMemEval, from files that you have fetched.

    tools/public_sets.py --locomo locomo10.json --longmemeval longmemeval_s.json DIR

LoCoMo (https://github.com/snap-research/locomo, CC BY-NC 4.0): `locomo-sessions` finds the session that
holds the evidence of a question, `locomo-turns` the turn. A question searches its own conversation.
Questions without evidence are left out, so 1,982 of 1,986 remain.

LongMemEval (https://github.com/xiaowu0162/LongMemEval, MIT): `longmemeval` finds the sessions with the
answer among those of the question. The 30 questions that have no answer (`_abs`) are left out, as in the
official retrieval figures; vendors often count all 500.

Each set is a directory with `docs.jsonl` and `queries.jsonl`, as `tests/eval.py` reads them.
Nothing is fetched.
"""

import argparse
import json
import pathlib
import re


def write(directory, documents, queries):
    """Writes a set and says how large it is."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, rows in (("docs", documents), ("queries", queries)):
        with open(directory / f"{name}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(f"{directory}: {len(documents)} documents, {len(queries)} queries")


def evidence(question):
    """Returns the turns that a question of LoCoMo names, such as `D1:3`; some names hold several."""
    named = " ".join(str(turn) for turn in question.get("evidence") or [])
    return [f"D{int(session)}:{int(turn)}" for session, turn in re.findall(r"D:?(\d+):(\d+)", named)]


def turn_text(turn):
    """Returns what a speaker said, with the caption of a shared picture."""
    said = f"{turn['speaker']}: {turn.get('text') or ''}"
    caption = turn.get("blip_caption")
    return f"{said} [{caption}]" if caption else said


def locomo(path, out):
    """Writes both sets of LoCoMo."""
    sessions, turns, of_sessions, of_turns = [], [], [], []
    for sample in json.load(open(path, encoding="utf-8")):
        group, conversation = sample["sample_id"], sample["conversation"]
        known = set()
        for key, said in conversation.items():
            number = re.fullmatch(r"session_(\d+)", key)
            if not number or not said:
                continue
            texts = [turn_text(turn) for turn in said]
            when = conversation.get(f"{key}_date_time", "")
            name = f"{group}/D{number[1]}"
            sessions.append({"id": name, "group": group, "text": "\n".join([when, *texts])})
            for turn, text in zip(said, texts):
                known.add(turn["dia_id"])
                turns.append({"id": f"{group}/{turn['dia_id']}", "group": group, "text": text})
        for number, question in enumerate(sample["qa"]):
            relevant = [turn for turn in evidence(question) if turn in known]
            if not relevant:
                continue
            asked = {"qid": f"{group}/{number}", "group": group, "text": question["question"]}
            of_turns.append(asked | {"relevant": sorted({f"{group}/{turn}" for turn in relevant})})
            in_sessions = sorted({f"{group}/{turn.split(':')[0]}" for turn in relevant})
            of_sessions.append(asked | {"relevant": in_sessions})
    write(out / "locomo-sessions", sessions, of_sessions)
    write(out / "locomo-turns", turns, of_turns)


def longmemeval(path, out):
    """Writes the set of LongMemEval."""
    documents, queries = [], []
    for question in json.load(open(path, encoding="utf-8")):
        group = question["question_id"]
        if group.endswith("_abs"):
            continue
        ids, dates = question["haystack_session_ids"], question["haystack_dates"]
        for name, when, said in zip(ids, dates, question["haystack_sessions"]):
            text = "\n".join([when, *(f"{turn['role']}: {turn['content']}" for turn in said)])
            documents.append({"id": f"{group}/{name}", "group": group, "text": text})
        relevant = [f"{group}/{name}" for name in question["answer_session_ids"]]
        queries.append({"qid": group, "group": group, "text": question["question"], "relevant": relevant})
    write(out / "longmemeval", documents, queries)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--locomo", type=pathlib.Path, help="locomo10.json")
    parser.add_argument("--longmemeval", type=pathlib.Path, help="longmemeval_s.json, or another size")
    parser.add_argument("dir", type=pathlib.Path)
    options = parser.parse_args()
    if not options.locomo and not options.longmemeval:
        parser.error("nothing to convert: name --locomo or --longmemeval")
    if options.locomo:
        locomo(options.locomo, options.dir)
    if options.longmemeval:
        longmemeval(options.longmemeval, options.dir)


main()
