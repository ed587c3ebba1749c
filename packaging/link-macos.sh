#!/bin/sh
# Links the program for macOS, which shows that nothing is missing in it. It cannot be run here.
#
# usage: packaging/link-macos.sh TARGET...; cargo-zigbuild and zig in PATH
#
# zig has macOS's C library. Apple's frameworks may not be passed on, so `macos/` has a list of the symbols that the
# program takes from each of them, and the linker refuses any other.
set -eu
cd "$(dirname "$0")/.."
toolchain=${CROSS_TOOLCHAIN:-target/cross-toolchain}
directory=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
for list in packaging/macos/*.tbd; do
    name=$(basename "$list" .tbd)
    mkdir -p "$directory/macos/frameworks/$name.framework"
    cp "$list" "$directory/macos/frameworks/$name.framework/"
done
for target in "$@"; do
    if [ ! -d "$(rustc --print target-libdir --target "$target")" ]; then
        [ -x "$toolchain/rustc" ] || packaging/cross-toolchain.sh "$toolchain"
        packaging/cross-std.sh "$toolchain" build "$target"
        RUSTC=$(readlink -f "$toolchain/rustc")
        export RUSTC
    fi
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 RUSTFLAGS="-C strip=none -C link-arg=-F$directory/macos/frameworks" \
        cargo-zigbuild build --quiet --locked --bin memctl --target "$target" --target-dir "$directory/macos"
    echo "linked $directory/macos/$target/debug/memctl"
done
