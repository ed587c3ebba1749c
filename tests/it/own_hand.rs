//! What a person decided stands: through other words, other places, torn texts and full hands. Each was once a
//! rule that fell silent, or a way back that led nowhere.

use std::fs;

use serde_json::{Value, json};

use crate::checks::{before, event, output};
use crate::found_faults::git;
use crate::hosts::hook;
use crate::mcp::Server;
use crate::workspace::Workspace;

const RULE: &str = "Use pnpm here, never npm.";

/// A workspace with one rule in force that answers `npm …` with this action, and its id.
fn with_rule(action: &str) -> (Workspace, String) {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let id = said(&workspace, RULE);
    approve(&workspace, &id, action);
    (workspace, id)
}

fn said(workspace: &Workspace, words: &str) -> String {
    let report = workspace.json(&["correct", words, "--command", r"^npm\b"]);
    report["id"].as_str().unwrap().to_owned()
}

fn approve(workspace: &Workspace, id: &str, action: &str) {
    workspace
        .run(&["approve", id, "--action", action])
        .succeeds();
}

fn told(workspace: &Workspace, session: &str) -> String {
    before(workspace, session, "npm ci").to_string()
}

/// The id of the first rule that was approved.
const FIRST: &str = "REFL-001";

#[test]
fn a_rule_refuses_a_call_whose_event_holds_torn_text() {
    let (workspace, _) = with_rule("deny");
    let whole = event(&workspace, "s", "PreToolUse", "npm ci").to_string();
    let torn = whole.replace("npm ci\"", "npm ci\", \"description\": \"see \\ud83d\"");
    let unnamed = whole.replace("\"session_id\":\"s\"", "\"session\":1");
    let numbered = whole.replace("\"session_id\":\"s\"", "\"session_id\":7");
    for text in [&torn, &unnamed, &numbered] {
        let answer = output(&hook(&workspace, "claude-code", text));
        assert_eq!(
            answer["hookSpecificOutput"]["permissionDecision"], "deny",
            "{text}"
        );
    }
    let described = whole.replace("npm ci\"", "npm ci\", \"description\": \"see X\"");
    // A byte of no character.
    let mut bytes = described.into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'X').unwrap();
    bytes[at] = 0xff;
    let answer = output(&hook(&workspace, "claude-code", bytes));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn an_edit_of_the_file_waits_in_review() {
    let (workspace, id) = with_rule("deny");
    let path = workspace.root().join(".agentura/reflexion_entries.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(RULE, "Use pnpm here, never npm!")).unwrap();
    assert!(!told(&workspace, "a").contains("deny"));
    let queue = workspace.json(&["review"]);
    let waits = queue["waiting"].as_array().unwrap();
    assert!(
        waits
            .iter()
            .any(|one| one["id"] == FIRST
                && one["reason"].as_str().unwrap().contains("acts at no call")),
        "{queue}"
    );
    approve(&workspace, &id, "deny");
    assert!(told(&workspace, "b").contains("deny"));
    assert_eq!(workspace.json(&["review"])["waiting"], json!([]));
}

#[test]
fn a_field_of_another_type_and_an_empty_file_are_damage() {
    let (workspace, _) = with_rule("note");
    let path = workspace.root().join(".agentura/reflexion_entries.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(&format!("\"{RULE}\""), "5")).unwrap();
    let ran = workspace.run(&["doctor"]);
    assert!(ran.stdout.contains("`rule` of"), "{ran:?}");
    fs::write(&path, "").unwrap();
    let ran = workspace.run(&["doctor"]);
    assert!(ran.stdout.contains("the file is empty"), "{ran:?}");
    let start = json!({"session_id": "s", "cwd": workspace.root(),
        "hook_event_name": "SessionStart", "source": "startup"});
    let answer = output(&hook(&workspace, "claude-code", start.to_string()));
    assert!(answer.to_string().contains("memctl doctor"), "{answer}");
}

#[test]
fn a_person_says_again_what_they_removed_and_no_agent_does() {
    let (workspace, id) = with_rule("note");
    workspace.run(&["forget", &id, "--for-good"]).succeeds();
    let again = said(&workspace, RULE);
    approve(&workspace, &again, "note");
    assert!(told(&workspace, "a").contains(RULE));
}

#[test]
fn the_same_words_twice_are_one_rule() {
    let (workspace, id) = with_rule("note");
    let ran = workspace.run(&["correct", RULE, "--command", r"^npm\b"]);
    assert!(ran.code != 0 && ran.stderr.contains(FIRST), "{ran:?}");
    // With more to be seen by, the second takes the place of the first.
    let more = workspace.json(&["correct", RULE, "--command", r"^npx\b"]);
    approve(&workspace, more["id"].as_str().unwrap(), "note");
    let answer = before(&workspace, "b", "npx x").to_string();
    assert_eq!(answer.matches(RULE).count(), 1, "{answer}");
    let old = workspace.json(&["show", &id]);
    assert!(old.to_string().contains("superseded"), "{old}");
}

#[test]
fn approval_brings_back_a_rule_whose_successor_is_gone() {
    let (workspace, id) = with_rule("note");
    let new = workspace.json(&[
        "correct",
        "Use bun here, never npm.",
        "--command",
        r"^npm\b",
        "--replaces",
        FIRST,
    ]);
    approve(&workspace, new["id"].as_str().unwrap(), "note");
    let ran = workspace.run(&["approve", &id]);
    assert!(
        ran.code != 0 && ran.stderr.contains("has taken the place"),
        "{ran:?}"
    );
    let successor = workspace.json(&["list", "rules"]).to_string();
    let successor = successor
        .split("REFL-002")
        .nth(1)
        .map(|_| "REFL-002")
        .unwrap();
    workspace.run(&["forget", successor]).succeeds();
    workspace.run(&["approve", &id]).succeeds();
    assert!(told(&workspace, "a").contains(RULE));
}

#[test]
fn a_renamed_folder_keeps_its_rules() {
    let home = Workspace::empty();
    let (old, new) = (home.root().join("proj"), home.root().join("shop"));
    fs::create_dir(&old).unwrap();
    let in_folder = |folder: &std::path::Path, arguments: &[&str]| {
        let mut command = home.command();
        command.current_dir(folder).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    in_folder(&old, &["init"]);
    let report = in_folder(&old, &["correct", RULE, "--command", r"^npm\b", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let id = report["id"].as_str().unwrap().to_owned();
    in_folder(&old, &["approve", &id]);
    fs::rename(&old, &new).unwrap();
    let told = |session: &str| {
        let mut call = event(&home, session, "PreToolUse", "npm ci");
        call["cwd"] = json!(new);
        output(&hook(&home, "claude-code", call.to_string())).to_string()
    };
    assert!(told("a").contains(RULE));
    // Git names the project by its first commit from now on.
    git(&new, &["init", "-q"]);
    git(&new, &["commit", "-q", "--allow-empty", "-m", "x"]);
    assert!(told("b").contains(RULE));
}

#[test]
fn folders_and_work_trees_of_a_repository_begin_one_memory() {
    let home = Workspace::empty();
    let (main, tree) = (home.root().join("shop"), home.root().join("blue"));
    let part = tree.join("packages/web");
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&main, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    fs::create_dir_all(&part).unwrap();
    let mut command = home.command();
    command.current_dir(&part).args(["correct", RULE]);
    assert!(command.output().unwrap().status.success());
    assert!(main.join(".agentura").is_dir() && !part.join(".agentura").exists());
}

#[test]
fn no_agent_forgets_what_a_person_put_in_force() {
    let (workspace, _) = with_rule("deny");
    let mut client = Server::greeted(&workspace, &["mcp"]);
    let call = json!({"name": "forget", "arguments": {"id": FIRST}});
    let answer = client.ask("tools/call", &call);
    assert!(answer.to_string().contains("memctl forget"), "{answer}");
    assert!(told(&workspace, "a").contains("deny"));
}

#[test]
fn copies_of_a_promoted_rule_are_named_and_told_once() {
    let (workspace, _) = with_rule("note");
    let id = FIRST;
    workspace.run(&["memory", "promote", id]).succeeds();
    workspace
        .run(&["edit", id, "--set", "rule=Use yarn here, never npm."])
        .succeeds();
    let answer = told(&workspace, "a");
    assert!(
        answer.contains("yarn") && !answer.contains("pnpm"),
        "{answer}"
    );
    let ran = workspace.run(&["forget", id]);
    assert!(format!("{ran:?}").contains("@user"), "{ran:?}");
}

#[test]
fn a_replaced_note_comes_back() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let note = |text: &str, rest: &[&str]| {
        let arguments = ["memory", "add", "--type", "task_memory", "--content", text];
        workspace.json(&[&arguments[..], rest].concat())
    };
    let old = note("the old fact", &[]);
    note("the new fact", &["--replaces", old["id"].as_str().unwrap()]);
    workspace.run(&["undo"]).succeeds();
    let notes = workspace.json(&["list", "notes"]).to_string();
    assert!(
        notes.contains("old fact") && !notes.contains("new fact"),
        "{notes}"
    );
}

#[test]
fn secrets_in_a_command_reach_no_journal() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let secret = format!("ghp_{}", "a8Kd02mXq7Lw93nBv5Tz1Yc6Rp4Hs0Je2Uf8");
    let words = format!("Deploy with {secret}, never by hand.");
    workspace.run(&["correct", &words]).succeeds();
    for file in [
        "audit.jsonl",
        "changes.jsonl",
        "reflexion_entries.local.json",
    ] {
        let text = fs::read_to_string(workspace.root().join(".agentura").join(file));
        assert!(!text.unwrap_or_default().contains(&secret), "{file}");
    }
}

#[test]
fn a_host_s_folder_is_that_of_the_call() {
    let workspace = Workspace::empty();
    let (one, two) = (workspace.root().join("one"), workspace.root().join("two"));
    for folder in [&one, &two] {
        fs::create_dir_all(folder).unwrap();
        let mut command = workspace.command();
        let ran = command.current_dir(folder).args(["init"]).status().unwrap();
        assert!(ran.success());
    }
    let run = |arguments: &[&str]| {
        let mut command = workspace.command();
        let output = command.current_dir(&two).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
    };
    let report = run(&["correct", RULE, "--command", r"^npm\b", "--json"]);
    run(&[
        "approve",
        report["id"].as_str().unwrap(),
        "--action",
        "deny",
    ]);
    let call = |cwd: &std::path::Path| {
        let call = json!({"hook_event_name": "preToolUse", "session_id": "5", "conversation_id": "5",
            "cursor_version": "2026", "workspace_roots": [&one, &two], "cwd": cwd,
            "tool_name": "Shell", "tool_input": {"command": "npm ci"}, "tool_use_id": "c"});
        hook(&workspace, "cursor", call.to_string()).stdout
    };
    assert!(call(&two).contains("deny"));
    assert!(!call(&one).contains("deny"));
}

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn a_memory_of_others_in_vendored_code_hides_no_rule() {
    let workspace = Workspace::empty();
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(workspace.root())
        .status();
    assert!(git.unwrap().success());
    workspace.run(&["init"]).succeeds();
    let id = said(&workspace, RULE);
    approve(&workspace, &id, "deny");
    let stranger = Workspace::empty();
    stranger.run(&["init"]).succeeds();
    let vendored = workspace.root().join("vendor/x");
    fs::create_dir_all(&vendored).unwrap();
    crate::workspace::copy(
        &stranger.root().join(".agentura"),
        &vendored.join(".agentura"),
    );
    let mut call = event(&workspace, "s", "PreToolUse", "npm ci");
    call["cwd"] = json!(vendored);
    let answer = output(&hook(&workspace, "claude-code", call.to_string()));
    assert_eq!(
        answer["hookSpecificOutput"]["permissionDecision"], "deny",
        "{answer}"
    );
}
