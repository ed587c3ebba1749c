#!/usr/bin/env python3
"""Installs each package of `make dist` into an empty root, and uses it there as a person and an agent do.

usage: test_dist.py [DIR]

For each package: version, manual pages and completions, the plan of `setup`, and hooks: a recovery is
learnt, `hooks install` writes the settings, and the command that it wrote is given the failing call,
as the agent host does it. It must answer with the fix, and start fast. Then the package is removed,
and no file of it may stay.

A hook's time is that of the whole process, median of 60 runs, beside /bin/true: of a call that went well
(`hook`), and of a failing one that is told its fix (`hint`). These times depend on what else the machine
does, so the check is of the processor time of the first (`cpu`), which must be at most 5 ms.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from npm_registry import Registry

PROJECT = Path(__file__).resolve().parent.parent
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
FAILING = "python3 -c \"print({}['x'])\""
ERROR = "Traceback (most recent call last):\nKeyError: 'x'"
EVENT = {
    "session_id": "s",
    "hook_event_name": "PostToolUseFailure",
    "tool_name": "Bash",
    "tool_input": {"command": FAILING},
    "tool_use_id": "t",
    "error": f"Exit code 1\n{ERROR}",
}
QUIET = {
    "session_id": "q",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t",
    "tool_response": {"stdout": "a", "stderr": "", "interrupted": False, "isImage": False},
}


class Failed(Exception):
    """A check that does not hold."""


class Installed:
    """An installed package: the directory of its command, and its root."""

    def __init__(self, root: Path, bin_dir: Path, share: Path | None, remove: Callable[[], object] | None) -> None:
        self.root, self.bin_dir, self.share, self.remove = root, bin_dir, share, remove


def main() -> int:
    dist = Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT / "target/dist").resolve()
    check_sums(dist)
    check_sbom(next(dist.glob("*.cdx.json")))
    version = next(dist.glob("*.cdx.json")).name.removeprefix("memctl-").removesuffix(".cdx.json")
    passed, failed, skipped = 0, 0, 0
    packages: list[tuple[str, Callable[[Path], Installed | str]]] = [
        ("wheel", lambda root: by_pip(next(dist.glob("*.whl")), root)),
        ("npm", lambda root: by_npm(dist, root, [])),
        ("npm, no scripts", lambda root: by_npm(dist, root, ["--ignore-scripts"])),
        *(("deb", lambda root, deb=deb: by_dpkg(deb, root)) for deb in dist.glob("*.deb")),
        ("cargo install", lambda root: by_cargo(dist, root)),
        *((f"tar {tar.name.split('-', 2)[2].removesuffix('.tar.gz')}", lambda root, tar=tar: by_tar(tar, root)) for tar in sorted(dist.glob("*.tar.gz"))),
    ]
    check_manifests(dist, version)
    print(f"{'package':<32}{'hook':>10}{'cpu':>10}{'hint':>10}{'/bin/true':>12}{'installed':>12}")
    for name, install in packages:
        with tempfile.TemporaryDirectory() as directory:
            try:
                installed = install(Path(directory).resolve() / "root")
                if isinstance(installed, str):
                    skipped += 1
                    print(f"{name:<32}skipped: {installed}")
                    continue
                print(f"{name:<32}{use(installed, version, Path(directory).resolve())}")
                passed += 1
            except (Failed, subprocess.CalledProcessError) as error:
                failed += 1
                print(f"{name:<32}FAILED: {error}\n{getattr(error, 'stderr', None) or ''}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


def check_sums(dist: Path) -> None:
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        if sha256(dist / name) != digest:
            sys.exit(f"`{name}` is not the file of SHA256SUMS")


def check_sbom(file: Path) -> None:
    names = {component["name"] for component in json.loads(file.read_text())["components"]}
    # One of the program's own and one that only another dependency names.
    if not {"clap", "rustls", "rten-gemm"} <= names:
        sys.exit(f"`{file.name}` lacks dependencies: it names {len(names)}")


def check_manifests(dist: Path, version: str) -> None:
    """Writes the manifests of a release of these files, and reads them as the package managers do."""
    repository = "https://github.com/example/memctl"
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        for tar in dist.glob("*.tar.gz"):
            shutil.copy2(tar, copy)
        # No Windows file is built here: the manifest is of any file.
        zipped = f"memctl-{version}-x86_64-pc-windows-msvc.zip"
        (copy / zipped).write_bytes(b"zip")
        script = Path(__file__).with_name("manifests.py")
        run(sys.executable, str(script), directory, "--version", version, "--repository", repository)
        formula = (copy / "memctl.rb").read_text()
        named = re.findall(r'url "(.*)"\n +sha256 "(.*)"', formula)
        scoop = json.loads((copy / "memctl.json").read_text())["architecture"]["64bit"]
        for url, digest in [*named, (scoop["url"], scoop["hash"])]:
            file = copy / url.removeprefix(f"{repository}/releases/download/v{version}/")
            if sha256(file) != digest:
                sys.exit(f"the checksum of `{url}` is not that of the file")
        if not named:
            sys.exit("the formula names no file")
        if shutil.which("ruby"):
            run("ruby", "-c", str(copy / "memctl.rb"))
        server = json.loads((copy / "server.json").read_text())
        # Limits of the registry's schema.
        if server["name"] != "io.github.example/memctl" or len(server["description"]) > 100:
            sys.exit(f"server.json is {server}")


def by_pip(wheel: Path, root: Path) -> Installed:
    run(sys.executable, "-m", "venv", str(root))
    pip = [str(root / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", str(wheel))
    return Installed(root, root / "bin", root / "share", lambda: run(*pip, "uninstall", "--quiet", "--yes", "memctl"))


def by_npm(dist: Path, root: Path, options: list[str]) -> Installed | str:
    if not shutil.which("npm"):
        return "npm is missing"
    home = {**os.environ, "HOME": str(root.parent), "npm_config_cache": str(root.parent / "cache")}
    with Registry(dist) as registry:
        command = ["npm", "install", "--global", "--silent", "--prefix", str(root), "--registry", registry.url]
        run(*command, *options, "memctl", env=home)
    return Installed(root, root / "bin", None, lambda: run("npm", "uninstall", "--global", "--silent", "--prefix", str(root), "memctl", env=home))


def by_dpkg(deb: Path, root: Path) -> Installed | str:
    if not shutil.which("dpkg"):
        return "dpkg is missing"
    (root / "var/lib/dpkg").mkdir(parents=True)
    if os.geteuid():
        run("dpkg-deb", "--extract", str(deb), str(root))
        return Installed(root, root / "usr/bin", root / "usr/share", None)
    # An empty system has no C library; what is asked for is checked by hand.
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    needs = run("dpkg-deb", "--field", str(deb), "Depends").strip()
    if not needs.startswith("libc6 (>= 2."):
        raise Failed(f"the package depends on `{needs}`")
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless"]
    run(*dpkg, "--install", str(deb))
    return Installed(root, root / "usr/bin", root / "usr/share", lambda: run(*dpkg, "--purge", "memctl"))


def by_tar(tar: Path, root: Path) -> Installed:
    root.mkdir()
    with tarfile.open(tar) as archive:
        archive.extractall(root)
    (directory,) = root.iterdir()
    return Installed(root, directory, directory / "share", None)


def by_cargo(dist: Path, root: Path) -> Installed | str:
    """Installs from a directory that cargo takes for its registry: the packed crates, and copies of all others. Cargo checks
    each file by hash, as it does with those of the registry."""
    if not shutil.which("cargo"):
        return "cargo is missing"
    registry = root.parent / "registry"
    run("cargo", "vendor", "--quiet", "--locked", "--versioned-dirs", str(registry), cwd=PROJECT)
    for crate in dist.glob("*.crate"):
        with tarfile.open(crate) as archive:
            archive.extractall(registry, filter="data")
        unpacked = registry / crate.name.removesuffix(".crate")
        files = {str(file.relative_to(unpacked)): sha256(file) for file in unpacked.rglob("*") if file.is_file()}
        (unpacked / ".cargo-checksum.json").write_text(json.dumps({"files": files, "package": sha256(crate)}))
    configuration = root.parent / "config.toml"
    configuration.write_text(f'source.crates-io.replace-with = "copies"\nsource.copies.directory = "{registry}"\n')
    cargo = ["cargo", "--quiet", "--config", str(configuration)]
    run(*cargo, "install", "--offline", "--locked", "--root", str(root), "memctl", cwd=root.parent)
    return Installed(root, root / "bin", None, lambda: run("cargo", "uninstall", "--quiet", "--root", str(root), "memctl"))


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def use(installed: Installed, version: str, above: Path) -> str:
    """Uses the command, and returns what was measured."""
    home, project = above / "home", above / "home/project"
    (home / ".claude").mkdir(parents=True)
    project.mkdir()
    environment = {"HOME": str(home), "PATH": f"{installed.bin_dir}:{SYSTEM_PATH}", "LC_ALL": "C.UTF-8"}

    def memctl(*arguments: str) -> str:
        return run("memctl", *arguments, cwd=project, env=environment)

    said = memctl("--version").strip()
    if said != f"memctl {version}":
        raise Failed(f"--version says `{said}`")
    if installed.share:
        for name in ("man/man1/memctl*", "bash-completion/completions/memctl", "zsh/*/_memctl", "fish/*/memctl.fish"):
            if not list(installed.share.glob(name)):
                raise Failed(f"`{name}` is missing in share")
    plan = json.loads(memctl("setup", "--dry-run", "--json"))
    states = {(step["name"], step.get("host")): step["state"] for step in plan["steps"]}
    if states.get(("hooks", "claude-code")) != "planned" or (project / ".agentura").exists():
        raise Failed(f"the plan of setup is {states}")

    for _ in range(2):
        memctl("record", "failure", "--code", FAILING, "--error", ERROR)
        memctl("record", "success", "--code", "echo fixed", "--output", "fixed")
    memctl("hooks", "install", "claude-code")
    settings = json.loads((home / ".claude/settings.json").read_text())
    hook = settings["hooks"]["PostToolUseFailure"][0]["hooks"][0]
    command = hook["command"]
    event = json.dumps({**EVENT, "cwd": str(project)})
    quiet_event = json.dumps({**QUIET, "cwd": str(project)})
    # As the agent host does it: by the shell.
    answer = run("/bin/sh", "-c", command, cwd=project, env=environment, input=event)
    if "echo fixed" not in answer:
        raise Failed(f"`{command}` answers `{answer}`")
    program = shutil.which(shlex.split(command)[0], path=environment["PATH"])
    if program is None or Path(program).read_bytes()[:2] == b"#!":
        raise Failed(f"`{command}` starts `{program}`, which is no native program")
    (quiet, cpu), (hint, _), (base, _) = times([command, command, "/bin/true"], [quiet_event, event, ""], project, environment)
    if cpu > 5:
        raise Failed(f"a hook takes {cpu:.1f} ms of the processor")

    files = [file for file in installed.root.rglob("*") if file.is_file() and "memctl" in str(file.relative_to(installed.root))]
    size = sum({(file.stat().st_dev, file.stat().st_ino): file.stat().st_size for file in files}.values())
    memctl("hooks", "uninstall", "claude-code")
    if installed.remove:
        installed.remove()
        left = [str(path) for path in installed.root.rglob("*memctl*") if "/var/lib/dpkg/" not in str(path)]
        if left:
            raise Failed(f"after its removal there is {left[:3]}")
    return f"{quiet:>7.2f} ms{cpu:>7.2f} ms{hint:>7.2f} ms{base:>9.2f} ms{size / 1e6:>9.1f} MB"


def times(commands: list[str], inputs: list[str], project: Path, environment: dict[str, str]) -> list[tuple[float, float]]:
    """Returns the median time and processor time in ms of each command with its input. They take turns."""
    given = project.parent / "event.json"
    took: list[list[tuple[float, float]]] = [[] for _ in commands]
    for _ in range(60):
        for kind, (command, text) in enumerate(zip(commands, inputs)):
            given.write_text(text)
            arguments = shlex.split(command)
            program = shutil.which(arguments[0], path=environment["PATH"])
            actions = [
                (os.POSIX_SPAWN_OPEN, 0, str(given), os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            ]
            began = time.perf_counter()
            child = os.posix_spawn(program, arguments, environment, file_actions=actions)
            _, _, usage = os.wait4(child, 0)
            took[kind].append((time.perf_counter() - began, usage.ru_utime + usage.ru_stime))
    return [tuple(statistics.median(one) * 1000 for one in zip(*of_one)) for of_one in took]


def run(*command: str, **options: object) -> str:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
