#!/usr/bin/env python3
"""Builds every package of this machine's platform from one release build.

usage: dist.py [--target TRIPLE]

The packages are written to `target/dist`, manual pages and completions to `target/share`, where Cargo.toml looks
for the files of the .deb: cargo-deb takes `target/dist` for the output of the profile with that name.

The wheel's build makes the program; the tarball, the .deb and the npm packages carry that same file.
On Linux, zig links it against the symbols of glibc 2.17, so that one program runs on every
distribution since 2014. A static program for musl is built too: with the standard library of rustup
(`rustup target add x86_64-unknown-linux-musl`), else with that of `cross-toolchain.sh`, which Debian's
packages are needed for. With `--target x86_64-unknown-linux-musl`, its tarball is all that is built.

Deliberately absent: installing the tools (`tools/install dist`) and signing (`release.yml`).
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import npm

ROOT = Path(__file__).resolve().parent.parent
# Profile of Cargo.toml for packages.
PROFILE = "dist"
# Manual pages and completions of the program, which all packages carry.
SHARE = ROOT / "target/share"
# Bytes of a crate that crates.io takes.
REGISTRY_LIMIT = 10 << 20
# Shell → name of its completion script below `share/`.
COMPLETIONS = {
    "bash": "bash-completion/completions/memctl",
    "zsh": "zsh/site-functions/_memctl",
    "fish": "fish/vendor_completions.d/memctl.fish",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=host_target())
    options = parser.parse_args()
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"))
    package = next(package for package in metadata["packages"] if package["name"] == "memctl")
    package["repository"] = package["repository"] or os.environ.get("MEMCTL_REPOSITORY")
    out, target = ROOT / "target/dist", options.target
    for directory in (out, SHARE):
        shutil.rmtree(directory, ignore_errors=True)
    out.mkdir(parents=True)

    if target.endswith("-musl"):
        build_static_tarball(package, target, metadata["target_directory"], out)
        return
    wheel = build_wheel(target, out)
    program = Path(metadata["target_directory"]) / target / PROFILE / executable(target)
    share = write_share(program, SHARE)
    add_to_wheel(wheel, share)
    (out / f"memctl-{package['version']}.cdx.json").write_bytes(sbom(wheel))
    build_tarball(package, target, program, share, out)
    if "linux" in target:
        build_deb(target, out)
    npm.build(package, npm.PLATFORMS[target], program, ROOT, out)
    build_bundle(package, npm.PLATFORMS[target], program, out)
    musl = target.replace("-gnu", "-musl")
    if musl != target:
        if static := build_static(musl, metadata["target_directory"]):
            build_tarball(package, musl, static, share, out)
        else:
            print(f"skipped: {no_library(musl)}", file=sys.stderr)
    shutil.rmtree(share)
    pack_crates(metadata, out)
    write_checksums(out)
    print_sizes(out)


def build_static_tarball(package: dict, target: str, directory: str, out: Path) -> None:
    """Builds only the static program, and its tarball."""
    static = build_static(target, directory)
    if static is None:
        sys.exit(no_library(target))
    share = write_share(static, SHARE)
    build_tarball(package, target, static, share, out)
    shutil.rmtree(share)
    write_checksums(out)
    print_sizes(out)


def print_sizes(out: Path) -> None:
    for file in packages(out):
        print(f"{file.stat().st_size / 1e6:8.1f} MB  {file.name}")


def build_wheel(target: str, out: Path) -> Path:
    """Builds the program and its wheel."""
    how = ["--zig", "--compatibility", "manylinux_2_17"] if "linux" in target else []
    run("maturin", "build", "--profile", PROFILE, "--locked", "--target", target, *how, "--out", str(out))
    return next(out.glob("*.whl"))


def build_static(target: str, directory: str) -> Path | None:
    """Builds the static program; None if the standard library of its target is not there."""
    environment = dict(os.environ)
    if not Path(output("rustc", "--print", "target-libdir", "--target", target).strip()).is_dir():
        toolchain = cross_toolchain()
        if toolchain is None:
            return None
        # A compiler whose standard library is compiled here; zig brings musl.
        run("packaging/cross-std.sh", str(toolchain), "build", target)
        directory = f"{directory}/cross"
        environment |= {"RUSTC": f"{toolchain}/rustc", "CARGO_TARGET_DIR": directory}
        environment |= {"RUSTFLAGS": "-C link-self-contained=no"}
    run("cargo", "zigbuild", "--profile", PROFILE, "--locked", "--bin", "memctl", "--target", target, env=environment)
    return Path(directory) / target / PROFILE / "memctl"


def cross_toolchain() -> Path | None:
    """Returns the compiler of `cross-toolchain.sh`, which is prepared if it is missing; None without Debian's packages."""
    toolchain = Path(os.environ.get("CROSS_TOOLCHAIN") or ROOT / "target/cross-toolchain").resolve()
    if (toolchain / "rustc").exists():
        return toolchain
    if not shutil.which("apt-get"):
        return None
    made = subprocess.run(["packaging/cross-toolchain.sh", str(toolchain)], cwd=ROOT, stdout=sys.stderr, check=False)
    return toolchain if made.returncode == 0 else None


def no_library(target: str) -> str:
    return f"no standard library for {target}: rustup target add {target} (docs/install.md)"


def write_share(program: Path, share: Path) -> Path:
    """Writes manual pages and completions, which the program itself prints."""
    pages = share / "man/man1"
    pages.mkdir(parents=True)
    run(str(program), "man", "--dir", str(pages))
    for shell, name in COMPLETIONS.items():
        script = share / name
        script.parent.mkdir(parents=True)
        script.write_text(output(str(program), "completions", shell))
    return share


def add_to_wheel(wheel: Path, share: Path) -> None:
    """Adds `share/`, which an installation puts below its prefix."""
    run(sys.executable, "-m", "wheel", "unpack", "--dest", str(wheel.parent / "unpacked"), str(wheel))
    (unpacked,) = (wheel.parent / "unpacked").iterdir()
    shutil.copytree(share, unpacked / f"{unpacked.name}.data/data/share")
    wheel.unlink()
    run(sys.executable, "-m", "wheel", "pack", "--dest-dir", str(wheel.parent), str(unpacked))
    shutil.rmtree(unpacked.parent)


def sbom(wheel: Path) -> bytes:
    """Returns the list of the program's dependencies (CycloneDX) that the wheel's build has made."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "/sboms/" in name and name.endswith(".json"))
        return archive.read(name)


def build_tarball(package: dict, target: str, program: Path, share: Path, out: Path) -> None:
    """Packs the program, its licence and `share/` with sorted names and a fixed time and owner."""
    name = f"memctl-{package['version']}-{target}"

    written = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = written
        entry.mode = 0o755 if entry.isdir() or entry.name == f"{name}/{program.name}" else 0o644
        return entry

    if "windows" in target:
        with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(program, f"{name}/{program.name}")
            archive.write(ROOT / "LICENSE", f"{name}/LICENSE")
        return
    with (
        open(out / f"{name}.tar.gz", "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        archive.add(program, f"{name}/{program.name}", filter=plain)
        archive.add(ROOT / "LICENSE", f"{name}/LICENSE", filter=plain)
        archive.add(share, f"{name}/share", filter=plain)


def build_deb(target: str, out: Path) -> None:
    """Packs what has been built; the list of files is in Cargo.toml."""
    run("cargo", "deb", "--no-build", "--no-strip", "--locked", "--profile", PROFILE, "--target", target, "--output", f"{out}/")


def build_bundle(package: dict, platform: str, program: Path, out: Path) -> None:
    """Packs the MCP server for desktop hosts that install a file (`.mcpb`)."""
    manifest = {
        "manifest_version": "0.3",
        "name": "memctl",
        "version": package["version"],
        "description": package["description"],
        "author": {"name": "The memctl developers"},
        "license": package["license"],
        "server": {
            "type": "binary",
            "entry_point": f"server/{program.name}",
            "mcp_config": {
                "command": f"${{__dirname}}/server/{program.name}",
                "args": ["--root", "${user_config.project}", "mcp"],
            },
        },
        "user_config": {
            "project": {
                "type": "directory",
                "title": "Project",
                "description": "Directory of the project whose memory is used",
                "required": True,
            }
        },
        "compatibility": {"platforms": [platform.split("-")[0]]},
    }
    with zipfile.ZipFile(out / f"memctl-{package['version']}-{platform}.mcpb", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest, indent=2) + "\n")
        archive.write(program, f"server/{program.name}")


def pack_crates(metadata: dict, out: Path) -> None:
    """Packs the crates that `cargo install memctl` takes. Whether they build is the test of the packages to say."""
    names = [package["name"] for package in metadata["packages"] if package["publish"] is None]
    chosen = [argument for name in names for argument in ("--package", name)]
    run("cargo", "package", "--locked", "--no-verify", "--allow-dirty", *chosen)
    for package in metadata["packages"]:
        file = Path(metadata["target_directory"]) / "package" / f"{package['name']}-{package['version']}.crate"
        if package["name"] not in names:
            continue
        if file.stat().st_size > REGISTRY_LIMIT:
            sys.exit(f"`{file.name}` has {file.stat().st_size} bytes; the registry takes {REGISTRY_LIMIT}")
        shutil.copy2(file, out)


def write_checksums(out: Path) -> None:
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in packages(out)]
    (out / "SHA256SUMS").write_text("".join(lines))


def packages(out: Path) -> list[Path]:
    return sorted(file for file in out.iterdir() if file.is_file() and file.name != "SHA256SUMS")


def executable(target: str) -> str:
    return "memctl.exe" if "windows" in target else "memctl"


def host_target() -> str:
    """Returns the target that the compiler builds for by default."""
    lines = output("rustc", "-vV").splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def run(*command: str, env: dict | None = None) -> None:
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=sys.stderr)


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
