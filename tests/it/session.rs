//! `session …` from outside: actions are stored, and states advance in order.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use memctl::model::Scope;
use memctl::store::{LogSelection, Scoped};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::workspace::{NOW, Workspace, without_words};

const LOGS: &str = "execution_logs.jsonl";

/// A workspace with one session, and its id.
fn started() -> (Workspace, String) {
    let workspace = Workspace::empty();
    let report = workspace.json(&["session", "start", "--step", "research"]);
    let id = report["session_id"].as_str().unwrap().to_owned();
    (workspace, id)
}

fn entry(workspace: &Workspace) -> Value {
    workspace.stored("sessions.json")["entries"][0].clone()
}

/// The lines of the log that can be read.
fn logged(workspace: &Workspace) -> Vec<Value> {
    let text = fs::read_to_string(workspace.memory(LOGS)).unwrap_or_default();
    without_words(&text)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

const LOG: [&str; 9] = [
    "session", "log", "latest", "--step", "research", "--action", "decision", "--status", "success",
];

#[test]
fn a_session_goes_from_its_start_to_its_end() {
    let workspace = Workspace::empty();
    let args = [
        "session",
        "start",
        "--total-steps",
        "4",
        "--data",
        r#"{"campaign": "spring", "budget": 1062.0}"#,
    ];
    let report = workspace.json(&args);
    let expected = json!({"session_id": "SESS-20260220124341", "status": "initializing",
        "current_step": null, "progress_percentage": 0, "total_steps": 4, "completed_steps": [],
        "error_message": null, "session_data": {"campaign": "spring", "budget": 1062.0},
        "started_at": NOW, "completed_at": null, "created_at": NOW, "updated_at": NOW});
    assert_eq!(entry(&workspace), expected);
    assert_eq!(report["session_id"], expected["session_id"]);

    let mut later = workspace;
    later.set("MEMCTL_NOW", "2026-02-20T12:50:00+00:00");
    let report = later.json(&[
        "session", "progress", "SESS-2026", "--status", "analyzing_trends", "--step", "trends",
        "--completed", "brand", "--completed", "brand", "--data", r#"{"found": 3}"#,
    ]);
    assert_eq!(report["status"], "analyzing_trends");
    assert_eq!(report["completed_steps"], json!(["brand"]));
    // One of four is done.
    assert_eq!(report["progress_percentage"], 25);
    assert_eq!(report["updated_at"], "2026-02-20T12:50:00.000000+00:00");
    let data = json!({"campaign": "spring", "budget": 1062.0, "found": 3});
    assert_eq!(report["session_data"], data);
    // Saying it again changes nothing.
    let before = later.read(".agentura/sessions.json");
    later.json(&[
        "session", "progress", "latest", "--status", "analyzing_trends", "--completed", "brand",
    ]);
    assert_eq!(later.read(".agentura/sessions.json"), before);

    let report = later.json(&["session", "end", "latest"]);
    assert_eq!(report["status"], "completed");
    assert_eq!(report["progress_percentage"], 100);
    assert_eq!(report["completed_at"], "2026-02-20T12:50:00.000000+00:00");
    let listed = later.json(&["session", "list", "--status", "completed"]);
    assert_eq!(
        (&listed["total"], &listed["sessions"][0]["session_id"]),
        (&json!(1), &expected["session_id"])
    );
    assert_eq!(
        later.json(&["session", "list", "--status", "error"])["total"],
        0
    );
}

#[test]
fn invalid_value_is_named_with_its_field_and_the_allowed_values() {
    let (workspace, id) = started();
    workspace.json(&[
        "session", "progress", "latest", "--status", "awaiting_approval", "--percent", "60",
    ]);
    let progress = ["session", "progress", "latest"];
    let log = &LOG[..3];
    let before = workspace.read(".agentura/sessions.json");
    for (command, more, said) in [
        (
            &progress[..],
            &["--percent", "101"][..],
            "`progress_percentage` cannot be `101`: it must be a whole number from 0 to 100",
        ),
        (
            &progress,
            &["--percent", "-1"],
            "`progress_percentage` cannot be `-1`",
        ),
        (&progress, &["--percent", "half"], "'half' for '--percent"),
        (
            &progress,
            &["--status", "completed", "--percent", "90"],
            "`progress_percentage` cannot be `90`: it must be 100",
        ),
        (&progress, &["--status", "paused"], "awaiting_approval"),
        (
            &progress,
            &["--status", "error"],
            "`error_message` is missing",
        ),
        (
            &progress,
            &["--status", "error", "--error", " "],
            "`error_message` cannot be ` `",
        ),
        (
            &progress,
            &["--error", "x"],
            "left out unless the status is `error`",
        ),
        (&progress, &["--step", ""], "`current_step` cannot be ``"),
        (
            &progress,
            &["--completed", ""],
            "`completed_steps` cannot be ``",
        ),
        (
            &progress,
            &["--data", "[1]"],
            "`session_data` cannot be `[1]`: it must be a JSON object",
        ),
        (&progress, &["--data", "{"], "`--data` is not JSON"),
        (&progress, &[], "nothing to change"),
        (
            &["session", "start"],
            &["--total-steps", "0"],
            "`total_steps` cannot be `0`",
        ),
        (
            &["session", "start"],
            &["--data", "7"],
            "`session_data` cannot be `7`",
        ),
        (
            &["session", "end", "SESS-1999"],
            &[],
            "session `SESS-1999` not found",
        ),
        (
            &["session", "end", "latest"],
            &["--status", "initializing"],
            "[possible values: completed, error, cancelled]",
        ),
        (
            log,
            &["--step", "a", "--action", "tool", "--status", "success"],
            "tool_call, memory_read, memory_write, reasoning, user_interaction, error, decision",
        ),
        (
            log,
            &["--step", "a", "--action", "decision", "--status", "done"],
            "pending, running, success, error",
        ),
        (
            log,
            &["--step", " ", "--action", "decision", "--status", "success"],
            "`step_name` cannot be ` `",
        ),
        (
            &LOG,
            &["--confidence", "1.01"],
            "`confidence_score` cannot be `1.01`: it must be a number from 0 to 1",
        ),
        (
            &LOG,
            &["--confidence", "-0.1"],
            "`confidence_score` cannot be `-0.1`",
        ),
        (
            &LOG,
            &["--confidence", "NaN"],
            "`confidence_score` cannot be `NaN`",
        ),
        (&LOG, &["--ms", "-1"], "--ms"),
        (&LOG, &["--input", "plain"], "`--input` is not JSON"),
        (
            &LOG,
            &["--input", "-", "--output", "-"],
            "can read standard input",
        ),
    ] {
        let ran = workspace.run(&[command, more].concat());
        ran.fails(2, said);
        assert!(ran.stderr.contains("hint: "), "{ran:?}");
    }
    assert_eq!(workspace.read(".agentura/sessions.json"), before);
    assert_eq!(logged(&workspace).len(), 0);

    // A person sends it back, and less is done then.
    let report = workspace.json(&[
        "session", "progress", &id, "--status", "generating_scripts", "--percent", "40",
    ]);
    assert_eq!(report["progress_percentage"], 40);
    workspace
        .run(&[
            "session",
            "end",
            "latest",
            "--error",
            "the service answered 503",
        ])
        .succeeds();
    let ended = entry(&workspace);
    assert_eq!(
        (
            &ended["status"],
            &ended["progress_percentage"],
            &ended["completed_at"]
        ),
        (&json!("error"), &json!(40), &json!(null))
    );
    assert_eq!(ended["error_message"], "the service answered 503");
    workspace
        .run(&["session", "end", "latest"])
        .fails(2, "has ended with `error` and cannot change");
    // The latest actions often arrive last.
    workspace.run(&LOG).succeeds();
}

#[test]
fn an_action_keeps_its_fields_and_loses_its_secrets() {
    let (workspace, id) = started();
    let mut args = LOG.to_vec();
    args.extend([
        "--tool",
        "web_search",
        "--input",
        r#"{"n": 1062.0, "big": 12345678901234567890123}"#,
        "--output",
        "[1,\n 2]",
        "--reasoning",
        "key AKIAIOSFODNN7ZQXWVBN was refused",
        "--confidence",
        "0.8",
        "--ms",
        "840",
        "--error",
        "none",
    ]);
    let report = workspace.json(&args);
    let text = fs::read_to_string(workspace.memory(LOGS)).unwrap();
    assert!(
        text.contains(r#""input_data":{"n":1062.0,"big":12345678901234567890123}"#),
        "{text}"
    );
    assert!(!text.contains("AKIAIOSFODNN7ZQXWVBN"), "{text}");
    let line = &logged(&workspace)[0];
    for (field, value) in [
        ("session_id", json!(id)),
        ("step_name", json!("research")),
        ("tool_name", json!("web_search")),
        ("action_type", json!("decision")),
        ("output_data", json!([1, 2])),
        ("confidence_score", json!(0.8)),
        ("execution_time_ms", json!(840)),
        ("status", json!("success")),
        ("error_message", json!("none")),
        ("created_at", json!(NOW)),
        ("id", report["id"].clone()),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    let shown = workspace.json(&["session", "show", &id]);
    assert_eq!(shown["logs"], json!([line]));
    assert_eq!(
        (&shown["session"], &shown["has_older_logs"]),
        (&entry(&workspace), &json!(false))
    );
    for n in 0..5 {
        let mut args = LOG;
        let step = format!("step {n}");
        args[4] = &step;
        workspace.run(&args).succeeds();
    }
    let shown = workspace.json(&["session", "show", &id, "-n", "2"]);
    let steps: Vec<&str> = shown["logs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["step_name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (steps, &shown["has_older_logs"]),
        (vec!["step 3", "step 4"], &json!(true))
    );
}

#[test]
fn an_entry_of_another_hand_is_shown_and_moves_on() {
    let workspace = Workspace::empty();
    workspace.write(
        ".agentura/sessions.json",
        r#"{"entries": [{"session_id": "SESS-1", "status": "paused", "progress_percentage": "12.5",
            "completed_steps": "none", "total_steps": -1, "session_data": 7, "current_step": 3, "more":  {"cost": 1062.0}}]}"#,
    );
    let listed = workspace.json(&["session", "list"]);
    assert_eq!(listed["sessions"][0]["status"], "paused");
    workspace.run(&["session", "show", "latest"]).succeeds();
    let report = workspace.json(&[
        "session", "progress", "SESS-1", "--status", "analyzing_brand", "--percent", "13",
        "--data", r#"{"a": 1}"#,
    ]);
    assert_eq!(
        (&report["progress_percentage"], &report["session_data"]),
        (&json!(13), &json!({"a": 1}))
    );
    assert!(
        workspace
            .read(".agentura/sessions.json")
            .contains(r#""more":  {"cost": 1062.0}"#)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn fields_of_other_programs_in_a_session_keep_every_byte(
        fields in prop::collection::vec(("[a-zé]{1,8}", prop::sample::select(vec![
            "1062.0", "1e400", "12345678901234567890123", "\"\\u00e9\\n\"", "[ 1,2 ,{}]", "{\"k\":  null}", "-0.0",
        ])), 1..6),
    ) {
        let (workspace, id) = started();
        let text = workspace.read(".agentura/sessions.json");
        let mut kept = String::new();
        for (n, (name, value)) in fields.iter().enumerate() {
            kept.push_str(&format!("\"x{n}_{name}\" :{value},\n\t"));
        }
        workspace.write(".agentura/sessions.json", text.replacen("\"status\"", &format!("{kept}\"status\""), 1));
        workspace.run(&LOG).succeeds();
        for args in [
            &["session", "progress", &id, "--status", "generating_concepts", "--completed", "a", "--step", "b"][..],
            &["session", "progress", &id, "--data", r#"{"quote\"d": "é"}"#, "--percent", "90"],
            &["session", "end", &id],
        ] {
            workspace.run(args).succeeds();
            prop_assert!(workspace.read(".agentura/sessions.json").contains(&kept), "{args:?}");
        }
        prop_assert!(workspace.read(".agentura/sessions.json").contains("\"quote\\\"d\": \"é\""));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_bytes_as_a_log_cost_no_line(
        pieces in prop::collection::vec(prop::sample::select(vec![
            &b"{"[..], b"}", b"[]", b"\n", b"\r\n", b"null", b"\xff\xfe", b"\0", b"\"", b"NaN",
            b"{\"action_type\": \"decision\"}", b"{\"session_id\": 7, \"created_at\": [1]}", b"\xef\xbb\xbf",
        ]), 0..24),
    ) {
        let line = br#"{"session_id": "a", "action_type": "decision", "id": "x"}"#;
        let before = pieces.concat();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(LOGS), [&before[..], b"\n", line, b"\n", &before].concat()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        let wanted = LogSelection { sessions: Some(&["a".to_owned()]), since: "", newest: 9 };
        let listing = store.execution_logs(wanted).unwrap();
        // Text directly after the line belongs to the next one.
        prop_assert_eq!(listing.lines.len(), 1);
    }
}

#[test]
fn the_sessions_of_another_user_do_not_exist() {
    let workspace = Workspace::empty();
    let of = |user: &str, args: &[&str]| workspace.run(&[&["--user", user], args].concat());
    of("alice", &["session", "start"]).succeeds();
    of("alice", &LOG).succeeds();
    let id = "SESS-20260220124341";
    assert_eq!(entry(&workspace)["user_id"], "alice");
    assert_eq!(logged(&workspace)[0]["user_id"], "alice");
    let not_found = format!("session `{id}` not found");
    for args in [
        &["session", "show", id][..],
        &["session", "end", id],
        &["session", "progress", id, "--percent", "5"],
        &[
            "session", "log", id, "--step", "a", "--action", "decision", "--status", "success",
        ],
    ] {
        of("bob", args).fails(2, &not_found);
        // A scope of domains hides them too: they belong to none.
        workspace
            .run(&[&["--scope", "hr"], args].concat())
            .fails(2, &not_found);
    }
    of("bob", &["session", "end", "latest"]).fails(2, "session `latest` not found");
    let list = of("bob", &["session", "list", "--json"]).document();
    assert_eq!((&list["total"], &list["sessions"]), (&json!(0), &json!([])));
    assert_eq!(
        workspace.json(&["session", "list", "--scope", "hr"])["total"],
        0
    );
    // The owner of the files sees it, and the owner's log lines still belong to the user.
    workspace.run(&LOG).succeeds();
    let seen = of("alice", &["session", "show", id, "--json"]).document();
    assert_eq!(seen["logs"].as_array().unwrap().len(), 2);
    // A line that names her session does not show another's action in it.
    let mut line = logged(&workspace)[0].clone();
    line["user_id"] = json!("bob");
    let path = workspace.memory(LOGS);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{line}\n")).unwrap();
    let seen = of("alice", &["session", "show", id, "--json"]).document();
    assert_eq!(seen["logs"].as_array().unwrap().len(), 2);
}

#[test]
fn action_outside_of_a_session_belongs_to_its_user() {
    let workspace = Workspace::sample();
    workspace
        .run(&[
            "--user", "alice", "run", "hr/resume-screen", "--model", "offline",
        ])
        .succeeds();
    let lines = logged(&workspace);
    assert_eq!(lines.len(), 2);
    assert!(
        lines.iter().all(|line| line["user_id"] == "alice"),
        "{lines:?}"
    );
}

#[test]
fn reads_and_writes_of_a_run_are_logged() {
    let mut workspace = Workspace::sample();
    workspace
        .run(&["session", "start", "--step", "screening"])
        .succeeds();
    let run = ["run", "hr/resume-screen", "--model", "offline"];
    workspace.json(&run);
    let lines = logged(&workspace);
    let of = |lines: &[Value]| -> Vec<String> {
        let words = |line: &Value| {
            format!(
                "{} {} {}",
                line["session_id"], line["step_name"], line["action_type"]
            )
        };
        lines.iter().map(words).collect()
    };
    assert_eq!(
        of(&lines),
        [r#"null "run" "tool_call""#, r#"null "run" "memory_write""#]
    );
    assert_eq!(
        lines[1]["output_data"]["execution_id"],
        "EXEC-20260220124341"
    );
    let correct = [
        "correct",
        "hr/resume-screen",
        "--execution-id",
        "latest",
        "--correction",
        "Never name competitors in the summary",
    ];
    workspace.run(&correct).succeeds();
    workspace.set("MEMCTL_SESSION", "latest");
    workspace.json(&run);
    let lines = &logged(&workspace)[2..];
    let id = r#""SESS-20260220124341" "screening""#;
    assert_eq!(
        of(lines),
        [
            format!("{id} \"memory_read\""),
            format!("{id} \"tool_call\""),
            format!("{id} \"memory_write\"")
        ]
    );
    assert_eq!(lines[0]["output_data"]["injected"], json!(["REFL-001"]));
    assert_eq!(lines[1]["tool_name"], "offline/nearest-case");
    // A missing session is reported before a model is called.
    workspace
        .run(&["run", "hr/resume-screen", "--session", "SESS-1"])
        .fails(2, "session `SESS-1` not found");
    // A run that is not recorded is not logged either.
    for flag in ["--no-record", "--no-memory", "--dry-run"] {
        workspace.run(&[&run[..], &[flag]].concat()).succeeds();
    }
    assert_eq!(logged(&workspace).len(), 5);
    // A model that fails is an action that failed.
    workspace
        .run(&["run", "hr/resume-screen", "--model", "exec:false"])
        .fails(4, "");
    let failed = &logged(&workspace)[6];
    assert_eq!(
        (&failed["action_type"], &failed["status"]),
        (&json!("tool_call"), &json!("error"))
    );
    assert!(failed["error_message"].is_string(), "{failed}");
}

#[test]
fn learned_lessons_are_logged() {
    let workspace = Workspace::empty();
    // A path of its own, which has a drive on Windows.
    let sessions = workspace.root().join("stock.jsonl");
    fs::copy(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/fixtures/sessions/claude-code-stock.jsonl"
        ),
        &sessions,
    )
    .unwrap();
    let sessions = sessions.to_str().unwrap();
    let report = workspace.json(&["learn", sessions]);
    let lines = logged(&workspace);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (&lines[0]["action_type"], &lines[0]["tool_name"]),
        (&json!("memory_write"), &json!("learn"))
    );
    assert!(
        lines[0]["session_id"]
            .as_str()
            .unwrap()
            .starts_with("claude-code/"),
        "{lines:?}"
    );
    let mut learned: Vec<&str> = lines[0]["output_data"]["learned"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    learned.sort_unstable();
    assert_eq!(json!(learned), report["learned"]);
    workspace.json(&["learn", sessions]);
    assert_eq!(logged(&workspace).len(), 1);
    // `MEMCTL_SESSION` names the session of `learn`, which must exist.
    let mut workspace = Workspace::empty();
    workspace.set("MEMCTL_SESSION", "latest");
    workspace
        .run(&["learn", sessions])
        .fails(2, "session `latest` not found");
    workspace.run(&["session", "start"]).succeeds();
    workspace.json(&["learn", sessions]);
    assert_eq!(logged(&workspace)[0]["session_id"], "SESS-20260220124341");
}

#[test]
fn a_session_that_is_forgotten_for_good_takes_its_actions_with_it() {
    let (workspace, id) = started();
    let mut workspace = workspace;
    workspace.run(&LOG).succeeds();
    workspace.set("MEMCTL_NOW", "2026-02-20T12:50:00+00:00");
    workspace.run(&["session", "start"]).succeeds();
    workspace.run(&LOG).succeeds();
    workspace
        .run(&["memory", "forget", &id, "--for-good"])
        .succeeds();
    let lines = logged(&workspace);
    assert_eq!(
        (lines.len(), &lines[0]["session_id"]),
        (1, &json!("SESS-20260220125000"))
    );
    workspace
        .run(&["session", "show", &id])
        .fails(2, "was removed on");
}

#[test]
fn many_processes_at_once_lose_no_line() {
    let (workspace, id) = started();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    workspace.run(&LOG).succeeds();
                }
            });
        }
    });
    let lines = logged(&workspace);
    let mut ids: Vec<&str> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((lines.len(), ids.len()), (80, 80));
    assert_eq!(
        fs::read_to_string(workspace.memory(LOGS))
            .unwrap()
            .lines()
            .count(),
        80
    );
    let shown = workspace.json(&["session", "show", &id, "-n", "100"]);
    assert_eq!(shown["logs"].as_array().unwrap().len(), 80);
}

#[test]
fn steps_that_are_done_at_the_same_time_are_all_done() {
    let (workspace, id) = started();
    let names: Vec<String> = (0..12).map(|n| format!("step {n:02}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let args = ["session", "progress", &id, "--completed", name];
            let workspace = &workspace;
            scope.spawn(move || {
                workspace.run(&args).succeeds();
            });
        }
    });
    let session = entry(&workspace);
    let mut done: Vec<&str> = session["completed_steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    done.sort_unstable();
    assert_eq!(
        (done, &session["progress_percentage"]),
        (names.iter().map(String::as_str).collect(), &json!(100))
    );
}

#[test]
fn a_process_that_is_killed_costs_no_line_that_was_acknowledged() {
    let (workspace, id) = started();
    let mut acknowledged = Vec::new();
    for round in 0..40 {
        let mut command = workspace.command();
        command.args(LOG).arg("--json").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round % 20));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) {
            acknowledged.push(report["id"].clone());
        }
    }
    // Part of a line that a crash of the machine leaves.
    let path = workspace.memory(LOGS);
    let text = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, format!("{text}{{\"id\": \"torn")).unwrap();
    let report = workspace.json(&LOG);
    acknowledged.push(report["id"].clone());
    let ids: Vec<Value> = logged(&workspace)
        .into_iter()
        .map(|line| line["id"].clone())
        .collect();
    for id in &acknowledged {
        assert!(ids.contains(id), "{id}");
    }
    let shown = workspace.json(&["session", "show", &id, "-n", "100"]);
    assert_eq!(shown["logs"].as_array().unwrap().len(), ids.len());
    let doctor = workspace.json(&["doctor"]);
    assert_eq!(doctor["healthy"], true);
}
