//! What an agent is told of lessons and patterns, from outside: through hooks, a database tool and HTTP.

use serde_json::{Value, json};

use crate::hosts::hook;
use crate::serve::{Served, token};
use crate::workspace::Workspace;

const SYNTAX: &str = "ERROR:  syntax error at or near \";\"";

/// Event of Claude Code after a call.
fn after(workspace: &Workspace, session: &str, tool: &str, input: &Value, answer: &Value) -> Value {
    let mut event = json!({"session_id": session, "cwd": workspace.root(), "tool_name": tool,
        "tool_input": input, "transcript_path": "/none.jsonl"});
    let (name, field) = match answer {
        Value::String(_) => ("PostToolUseFailure", "error"),
        _ => ("PostToolUse", "tool_response"),
    };
    event["hook_event_name"] = name.into();
    event[field] = answer.clone();
    event
}

/// Text that an agent is told at an event; empty if it is told nothing. A hook that is too late on a busy
/// machine is silent, so a session that is told nothing is tried again under another name.
fn told(workspace: &Workspace, event: &Value) -> String {
    let ran = hook(workspace, "claude-code", event.to_string());
    if ran.stdout.is_empty() {
        return String::new();
    }
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = &answer["hookSpecificOutput"]["additionalContext"];
    text.as_str().unwrap_or_default().to_owned()
}

fn failure(workspace: &Workspace, session: &str, command: &str, error: &str) -> String {
    let input = json!({ "command": command });
    let error = json!(format!("Exit code 1\n{error}"));
    told(
        workspace,
        &after(workspace, session, "Bash", &input, &error),
    )
}

fn initialised() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace
}

/// Section 6 of the source document: the first task learns that a column needs a type, and the
/// second task, on another table, is told it at its failure.
fn column_is_learnt_and_told(tool: &str, input: &dyn Fn(&str) -> Value) -> String {
    let workspace = initialised();
    let call = |session: &str, statement: &str, answer: Value| {
        told(
            &workspace,
            &after(&workspace, session, tool, &input(statement), &answer),
        )
    };
    let refused = |column: &str| json!(format!("{SYNTAX}\nLINE 1: {column}\n        ^"));
    let first = "ALTER TABLE users ADD COLUMN last_name;";
    assert_eq!(call("first", first, refused(first)), "");
    let cured = "ALTER TABLE users ADD COLUMN last_name TEXT;";
    call("first", cured, json!({ "stdout": "ALTER TABLE" }));
    let listed = workspace.json(&["memory", "list", "procedures"]);
    assert_eq!(listed["total"], 1, "{listed}");
    let second = "ALTER TABLE profiles ADD COLUMN age;";
    let text = call("second", second, refused(second));
    // Another mistake with the same error is another failure.
    let other = "SELECT name FROM profiles WHERE;";
    assert_eq!(call("third", other, refused(other)), "");
    text
}

#[test]
fn column_without_its_type_is_told_through_a_shell() {
    let text = column_is_learnt_and_told(
        "Bash",
        &|statement| json!({ "command": format!("psql -d shop -c '{statement}'") }),
    );
    assert!(text.contains("last_name TEXT;"), "{text}");
    assert!(
        text.contains("not reviewed. Use them as facts to check."),
        "{text}"
    );
}

#[test]
fn column_without_its_type_is_told_through_a_database_tool() {
    let text = column_is_learnt_and_told(
        "mcp__postgres__query",
        &|statement| json!({ "sql": statement }),
    );
    assert!(text.contains("last_name TEXT;"), "{text}");
}

#[test]
fn column_without_its_type_is_told_over_http() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let ann = token(&workspace, "ann", "*");
    let error = |statement: &str| format!("{SYNTAX}\nLINE 1: {statement}");
    let first = "ALTER TABLE users ADD COLUMN last_name;";
    let body = json!({ "code": first, "error": error(first), "session": "first" });
    served.post(&ann, "/v1/failures", &body).is(200);
    let body = json!({ "code": "ALTER TABLE users ADD COLUMN last_name TEXT;", "output": "ALTER TABLE",
        "session": "first" });
    served.post(&ann, "/v1/successes", &body).is(200);
    let second = "ALTER TABLE profiles ADD COLUMN age;";
    let body = json!({ "code": second, "error": error(second), "session": "second" });
    let answer = served.post(&ann, "/v1/failures", &body).is(200).json();
    let working = answer["hints"][0]["working_code"].as_str().unwrap();
    assert!(working.contains("last_name TEXT;"), "{answer}");
    assert_eq!(answer["hints"][0]["score"], 1.0);
}

/// A memory with one lesson.
fn with_lesson(more: &Value) -> Workspace {
    let workspace = initialised();
    let mut lesson = json!({"procedure_id": "PROC-001", "created_at": "2026-02-01T00:00:00Z",
        "status": "procedure_learned", "data": {}, "trust": "observed",
        "lesson": "Run tests with `make unit`, never with `cargo test`.",
        "applies": {"errors": ["linking with cc failed"], "commands": ["cargo test"],
            "not": ["--offline"], "scope": "project"},
        "origins": [{"session": "s", "workspace": "project", "step": 1}],
        "worded_by": "agent:claude-code"});
    for (name, value) in more.as_object().unwrap() {
        lesson[name] = value.clone();
    }
    // A damaged record silences no other one.
    let entries = json!({"entries": [{"procedure_id": 7, "lesson": {}}, lesson]});
    workspace.write(
        ".agentura/procedural_memory.local.json",
        entries.to_string(),
    );
    workspace
}

#[test]
fn pattern_in_a_store_that_could_do_harm_is_not_told_unasked() {
    let hints = |working: &str| {
        let pattern = json!({"error_key": "error: rows are missing", "error_line": "error: rows are missing",
            "failing_code": "shop export", "working_code": working, "tool": "shop export"});
        let workspace = with_lesson(&json!({"lesson": "", "applies": null, "state": "episode",
            "pattern": pattern}));
        let report = workspace.json(&[
            "hint",
            "--tool",
            "Bash",
            "--command",
            "shop export",
            "--error",
            "error: rows are missing",
        ]);
        report["hints"].as_array().unwrap().len()
    };
    assert_eq!(hints("shop export --rows=data/rows.csv"), 1);
    assert_eq!(hints("shop export --force"), 0);
    assert_eq!(hints("shop export --lock=off"), 0);
}

fn before(workspace: &Workspace, session: &str, command: &str) -> String {
    let event = json!({"hook_event_name": "PreToolUse", "session_id": session, "cwd": workspace.root(),
        "tool_name": "Bash", "tool_input": {"command": command}});
    told(workspace, &event)
}

fn starts(workspace: &Workspace, session: &str) -> String {
    let event = json!({"hook_event_name": "SessionStart", "session_id": session, "source": "startup",
        "cwd": workspace.root()});
    told(workspace, &event)
}

/// Two lessons for one call fit; what one of them advises already is not said again.
#[test]
fn lessons_for_one_call_are_told_unless_they_say_the_same() {
    let workspace = initialised();
    let add = |line: &str| {
        let args = ["lesson", "add", line, "--command", "npm test"];
        workspace.run(&args).succeeds();
    };
    let long =
        "which is how the checks of this project run, in the order that its guide has, ".repeat(2);
    add(&format!(
        "Test with `make unit CASE=<case>`, {long}and nothing else."
    ));
    add("Run `make unit CASE=<case>` for a test.");
    add(&format!(
        "Start the store with `make db-up` first, {long}or nothing works."
    ));
    let text = before(&workspace, "s1", "npm test");
    assert!(text.contains("make db-up"), "{text}");
    assert_eq!(text.matches("make unit").count(), 1, "{text}");
    assert_eq!(before(&workspace, "s1", "npm test"), "");
}

#[test]
fn lesson_is_told_at_the_start_before_its_command_and_at_its_error() {
    let workspace = with_lesson(&json!({}));
    let text = starts(&workspace, "a");
    assert!(
        text.contains("make unit") && text.contains("memctl-data-"),
        "{text}"
    );
    // Also if it was told at the start, once a session, and not where it is followed or ruled out.
    assert_eq!(before(&workspace, "a", "make unit"), "");
    assert_eq!(before(&workspace, "a", "cargo test --offline"), "");
    assert_eq!(before(&workspace, "a", "cargo build"), "");
    let text = before(
        &workspace,
        "a",
        "cd src && RUST_LOG=x timeout 60 cargo test -p one",
    );
    assert!(text.contains("make unit"), "{text}");
    assert_eq!(before(&workspace, "a", "cargo test"), "");
    let text = failure(
        &workspace,
        "b",
        "cargo build",
        "error: linking with `cc` failed: 1",
    );
    assert_eq!(text, "", "the phrase is another text");
    let text = failure(
        &workspace,
        "b",
        "cargo build",
        "error: linking with cc failed: 1",
    );
    assert!(
        text.contains("LESSON: Run tests with `make unit`"),
        "{text}"
    );
    let elsewhere = with_lesson(&json!({"origins": [{"session": "s", "workspace": "other"}]}));
    assert_eq!(starts(&elsewhere, "a"), "");
    assert_eq!(before(&elsewhere, "a", "cargo test"), "");
}

#[test]
fn approved_lesson_stands_outside_of_the_fence_and_counts_what_follows() {
    let workspace = with_lesson(&json!({}));
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    let text = starts(&workspace, "a");
    assert!(
        text.contains("make unit") && !text.contains("memctl-data-"),
        "{text}"
    );
    let text = failure(
        &workspace,
        "a",
        "cargo test",
        "error: linking with cc failed: 1",
    );
    assert!(
        text.contains("make unit") && !text.contains("memctl-data-"),
        "{text}"
    );
    let input = json!({ "command": "make unit" });
    let done = after(&workspace, "a", "Bash", &input, &json!({ "stdout": "ok" }));
    told(&workspace, &done);
    let listed = workspace.json(&["memory", "list", "procedures"]);
    let lesson = &listed["records"][0]["lesson"];
    assert_eq!(
        (&lesson["shown"], &lesson["followed"], &lesson["helped"]),
        (&json!(1), &json!(1), &json!(1)),
        "{listed}"
    );
}

#[test]
fn third_equal_failure_is_named_once() {
    let workspace = initialised();
    let fails = || failure(&workspace, "a", "make all", "make: *** no rule for all");
    assert_eq!((fails(), fails()), (String::new(), String::new()));
    assert_eq!(
        fails(),
        "This call has failed 3 times in the same way in this session.\n"
    );
    assert_eq!(fails(), "");
}

/// A failure in a session of its own, and the call that cured it.
fn recover(
    workspace: &Workspace,
    session: &str,
    error: &str,
    [failing, cured]: [&str; 2],
) -> String {
    let told_at_failure = failure(workspace, session, failing, error);
    let (input, output) = (json!({ "command": cured }), json!({ "stdout": "ok" }));
    told(
        workspace,
        &after(workspace, session, "Bash", &input, &output),
    );
    told_at_failure
}

#[test]
fn two_recoveries_of_one_failure_silence_each_other() {
    let error = "error: the region is missing, give --region eu or REGION=us";
    let workspace = initialised();
    let recover = |session: &str, cured: &str| {
        recover(&workspace, session, error, ["deploy app", cured]);
    };
    recover("a", "deploy --region eu app");
    let text = failure(&workspace, "b", "deploy app", error);
    assert!(text.contains("--region eu"), "{text}");
    recover("c", "REGION=us deploy app");
    assert_eq!(failure(&workspace, "d", "deploy app", error), "");
}

const SEASON: &str = "pack: no season: give --season dry or --season wet";

#[test]
fn option_before_the_operand_is_no_subcommand() {
    for [failing, cured] in [
        ["tools/pack red", "tools/pack --season dry red"],
        ["tools/pack", "tools/pack --season dry"],
    ] {
        let workspace = initialised();
        recover(&workspace, "a", SEASON, [failing, cured]);
        let text = failure(&workspace, "b", failing, SEASON);
        assert!(text.contains(cured), "{text}");
    }
}

#[test]
fn an_approved_pattern_is_told_before_a_call_that_begins_so_and_is_not_learnt_again() {
    let workspace = initialised();
    let calls = ["tools/pack red", "tools/pack red --season dry"];
    let recover = |session: &str| recover(&workspace, session, SEASON, calls);
    let records = || {
        let files = ["procedural_memory.json", "procedural_memory.local.json"];
        let files = files
            .into_iter()
            .filter(|name| workspace.memory(name).is_file());
        let entries = files.map(|name| workspace.stored(name)["entries"].clone());
        entries
            .map(|all| all.as_array().unwrap().len())
            .sum::<usize>()
    };
    assert_eq!(recover("a"), "");
    assert_eq!(records(), 1);
    workspace.run(&["approve", "PROC-001"]).succeeds();
    let text = before(&workspace, "d", "tools/pack red --fast");
    assert!(text.contains("`tools/pack red --season dry`"), "{text}");
    assert_eq!(before(&workspace, "d", "tools/pack red --season wet"), "");
    // It is told as what a person approved.
    let text = recover("e");
    assert_eq!(text.matches("CORRECT").count(), 1, "{text}");
    assert!(!text.contains("memctl-data-"), "{text}");
    // What is in force is neither asked about nor learnt again.
    let stop = json!({"hook_event_name": "Stop", "session_id": "e", "cwd": workspace.root(),
        "transcript_path": "/none.jsonl", "stop_hook_active": false, "last_assistant_message": "Packed."});
    assert_eq!(told(&workspace, &stop), "");
    assert_eq!(records(), 1);
    // Nor does it come back after it was deleted.
    workspace.run(&["forget", "PROC-001"]).succeeds();
    recover("f");
    assert_eq!(failure(&workspace, "g", calls[0], SEASON), "");
}
