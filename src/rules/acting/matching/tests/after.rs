//! A call that is fine after another one.

use super::*;

#[test]
fn a_call_after_another_is_fine() {
    let check = |line: &str, is_done: bool, expected: bool| {
        let pattern = pattern(CallPart::Command, ["^git commit", "", "^cargo fmt"]);
        let found = breaks(&bash(line), "", &[pattern], &|_| is_done);
        assert_eq!(found, expected, "{line}");
    };
    check("git commit -m x", false, true);
    check("git commit -m x", true, false);
    check("cargo fmt && git commit -m x", false, false);
    check("cargo fmt; git commit -m x", false, true);
    check("git commit -m x && cargo fmt", false, true);
    check("cargo fmt || true && git commit -m x", false, true);
    check("cargo fmt || exit 1; git commit -m x", false, false);
    check(
        "cargo fmt && cargo test | tail -3 && git commit -m x",
        false,
        false,
    );
}

#[test]
fn earlier_success_makes_later_calls_fine() {
    let check = |line: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, ["^git commit", "", "^make check"]);
        let found = fulfilled_by(&bash(line), &[pattern]);
        assert_eq!(!found.is_empty(), expected, "{line}");
    };
    check("make check", true);
    check("cd a && CI=1 make check -j4 2>&1 | tail -5", true);
    check("bash -lc 'make check'", true);
    check("make check; echo $?", true);
    check("make check || true", false);
    check("! make check", false);
    check("echo 'make check'", false);
    check("make build", false);
    check("make -n check", false);
    check("make check --help", false);
    check("uv run make check", true);
    let dry = pattern(
        CallPart::Command,
        ["^shipit go", "", "^shipit go.*--dry-run"],
    );
    let call = bash("shipit go --dry-run");
    assert!(!breaks(&call, "", std::slice::from_ref(&dry), &|_| false));
    assert!(!fulfilled_by(&call, &[dry]).is_empty());
    let probe = pattern(CallPart::Command, ["^shipit go", "", r"bin/probe\.sh"]);
    let done = |call: &Call| !fulfilled_by(call, std::slice::from_ref(&probe)).is_empty();
    assert!(done(&bash("bash bin/probe.sh")));
    assert!(!done(&bash("cat bin/probe.sh")));
    assert!(!done(&call_of_read("bin/probe.sh")));
}

fn call_of_read(path: &str) -> Call {
    call("Read", json!({ "file_path": path }))
}
