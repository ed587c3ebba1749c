//! Another process keeps a lock of the memory, and nobody may hang on it: who reads is answered, who writes
//! is told.

use std::fs::File;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{RUN_SCRIPTED, scripted};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
const ERROR: &str = "error: externally-managed-environment";
/// No command that only reads waits for anybody; a busy machine may be slow.
const AT_ONCE: Duration = Duration::from_secs(10);

/// A memory with an execution, a correction with its rule, a note and a fix.
fn remembered() -> Workspace {
    let workspace = scripted();
    let run = RUN_SCRIPTED;
    workspace.json(&run);
    let rule = "When an application names no employer, ALWAYS ask for one.";
    workspace.json(&[
        "correct", SKILL, "--execution-id", "latest", "--correction", rule, "--model", "offline",
    ]);
    workspace
        .run(&[
            "memory",
            "add",
            "--type",
            "task_memory",
            "--content",
            "The deployment is on Fridays.",
        ])
        .succeeds();
    workspace
        .run(&[
            "record", "failure", "--code", "pip install x", "--error", ERROR,
        ])
        .succeeds();
    workspace
        .run(&[
            "record",
            "success",
            "--code",
            "pip install --user x",
            "--output",
            "Successfully installed x",
        ])
        .succeeds();
    workspace
}

/// Tells the hook of an event.
fn hook(workspace: &Workspace, event: &str) -> String {
    let event = File::open(workspace.write("event.json", event)).unwrap();
    let start = Instant::now();
    let mut command = workspace.command();
    let ran = Ran::of(
        command
            .args(["hook", "claude-code"])
            .stdin(event)
            .output()
            .unwrap(),
    );
    assert!(start.elapsed() < AT_ONCE);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    ran.stdout
}

fn keep(workspace: &Workspace, name: &str) -> File {
    let file = File::options()
        .write(true)
        .open(workspace.memory(name))
        .unwrap();
    file.lock().unwrap();
    file
}

fn timed(workspace: &Workspace, args: &[&str]) -> Ran {
    let start = Instant::now();
    let ran = workspace.run(args);
    assert!(
        start.elapsed() < AT_ONCE,
        "{args:?} took {:?}: {ran:?}",
        start.elapsed()
    );
    ran
}

/// A failing call, as Claude Code tells its hooks of it.
fn failing(session: &str) -> String {
    failing_at(session, "pip install y")
}

fn failing_at(session: &str, command: &str) -> String {
    json!({
        "session_id": session,
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "error": ERROR,
    })
    .to_string()
}

fn succeeding(session: &str) -> String {
    json!({
        "session_id": session,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "pip install --user y"},
        "tool_response": {"stdout": "Successfully installed y"},
    })
    .to_string()
}

fn evidence(workspace: &Workspace) -> [u64; 3] {
    let file = workspace.stored("procedural_memory.json");
    let entries: Vec<&Value> = file
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_array)
        .flatten()
        .collect();
    ["shown", "helped", "harmed"].map(|name| entries[0][name].as_u64().unwrap_or_default())
}

#[test]
fn reader_does_not_block_on_the_lock_of_another_process() {
    // With what was derived from the files, and as a fresh clone has it.
    for derived in [true, false] {
        let workspace = remembered();
        if !derived {
            std::fs::remove_dir_all(workspace.memory(".index")).unwrap();
        }
        let _kept = keep(&workspace, ".lock");
        for args in [
            &["memory", "status"][..],
            &["memory", "list", "executions"],
            &["memory", "list", "procedures"],
            &["memory", "show", "REFL-001"],
            &["memory", "show", "PROC-001"],
            &["memory", "search", "employer"],
            &["memory", "prompt", SKILL],
            &["memory", "audit"],
            &["memory", "why", "REFL-001"],
            &["stats"],
            &["doctor"],
            &[
                "run",
                SKILL,
                "--no-record",
                "--input",
                "fixtures/sample_input.json",
                "--model",
                "scripted:replies.jsonl",
            ],
        ] {
            timed(&workspace, args).succeeds();
        }
        let args = ["hint", "--error", ERROR, "--command", "pip install y"];
        for args in [&args[..], &[&args[..], &["--session", "s"]].concat()] {
            let ran = timed(&workspace, args);
            assert!(ran.succeeds().stdout.contains("--user"), "{ran:?}");
        }
    }
}

#[test]
fn an_agent_gets_its_hint_while_another_process_keeps_the_lock_and_what_came_of_it_is_counted_later()
 {
    let workspace = remembered();
    let before = evidence(&workspace);
    let hook = |event: &str| hook(&workspace, event);
    let kept = keep(&workspace, ".lock");
    assert!(hook(&failing("a")).contains("--user"));
    // The same error of a call that follows the hint: it is not shown twice, and was of no use.
    assert!(!hook(&failing_at("a", "pip install --user y")).contains("--user"));
    assert!(hook(&failing("b")).contains("--user"));
    hook(&succeeding("b"));
    assert_eq!(evidence(&workspace), before, "nobody could write");
    drop(kept);
    for session in ["a", "b"] {
        let end = json!({"session_id": session, "hook_event_name": "SessionEnd"});
        hook(&end.to_string());
    }
    let [shown, helped, harmed] = before;
    assert_eq!(evidence(&workspace), [shown + 2, helped + 1, harmed + 1]);
}

#[test]
fn writer_is_told_about_the_audit_lock_of_another_process() {
    let workspace = remembered();
    let kept = keep(&workspace, "audit.jsonl");
    let start = Instant::now();
    for args in [
        &[
            "memory", "add", "--type", "task_memory", "--content", "Another note.",
        ][..],
        &["memory", "audit", "verify"],
    ] {
        workspace.run(args).fails(3, "audit.jsonl");
    }
    // What was read is shown, and what could not be noted of it is said.
    let ran = workspace.run(&["memory", "show", "MEM-001"]);
    assert!(ran.succeeds().stderr.contains("audit.jsonl"), "{ran:?}");
    // A hook says nothing of it.
    assert!(hook(&workspace, &failing("a")).contains("--user"));
    assert!(start.elapsed() < Duration::from_mins(2));
    drop(kept);
    workspace
        .run(&[
            "memory", "add", "--type", "task_memory", "--content", "Another note.",
        ])
        .succeeds();
}
