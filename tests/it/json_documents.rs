//! The JSON document of every command, compared with a snapshot.
//!
//! Other programs read these documents, so a field that is added, renamed or moved shows in the diff.
//! `INSTA_UPDATE=always cargo test --test it json_documents` updates the snapshots. What differs from
//! run to run or from machine to machine is replaced: see [`redact`].

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::{Value, json};

use crate::help::runnable;
use crate::schemas::assert_valid;
use crate::support::correction;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const FAILURE: &str = "bash: pip: command not found";

/// Calls of the program in their order: the name of the snapshot, and the arguments.
///
/// The snapshot of a command has its words as name; another document of it has a longer name.
type Documents = [(&'static str, &'static [&'static str])];

const RUNS: &Documents = &[
    ("init", &["init"]),
    ("run-dry-run", &["run", SKILL, "--dry-run"]),
    (
        "run",
        &["run", SKILL, "--input", "fixtures/sample_input.json"],
    ),
    (
        "correct",
        &[
            "correct",
            SKILL,
            "--execution-id",
            "latest",
            "--correction",
            "A candidate with 5 years Python but no distributed systems should score below 60.",
        ],
    ),
    (
        "correct-nothing-learned",
        &[
            "correct", SKILL, "--execution-id", "latest", "--correction", "this is wrong",
        ],
    ),
    ("accept", &["accept", "latest"]),
    (
        "reject",
        &["reject", "latest", "--reason", "made-up employer"],
    ),
    (
        "run-with-rule",
        &["run", SKILL, "--model", "scripted:replies.jsonl"],
    ),
    ("test", &["test", "--model", "scripted:replies.jsonl"]),
    ("memory-prompt", &["memory", "prompt", SKILL]),
];

const RECORDS: &Documents = &[
    (
        "memory-add",
        &[
            "memory", "add", "--type", "brand_memory", "--content", "Voice: calm", "--metadata",
            r#"{"tone": ["calm"]}"#,
        ],
    ),
    ("memory-status", &["memory", "status"]),
    ("list", &["list"]),
    ("list-executions", &["list", "executions", "-n", "1"]),
    ("list-memories", &["list", "memories"]),
    ("show", &["show", "REFL-001"]),
    ("why", &["why", "REFL-001"]),
    ("search", &["search", "distributed systems", "-n", "2"]),
    (
        "search-explain",
        &["search", "distributed systems", "-n", "1", "--explain"],
    ),
    ("index", &["index"]),
    ("stats", &["stats"]),
    ("memory-conflicts", &["memory", "conflicts"]),
    (
        "memory-conflicts-merge",
        &["memory", "conflicts", "--merge", "REFL-003", "REFL-004"],
    ),
    ("edit", &["edit", "REFL-001", "--set", "confidence=0.9"]),
    ("undo-list", &["undo", "--list", "-n", "2"]),
    ("undo-dry-run", &["undo", "--dry-run"]),
    ("undo", &["undo"]),
    ("memory-audit", &["memory", "audit", "-n", "3"]),
    ("memory-audit-verify", &["memory", "audit", "verify"]),
    (
        "memory-export",
        &["memory", "export", "--output", "memory.jsonl"],
    ),
    ("forget", &["forget", "MEM-001"]),
    (
        "memory-import",
        &["memory", "import", "memory.jsonl", "--dry-run"],
    ),
];

const SESSIONS: &Documents = &[
    ("learn-dry-run", &["learn", "past", "--dry-run"]),
    ("learn", &["learn", "past"]),
    ("review", &["review"]),
    ("list-procedures", &["list", "procedures"]),
    (
        "reject-procedure",
        &["reject", "PROC-002", "--reason", "only in this branch"],
    ),
    ("undo-reject", &["undo"]),
    ("lesson-list", &["lesson", "list"]),
    ("approve", &["approve", "PROC-001"]),
    ("memory-promote", &["memory", "promote", "PROC-001"]),
    ("approve-several", &["approve", "PROC-001", "PROC-001"]),
    (
        "hint",
        &["hint", "--error", FAILURE, "--command", "pip install flask"],
    ),
    (
        "record-failure",
        &[
            "record", "failure", "--code", "pip install flask", "--error", FAILURE,
        ],
    ),
    (
        "record-success",
        &[
            "record",
            "success",
            "--code",
            "uv pip install flask",
            "--output",
            "Successfully installed flask",
        ],
    ),
    ("why-procedure", &["why", "PROC-001"]),
    (
        "session-start",
        &[
            "session",
            "start",
            "--total-steps",
            "3",
            "--step",
            "research",
            "--data",
            r#"{"campaign": "spring"}"#,
        ],
    ),
    (
        "session-log",
        &[
            "session",
            "log",
            "latest",
            "--step",
            "research",
            "--action",
            "tool_call",
            "--status",
            "success",
            "--tool",
            "web_search",
            "--input",
            r#"{"query": "hooks"}"#,
            "--output",
            r#"{"found": 12}"#,
            "--ms",
            "840",
            "--reasoning",
            "the brief names no competitor",
            "--confidence",
            "0.8",
        ],
    ),
    (
        "session-progress",
        &[
            "session", "progress", "latest", "--status", "awaiting_approval", "--completed",
            "research",
        ],
    ),
    ("session-list", &["session", "list"]),
    ("session-show", &["session", "show", "latest"]),
    ("session-end", &["session", "end", "latest"]),
];

/// A memory that another program wrote, with a field on which two branches differ.
const FOUND: &Documents = &[
    ("doctor", &["doctor"]),
    (
        "memory-resolve",
        &["memory", "resolve", "REFL-001", "--theirs"],
    ),
    ("memory-prune", &["memory", "prune"]),
    ("trust-dry-run", &["trust", "--dry-run"]),
    ("trust", &["trust"]),
    ("token", &["token", "--sub", "ann", "--scope", "hr"]),
    ("remote-leave", &["remote", "leave"]),
    ("memory-disable", &["memory", "disable"]),
    ("memory-enable", &["memory", "enable"]),
    ("memory-purge", &["memory", "purge", "--yes"]),
];

const MACHINE: &Documents = &[
    ("config-show", &["config", "show"]),
    ("hooks-install", &["hooks", "install", "claude-code"]),
    ("hooks-status", &["hooks", "status"]),
    ("hooks-uninstall", &["hooks", "uninstall", "claude-code"]),
    ("mcp-install", &["mcp", "install", "claude-code"]),
    ("mcp-status", &["mcp", "status"]),
    ("mcp-uninstall", &["mcp", "uninstall", "claude-code"]),
    ("setup", &["setup", "claude-code", "--yes"]),
    ("schema", &["schema"]),
    ("completions", &["completions", "bash"]),
    ("man", &["man"]),
];

/// One error of each kind, but for an interrupt and for a defect of the program.
const ERRORS: &Documents = &[
    ("error-usage", &["search"]),
    ("error-input", &["run", "hr"]),
    ("error-not-found", &["show", "REFL-900"]),
    ("error-model", &["run", SKILL, "--model", "exec:false"]),
    ("error-permission", &["run", SKILL, "--scope", "dev"]),
    (
        "error-remote",
        &[
            "remote",
            "status",
            "--url",
            "postgres://ann:secret@127.0.0.1:1/memory",
        ],
    ),
    // An address that no machine has.
    (
        "error-io",
        &["serve", "--addr", "192.0.2.1:0", "--allow-remote"],
    ),
    (
        "error-store",
        &[
            "correct",
            SKILL,
            "--execution-id",
            "latest",
            "--correction",
            "Always name the source.",
        ],
    ),
];

/// Commands without a snapshot, and why.
const NOT_COMPARED: [(&str, &str); 12] = [
    ("hook", "answers in the format of the agent host"),
    ("statusline", "answers in the format of the agent host"),
    ("mcp", "speaks the Model Context Protocol"),
    ("serve", "runs until it is stopped"),
    ("watch", "runs until it is stopped"),
    ("remote init", "needs a database"),
    ("remote user add", "needs a database"),
    ("remote check", "needs a database"),
    ("remote status", "needs a database"),
    ("remote join", "needs a database"),
    ("sync", "needs a database"),
    (
        "lesson add",
        "is checked against the calls of an agent's session",
    ),
];

/// Runs these calls one after the other, and compares the document of each with its snapshot.
fn compare(workspace: &Workspace, documents: &Documents) {
    for (name, arguments) in documents {
        let ran = workspace.run(&[arguments, &["--json"][..]].concat());
        let mut document = ran.document();
        let failed = document.get("error").is_some();
        assert_eq!(failed, name.starts_with("error-"), "{name}: {ran:?}");
        assert_valid(arguments, &document);
        assert_utc(name, "", &document);
        redact(workspace, "", &mut document);
        let text = serde_json::to_string_pretty(&document).unwrap();
        insta::assert_snapshot!(*name, format!("exit code {}\n{text}", ran.code));
    }
}

/// Fails if a time has another form than RFC 3339 with `Z`. Records that are printed as stored keep
/// the form of the file.
fn assert_utc(name: &str, field: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                assert_utc(name, field, value);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| assert_utc(name, field, item)),
        Value::String(text) => {
            let is_stored = name == "show" || name.starts_with("session-");
            assert!(
                is_stored || !text.ends_with("+00:00"),
                "{name}: {field}: {text}"
            );
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces what is not the same everywhere: directories, times that passed, sizes of files with
/// such times, random names, keys, users, and figures of the embedding, which depend on the
/// processor. Long texts are left out. The clock of the program stands still.
fn redact(workspace: &Workspace, field: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                // What stands below a duration is durations.
                let field = if field == "latency_ms" { field } else { name };
                redact(workspace, field, value);
            }
        }
        Value::Array(items) => {
            for item in items {
                redact(workspace, field, item);
            }
        }
        Value::Number(_) => match field {
            "took_ms" | "latency_ms" => *value = json!("[time]"),
            "bytes" => *value = json!("[size]"),
            "score" | "semantic" | "similarity" if value.is_f64() => *value = json!("[score]"),
            _ => {}
        },
        Value::String(text) => match field {
            "change" | "undo" => "[change]".clone_into(text),
            _ => *text = redacted(workspace, text),
        },
        Value::Null | Value::Bool(_) => {}
    }
}

fn redacted(workspace: &Workspace, text: &str) -> String {
    static RANDOM: LazyLock<[(Regex, &str); 5]> = LazyLock::new(|| {
        [
            (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "[uuid]"),
            (r"\b[0-9a-f]{64}\b", "[digest]"),
            (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "[token]"),
            (r"\buid \d+\b|\bunknown user\b", "uid [number]"),
            (r"\bos error \d+\b", "os error [number]"),
        ]
        .map(|(pattern, shown)| (Regex::new(pattern).unwrap(), shown))
    });
    if text.len() > 1000 {
        return "[long text]".to_owned();
    }
    // On Windows with its drive, and in commands for a shell in quotes.
    let program = std::path::absolute(env!("CARGO_BIN_EXE_memctl")).unwrap();
    let program = program.to_str().unwrap();
    let text = text
        .replace(&format!("'{program}'"), "[memctl]")
        .replace(program, "[memctl]");
    // Where Windows has the settings of a user.
    let mut text = workspace
        .without_directories(&text)
        .replace("[home]/AppData/Roaming", "[home]/.config");
    for (pattern, shown) in RANDOM.iter() {
        text = pattern.replace_all(&text, *shown).into_owned();
    }
    text
}

/// A project whose model obeys the rule that the first correction teaches.
fn sample() -> Workspace {
    let workspace = Workspace::sample();
    workspace.write(
        "replies.jsonl",
        r#"{"when": {"contains": ["ALWAYS score below 60"]}, "reply": {"overall_score": 55}}
{"reply": {"overall_score": 72}}
"#,
    );
    workspace
}

#[test]
fn runs_and_records() {
    let workspace = sample();
    compare(&workspace, RUNS);
    for said in [
        "Never name competitors in the summary",
        "Never name competitors in the summary; write \"other vendors\" instead",
    ] {
        let correct = correction(said);
        workspace.json(&correct);
    }
    compare(&workspace, RECORDS);
}

#[test]
fn sessions() {
    let workspace = sample();
    for (n, package) in ["requests", "numpy"].into_iter().enumerate() {
        let steps = [
            json!({"session": format!("build-{n}"), "cwd": "/home/u/shop"}),
            json!({"tool": "bash", "input": format!("pip install {package}"), "output": FAILURE,
                "ok": false}),
            json!({"tool": "bash", "input": format!("uv pip install {package}"),
                "output": format!("Successfully installed {package}"), "ok": true}),
        ];
        let lines = steps.map(|step| step.to_string()).join("\n");
        workspace.write(&format!("past/build-{n}.jsonl"), lines);
    }
    let steps = workspace.read("fixtures/transcripts/steps.jsonl");
    workspace.write("past/report.jsonl", steps);
    compare(&workspace, SESSIONS);
}

#[test]
fn upkeep_of_a_memory_that_was_found() {
    let workspace = Workspace::over("reference");
    let mut rules = workspace.stored("reflexion_entries.json");
    rules["entries"][0]["merge_conflict"] = json!({"/root_cause": "Two skills, one score."});
    workspace.write(".agentura/reflexion_entries.json", rules.to_string());
    let expired = json!({"entries": [{"id": "MEM-001", "memory_type": "task_memory",
        "content": "Old", "metadata": {}, "created_at": "2025-01-01T00:00:00+00:00",
        "expires_at": "2025-06-01T00:00:00+00:00"}]});
    workspace.write(".agentura/memories.json", expired.to_string());
    compare(&workspace, FOUND);
}

#[test]
fn settings_and_hosts() {
    let mut workspace = sample().naming_no_model();
    // Agents of this machine are none of the tests.
    workspace.set("PATH", "/usr/bin:/bin");
    compare(&workspace, MACHINE);
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn errors() {
    let workspace = sample();
    workspace.json(&["run", SKILL]);
    workspace.write(".agentura/corrections.json", "no json at all");
    for (name, arguments) in ERRORS {
        let document = workspace.json_of(arguments);
        let outer: Vec<&String> = document.as_object().unwrap().keys().collect();
        let inner: Vec<&String> = document["error"].as_object().unwrap().keys().collect();
        assert_eq!(outer, ["error"], "{name}");
        assert_eq!(inner, ["kind", "message", "hint"], "{name}");
        let kind = document["error"]["kind"].as_str().unwrap();
        assert_eq!(format!("error-{}", kind.replace('_', "-")), *name);
    }
    compare(&workspace, ERRORS);
}

#[test]
fn every_command_has_a_snapshot_or_a_reason() {
    let all: Vec<_> = [RUNS, RECORDS, SESSIONS, FOUND, MACHINE, ERRORS].concat();
    let commands = runnable(&Workspace::empty());
    for command in &commands {
        let compared = all.iter().any(|(name, arguments)| {
            *name == command.join("-") && arguments.iter().take(command.len()).eq(command)
        });
        let name = command.join(" ");
        let excepted = NOT_COMPARED.iter().any(|(excepted, _)| *excepted == name);
        assert_ne!(compared, excepted, "`{name}`: a snapshot or a reason");
    }
    for name in NOT_COMPARED.map(|(name, _)| name) {
        let known = commands.iter().any(|command| command.join(" ") == name);
        assert!(known, "`{name}` is no command");
    }
    let names: BTreeSet<String> = all.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names.len(), all.len(), "a name stands twice");
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let stored: BTreeSet<String> = fs::read_dir(snapshots)
        .unwrap()
        .filter_map(|entry| {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let name = file.strip_prefix("it__json_documents__")?;
            Some(name.strip_suffix(".snap")?.to_owned())
        })
        .collect();
    assert_eq!(
        stored, names,
        "snapshots without a document, or the reverse"
    );
}
