//! OpenTelemetry traces from outside: traces that `run` writes, and learning from traces of other
//! programs.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::correction;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const RUN: [&str; 5] = [
    "run",
    SKILL,
    "--input",
    "fixtures/sample_input.json",
    "--trace",
];

fn workspace() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.write(
        "replies.jsonl",
        "{\"reply\": {\"overall_score\": 72}, \"usage\": {\"input_tokens\": 12, \"output_tokens\": 3}, \"cost_usd\": 0.25}\n",
    );
    workspace
}

/// The span of each line, with its attributes by their names.
fn spans(workspace: &Workspace, file: &str) -> Vec<(Value, Value)> {
    let text = workspace.read(file);
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| {
            let span = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
            let mut attributes = json!({});
            for pair in span["attributes"].as_array().unwrap() {
                let value = pair["value"].as_object().unwrap().values().next().unwrap();
                attributes[pair["key"].as_str().unwrap()] = value.clone();
            }
            (span, attributes)
        })
        .collect()
}

#[test]
fn a_run_leaves_a_trace_that_says_who_what_and_how_much() {
    let mut workspace = workspace();
    let run = |workspace: &Workspace| {
        let more = ["traces/runs.jsonl", "--model", "scripted:replies.jsonl"];
        workspace.json(&[&RUN[..], &more].concat())
    };
    let report = run(&workspace);
    workspace
        .run(&correction("Never name competitors in the summary"))
        .succeeds();
    workspace.set(
        "TRACEPARENT",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    );
    workspace.set("OTEL_SERVICE_NAME", "screening");
    run(&workspace);
    let spans = spans(&workspace, "traces/runs.jsonl");
    let (span, attributes) = &spans[0];
    assert_eq!(span["name"], "invoke_agent hr/resume-screen");
    assert_eq!(
        (
            span["traceId"].as_str().unwrap().len(),
            span["spanId"].as_str().unwrap().len()
        ),
        (32, 16)
    );
    for (name, value) in [
        ("gen_ai.operation.name", json!("invoke_agent")),
        ("gen_ai.agent.name", json!(SKILL)),
        ("gen_ai.provider.name", json!("scripted")),
        ("gen_ai.request.model", json!("replies")),
        ("gen_ai.usage.input_tokens", json!("12")),
        ("gen_ai.usage.output_tokens", json!("3")),
        ("memctl.cost_usd", json!(0.25)),
        ("memctl.execution.id", report["execution_id"].clone()),
        ("gen_ai.input.messages", Value::Null),
        ("gen_ai.output.messages", Value::Null),
    ] {
        assert_eq!(attributes[name], value, "{name}");
    }
    let (span, attributes) = &spans[1];
    assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(
        attributes["memctl.rules.injected"]["values"][0]["stringValue"],
        "REFL-001"
    );
    assert!(workspace.read("traces/runs.jsonl").contains("screening"));
}

#[test]
fn content_is_told_only_where_it_is_asked_for_and_without_secrets() {
    let mut workspace = workspace();
    let secret = format!(
        "{}{}",
        "sk-ant-api03-", "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
    );
    workspace.write(
        "input.json",
        json!({"resume_text": format!("my key is {secret}")}).to_string(),
    );
    let args = [
        "run", SKILL, "--input", "input.json", "--trace", "t.jsonl", "--model",
        "scripted:replies.jsonl",
    ];
    workspace.run(&args).succeeds();
    assert!(!workspace.read("t.jsonl").contains("my key is"));
    workspace.set("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    workspace.run(&args).succeeds();
    let text = workspace.read("t.jsonl");
    assert!(
        text.contains("my key is") && text.contains("overall_score"),
        "{text}"
    );
    assert!(!text.contains(&secret), "{text}");
    let (_, attributes) = &spans(&workspace, "t.jsonl")[1];
    let input: Value =
        serde_json::from_str(attributes["gen_ai.input.messages"].as_str().unwrap()).unwrap();
    assert_eq!(input[0]["role"], "user");
    // The written trace is read back.
    let report = workspace.json(&["learn", "--dry-run", "t.jsonl"]);
    let transcript = &report["transcripts"][0];
    assert_eq!(
        (&transcript["format"], &transcript["problems"]),
        (&json!("otlp"), &json!([])),
        "{report}"
    );
}

#[test]
fn a_run_that_failed_is_traced_and_a_trace_that_fails_costs_a_warning() {
    let workspace = workspace();
    workspace.write(
        "none.jsonl",
        "{\"reply\": 1, \"when\": {\"contains\": [\"nothing has this\"]}}\n",
    );
    let failed =
        workspace.run(&[&RUN[..], &["t.jsonl", "--model", "scripted:none.jsonl"]].concat());
    assert_eq!(failed.code, 4, "{failed:?}");
    let (span, attributes) = &spans(&workspace, "t.jsonl")[0];
    assert_eq!(span["status"]["code"], 2);
    assert_eq!(attributes["error.type"], "model");
    assert_eq!(attributes["gen_ai.provider.name"], "scripted");
    workspace.write("blocked", "a file");
    let ran = workspace.run(
        &[
            &RUN[..],
            &["blocked/t.jsonl", "--model", "scripted:replies.jsonl"],
        ]
        .concat(),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("cannot write the trace"), "{ran:?}");
}

/// An untrusted repository cannot set the destination or the content of traces.
#[test]
fn a_foreign_workspace_does_not_say_where_traces_go() {
    let mut workspace = workspace();
    workspace.write(
        ".agentura/config.toml",
        "[traces]\nfile = \"all.jsonl\"\ncontent = true\n",
    );
    let args = [
        "run",
        SKILL,
        "--input",
        "fixtures/sample_input.json",
        "--model",
        "offline",
    ];
    let ran = workspace.run(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("traces.file"), "{ran:?}");
    assert!(!workspace.root().join("all.jsonl").exists());
    workspace.run(&["trust"]).succeeds();
    workspace.run(&args).succeeds();
    assert_eq!(spans(&workspace, "all.jsonl").len(), 1);
    workspace.set("OTEL_SDK_DISABLED", "true");
    workspace.run(&args).succeeds();
    assert_eq!(spans(&workspace, "all.jsonl").len(), 1);
}

#[test]
fn what_the_traces_of_an_agent_show_is_learnt() {
    let workspace = workspace();
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
    let fix = &workspace.stored("procedural_memory.json")["entries"][0];
    assert!(
        fix["error_key"]
            .as_str()
            .unwrap()
            .contains("cannot find module"),
        "{fix}"
    );
    assert_eq!(fix["working_code"], "npm --prefix web run chart");
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
    let fix = &workspace.stored("procedural_memory.json")["entries"][0];
    assert_eq!(fix["error_key"], "KeyError: <name>", "{fix}");
    assert_eq!(fix["working_code"], "python3 report.py --lenient");
}

/// The real SDK and its file exporter; `make test-clients` installs them.
#[test]
#[ignore = "needs OpenTelemetry from PyPI: make test-clients"]
fn traces_of_the_real_sdk_are_learnt_from() {
    let workspace = workspace();
    let program = include_str!("traces_of_an_agent.py");
    if python(&workspace, program, &["traces.jsonl"]).is_some() {
        is_learnt(&workspace);
    }
}

/// The real instrumentations of others, which say it in words of their own or of former years.
#[test]
#[ignore = "needs OpenInference and OpenLLMetry from PyPI: make test-clients"]
fn traces_of_other_instrumentations_are_learnt_from() {
    let program = include_str!("traces_of_openai.py");
    for instrumentation in ["openinference", "openllmetry"] {
        let workspace = workspace();
        if python(&workspace, program, &[instrumentation, "traces.jsonl"]).is_some() {
            is_learnt(&workspace);
        }
    }
}
