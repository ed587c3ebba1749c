//! Events that come late, and checks that take too long.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::tally::Tally;
use crate::hosts::hook;
use crate::workspace::{Ran, Workspace};

/// A workspace with a rule that refuses `npm`.
pub(super) fn refusing() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let rule = json!({"reflexion_id": "REFL-001", "rule": "Use pnpm, not npm.",
        "seen_by": [{"on": "command", "match": r"^npm\b"}]});
    write_rules(&workspace, &json!([rule]));
    let approve = ["memory", "approve", "REFL-001", "--action", "deny"];
    workspace.run(&approve).succeeds();
    workspace
}

fn write_rules(workspace: &Workspace, rules: &Value) {
    let text = serde_json::to_string_pretty(&json!({"entries": rules})).unwrap();
    fs::write(workspace.memory("reflexion_entries.json"), text).unwrap();
}

fn event(workspace: &Workspace, name: &str) -> String {
    json!({"session_id": "a", "cwd": workspace.root(), "hook_event_name": name,
        "transcript_path": "/nowhere.jsonl", "tool_name": "Bash",
        "tool_input": {"command": "npm ci"}, "error": "Exit code 1\nboom"})
    .to_string()
}

fn start(workspace: &Workspace, host: &str) -> Child {
    let mut command = workspace.command();
    command.args(["hook", host]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    pipes.stderr(Stdio::piped()).spawn().unwrap()
}

/// Writes an event in pieces, each after a pause.
fn slowly(workspace: &Workspace, host: &str, pauses: &[u64]) -> Ran {
    let event = event(workspace, "PreToolUse").into_bytes();
    let mut child = start(workspace, host);
    let mut input = child.stdin.take().unwrap();
    for (piece, pause) in event.chunks(event.len().div_ceil(pauses.len())).zip(pauses) {
        sleep(Duration::from_millis(*pause));
        input.write_all(piece).unwrap();
    }
    drop(input);
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn rule_refuses_a_call_whose_event_comes_late() {
    let workspace = refusing();
    let mut tally = Tally::of("Slow or late events of a call that a rule refuses");
    for pauses in [
        &[0][..],
        &[700],
        &[1_500],
        &[300, 300, 300, 300],
        &[0, 900],
        &[2_500],
    ] {
        for host in ["claude-code", "codex"] {
            let ran = slowly(&workspace, host, pauses);
            let broke = !ran.stdout.contains(r#""permissionDecision":"deny""#);
            tally.attempt(&format!("{host} {pauses:?}: {ran:?}"), broke);
        }
    }
    #[cfg(unix)]
    for script in [
        "echo x >> $HOME/asked; exec sleep 30",
        "echo x >> $HOME/asked; sleep 30 & exit 1",
        "echo x >> $HOME/asked; exec yes",
    ] {
        beside_git(&mut tally, script);
    }
    tally.holds();
}

/// Answers to an event, with a program in the place of git.
#[cfg(unix)]
fn beside_git(tally: &mut Tally, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = refusing();
    let git = workspace.home().join("bin/git");
    fs::create_dir_all(workspace.root().join(".git/refs/heads")).unwrap();
    fs::create_dir_all(git.parent().unwrap()).unwrap();
    fs::write(&git, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", git.parent().unwrap().display());
    for round in ["first", "second"] {
        let mut command = workspace.command();
        command.args(["hook", "claude-code"]).env("PATH", &path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let event = event(&workspace, "PreToolUse");
        let mut input = child.stdin.take().unwrap();
        input.write_all(event.as_bytes()).unwrap();
        drop(input);
        let ran = Ran::of(child.wait_with_output().unwrap());
        let broke = !ran.stdout.contains(r#""permissionDecision":"deny""#);
        tally.attempt(&format!("{round} call beside `{script}`: {ran:?}"), broke);
    }
    let asked = fs::read_to_string(workspace.home().join("asked")).unwrap_or_default();
    assert!(asked.lines().count() <= 1, "git was asked again: {script}");
}

#[test]
fn event_that_never_ends_keeps_no_agent() {
    let workspace = refusing();
    let mut child = start(&workspace, "claude-code");
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"hook_event_name\": ").unwrap();
    // Far more than the bound, so that a busy machine does not decide.
    let ended = (0..300).any(|_| {
        sleep(Duration::from_millis(100));
        child.try_wait().unwrap().is_some()
    });
    drop(input);
    assert!(ended);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
}

#[test]
fn check_that_takes_too_long_says_so_and_is_counted() {
    let workspace = refusing();
    // Reading so many patterns takes several times as long as a hook may.
    let mut rules = String::from(r#"{"entries": ["#);
    for n in 1..=600_000 {
        let comma = if n == 1 { "" } else { ",\n" };
        let seen_by = format!(r#"[{{"on": "command", "match": "^npm.*{n}"}}]"#);
        rules += &format!(
            r#"{comma}{{"reflexion_id": "REFL-{n:03}", "rule": "Use pnpm, not npm.", "seen_by": {seen_by}}}"#
        );
    }
    rules.push_str("]}");
    fs::write(workspace.memory("reflexion_entries.json"), rules).unwrap();
    let ran = hook(&workspace, "claude-code", event(&workspace, "PreToolUse"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        answer["systemMessage"],
        "memctl had no time to check the user's rules about this call"
    );
    write_rules(&workspace, &json!([]));
    let report = workspace.json(&["stats"]).to_string();
    assert!(
        report.contains("1 call ran before the rules about calls"),
        "{report}"
    );
}
