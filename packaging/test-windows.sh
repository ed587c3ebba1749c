#!/bin/sh
# Compiles the tests for Windows and runs them under Wine. Everything that it needs is prepared below DIR, from the packages
# of Debian and PyPI; nothing is installed.
#
# usage: packaging/test-windows.sh DIR [TEST...]; cargo-zigbuild and zig in PATH
#
# TEST is a part of the name of an integration test, as `cargo test` takes it; without one, those of `groups` run. The
# others have not passed yet: some expect paths, messages or programs of Unix. All tests of the library run. A log of each
# lies in DIR. The exit code is 1 if a test failed, or a run did not come to its end.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
directory=$(readlink -f "$1")
shift
target=x86_64-pc-windows-gnu
groups="agents_md:: approve:: audit:: backtest:: bad_input:: book:: chat:: checks:: completions::
    conformance:: contract:: disable:: edit:: embedders:: episodes:: eval::
    experiment:: export_import:: garbage:: guard:: help:: hosts:: index:: integrations::
    json_documents:: layers:: learn:: learning:: llm_wire:: mcp:: memories:: merge:: models::
    more_hosts:: output:: price:: procedures:: purge:: reference:: regression:: released_stores::
    review:: rewriting:: rule_files:: rule_relations:: rules:: schemas:: search:: serve::keys::
    serve::native:: serve::own_data:: serve::shapes:: session:: session_formats:: setup::
    simulation:: stats:: statusline:: store:: undo:: user_store:: users:: why::"
# How long one of the two runs may take, in seconds.
limit=${WINDOWS_TEST_SECONDS:-2400}
toolchain=${CROSS_TOOLCHAIN:-$directory/toolchain}
[ -x "$directory/wine/wine" ] || packaging/wine.sh "$directory/wine"
[ -x "$toolchain/rustc" ] || packaging/cross-toolchain.sh "$toolchain"
toolchain=$(readlink -f "$toolchain")
packaging/cross-std.sh "$toolchain" build $target
# Stack protection is a library of its own in GCC, and part of zig's.
mkdir -p "$directory/empty"
for name in ssp ssp_nonshared; do printf '!<arch>\n' > "$directory/empty/lib$name.a"; done
export RUSTC="$toolchain/rustc" CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS="-L native=$directory/empty"
# The names of the programs stand in what cargo says.
cargo-zigbuild test --locked --lib --test it --no-run --target $target --target-dir "$directory/build" 2>&1 \
    | tee "$directory/build.log" >&2
status=0
for tests in lib it; do
    case $tests in
        lib) source=src/lib.rs names= ;;
        it) source=tests/it/main.rs names=${*:-$groups} ;;
    esac
    program=$(sed -n "s|.*Executable.* $source (\\(.*\\.exe\\))|\\1|p" "$directory/build.log" | tail -n 1)
    log=$directory/$tests.log
    echo "running $program" >&2
    # The words of the variable are arguments.
    # shellcheck disable=SC2086
    timeout --signal=KILL "$limit" "$directory/wine/wine" "$program" --test-threads=4 $names > "$log" 2>&1 < /dev/null || status=1
    echo "$tests: passed, failed, ignored of each group (log: $log)"
    sed -n 's/^test \([a-z0-9_]*\)[: ].* \.\.\. \(ok\|FAILED\|ignored\).*/\1 \2/p' "$log" | sort | awk '
        { groups[$1]; count[$1, $2]++; all[$2]++ }
        function row(name, ok, failed, ignored, to) { printf "%6d %6d %7d  %s\n", ok, failed, ignored, name | to }
        END {
            for (name in groups) row(name, count[name, "ok"], count[name, "FAILED"], count[name, "ignored"], "sort -k4")
            close("sort -k4")
            row("all", all["ok"], all["FAILED"], all["ignored"], "cat")
        }'
    # A run that was ended says no result.
    grep -q '^test result: ok' "$log" || { status=1; sed -n '/^failures:$/,$p' "$log" | tail -n 60 >&2; }
done
exit $status
