//! Faults that were found in use, from outside, each by its right value. `docs/complaints.md` lists all
//! of them with their tests.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace, copy};

/// Steps of a session: a call that fails, and one that works.
fn session(directory: &Path, failed: &str, error: &str, worked: &str) -> String {
    let lines = [
        json!({"session": "s-1", "cwd": directory}),
        json!({"tool": "Bash", "input": failed, "error": error, "exit_code": 1}),
        json!({"tool": "Bash", "input": worked, "output": "ok", "exit_code": 0}),
    ];
    lines.map(|line| line.to_string()).join("\n") + "\n"
}

fn git(directory: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=n@example.org"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

/// The lessons that a failing call in a directory is told.
fn hints(workspace: &Workspace, directory: &Path, error: &str, command: &str) -> Vec<Value> {
    let output = workspace
        .command()
        .current_dir(directory)
        .args(["hint", "--json", "--error", error, "--command", command])
        .output()
        .unwrap();
    let report = Ran::of(output).document();
    report["hints"].as_array().unwrap().clone()
}

const ERROR: &str = "Error: listen EADDRINUSE: address already in use :::3000";

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn item_10_a_project_is_what_git_says() {
    let workspace = Workspace::empty();
    let outside = tempfile::tempdir().unwrap();
    let shop = outside.path().canonicalize().unwrap().join("shop");
    std::fs::create_dir_all(shop.join("src")).unwrap();
    git(&shop, &["init", "-q"]);
    git(&shop, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let run = |directory: &Path, args: &[&str]| {
        let output = workspace
            .command()
            .current_dir(directory)
            .args(args)
            .output();
        Ran::of(output.unwrap()).succeeds();
    };
    run(&shop, &["init"]);
    let failed = "npm start -- --port=3000";
    let text = session(&shop.join("src"), failed, ERROR, "npm start -- --port=3001");
    std::fs::write(outside.path().join("s.jsonl"), text).unwrap();
    run(&shop, &["learn", "../s.jsonl"]);
    let told = |directory: &Path| hints(&workspace, directory, ERROR, failed).len();
    assert_eq!([told(&shop), told(&shop.join("src"))], [1, 1]);
    // A work tree, and a clone under another name with the memory.
    git(&shop, &["worktree", "add", "-q", "../fix"]);
    assert_eq!(told(&outside.path().join("fix")), 1);
    git(outside.path(), &["clone", "-q", "shop", "other"]);
    let other = outside.path().join("other");
    copy(&shop.join(".agentura"), &other.join(".agentura"));
    assert_eq!(told(&other), 1);
    // A memory that lies in the project is its own, whatever the first commit is: a history begun anew.
    let same = outside.path().join("elsewhere/shop");
    std::fs::create_dir_all(&same).unwrap();
    git(&same, &["init", "-q"]);
    git(&same, &["commit", "-q", "--allow-empty", "-m", "second"]);
    copy(&shop.join(".agentura"), &same.join(".agentura"));
    assert_eq!(told(&same), 1);
}

#[test]
fn item_10_what_was_learnt_in_a_directory_holds_there() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let root = workspace.root();
    for directory in ["shop/src", "atlas"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    let failed = "make pack";
    let error = "make: *** No rule to make target 'pack'.  Stop.";
    workspace.write(
        "s.jsonl",
        session(&root.join("shop"), failed, error, "make -C .. pack"),
    );
    workspace.json(&["learn", "s.jsonl"]);
    let told = |directory: &str| hints(&workspace, &root.join(directory), error, failed).len();
    assert_eq!(["shop", "shop/src", "atlas", ""].map(told), [1, 1, 0, 0]);
}

#[test]
fn item_14_a_changed_value_of_an_option_is_told() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let failed = "npm start -- --port=3000";
    let root = workspace.root();
    workspace.write(
        "s.jsonl",
        session(&root, failed, ERROR, "npm start -- --port=3001"),
    );
    workspace.json(&["learn", "s.jsonl"]);
    let told = hints(&workspace, &root, ERROR, failed);
    assert_eq!(
        told[0]["working_code"], "npm start -- --port=3001",
        "{told:?}"
    );
}

/// A workspace with a rule and a candidate, and a clone of its memory that nobody trusts.
fn workspace_and_clone() -> (Workspace, Workspace) {
    let workspace = Workspace::sample();
    for text in ["Name it.", "Say the score."] {
        workspace
            .run(&["correct", "hr/resume-screen", text])
            .succeeds();
    }
    let clone = Workspace::sample();
    std::fs::create_dir_all(clone.memory("")).unwrap();
    for name in [
        "reflexion_entries.json", "corrections.json", "workspace.json",
    ] {
        if workspace.memory(name).exists() {
            std::fs::copy(workspace.memory(name), clone.memory(name)).unwrap();
        }
    }
    (workspace, clone)
}

#[test]
fn after_a_revocation_nothing_is_trusted() {
    let (_, clone) = workspace_and_clone();
    let untrusted = || {
        clone.json(&["trust", "--dry-run"])["rules"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(untrusted(), 2);
    for trust in [&["trust", "--once"][..], &["trust", "--yes"]] {
        clone.run(trust).succeeds();
        assert_eq!(untrusted(), 0);
        clone.run(&["trust", "--revoke"]).succeeds();
        assert_eq!(untrusted(), 2, "{trust:?}");
    }
    clone.run(&["trust", "--once"]).succeeds();
    assert_eq!(untrusted(), 0);
}
