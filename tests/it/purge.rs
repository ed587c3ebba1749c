//! `memory purge`: no record is left, and no other file changes.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{correction, files_below};
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
/// A word that no file of the program has by itself.
const SENTINEL: &str = "zanzibarite";
/// What a writer that was killed leaves.
const LEFT_OVER: &str = ".memories.json.0123456789abcdef0123456789abcdef.tmp";

fn remembering() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    let said = format!("When a summary is written, NEVER mention {SENTINEL}.");
    let correct = correction(&said);
    workspace.run(&correct).succeeds();
    workspace.run(&["test", SKILL, "--export"]).succeeds();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    workspace.json(&["memory", "search", SENTINEL]);
    workspace.write(".agentura/config.toml", "[prompt]\nrules_tokens = 1500\n");
    workspace.write(".agentura/prompts/judge.md", "mine");
    workspace.write(".agentura/notes.txt", "mine");
    workspace.write(".agentura/recovered/x.txt", SENTINEL);
    workspace.write(&format!(".agentura/{LEFT_OVER}"), SENTINEL);
    workspace.write(
        ".agentura/changes.jsonl",
        format!("{{\"text\": \"{SENTINEL}\"}}\n"),
    );
    workspace
}

fn files_with(directory: &Path, word: &str) -> Vec<String> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    let files = files_below(directory).into_iter().filter(holds);
    files.map(|path| path.display().to_string()).collect()
}

#[test]
fn nothing_of_what_was_remembered_is_left() {
    let workspace = remembering();
    assert!(files_with(&workspace.memory(""), SENTINEL).len() >= 5);
    let dry = workspace.json(&["memory", "purge", "--dry-run"]);
    assert_eq!(
        (&dry["dry_run"], &dry["records"]["reflexions"]),
        (&json!(true), &json!(1))
    );
    assert!(files_with(&workspace.memory(""), SENTINEL).len() >= 5);
    workspace
        .run(&["memory", "purge"])
        .fails(2, "confirmation is required");
    let report = workspace.json(&["memory", "purge", "--yes"]);
    for field in [
        "records", "removed", "kept", "unknown", "in_skills", "bytes", "lines",
    ] {
        assert_eq!(report[field], dry[field], "{field}");
    }
    assert_eq!(files_with(&workspace.memory(""), SENTINEL), [""; 0]);
    assert_eq!(report["unknown"], json!(["notes.txt"]));
    assert_eq!(
        report["kept"],
        json!([
            ".gitignore", ".trust", "config.toml", "prompts", "workspace.json"
        ])
    );
    let in_skills = report["in_skills"].to_string();
    for name in [
        "test_correction_1.json", "test_correction_1.py", "test_promptfoo.yaml", "GUARDRAILS.md",
    ] {
        assert!(in_skills.contains(name), "{name}: {in_skills}");
    }
    let removed: Vec<&str> = report["removed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    for name in [
        "reflexion_entries.json", ".index", "recovered", LEFT_OVER, "changes.jsonl",
    ] {
        assert!(removed.contains(&name), "{name}: {removed:?}");
    }
    assert_eq!(workspace.read(".agentura/prompts/judge.md"), "mine");
    // Only the user who purged is known afterwards.
    let audit = workspace.json(&["memory", "audit"]);
    assert_eq!(
        (&audit["total"], &audit["lines"][0]["did"]),
        (&json!(1), &json!("purged"))
    );
    workspace.run(&["memory", "audit", "verify"]).succeeds();
    let again = workspace.json(&["memory", "purge", "--yes"]);
    let removed: Vec<&str> = again["removed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    assert_eq!(removed, ["audit.anchor", "audit.jsonl"]);
    assert_eq!(again["records"], json!({}));
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(
        (&status["executions"], &status["reflexions"]),
        (&json!(0), &json!(0))
    );
    // Later records start again from the first id.
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn a_disabled_memory_can_be_purged_and_stays_off() {
    let workspace = remembering();
    workspace.run(&["memory", "disable"]).succeeds();
    workspace.json(&["memory", "export", "--output", "memory.jsonl"]);
    workspace
        .run(&["memory", "import", "memory.jsonl"])
        .fails(2, "memory is disabled");
    workspace.json(&["memory", "purge", "--yes"]);
    assert_eq!(files_with(&workspace.memory(""), SENTINEL), [""; 0]);
    assert_eq!(workspace.json(&["memory", "status"])["enabled"], false);
}

#[test]
fn a_user_or_a_scope_purges_what_is_theirs() {
    let workspace = remembering();
    let memory = |id: &str, user: &str, expires: Value| {
        json!({"id": id, "memory_type": "task_memory", "user_id": user,
        "content": format!("{user} said {SENTINEL}-{user}"), "metadata": {}, "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "", "expires_at": expires})
    };
    let entries = [
        memory("MEM-001", "alice", Value::Null),
        memory("MEM-002", "bob", Value::Null),
        memory("MEM-003", "alice", json!("2026-01-02")),
    ];
    workspace.write(
        ".agentura/memories.json",
        json!({"entries": entries}).to_string(),
    );
    let logs = "{\"user_id\":\"alice\",\"id\":\"1\"}\n{\"user_id\":\"bob\",\"id\":\"2\"}\n{\"hints\":[\"MEM-001\"]}\n";
    workspace.write(".agentura/execution_logs.jsonl", logs);
    workspace.json(&["memory", "search", "said"]);
    let report = workspace.json(&["memory", "purge", "--yes", "--user", "alice"]);
    assert_eq!(report["complete"], false);
    assert_eq!(report["records"], json!({"memories": 2}));
    assert_eq!(
        files_with(&workspace.memory(""), &format!("{SENTINEL}-alice")),
        [""; 0]
    );
    assert_eq!(
        workspace.stored("memories.json")["entries"],
        json!([entries[1]])
    );
    let log = workspace.read(".agentura/execution_logs.jsonl");
    assert!(
        log.starts_with("{\"user_id\":\"bob\",\"id\":\"2\"}\n")
            && log.lines().all(|line| line.contains("\"user_id\":\"bob\"")),
        "{log}"
    );
    assert_eq!(workspace.json(&["memory", "status"])["reflexions"], 1);
    // A scope purges only its domains.
    let report = workspace.json(&["memory", "purge", "--yes", "--scope", "hr"]);
    assert_eq!(report["records"]["reflexions"], 1);
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(
        (
            &status["reflexions"], &status["memories"], &status["procedures"]
        ),
        (&json!(0), &json!(1), &json!(1))
    );
    workspace.run(&["doctor"]).succeeds();
}
