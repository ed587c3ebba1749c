//! `memory disable`: no record is read or written, and a run reports it.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{RUN, correction, files_below};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";

/// A workspace that has a rule, a fix and an index.
fn remembering() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&RUN);
    let said = "When a summary is written, NEVER name competitors.";
    let correct = correction(said);
    workspace.run(&correct).succeeds();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    workspace.json(&["memory", "search", "competitors", "--keyword"]);
    workspace
}

/// Every file below a directory by name, with the hash of its content.
fn hashes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let hashed = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (path, Sha256::digest(bytes).to_vec())
    };
    files_below(directory).into_iter().map(hashed).collect()
}

#[test]
fn a_disabled_run_answers_and_leaves_the_memory_as_it_was() {
    let workspace = remembering();
    let with = workspace.json(&RUN);
    assert_eq!(with["stateless"], false);
    assert_eq!(with["injected"][0]["id"], "REFL-001");
    assert_eq!(workspace.json(&["memory", "disable"])["changed"], true);
    assert_eq!(workspace.json(&["memory", "disable"])["changed"], false);
    let before = hashes(&workspace.memory(""));
    let without = workspace.json(&RUN);
    assert_eq!(hashes(&workspace.memory("")), before);
    // The JSON document keeps every field.
    let names = |document: &Value| -> Vec<String> {
        document.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names(&with), names(&without));
    for (field, expected) in [
        ("execution_id", json!(null)),
        ("stateless", json!(true)),
        ("injected", json!([])),
        ("outcome", json!("pending_review")),
        ("output", with["output"].clone()),
    ] {
        assert_eq!(without[field], expected, "{field}");
    }
    let said = without["warnings"].to_string();
    assert!(said.contains("stateless: memory is disabled by"), "{said}");
    let ran = workspace.run(&RUN);
    assert!(
        ran.succeeds()
            .stderr
            .contains("not recorded: memory is disabled")
    );
    assert_eq!(workspace.json(&["memory", "enable"])["enabled"], true);
    assert!(workspace.json(&RUN)["execution_id"].is_string());
}

#[test]
fn no_file_of_the_memory_is_opened_by_a_disabled_run() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: `strace` is not installed");
        return;
    }
    let workspace = remembering();
    let opened = |workspace: &Workspace| -> Vec<String> {
        let log = workspace.home().join("trace");
        let template = workspace.command();
        let mut command = Command::new("strace");
        command
            .args([
                "-f", "-qq", "-y", "-s", "4096", "-e", "trace=%file", "-e", "signal=none", "-o",
            ])
            .arg(&log)
            .arg(env!("CARGO_BIN_EXE_memctl"))
            .args(RUN)
            .current_dir(workspace.root())
            .env_clear();
        for (name, value) in template.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        let trace = std::fs::read_to_string(&log).unwrap();
        assert!(
            trace.contains("sample_input.json"),
            "the trace shows nothing"
        );
        // The existence of a file may be queried, but not its content.
        let asks = ["stat", "access", "readlink", "statx"];
        let calls = trace.lines().filter(|line| line.contains("/.agentura"));
        let calls = calls.filter(|line| {
            let call = line.split('(').next().unwrap_or_default();
            // Files are opened from the directory, which has to be opened to ask.
            let is_of_directory = line.contains("O_DIRECTORY");
            !is_of_directory && !asks.iter().any(|ask| call.contains(ask))
        });
        calls.map(str::to_owned).collect()
    };
    assert!(
        opened(&workspace)
            .iter()
            .any(|call| call.contains("reflexion_entries.json"))
    );
    workspace.run(&["memory", "disable"]).succeeds();
    // Settings are no memory: they name the model that answers.
    let found: Vec<String> = opened(&workspace)
        .into_iter()
        .filter(|call| {
            !call.contains("/.agentura>, \"config.toml\"") && !call.contains("/.agentura/prompts>")
        })
        .collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn every_command_does_without_memory_or_says_that_it_is_off() {
    let mut workspace = remembering();
    // What was seen once is a hint as soon as a person approves it.
    workspace.json(&["memory", "approve", "PROC-001"]);
    workspace.run(&["memory", "disable"]).succeeds();
    let before = hashes(&workspace.memory(""));
    for args in [
        &["memory", "search", "x"][..],
        &["memory", "list"],
        &["memory", "show", "REFL-001"],
        &["memory", "why", "REFL-001"],
        &["memory", "prompt", SKILL],
        &["memory", "forget", "REFL-001"],
        &["memory", "edit", "REFL-001", "--set", "confidence=1"],
        &["memory", "approve", "PROC-001"],
        &["memory", "conflicts"],
        &correction("Always x."),
        &["accept", "latest"],
        &["reject", "latest", "--reason", "x"],
        &["learn", "fixtures/transcripts/steps.jsonl"],
        &["record", "failure", "--code", "x", "--error", "y"],
        &["record", "success", "--code", "x", "--output", "y"],
        &["test"],
        &["stats"],
        &["index"],
        &["init"],
        &["watch"],
    ] {
        let ran = workspace.run(args);
        ran.fails(2, "memory is disabled");
        assert!(
            ran.stderr.contains("memctl memory enable"),
            "{args:?}: {ran:?}"
        );
    }
    let error = "jq: error (at report.json:1): module not found: sums";
    let hint = [
        "hint",
        "--error",
        error,
        "--command",
        "jq -f total.jq report.json",
        "--session",
        "s",
    ];
    assert_eq!(workspace.json(&hint)["hints"], json!([]));
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(
        (&status["enabled"], &status["reflexions"]),
        (&json!(false), &json!(1))
    );
    workspace.run(&["doctor"]).succeeds();
    workspace.run(&["config", "show"]).succeeds();
    // A hook prints nothing for any event.
    let event = json!({"hook_event_name": "PostToolUseFailure", "session_id": "s", "cwd": workspace.root(),
        "tool_name": "Bash", "tool_input": {"command": "jq -f total.jq report.json"}, "error": error});
    workspace.write("event.json", event.to_string());
    let hook = |workspace: &Workspace| {
        let file = std::fs::File::open(workspace.root().join("event.json")).unwrap();
        let mut command = workspace.command();
        command.args(["hook", "claude-code"]).stdin(file);
        Ran::of(command.output().unwrap())
    };
    let silent = hook(&workspace);
    assert_eq!((silent.code, silent.stdout.as_str()), (0, ""));
    assert_eq!(hashes(&workspace.memory("")), before);
    workspace.run(&["memory", "enable"]).succeeds();
    assert!(hook(&workspace).stdout.contains("CORRECT:"));
    // One process can do without, too.
    workspace.set("MEMCTL_MEMORY", "off");
    let before = hashes(&workspace.memory(""));
    assert_eq!(workspace.json(&RUN)["execution_id"], json!(null));
    workspace
        .run(&["memory", "list"])
        .fails(2, "memory is disabled by `MEMCTL_MEMORY=off`");
    assert_eq!(hook(&workspace).stdout, "");
    assert_eq!(hashes(&workspace.memory("")), before);
}

#[test]
fn memory_can_be_off_before_there_is_any() {
    let workspace = Workspace::sample();
    workspace.run(&["memory", "disable"]).succeeds();
    workspace.json(&RUN);
    let files: Vec<_> = hashes(&workspace.memory("")).into_keys().collect();
    assert_eq!(
        files,
        [workspace.memory(".lock"), workspace.memory("disabled")]
    );
}

#[test]
fn a_directory_without_a_workspace_cannot_be_switched() {
    let workspace = Workspace::empty();
    for switch in ["disable", "enable"] {
        let ran = workspace.run(&["memory", switch]);
        ran.fails(2, "no workspace found at");
    }
    assert!(!workspace.memory("").exists());
}

#[test]
fn memory_is_switched_off_for_one_user() {
    let mut workspace = remembering();
    for user in ["ada", "bob"] {
        workspace
            .run(&[
                "memory",
                "add",
                "--type",
                "brand_memory",
                "--user",
                user,
                "--content",
                &format!("{user} likes tea."),
            ])
            .succeeds();
    }
    let off = workspace.json(&["memory", "disable", "--user", "ada"]);
    assert_eq!(
        (&off["enabled"], &off["changed"], &off["user"]),
        (&json!(false), &json!(true), &json!("ada"))
    );
    let search =
        |user: &str| workspace.run(&["memory", "search", "tea", "--keyword", "--user", user]);
    search("ada").fails(2, "memory is disabled for the user `ada`");
    assert!(search("bob").succeeds().stdout.contains("bob likes tea."));
    workspace
        .run(&["memory", "search", "tea", "--keyword"])
        .succeeds();
    let before = hashes(&workspace.memory(""));
    let run = [&RUN[..], &["--user", "ada"]].concat();
    assert_eq!(workspace.json(&run)["stateless"], true);
    assert_eq!(hashes(&workspace.memory("")), before);
    // Also where a setting names the user.
    workspace.set("MEMCTL_USER", "ada");
    workspace
        .run(&["memory", "list"])
        .fails(2, "memctl memory enable --user ada");
    workspace.set("MEMCTL_USER", "bob");
    workspace.run(&["memory", "list"]).succeeds();
    // What a user may do all the same.
    let export = ["memory", "export", "--user", "ada", "--output", "ada.jsonl"];
    workspace.run(&export).succeeds();
    assert!(workspace.read("ada.jsonl").contains("ada likes tea."));
    workspace
        .run(&["memory", "purge", "--yes", "--user", "ada"])
        .succeeds();
    let on = workspace.json(&["memory", "enable", "--user", "ada"]);
    assert_eq!(
        (&on["enabled"], &on["changed"]),
        (&json!(true), &json!(true))
    );
    workspace
        .run(&["memory", "search", "tea", "--keyword", "--user", "ada"])
        .succeeds();
    workspace
        .run(&["memory", "disable", "--user", " "])
        .fails(2, "user");
}
