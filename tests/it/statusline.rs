//! Status line of Claude Code: what it says, and that no trouble shows.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::hosts::hook;
use crate::support::{EVER, with_input};
use crate::workspace::{Ran, Workspace};

/// The input that Claude Code 2.1.329 gave before the first prompt and after an answer, as if its session
/// were in this workspace.
fn inputs(workspace: &Workspace) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/hosts/claude-code-2.1.329.statusline.jsonl");
    let root = workspace.root_in_json();
    let text = fs::read_to_string(path).unwrap();
    let text = text.replace("/home/dev/project", &root);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn shown(workspace: &Workspace, input: &str) -> Ran {
    let ran = with_input(workspace.command().arg("statusline"), input.as_bytes());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran
}

/// Two rules in use and a candidate.
fn rules() -> Value {
    let rule = |id: &str, rule: &str| json!({"reflexion_id": id, "rule": rule});
    let candidate = json!({"reflexion_id": "REFL-003", "rule": "Use pnpm, not npm.",
        "source": "chat", "status": "candidate"});
    json!({"entries": [rule("REFL-001", "Keep it short."), rule("REFL-002", "Write tests."), candidate]})
}

#[test]
fn status_line_has_rules_hints_and_candidates() {
    let mut workspace = Workspace::empty();
    let inputs = inputs(&workspace);
    let session = inputs[0]["session_id"].as_str().unwrap();
    let [first, last] = [&inputs[0], &inputs[1]].map(ToString::to_string);
    assert_eq!(shown(&workspace, &first).stdout, "", "no memory yet");
    workspace.run(&["init"]).succeeds();
    insta::assert_snapshot!(shown(&workspace, &first).stdout, @"memctl: nothing told yet");
    workspace.write(".agentura/reflexion_entries.json", rules().to_string());
    let event = |name: &str, other: Value| {
        let mut event = json!({"hook_event_name": name, "session_id": session,
            "cwd": workspace.root()});
        let fields = event.as_object_mut().unwrap();
        fields.extend(other.as_object().unwrap().clone());
        hook(&workspace, "claude-code", event.to_string()).succeeds();
    };
    event("SessionStart", json!({"source": "startup"}));
    let failing = "python3 -c \"print({}['x'])\"";
    let working = "python3 -c \"print({}.get('x'))\"";
    let error = "Traceback (most recent call last):\nKeyError: 'x'";
    workspace
        .run(&["record", "failure", "--code", failing, "--error", error])
        .succeeds();
    workspace
        .run(&["record", "success", "--code", working, "--output", "None"])
        .succeeds();
    event(
        "PostToolUseFailure",
        json!({"tool_name": "Bash", "tool_input": {"command": failing},
            "tool_use_id": "a", "error": format!("Exit code 1\n{error}")}),
    );
    event(
        "PostToolUse",
        json!({"tool_name": "Bash", "tool_input": {"command": working},
            "tool_use_id": "b", "tool_response": {"stdout": "None"}}),
    );
    let coloured = shown(&workspace, &last).stdout;
    insta::assert_snapshot!(
        coloured.escape_debug(),
        @r"memctl: 2 rules told, 1 lesson told, 1 helped, \u{1b}[33m1 candidate waits: memctl review\u{1b}[0m\n"
    );
    let plain = "memctl: 2 rules told, 1 lesson told, 1 helped, 1 candidate waits: memctl review\n";
    let stripped = coloured.replace("\u{1b}[33m", "").replace("\u{1b}[0m", "");
    assert_eq!(stripped, plain);
    // A candidate that was decided is gone at once.
    workspace.run(&["memory", "approve", "REFL-003"]).succeeds();
    assert_eq!(
        shown(&workspace, &last).stdout,
        "memctl: 2 rules told, 1 lesson told, 1 helped\n"
    );
    // A pattern that was approved is told to the next session when it starts.
    workspace.run(&["approve", "PROC-001"]).succeeds();
    event(
        "SessionStart",
        json!({"source": "startup", "session_id": "next"}),
    );
    let next = json!({"session_id": "next", "cwd": workspace.root()}).to_string();
    assert_eq!(
        shown(&workspace, &next).stdout,
        "memctl: 3 rules told, 1 lesson told\n"
    );
    workspace.write(".agentura/reflexion_entries.json", rules().to_string());
    workspace.set("NO_COLOR", "1");
    assert_eq!(shown(&workspace, &last).stdout, plain);
}

#[test]
fn status_line_shows_no_trouble() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let first = inputs(&workspace)[0].to_string();
    for input in ["", "{", "7", "null", "\"x\"", "{\"session_id\": 7}"] {
        assert_eq!(shown(&workspace, input).stdout, "", "{input}");
    }
    assert_eq!(
        shown(&workspace, "{}").stdout,
        "memctl: no candidates wait\n"
    );
    // A file that cannot be read has no rules that could wait; `memctl doctor` reports it.
    workspace.write(".agentura/reflexion_entries.json", "{broken");
    assert_eq!(
        shown(&workspace, &first).stdout,
        "memctl: nothing told yet\n"
    );
    workspace.run(&["memory", "disable"]).succeeds();
    assert_eq!(shown(&workspace, &first).stdout, "memctl: off\n");
}

#[test]
fn status_line_writes_nothing() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.write(".agentura/reflexion_entries.json", rules().to_string());
    let first = inputs(&workspace)[0].to_string();
    let listing = || {
        let mut names: Vec<String> = Vec::new();
        let mut left = vec![workspace.root()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let data = entry.metadata().unwrap();
                if data.is_dir() {
                    left.push(entry.path());
                } else {
                    names.push(format!("{} {:?}", entry.path().display(), data.modified()));
                }
            }
        }
        names.sort();
        names
    };
    let before = listing();
    assert!(!shown(&workspace, &first).stdout.is_empty());
    assert_eq!(listing(), before);
}

/// A host that keeps the pipe open does not keep the process.
#[test]
fn status_line_ends_without_the_end_of_its_input() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let begun = Instant::now();
    let mut child = workspace
        .command()
        .arg("statusline")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    assert!(child.wait().unwrap().success());
    drop(input);
    assert!(begun.elapsed() < EVER);
}
