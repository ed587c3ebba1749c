//! Tests of what patterns match in calls: earlier calls, changed paths and tools here.

mod commands;
mod contents;

use serde_json::{Value, json};

use super::*;
use memctl_sessions::Step;

fn call(tool: &str, input: Value) -> Call {
    let step = Step {
        tool: tool.to_owned(),
        input,
        cwd: Some("/home/u/p/web".to_owned()),
        ..Step::default()
    };
    Call::of(&step, &["/home/u/p"])
}

fn bash(line: &str) -> Call {
    call("Bash", json!({ "command": line }))
}

fn pattern(on: CallPart, texts: [&str; 3]) -> CallPattern {
    let [matches, unless, after] = texts.map(str::to_owned);
    CallPattern {
        on,
        matches,
        unless,
        after,
        within: Vec::new(),
    }
}

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

#[test]
fn changed_paths_are_tried_in_all_forms() {
    let check = |tool: &str, input: Value, matches: &str, expected: bool| {
        let found = breaks(
            &call(tool, input.clone()),
            "",
            &[pattern(CallPart::Path, [matches, "", ""])],
            &|_| false,
        );
        assert_eq!(found, expected, "{input} {matches}");
    };
    let edit = |path: &str| json!({"file_path": path, "old_string": "a", "new_string": "b"});
    check(
        "Edit",
        edit("/home/u/p/db/migrations/1.sql"),
        "^db/migrations/",
        true,
    );
    check(
        "Edit",
        edit("../db/migrations/1.sql"),
        "^db/migrations/",
        true,
    );
    check(
        "Edit",
        edit("/home/u/p/db/models/1.py"),
        "^db/migrations/",
        false,
    );
    check(
        "Write",
        json!({"file_path": "/etc/x", "content": "c"}),
        "^/etc/",
        true,
    );
    check("Edit", edit("/home/u/p/a.ts"), "(^|/)u/", false);
    check("Edit", edit("/home/u/p/a.ts"), "^/home/u/", true);
    check(
        "Read",
        json!({"file_path": "/home/u/p/db/1.sql"}),
        "^db/",
        false,
    );
    let bash = |line: &str, expected: bool| {
        check("Bash", json!({ "command": line }), "^db/", expected);
    };
    bash("cat ../db/1.sql", false);
    bash("rm ../db/1.sql", true);
    bash("cd .. && rm db/1.sql", true);
    bash("sed -i s/a/b/ ../db/1.sql", true);
    bash("echo x > ../db/1.sql", true);
    bash("git -C .. restore db/1.sql", true);
    bash("find ../db -name '*.sql' -exec sed -i s/a/b/ {} +", true);
    bash("for f in ../db/*.sql; do sed -i s/a/b/ \"$f\"; done", true);
    bash("scp far:1.sql ../db/", true);
    bash("docker exec web sh -c 'rm ../db/1.sql'", false);
    bash("docker exec web rm ../db/1.sql", false);
    bash(
        "git apply <<'P'\n--- a/../db/1.sql\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\nP",
        true,
    );
    let patch = "*** Begin Patch\n*** Update File: ../db/1.sql\n@@\n-a\n+b\n*** End Patch";
    check("apply_patch", json!({ "input": patch }), "^db/", true);
    check("apply_patch", json!({ "text": patch }), "^db/", true);
    let unified = "--- a/../db/1.sql\n+++ b/../db/1.sql\n@@ -1 +1 @@\n-a\n+b\n";
    check("change", json!({ "diff": unified }), "^db/", true);
    check(
        "Delete",
        json!({"file_path": "/home/u/p/db/1.sql"}),
        "^db/",
        true,
    );
    check("mcp__files__remove", json!({"path": "../db"}), "^db/", true);
}

#[test]
fn a_file_that_is_copied_out_of_the_project_stays_as_it_is() {
    let check = |line: &str, matches: &str, expected: bool| {
        let of = pattern(CallPart::Path, [matches, "", ""]);
        let found = breaks(&bash(line), "", &[of], &|_| false);
        assert_eq!(found, expected, "{line}: {matches}");
    };
    let notes = r"(^|/)NOTES\.md$";
    check("cp NOTES.md /srv/x/", notes, false);
    check(
        "cp NOTES.md /tmp/a.md && cp a.md /tmp/NOTES.md",
        notes,
        false,
    );
    check("echo a > /tmp/NOTES.md", notes, false);
    check("echo a > /tmp/NOTES.md", "^/tmp/", true);
    check("cp a.md NOTES.md", notes, true);
    check("cp /srv/x/NOTES.md .", notes, true);
    check("echo a > /etc/hosts", "(^|/)hosts$", true);
}

#[test]
fn another_tool_is_a_command_too() {
    let check = |tool: &str, input: Value, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&call(tool, input), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{tool} {matches}");
    };
    check("WebFetch", json!({"url": "https://x"}), "^WebFetch", true);
    check(
        "Read",
        json!({"file_path": "/home/u/p/.env"}),
        r"^Read \.env$",
        true,
    );
    check("mcp__web__get", json!({"url": "x"}), "^mcp__web__", true);
    check(
        "Edit",
        json!({"file_path": "a", "new_string": "WebFetch"}),
        "WebFetch",
        false,
    );
    check("Grep", json!({"pattern": "app_prod"}), "app_prod", false);
    let grep = json!({"pattern": "app", "path": "/home/u/p/vault"});
    check("Grep", grep.clone(), r"(^|\s)vault(/|\s|$)", true);
    check("Grep", grep.clone(), r"^rg\b.*vault", true);
    check("Grep", grep, r"^rg\b", false);
    check("Glob", json!({"pattern": "../vault/*"}), r"\bvault/", true);
}

#[test]
fn a_file_tool_is_the_command_that_does_the_same() {
    let check = |tool: &str, input: Value, matches: &str, expected: bool| {
        let pattern = pattern(CallPart::Command, [matches, "", ""]);
        let found = breaks(&call(tool, input.clone()), "", &[pattern], &|_| false);
        assert_eq!(found, expected, "{tool} {input} {matches}");
    };
    let read = |path: &str| json!({ "file_path": path });
    let shown = r"^(cat|less|head)\b.*\.secrets\b";
    check("Read", read("/home/u/p/.secrets"), shown, true);
    check(
        "read_file",
        json!({"path": "/home/u/p/.secrets"}),
        shown,
        true,
    );
    check("Read", read("/home/u/p/a.rs"), shown, false);
    // A rule about the program says nothing about the tool.
    check("Read", read("/home/u/p/a.rs"), r"^cat\b", false);
    let write = json!({"file_path": "/home/u/p/probe.sh", "content": "x"});
    check("Write", write.clone(), r"(>|\btee)\s*probe\.sh", true);
    check("Write", write, r">\s*\S+", false);
}

#[test]
fn arguments_of_a_tool_stand_in_its_line() {
    let check = |texts: [&str; 3], input: Value, expected: bool| {
        let pattern = pattern(CallPart::Command, texts);
        let call = call("mcp__Desk__ticket_update", input.clone());
        assert_eq!(
            breaks(&call, "", &[pattern], &|_| false),
            expected,
            "{texts:?} {input}"
        );
    };
    let solved = [r"^mcp__desk__ticket_update\b.*\bsolved\b", "", ""];
    check(
        solved,
        json!({"id": 7, "fields": {"status": "solved"}}),
        true,
    );
    check(
        solved,
        json!({"note": "a\nb", "tags": ["x", "solved"]}),
        true,
    );
    check(solved, json!({"id": 7}), false);
    let queue = [r"(?i)desk.*\bqueue=beta\b", r"\bdraft=true\b", ""];
    check(
        queue,
        json!({"queue": "beta", "note": "to queue gamma"}),
        true,
    );
    check(
        queue,
        json!({"queue": "gamma", "note": "not queue beta"}),
        false,
    );
    check(queue, json!({"queue": "beta", "draft": true}), false);
    // It names no tool.
    check([r"\bsolved\b", "", ""], json!({"status": "solved"}), false);
}
