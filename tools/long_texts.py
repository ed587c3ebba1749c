#!/usr/bin/env python3
"""Makes two retrieval sets of long texts from what is installed on this machine.

    tools/long_texts.py DIR
    tests/eval.py MEMCTL DIR/manuals DIR/modules

manuals: manual pages of 400 to 6,000 words without their name line, which is the query.
modules: modules of Python's standard library; a query is the first paragraph of a docstring, which
         is taken out of the module.

The sets depend on the machine: compare figures of one machine only. Nothing of them is kept here.
"""

import ast
import glob
import gzip
import json
import os
import random
import re
import sys

PAGES = 1_200
MODULES = 700
QUERIES = 600
# Pages of one family of programs say nearly the same.
FAMILY = 400
NAME = re.compile(r"(?ims)^\s*name\s*$\n(.*?)\n\s*(synopsis|description|syntax)\s*$")
COMMENTS = ('.\\"', "'\\\"", ".TH", ".Dd", ".de", ".ie", ".el", ".if", ".nr", ".ds")


def plain(source):
    """Returns a page of roff as text."""
    text = re.sub(r"\\f[A-Z(]{1,3}|\\[&e|^]", "", source).replace("\\-", "-")
    lines = [line for line in text.split("\n") if not line.startswith(COMMENTS)]
    return "\n".join(re.sub(r"^[.'][A-Za-z]{1,2}\b\s?", "", line).strip('" ') for line in lines)


def manuals():
    """Returns manual pages as (id, text, [query])."""
    paths = [path for section in "1578" for path in glob.glob(f"/usr/share/man/man{section}/*")]
    paths = sorted(path for path in paths if not os.path.islink(path))
    random.shuffle(paths)
    pages, families, seen = [], {}, set()
    for path in paths:
        opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
        with opened as file:
            text = plain(file.read().decode("utf8", "replace"))
        name = NAME.search(text)
        said = " ".join(name.group(1).split()) if name else ""
        if " - " not in said and " -- " not in said:
            continue
        query = re.split(r" --? ", said, maxsplit=1)[1].strip()
        body = text[name.end(1):].replace(query, "")
        family = re.split(r"[_.-]", os.path.basename(path))[0]
        families[family] = families.get(family, 0) + 1
        is_fit = 5 <= len(query.split()) <= 25 and 400 <= len(body.split()) <= 6_000
        if is_fit and query not in seen and families[family] <= FAMILY:
            seen.add(query)
            pages.append((os.path.basename(path), body, [query]))
        if len(pages) == PAGES:
            break
    return pages


def modules():
    """Returns modules as (id, text, queries)."""
    root = os.path.dirname(os.__file__)
    paths = sorted(glob.glob(root + "/**/*.py", recursive=True))
    paths = [path for path in paths if "/test" not in path and "/site-packages/" not in path]
    random.shuffle(paths)
    found = []
    for path in paths:
        with open(path, encoding="utf8", errors="replace") as file:
            text = source = file.read()
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        random.shuffle(functions)
        queries = []
        for function in functions:
            said = " ".join((ast.get_docstring(function) or "").split("\n\n")[0].split())
            segment = said and ast.get_source_segment(source, function.body[0])
            if 8 <= len(said.split()) <= 30 and segment in text and len(queries) < 3:
                text = text.replace(segment, "", 1)
                queries.append(said)
        if queries and 3_000 < len(source) < 60_000:
            found.append((os.path.relpath(path, root), text, queries))
        if len(found) == MODULES:
            break
    return found


def write(directory, documents):
    """Writes a set."""
    os.makedirs(directory, exist_ok=True)
    queries = [(query, id) for id, _, said in documents for query in said]
    random.shuffle(queries)
    with open(os.path.join(directory, "docs.jsonl"), "w") as file:
        for id, text, _ in documents:
            print(json.dumps({"id": id, "text": text}), file=file)
    with open(os.path.join(directory, "queries.jsonl"), "w") as file:
        for number, (query, id) in enumerate(queries[:QUERIES]):
            print(json.dumps({"qid": number, "text": query, "relevant": [id]}), file=file)
    print(f"{directory}: {len(documents)} documents, {min(len(queries), QUERIES)} queries")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    random.seed(7)
    write(os.path.join(sys.argv[1], "manuals"), manuals())
    write(os.path.join(sys.argv[1], "modules"), modules())


if __name__ == "__main__":
    main()
