//! What nobody has approved stays out of git, from outside: with the real git, an approval, an undo,
//! and a memory of an earlier version.

use std::process::Command;

use serde_json::{Value, json};

use crate::hosts::hook;
use crate::mcp::Server;
use crate::support::RUN;
use crate::workspace::{Ran, Workspace};

const ERROR: &str = "jq: error (at report.json:1): module not found: sums";

/// What git would commit of the memory, and nothing else.
fn untracked(workspace: &Workspace) -> Vec<String> {
    let output = Command::new("git")
        .args(["status", "--short", "--untracked-files=all", ".agentura"])
        .current_dir(workspace.root())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line[3..].to_owned()).collect()
}

fn repository() -> Workspace {
    let workspace = Workspace::sample();
    let made = Command::new("git")
        .args(["init", "-q"])
        .current_dir(workspace.root())
        .status();
    assert!(made.unwrap().success());
    workspace.run(&["init"]).succeeds();
    workspace
}

/// The ids in one file of procedures.
fn ids(workspace: &Workspace, file: &str) -> Vec<String> {
    let file: Value = serde_json::from_str(&workspace.read(file)).unwrap();
    let entries = file["entries"].as_array().unwrap().iter();
    entries
        .map(|fix| fix["procedure_id"].as_str().unwrap().to_owned())
        .collect()
}

fn hinted(workspace: &Workspace) -> Value {
    let hints = workspace.json(&[
        "hint",
        "--error",
        ERROR,
        "--command",
        "jq -f total.jq report.json",
    ]);
    hints["hints"][0]["trust"].clone()
}

const SHARED: &str = ".agentura/procedural_memory.json";
const LOCAL: &str = ".agentura/procedural_memory.local.json";

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn git_sees_a_fix_when_it_is_approved_and_not_before() {
    let workspace = repository();
    let before = untracked(&workspace);
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    let seen = untracked(&workspace);
    let of_records = |name: &&String| name.contains("procedural");
    assert_eq!(
        seen.iter().filter(of_records).count(),
        0,
        "{before:?} {seen:?}"
    );
    assert_eq!(hinted(&workspace), "observed");
    let local = workspace.read(LOCAL);
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    assert!(untracked(&workspace).contains(&SHARED.to_owned()));
    assert_eq!(ids(&workspace, SHARED), ["PROC-001"]);
    assert_eq!(hinted(&workspace), "approved");
    let listed = workspace.json(&["memory", "list", "procedures"]);
    assert_eq!(listed["total"], 1, "{listed}");

    let undone = workspace.json(&["memory", "undo"]);
    assert_eq!(workspace.read(LOCAL), local);
    assert_eq!(ids(&workspace, SHARED), [""; 0]);
    assert_eq!(hinted(&workspace), "observed");
    // An undo of the undo.
    workspace.json(&["memory", "undo", undone["undo"].as_str().unwrap()]);
    assert_eq!(ids(&workspace, SHARED), ["PROC-001"]);
    workspace.run(&["doctor"]).succeeds();
}

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn a_fix_of_a_colleague_keeps_its_id_and_both_are_hinted() {
    let workspace = repository();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    // As a pull of git brings it.
    let theirs = json!({ "entries": [
        pattern!({"procedure_id": "PROC-001", "error_key": "disk quota exceeded", "failing_code": "make image",
            "working_code": "make image TMPDIR=/var/tmp", "trust": "approved",
            "created_at": "2026-01-01T00:00:00Z" }),
    ]});
    workspace.write(SHARED, theirs.to_string());
    workspace.run(&["trust"]).succeeds();
    workspace.run(&["doctor", "--repair"]).succeeds();
    let local = ids(&workspace, LOCAL);
    let approved = workspace.json(&["memory", "approve", &local[0]]);
    assert_eq!(approved["id"], "PROC-002", "{approved}");
    assert_eq!(ids(&workspace, SHARED), ["PROC-001", "PROC-002"]);
    assert_eq!(hinted(&workspace), "approved");
    let hint = workspace.json(&["hint", "--error", "disk quota exceeded"]);
    assert_eq!(hint["hints"][0]["id"], "PROC-001", "{hint}");
    workspace.run(&["doctor"]).succeeds();
}

/// Runs git in the workspace, as a person who has said who they are.
fn git(workspace: &Workspace, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=n@example.org"])
        .args(args)
        .current_dir(workspace.root())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", workspace.home())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    format!("{text}{}", String::from_utf8(output.stderr).unwrap())
}

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn changes_of_sessions_and_reads_are_not_tracked() {
    let workspace = repository();
    workspace.run(&RUN).succeeds();
    let rule = "When screening for senior roles, ALWAYS weigh system design separately.";
    workspace
        .run(&["correct", "hr/resume-screen", rule])
        .succeeds();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    git(&workspace, &["add", "-A"]);
    git(&workspace, &["commit", "-qm", "all"]);
    let tracked = git(&workspace, &["ls-files", ".agentura"]);
    let tracked: Vec<&str> = tracked.lines().collect();
    assert_eq!(
        tracked,
        [
            ".agentura/.gitignore",
            ".agentura/corrections.json",
            ".agentura/reflexion_entries.json",
            ".agentura/workspace.json",
        ]
    );
    workspace.run(&RUN).succeeds();
    workspace.run(&["accept", "latest"]).succeeds();
    let start = format!(
        r#"{{"session_id":"s","cwd":{:?},"hook_event_name":"SessionStart","source":"startup"}}"#,
        workspace.root()
    );
    drop(hook(&workspace, "claude-code", start));
    workspace.json(&["memory", "search", "system design", "--keyword"]);
    workspace.json(&["hint", "--error", ERROR, "--session", "s"]);
    assert_eq!(git(&workspace, &["status", "--short", ".agentura"]), "");
}

#[test]
#[cfg_attr(windows, ignore = "it needs git")]
fn clone_without_the_driver_is_repaired_by_the_command_of_the_help() {
    let mut workspace = repository();
    let add = |workspace: &Workspace, content: &str| {
        let args = [
            "memory", "add", "--type", "brand_memory", "--content", content,
        ];
        workspace.run(&args).succeeds();
        git(workspace, &["add", "-A"]);
        git(workspace, &["commit", "-qm", content]);
    };
    workspace.run(&["init", "--git"]).succeeds();
    add(&workspace, "base");
    git(&workspace, &["branch", "other"]);
    add(&workspace, "ours");
    git(&workspace, &["checkout", "-q", "other"]);
    // Two records with one id and one time would be one record that both sides have changed.
    workspace.set("MEMCTL_NOW", "2026-02-21T12:43:41.681444+00:00");
    add(&workspace, "theirs");
    git(&workspace, &["checkout", "-q", "-"]);
    // As in a clone that knows nothing of it.
    git(&workspace, &["config", "--remove-section", "merge.memctl"]);
    let merged = git(&workspace, &["merge", "other"]);
    assert!(merged.contains("CONFLICT"), "{merged}");
    let file = ".agentura/memories.json";
    assert!(workspace.read(file).contains("<<<<<<<"));
    workspace.run(&["init", "--git"]).succeeds();
    git(&workspace, &["checkout", "--merge", ".agentura"]);
    let notes = workspace.stored("memories.json")["entries"].clone();
    let said: Vec<&str> = notes
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["content"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["base", "ours", "theirs"]);
}

/// Item 12: a candidate and a pulled rule with one number. Each verb speaks of the one that is meant.
#[test]
fn item_12_a_local_candidate_beside_a_pulled_rule_of_its_number() {
    let workspace = Workspace::sample();
    workspace.run(&RUN).succeeds();
    let heard = json!({ "skill": "hr/resume-screen",
        "correction": "When screening for senior roles, ALWAYS weigh system design." });
    let mut server = Server::greeted(&workspace, &["mcp"]);
    drop(server.done("correct", &heard));
    server.end();
    let local: Value =
        serde_json::from_str(&workspace.read(".agentura/reflexion_entries.local.json")).unwrap();
    let candidate = local["entries"][0]["reflexion_id"].as_str().unwrap();
    let number = candidate.rsplit_once('-').unwrap().0;
    assert_eq!(number, "REFL-001");
    let pulled = json!({"entries": [{"reflexion_id": number, "skill": "hr/resume-screen",
        "rule": "Name the years of experience.", "applies_when": "", "status": "active",
        "created_at": "2026-02-03T00:00:00+00:00", "correction_id": ""}]});
    workspace.write(".agentura/reflexion_entries.json", pulled.to_string());
    let whole = |args: &[&str]| -> Value {
        let output = workspace.command().args(args).arg("--json").output();
        Ran::whole(output.unwrap()).document()
    };
    let rules = || -> Vec<String> {
        let listed = whole(&["memory", "list", "rules"]);
        let rows = listed["records"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        rows.iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let check_doctor = || {
        let report = whole(&["doctor", "--repair"]);
        assert_eq!(
            (&report["problems"], &report["repaired"]),
            (&json!([]), &json!([]))
        );
        assert_eq!(report["healthy"], true, "{report}");
    };
    let listed = rules();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().any(|id| id == candidate) && listed.iter().any(|id| id == number));
    check_doctor();
    let approved = whole(&["memory", "approve", candidate]);
    assert_eq!(
        (&approved["id"], &approved["local_id"]),
        (&json!("REFL-002"), &json!(candidate))
    );
    // The old id still finds the rule, and its correction has an id of the seeds, too.
    for command in ["show", "why"] {
        let shown = whole(&["memory", command, candidate]).to_string();
        assert!(shown.contains("REFL-002"), "{command:?} {shown}");
    }
    let rule = &workspace.stored("reflexion_entries.json")["entries"][1];
    assert_eq!(
        (&rule["reflexion_id"], &rule["correction_id"]),
        (&json!("REFL-002"), &json!("CORR-001"))
    );
    let corrections = workspace.read(".agentura/corrections.json");
    assert!(
        corrections.contains("\"correction_id\": \"CORR-001\""),
        "{corrections}"
    );
    check_doctor();
    whole(&["memory", "undo"]);
    let listed = rules();
    assert!(
        listed.iter().any(|id| id == candidate) && listed.len() == 2,
        "{listed:?}"
    );
    check_doctor();
}

#[test]
fn the_memory_of_this_repository_ignores_all_local_files() {
    let own = include_str!("../../.agentura/.gitignore");
    let workspace = Workspace::empty();
    workspace.write(".agentura/.gitignore", own);
    workspace.run(&["init"]).succeeds();
    assert_eq!(workspace.read(".agentura/.gitignore"), own);
}
