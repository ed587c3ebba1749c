#!/usr/bin/env python3
"""Turns the notes of another memory program into an export that `memctl memory import` reads.

    python3 tools/notes.py ~/.claude-mem/claude-mem.db > notes.jsonl
    memctl memory import notes.jsonl --dry-run

It knows claude-mem's database, mem0's `history.db`, and the JSON of mem0's `get_all()` and `search()`, also one
object a line. The notes wait for `memctl approve`, unless the import has `--trust`. Imported again, nothing is
added. What becomes no note is counted on standard error.

A database and its write-ahead log are copied first: SQLite itself locks a database that it only reads, and the
other program may be running. Python's standard library is all that it needs.
"""
import hashlib
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
    text = "\n".join(part.strip() for part in parts if part and part.strip())
    return f"{kind}:{row['id']}", text, time_of(row), None, "task_memory", metadata


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
        text = "" if is_deleted else (row.get("new_memory") or "").strip()
        yield id, text, row.get("created_at"), None, "user_preferences", metadata


def of_answers(path):
    """A list, `{"results": […]}` or one object; or one of these a line."""
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [json.loads(line) for line in text.splitlines() if line.strip()]
    for document in documents:
        items = document.get("results", document) if isinstance(document, dict) else document
        for item in items if isinstance(items, list) else [items]:
            if not isinstance(item, dict):
                yield "", "", None, None, "", {}
                continue
            words = [item.pop(name, None) for name in ("memory", "data", "text", "content")]
            text = next((one for one in words if isinstance(one, str)), "").strip()
            id, user, created = (item.pop(name, None) for name in ("id", "user_id", "created_at"))
            kind = item.pop("memory_type", None) or "user_preferences"
            item.pop("score", None)
            metadata = {name: value for name, value in item.items() if value and name != "metadata"}
            yield id or text, text, created, user, kind, {**metadata, **(item.get("metadata") or {})}


def of_database(path):
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
            yield from of_claude_mem(rows)
        elif "history" in tables:
            yield from of_mem0(rows)
        else:
            sys.exit(f"{path}: its tables are not known: {', '.join(sorted(tables))}")
        database.close()


def main(path):
    with open(path, "rb") as file:
        is_database = file.read(15) == b"SQLite format 3"
    entries = []
    empty = 0
    for id, text, created, user, kind, metadata in of_database(path) if is_database else of_answers(path):
        if not text:
            empty += 1
            continue
        created = created or "1970-01-01T00:00:00+00:00"
        # An id of this machine alone, the same at each run.
        number = f"MEM-001-{hashlib.sha256(str(id).encode()).hexdigest()[:6]}"
        origin = {"source": os.path.basename(path), "id": id}
        entry = {"id": number, "memory_type": kind, "content": text, "metadata": {**metadata, "origin": origin},
                 "created_at": created, "updated_at": created, "expires_at": None}
        if user:
            entry["user_id"] = user
        entries.append({"kind": "memory", "id": number, "entry": entry})
    header = {"format": "memctl-export", "version": 1, "workspace": None,
              "exported_at": datetime.now(timezone.utc).isoformat(), "counts": {"memories": len(entries)}}
    for line in [header, *entries]:
        print(json.dumps(line, ensure_ascii=False))
    print(f"{len(entries)} notes; {empty} say nothing or were deleted", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
