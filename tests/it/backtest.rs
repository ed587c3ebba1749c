//! `backtest` from outside: past sessions, replayed in chronological order.

use std::fs;

use serde_json::{Value, json};

use crate::workspace::Workspace;

/// A session of steps: a minute a step from this hour on, or without times.
fn session(hour: Option<u32>, name: &str, steps: &[(&str, &str, bool)]) -> String {
    let lines = steps.iter().enumerate().map(|(n, (input, output, ok))| {
        let mut line = json!({ "tool": "bash", "input": input, "output": output, "ok": ok,
            "session": name });
        if let Some(hour) = hour {
            line["time"] = json!(format!("2026-01-05T{hour:02}:{n:02}:00Z"));
        }
        line.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

const ERROR: &str = "error: externally-managed-environment";

/// Steps of a session: the mistake, two detours, and the working call.
fn mistake(package: &str) -> Vec<(String, &'static str, bool)> {
    vec![
        (format!("pip install {package}"), ERROR, false),
        ("ls /usr/lib".to_owned(), "python3", true),
        ("which pip".to_owned(), "/usr/bin/pip", true),
        (format!("pip install --user {package}"), "done", true),
    ]
}

fn written(hour: Option<u32>, name: &str, package: &str) -> String {
    let steps = mistake(package);
    let steps: Vec<_> = steps
        .iter()
        .map(|(i, o, ok)| (i.as_str(), *o, *ok))
        .collect();
    session(hour, name, &steps)
}

fn counts(report: &Value) -> Vec<u64> {
    let fields = [
        "transcripts", "failures", "episodes", "repeated", "hinted", "hinted_right",
        "steps_wasted", "steps_saved",
    ];
    fields.iter().map(|f| report[f].as_u64().unwrap()).collect()
}

#[test]
fn what_was_overcome_before_would_have_been_hinted() {
    let workspace = Workspace::empty();
    // The first by name is the last by time.
    workspace.write("all/a.jsonl", written(Some(11), "late", "numpy"));
    workspace.write("all/b.jsonl", written(Some(9), "early", "requests"));
    let report = workspace.json(&["backtest", "all"]);
    assert_eq!(counts(&report), [2, 2, 2, 1, 1, 1, 6, 2]);
    assert_eq!(report["steps"], 8);
    let errors = report["by_error"].as_array().unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0],
        json!({ "error_key": ERROR, "times": 2, "overcome": 2, "hinted": 1, "hinted_right": 1,
            "steps_wasted": 6, "steps_saved": 2, "example": {
                "failing_code": "pip install numpy", "working_code": "pip install --user numpy",
                "success_output": "done" } })
    );
    let shown = report["shown"].as_array().unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (
            &shown[0]["error_key"], &shown[0]["call"], &shown[0]["worked"], &shown[0]["right"]
        ),
        (
            &json!(ERROR),
            &json!("pip install numpy"),
            &json!("pip install --user numpy"),
            &json!(true)
        )
    );
    assert_eq!(
        shown[0]["hints"][0]["working_code"],
        "pip install --user requests"
    );
    // Nothing is begun, let alone written.
    assert!(!workspace.root().join(".agentura").exists());
    let page = workspace.run(&["backtest", "all"]);
    let said = "hints at 1 of 2 failures (correct for 1 of the 1 that recovered) and saved 2 of 6";
    assert!(page.succeeds().stdout.contains(said), "{page:?}");
    for line in [
        "hint       pip install requests → pip install --user requests",
        "as hinted  pip install numpy → pip install --user numpy",
    ] {
        assert!(page.stdout.contains(line), "{page:?}");
    }
    assert!(
        page.stdout.lines().all(|l| l.chars().count() <= 120),
        "{page:?}"
    );
}

#[test]
fn nothing_is_known_before_its_time() {
    let workspace = Workspace::empty();
    // Parallel sessions: neither could have used the other.
    workspace.write("all/a.jsonl", written(Some(9), "a", "numpy"));
    workspace.write("all/b.jsonl", written(Some(9), "b", "requests"));
    let report = workspace.json(&["backtest", "all"]);
    assert_eq!(counts(&report)[3..6], [0, 0, 0]);
    // Without times the order of the files decides.
    workspace.write("all/a.jsonl", written(None, "a", "numpy"));
    workspace.write("all/b.jsonl", written(None, "b", "requests"));
    let report = workspace.json(&["backtest", "all"]);
    assert_eq!(counts(&report)[3..6], [1, 1, 1]);
}

#[test]
fn a_session_knows_at_once_what_it_has_overcome() {
    let workspace = Workspace::empty();
    let twice = [mistake("numpy"), mistake("requests")].concat();
    let steps: Vec<_> = twice
        .iter()
        .map(|(i, o, ok)| (i.as_str(), *o, *ok))
        .collect();
    workspace.write("a.jsonl", session(Some(9), "a", &steps));
    let report = workspace.json(&["backtest", "a.jsonl"]);
    assert_eq!(counts(&report), [1, 2, 2, 1, 1, 1, 6, 2]);
}

#[test]
fn what_a_resumed_session_copies_counts_once() {
    let workspace = Workspace::empty();
    let text = written(Some(9), "a", "numpy");
    workspace.write("all/a.jsonl", &text);
    workspace.write("all/b.jsonl", &text);
    let report = workspace.json(&["backtest", "all"]);
    assert_eq!(counts(&report), [2, 1, 1, 0, 0, 0, 3, 0]);
}

#[test]
fn a_hint_that_was_wrong_saves_nothing() {
    let workspace = Workspace::empty();
    workspace.write("all/a.jsonl", written(Some(9), "a", "numpy"));
    let other = [
        ("pip install rich", ERROR, false),
        ("ls", "x", true),
        (
            "pip install rich --break-system-packages --target vendor",
            "done",
            true,
        ),
    ];
    workspace.write("all/b.jsonl", session(Some(10), "b", &other));
    // Only retried, which is no fix.
    let again = [
        ("make all", "error: flaky network gate", false),
        ("make all", "ok", true),
    ];
    workspace.write("all/c.jsonl", session(Some(11), "c", &again));
    workspace.write("all/d.jsonl", session(Some(12), "d", &again));
    let report = workspace.json(&["backtest", "all"]);
    assert_eq!(counts(&report)[4..], [1, 0, 7, 0]);
    assert_eq!(report["hinted_overcome"], 1);
}

#[test]
fn broken_lines_bad_paths_and_secrets() {
    let workspace = Workspace::empty();
    let key = format!("sk-ant-api03-{}", "x9Y2".repeat(24));
    let steps = [
        (
            format!("curl -H 'x-api-key: {key}' /a"),
            "error: bad request shape",
            false,
        ),
        (format!("curl -H 'x-api-key: {key}' -d 1 /a"), "ok", true),
    ];
    let steps: Vec<_> = steps
        .iter()
        .map(|(i, o, ok)| (i.as_str(), *o, *ok))
        .collect();
    let text = session(Some(9), "a", &steps) + "\n{broken\n";
    workspace.write("all/a.jsonl", text);
    workspace.write("all/package.json", "{}");
    let ran = workspace.run(&["backtest", "all", "--json"]);
    assert!(!ran.succeeds().stdout.contains(&key), "{ran:?}");
    let report = ran.document();
    assert_eq!(
        (&report["problems"][0]["line"], &report["skipped"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(report["episodes"], 1);
    assert!(
        report["by_error"][0]["example"]["working_code"]
            .as_str()
            .unwrap()
            .contains("-d 1")
    );
    let ran = workspace.run(&["backtest", "none"]);
    ran.fails(2, "none");
    fs::remove_dir_all(workspace.root().join("all")).unwrap();
    workspace.write("empty/x.txt", "");
    let page = workspace.run(&["backtest", "empty"]);
    assert!(
        page.succeeds().stdout.contains("No call failed"),
        "{page:?}"
    );
}

#[test]
fn every_format_is_replayed() {
    let workspace = Workspace::sample();
    let learnt = workspace.json(&["learn", "--dry-run", "fixtures/transcripts"]);
    let report = workspace.json(&["backtest", "fixtures/transcripts"]);
    let sum = |field: &str| -> u64 {
        let sessions = learnt["transcripts"].as_array().unwrap().iter();
        sessions.map(|t| t[field].as_u64().unwrap()).sum()
    };
    assert_eq!(report["steps"], sum("steps"));
    assert_eq!(report["failures"], sum("failures"));
    assert_eq!(
        report["episodes"],
        learnt["episodes"].as_array().unwrap().len()
    );
}
