//! Learning from OpenTelemetry traces of other programs.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::workspace::Workspace;

#[test]
fn recoveries_in_traces_are_learned() {
    let workspace = Workspace::sample();
    let traces = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/transcripts/otlp.jsonl"
    );
    let report = workspace.json(&["learn", traces]);
    let episode = &report["episodes"][0];
    assert_eq!(
        (&episode["fail_step"], &episode["success_step"]),
        (&json!(0), &json!(1)),
        "{report}"
    );
    assert_eq!(episode["fail_native_id"], "call_1");
    assert!(
        episode["error_key"]
            .as_str()
            .unwrap()
            .contains("cannot find module"),
        "{episode}"
    );
    // The same traces a second time are nothing new.
    let again = workspace.json(&["learn", traces]);
    assert_eq!(again["learned"], json!([]), "{again}");
}

/// Runs a Python program with the packages that `make test-clients` installs; `None`, which is said, where
/// it cannot be run.
fn python(workspace: &Workspace, program: &str, arguments: &[&str]) -> Option<()> {
    let target = Path::new(env!("CARGO_BIN_EXE_memctl"))
        .ancestors()
        .nth(2)
        .unwrap();
    let python = target.join("clients/otel/bin/python");
    let script = workspace.write("agent.py", program);
    let mut command = Command::new(&python);
    command
        .arg(&script)
        .args(arguments)
        .current_dir(workspace.root());
    match command.output() {
        Ok(output) if output.status.success() => Some(()),
        said => {
            println!(
                "skipped: `{}` cannot trace: {said:?}; type `make test-clients`",
                python.display()
            );
            None
        }
    }
}

/// Recoveries of the agents in these tests.
#[track_caller]
fn is_learnt(workspace: &Workspace) {
    let report = workspace.json(&["learn", "traces.jsonl"]);
    assert_eq!(report["transcripts"][0]["format"], "otlp");
    assert_eq!(report["transcripts"][0]["steps"], 2, "{report}");
    let fix = &workspace.stored("procedural_memory.json")["entries"][0]["pattern"];
    assert_eq!(fix["error_key"], "LookupError: ROWS is not set", "{fix}");
    assert_eq!(fix["working_code"], "ROWS=data/rows.csv python3 report.py");
}

/// The real SDK and its file exporter; `make test-clients` installs them.
#[test]
#[ignore = "needs OpenTelemetry from PyPI: make test-clients"]
fn traces_of_the_real_sdk_are_learnt_from() {
    let workspace = Workspace::sample();
    let program = include_str!("traces_of_an_agent.py");
    if python(&workspace, program, &["traces.jsonl"]).is_some() {
        is_learnt(&workspace);
    }
}
