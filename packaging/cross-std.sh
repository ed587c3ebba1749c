#!/bin/sh
# Compiles the standard library for targets, and puts it where the compiler of cross-toolchain.sh looks for it: that compiler
# takes `--target` of them then, as one of rustup does.
#
# usage: packaging/cross-std.sh DIR check|build TARGET...
#
# `check` makes what `cargo check` reads, in half a minute a target; `build` also makes what is linked, with cargo-zigbuild.
set -eu
directory=$(readlink -f "$1") how=$2
shift 2
library=$directory/usr/lib/rustlib/src/rust/library
# As the compiler's own build does it. With bitcode, a release can be optimised as a whole.
export RUSTC="$directory/rustc" RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$directory/std-$how"
export RUSTFLAGS="-Zforce-unstable-if-unmarked -Cembed-bitcode=yes"
# Nothing is linked dynamically with the library.
sed -i 's/^crate-type = .*"dylib".*/crate-type = ["rlib"]/' "$library"/*/Cargo.toml
for target in "$@"; do
    into=$directory/usr/lib/rustlib/$target
    [ ! -e "$into/$how" ] || continue
    case $how in
        check) profile=debug; CARGO_PROFILE_DEV_DEBUG=0 cargo check --quiet --locked --manifest-path "$library/sysroot/Cargo.toml" \
            --features "panic-unwind backtrace" --target "$target" ;;
        build) profile=release; cargo-zigbuild build --release --quiet --locked --manifest-path "$library/sysroot/Cargo.toml" \
            --features "panic-unwind backtrace" --target "$target" ;;
        *) echo "usage: packaging/cross-std.sh DIR check|build TARGET..." >&2; exit 2 ;;
    esac
    rm -rf "$into"
    mkdir -p "$into/lib"
    find "$CARGO_TARGET_DIR/$target/$profile/deps" '(' -name '*.rlib' -o -name '*.rmeta' ')' -exec mv {} "$into/lib" \;
    # Whoever has what is linked has what is read.
    touch "$into/check" "$into/$how"
    rm -r "${CARGO_TARGET_DIR:?}/$target"
done
