//! Calls of tools other than a shell.

use super::*;

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
