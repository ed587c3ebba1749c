"""npm packages: `memctl`, and one with the program for each platform.

npm installs those of `optionalDependencies` that fit the machine's `os` and `cpu`. Nothing is
downloaded by a script. `memctl` has a start script for node, and replaces it with the program itself
where the package manager allows install scripts.
"""

import json
import shutil
import subprocess
from pathlib import Path

from manifests import mcp_name

# Target of Rust → name of its npm package, in npm's words for systems and processors.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": "linux-x64",
    "aarch64-unknown-linux-gnu": "linux-arm64",
    "x86_64-apple-darwin": "darwin-x64",
    "aarch64-apple-darwin": "darwin-arm64",
}


def build(package: dict, platform: str, program: Path, root: Path, out: Path) -> None:
    """Writes `memctl-VERSION.tgz`, the same on all platforms, and `memctl-PLATFORM-VERSION.tgz`."""
    about = {
        "version": package["version"],
        "description": package["description"],
        "license": package["license"],
    }
    if repository := package.get("repository"):
        about |= {"homepage": repository, "repository": {"type": "git", "url": f"git+{repository}.git"}}
    staged = out / "npm"

    system, processor = platform.split("-")
    directory = staged / platform
    (directory / "bin").mkdir(parents=True)
    shutil.copy2(program, directory / "bin" / program.name)
    (directory / "bin" / program.name).chmod(0o755)
    described = {"name": f"@memctl/{platform}", **about, "os": [system], "cpu": [processor]}
    # The program is linked with glibc; without this, npm would install it on Alpine.
    described |= {"libc": ["glibc"]} if system == "linux" else {}
    pack(directory, {**described, "preferUnplugged": True, "files": ["bin"]}, root, out)

    main = staged / "memctl"
    shutil.copytree(root / "packaging/npm", main)
    (main / "bin/memctl").chmod(0o755)
    described = {
        "name": "memctl",
        **about,
        "bin": {"memctl": "bin/memctl"},
        "scripts": {"postinstall": "node install.js"},
        "files": ["bin", "install.js", "platform.js"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {f"@memctl/{name}": package["version"] for name in PLATFORMS.values()},
    }
    if name := mcp_name(repository or ""):
        described["mcpName"] = name
    pack(main, described, root, out)
    shutil.rmtree(staged)


def pack(directory: Path, described: dict, root: Path, out: Path) -> None:
    (directory / "package.json").write_text(json.dumps(described, indent=2) + "\n")
    shutil.copy2(root / "LICENSE", directory)
    shutil.copy2(root / "packaging/README.md", directory)
    command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(out)]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
