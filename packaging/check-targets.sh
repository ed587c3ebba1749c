#!/bin/sh
# Checks the code for other systems with the compiler, without linking or running it.
#
# usage: packaging/check-targets.sh TARGET...
#
# The standard library of each target is that of rustup. Where one is missing, all are those of cross-std.sh, with the
# compiler in CROSS_TOOLCHAIN (default: target/cross-toolchain), which cross-toolchain.sh makes of Debian's packages.
#
# One run of cargo takes all targets, because build scripts and procedural macros are compiled once then. C code of
# dependencies is left out: nothing is linked, and a C compiler for each system would be needed.
set -eu
cd "$(dirname "$0")/.."
arguments=
lacks=
for target in "$@"; do
    arguments="$arguments --target $target"
    [ -d "$(rustc --print target-libdir --target "$target")" ] || lacks="$lacks $target"
done
if [ -n "$lacks" ]; then
    toolchain=${CROSS_TOOLCHAIN:-target/cross-toolchain}
    if [ ! -x "$toolchain/rustc" ]; then
        if ! command -v apt-get >/dev/null; then
            echo "skipped: no standard library; rustup target add$lacks" >&2
            exit 0
        fi
        if ! packaging/cross-toolchain.sh "$toolchain"; then
            echo "skipped: no standard library, and no compiler from Debian; rustup target add$lacks" >&2
            exit 0
        fi
    fi
    packaging/cross-std.sh "$toolchain" check "$@"
    RUSTC=$(readlink -f "$toolchain/rustc")
    export RUSTC
fi
directory=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
export TARGET_CC=true TARGET_AR=true CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
# The words of the variable are arguments.
# shellcheck disable=SC2086
cargo check --quiet --locked --bin memctl $arguments --target-dir "$directory/check"
echo "checked for $*"
