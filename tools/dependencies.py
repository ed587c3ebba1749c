#!/usr/bin/env python3
"""Checks the dependencies by the rules in `.cargo/deny.toml`: licences, sources, versions, and that each is used.

Knows what `cargo metadata` says, and no more: known vulnerabilities are looked for by `make test-audit`, which builds
cargo-deny for it. That build takes longer than this check is worth waiting for in CI.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

rules = tomllib.loads(pathlib.Path(".cargo/deny.toml").read_text())
allowed = set(rules["licenses"]["allow"])
exceptions = {one["crate"]: set(one["allow"]) for one in rules["licenses"]["exceptions"]}
registries = {f"registry+{url}" for url in rules["sources"]["allow-registry"]}
problems, needed = [], set()


def metadata(*arguments):
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def terms(expression):
    """Licences of which each has to be allowed, or None if the expression is not."""
    expression = expression.replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    words = re.sub(r" WITH ", "-WITH-", expression).split()

    def either():
        ways = [both()]
        while words and words[0] == "OR":
            words.pop(0)
            ways.append(both())
        return next((way for way in ways if way is not None), None)

    def both():
        parts = [one()]
        while words and words[0] == "AND":
            words.pop(0)
            parts.append(one())
        return None if None in parts else set().union(*parts)

    def one():
        word = words.pop(0)
        if word != "(":
            return {word} if word in given else None
        inner = either()
        words.pop(0)
        return inner

    return either()


packages = {}
for target in rules["graph"]["targets"]:
    graph = metadata("--filter-platform", target)
    # What the program is made of and tested with: not the fuzzer.
    edges = {node["id"]: node["dependencies"] for node in graph["resolve"]["nodes"]}
    reached, left = set(), [graph["resolve"]["root"]]
    while left:
        one = left.pop()
        if one not in reached:
            reached.add(one)
            left += edges[one]
    packages |= {package["id"]: package for package in graph["packages"] if package["id"] in reached}

for package in packages.values():
    name = package["name"]
    given = allowed | exceptions.get(name, set())
    found = terms(package["license"] or "none") if package["source"] else set()
    if found is None:
        problems.append(f"{name}: licence {package['license']}")
    needed |= {(name, licence) if licence not in allowed else licence for licence in found or ()}
    if package["source"] and package["source"] not in registries:
        problems.append(f"{name}: source {package['source']}")
problems += [f"licence that nothing needs: {one}" for one in allowed - needed]
for name, licences in exceptions.items():
    problems += [f"exception that nothing needs: {name} {one}" for one in licences if (name, one) not in needed]

versions = {}
for package in packages.values():
    versions.setdefault(package["name"], set()).add(package["version"])
for name, several in sorted(versions.items()):
    if len(several) > 1:
        print(f"note: {name} in versions {', '.join(sorted(several))}")

for package in metadata("--no-deps")["packages"]:
    folder = pathlib.Path(package["manifest_path"]).parent
    own = [folder / "build.rs", *(file for part in ("src", "tests", "benches", "targets") for file in (folder / part).rglob("*.rs"))]
    text = "\n".join(file.read_text() for file in own if file.exists())
    ignored = ((package["metadata"] or {}).get("cargo-machete") or {}).get("ignored", [])
    for dependency in package["dependencies"]:
        if dependency["req"] == "*" and not dependency.get("path"):
            problems.append(f"{package['name']}: any version of {dependency['name']}")
        name = dependency["rename"] or dependency["name"]
        if name not in ignored and not re.search(rf"\b{name.replace('-', '_')}\b", text):
            problems.append(f"{package['name']}: no file names {name}")

print("\n".join(problems) or f"{len(packages)} packages: licences, sources, versions and uses are as .cargo/deny.toml has them")
sys.exit(bool(problems))
