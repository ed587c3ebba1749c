#!/usr/bin/env python3
"""Writes what package managers read about a release: a Homebrew formula, a Scoop manifest, and
`server.json` for the MCP registry.

usage: manifests.py DIR --version VERSION --repository URL

DIR holds the tarballs of a release (`memctl-VERSION-TARGET.tar.gz` or `.zip`), which the manifests
name by their address and checksum. A manifest without any file of its platforms is not written.
"""

import argparse
import hashlib
import json
import re
from pathlib import Path

DESCRIPTION = "Memory for coding agents that learns from corrections and failures"
FORMULA = """\
class Memctl < Formula
  desc "{description}"
  homepage "{repository}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]
{systems}
  def install
    bin.install "memctl"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/memctl"
    zsh_completion.install "share/zsh/site-functions/_memctl"
    fish_completion.install "share/fish/vendor_completions.d/memctl.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/memctl --version")
  end
end
"""
# Words of Homebrew for the systems and processors of Rust's targets.
BREW = {
    "macos": {"arm": ["aarch64-apple-darwin"], "intel": ["x86_64-apple-darwin"]},
    # A static program needs no certain C library.
    "linux": {
        "arm": ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
        "intel": ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"],
    },
}
SCOOP = {"64bit": "x86_64-pc-windows-msvc", "arm64": "aarch64-pc-windows-msvc"}


class Release:
    """Files of a release, by target."""

    def __init__(self, directory: Path, version: str, repository: str) -> None:
        self.directory, self.version, self.repository = directory, version, repository.rstrip("/")

    def file(self, target: str, ending: str) -> tuple[str, str] | None:
        """Returns the address and the checksum of a target's file."""
        file = self.directory / f"memctl-{self.version}-{target}.{ending}"
        if not file.is_file():
            return None
        return f"{self.repository}/releases/download/v{self.version}/{file.name}", hashlib.sha256(file.read_bytes()).hexdigest()

    def formula(self) -> str | None:
        systems = []
        for system, processors in BREW.items():
            found = []
            for processor, targets in processors.items():
                if file := next(filter(None, (self.file(target, "tar.gz") for target in targets)), None):
                    found.append(f'    on_{processor} do\n      url "{file[0]}"\n      sha256 "{file[1]}"\n    end\n')
            if found:
                systems.append(f"\n  on_{system} do\n{''.join(found)}  end\n")
        text = FORMULA.format(
            description=DESCRIPTION, repository=self.repository, version=self.version, systems="".join(systems)
        )
        return text if systems else None

    def scoop(self) -> str | None:
        found = {name: file for name, target in SCOOP.items() if (file := self.file(target, "zip"))}
        if not found:
            return None
        manifest = {
            "version": self.version,
            "description": DESCRIPTION,
            "homepage": self.repository,
            "license": "MIT|Apache-2.0",
            "architecture": {
                name: {"url": url, "hash": digest, "extract_dir": Path(url).stem} for name, (url, digest) in found.items()
            },
            "bin": "memctl.exe",
            "checkver": {"github": self.repository},
            "autoupdate": {
                "architecture": {
                    name: {
                        "url": url.replace(self.version, "$version"),
                        "extract_dir": Path(url).stem.replace(self.version, "$version"),
                    }
                    for name, (url, _) in found.items()
                }
            },
        }
        return json.dumps(manifest, indent=4) + "\n"

    def server(self) -> str | None:
        """The registry asks the npm package for the same name (`mcpName`)."""
        name = mcp_name(self.repository)
        if name is None:
            return None
        manifest = {
            "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
            "name": name,
            "title": "memctl",
            "description": DESCRIPTION,
            "repository": {"url": self.repository, "source": "github"},
            "version": self.version,
            "packages": [
                {
                    "registryType": "npm",
                    "identifier": "memctl",
                    "version": self.version,
                    "transport": {"type": "stdio"},
                    "packageArguments": [{"type": "positional", "value": "mcp"}],
                }
            ],
        }
        return json.dumps(manifest, indent=2) + "\n"


def mcp_name(repository: str) -> str | None:
    """Returns the name that the MCP registry lets the owner of a repository on GitHub use."""
    owner = re.fullmatch(r"https://github\.com/([^/]+)/[^/]+/?", repository)
    return f"io.github.{owner[1]}/memctl" if owner else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--repository", required=True)
    options = parser.parse_args()
    release = Release(options.directory, options.version, options.repository)
    for name, text in (("memctl.rb", release.formula()), ("memctl.json", release.scoop()), ("server.json", release.server())):
        if text is None:
            print(f"skipped: {name}, for which there is no file")
        else:
            (options.directory / name).write_text(text)


if __name__ == "__main__":
    main()
