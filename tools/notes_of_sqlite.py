#!/usr/bin/env python3
"""Turns the SQLite database of another memory program into lines that `memctl memory import` reads.

    python3 tools/notes_of_sqlite.py ~/.claude-mem/claude-mem.db > notes.jsonl
    memctl memory import notes.jsonl --dry-run

It knows claude-mem's database and mem0's `history.db`. Each line is an object with `id`, `memory`,
`created_at`, `memory_type` and `metadata`. What becomes no line is counted on standard error.

The database and its write-ahead log are copied first: SQLite itself locks a database that it only reads,
and the other program may be running. Python's standard library is all that it needs.
"""
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from datetime import datetime, timezone


def texts(value):
    """A column with a JSON list of texts; some older rows hold plain text."""
    try:
        items = json.loads(value or "[]")
    except ValueError:
        return [value]
    return [str(item) for item in items if item is not None] if isinstance(items, list) else [value]


def time_of(row):
    if row.get("created_at"):
        return row["created_at"]
    at = row.get("created_at_epoch")
    return at and datetime.fromtimestamp(at / 1000, timezone.utc).isoformat()


def note(row, kind, parts, **metadata):
    common = {"session_id": row.get("memory_session_id"), "project": row.get("project")}
    metadata = {name: value for name, value in {**common, **metadata}.items() if value}
    return {
        "id": f"{kind}:{row['id']}",
        "memory": "\n".join(part.strip() for part in parts if part and part.strip()),
        "created_at": time_of(row),
        "memory_type": "task_memory",
        "metadata": metadata,
    }


def observation(row):
    words = [row.get(name) for name in ("title", "subtitle", "narrative", "text")]
    facts = [f"- {fact}" for fact in texts(row.get("facts"))]
    return note(row, "observation", list(dict.fromkeys(words)) + facts,
                observation_type=row.get("type"), concepts=texts(row.get("concepts")),
                files_read=texts(row.get("files_read")), files_modified=texts(row.get("files_modified")))


def summary(row):
    names = ("request", "investigated", "learned", "completed", "next_steps", "notes")
    words = [f"{name.replace('_', ' ').capitalize()}: {row[name].strip()}" for name in names if row.get(name)]
    return note(row, "session summary", words,
                files_read=texts(row.get("files_read")), files_modified=texts(row.get("files_edited")))


def of_claude_mem(rows):
    for table, read in (("observations", observation), ("session_summaries", summary)):
        for row in rows(table):
            yield read(row)


def of_mem0(rows):
    """The last event of each memory counts."""
    last = {}
    for row in rows("history"):
        last.pop(row["memory_id"], None)
        last[row["memory_id"]] = row
    for id, row in last.items():
        is_deleted = row.get("is_deleted") == 1 or row.get("event") == "DELETE"
        metadata = {name: row[name] for name in ("updated_at", "actor_id", "role") if row.get(name)}
        yield {
            "id": id,
            "memory": "" if is_deleted else (row.get("new_memory") or "").strip(),
            "created_at": row.get("created_at"),
            "memory_type": "user_preferences",
            "metadata": metadata,
        }


def main(path):
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "copy.db")
        shutil.copyfile(path, copy)
        if os.path.exists(path + "-wal"):
            shutil.copyfile(path + "-wal", copy + "-wal")
        database = sqlite3.connect(copy)
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}

        def rows(table):
            if table not in tables:
                return
            cursor = database.execute(f'select * from "{table}" order by rowid')
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row))

        if "observations" in tables:
            notes = of_claude_mem(rows)
        elif "history" in tables:
            notes = of_mem0(rows)
        else:
            sys.exit(f"{path}: its tables are not known: {', '.join(sorted(tables))}")
        written = empty = 0
        for one in notes:
            if one["memory"]:
                print(json.dumps(one, ensure_ascii=False))
                written += 1
            else:
                empty += 1
        print(f"{written} notes; {empty} say nothing or were deleted", file=sys.stderr)
        database.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
