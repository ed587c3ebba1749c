//! `learn` from outside: session files of every format become fixes and procedures, once.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::workspace::Workspace;

const SESSIONS: &str = "fixtures/transcripts";

fn initialised() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace
}

/// Every file below a directory with its content.
fn tree(directory: PathBuf) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![directory];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with(".index/primary.json") {
                // How far a copy of a database is, which also counts the vectors there.
                files.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

fn pairs(report: &Value) -> BTreeSet<(String, u64, u64)> {
    let episodes = report["episodes"].as_array().unwrap();
    episodes
        .iter()
        .map(|e| {
            let name = e["transcript"]
                .as_str()
                .unwrap()
                .rsplit(['/', '\\'])
                .next()
                .unwrap();
            let step = |field: &str| e[field].as_u64().unwrap();
            (name.to_owned(), step("fail_step"), step("success_step"))
        })
        .collect()
}

#[test]
fn a_dry_run_reads_every_format_and_writes_nothing() {
    let workspace = initialised();
    let before = tree(workspace.root());
    let report = workspace.json(&["learn", "--dry-run", SESSIONS]);
    assert_eq!(tree(workspace.root()), before);
    let formats: BTreeSet<&str> = report["transcripts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["format"].as_str().unwrap())
        .collect();
    let all = [
        "anthropic-messages", "claude-code", "codex", "gemini", "openai-messages", "otlp", "steps",
        "swe-agent",
    ];
    assert_eq!(formats, all.into());
    let expected = [
        ("anthropic.json", 0, 1),
        ("openai.json", 0, 2),
        ("otlp.jsonl", 0, 1),
        ("steps.jsonl", 0, 1),
        ("swe-agent.traj", 1, 3),
        ("swe-agent.traj", 4, 5),
    ];
    assert_eq!(
        pairs(&report),
        expected.map(|(n, f, s)| (n.to_owned(), f, s)).into()
    );
    assert_eq!(report["learned"], json!([]));
    let steps = report["transcripts"].as_array().unwrap().iter();
    let broken: Vec<&Value> = steps
        .flat_map(|t| t["problems"].as_array().unwrap())
        .collect();
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0]["line"], 4);
}

#[test]
fn real_hosts_are_read_with_their_outcomes() {
    let workspace = initialised();
    for (file, format, steps, failures) in [
        ("claude-code.jsonl", "claude-code", 2, 1),
        ("codex.jsonl", "codex", 2, 1),
        ("gemini.jsonl", "gemini", 2, 1),
    ] {
        let path = format!("{SESSIONS}/hosts/{file}");
        let report = workspace.json(&["learn", "--dry-run", &path]);
        let session = &report["transcripts"][0];
        assert_eq!(
            (&session["format"], &session["steps"], &session["failures"]),
            (&json!(format), &json!(steps), &json!(failures)),
            "{file}"
        );
        // A step with the text `fixed` is not a fix.
        assert_eq!(session["status"], "nothing_learned", "{file}");
    }
}

#[test]
fn learned_procedure_has_the_fields_of_the_source_document() {
    let workspace = initialised();
    let report = workspace.json(&["learn", &format!("{SESSIONS}/steps.jsonl")]);
    assert_eq!(report["learned"], json!(["PROC-001"]));
    let procedure = &workspace.stored("procedural_memory.json")["entries"][0];
    let fix = &procedure["pattern"];
    assert_eq!(
        fix["error_key"],
        "jq: error (at <path>): module not found: sums"
    );
    assert_eq!(fix["failing_code"], "jq -f total.jq report.json");
    assert_eq!(fix["working_code"], "jq -L lib -f total.jq report.json");
    // What a query prints is data of one place.
    assert_eq!(fix["success_output"], "");
    assert_eq!(fix["tool"], "jq");
    assert_eq!(procedure["trust"], "observed");
    assert_eq!(procedure["state"], "episode");
    assert_eq!(
        procedure["origins"],
        json!([{ "session": "build-17", "workspace": "project", "step": 0 }])
    );
    assert_eq!(procedure["status"], "procedure_learned");
    let fields: Vec<&String> = procedure["data"].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "procedure_name",
            "semantic_description",
            "initial_failure_summary",
            "identified_root_cause",
            "successful_intervention",
            "learned_procedure_steps",
            "critical_contextual_cues",
            "example_scenario_abstract",
        ]
    );
    let found = workspace.json(&["memory", "search", "jq module not found sums", "--keyword"]);
    let ids: BTreeSet<&str> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["PROC-001"].into());
}

#[test]
fn learning_twice_counts_once() {
    let workspace = initialised();
    let first = workspace.json(&["learn", SESSIONS]);
    assert_eq!(first["learned"].as_array().unwrap().len(), 4);
    let stored = tree(workspace.memory(""));
    let second = workspace.json(&["learn", SESSIONS]);
    assert_eq!(
        (&second["unchanged"], &second["learned"]),
        (&json!(8), &json!([]))
    );
    assert_eq!(tree(workspace.memory("")), stored);
    // Also after the derived files were deleted.
    fs::remove_dir_all(workspace.memory(".index")).unwrap();
    let third = workspace.json(&["learn", SESSIONS]);
    assert_eq!(
        (&third["unchanged"], &third["learned"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(third["merged"], json!([]));
    let fixes = workspace.stored("procedural_memory.json");
    assert!(
        fixes["entries"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["occurrences"] == 1.0)
    );
}

#[test]
fn the_same_mistake_in_another_session_counts_up() {
    let workspace = initialised();
    let text = workspace.read(&format!("{SESSIONS}/steps.jsonl"));
    workspace.write("a.jsonl", &text);
    workspace.write("b.jsonl", text.replace("build-17", "build-18"));
    let first = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(first["merged"], json!([]));
    let second = workspace.json(&["learn", "b.jsonl"]);
    assert_eq!(
        (&second["learned"], &second["merged"]),
        (&json!([]), &json!(["PROC-001"]))
    );
    let fixes = workspace.stored("procedural_memory.json");
    assert_eq!(fixes["entries"].as_array().unwrap().len(), 1);
    assert_eq!(fixes["entries"][0]["occurrences"], 2.0);
    assert_eq!(fixes["entries"][0]["origins"].as_array().unwrap().len(), 2);
}

#[test]
fn a_session_that_goes_on_is_read_again() {
    let workspace = initialised();
    let text = workspace.read(&format!("{SESSIONS}/steps.jsonl"));
    let lines: Vec<&str> = text.lines().collect();
    let worked = json!({ "tool": "bash", "id": "0", "input": "ls", "output": "report.json", "exit_code": 0 });
    let path = workspace.write("a.jsonl", format!("{}\n{worked}", lines[..2].join("\n")));
    let none = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(none["transcripts"][0]["status"], "No_Failure_Detected");
    assert_eq!(none["transcripts"][0]["failures"], 0, "{none}");
    fs::write(&path, lines[..3].join("\n")).unwrap();
    let first = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(first["transcripts"][0]["status"], "nothing_learned");
    assert!(!workspace.memory("procedural_memory.json").exists());
    fs::write(path, text).unwrap();
    let second = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(second["learned"], json!(["PROC-001"]));
}

#[test]
fn removed_lesson_is_not_learned_again() {
    let workspace = initialised();
    let path = format!("{SESSIONS}/steps.jsonl");
    workspace.run(&["learn", &path]).succeeds();
    workspace.run(&["memory", "forget", "PROC-001"]).succeeds();
    fs::remove_dir_all(workspace.memory(".index")).unwrap();
    let again = workspace.json(&["learn", &path]);
    assert_eq!(
        (&again["learned"], &again["buried"]),
        (&json!([]), &json!(1))
    );
}

#[test]
fn text_from_memory_teaches_nothing() {
    let workspace = initialised();
    let hint = "<memctl-7f3a>ERROR: KeyError: 'a'\nWRONG: x\nCORRECT: y</memctl-7f3a>";
    let line = |input: &str, output: &str, ok: bool| {
        json!({ "tool": "bash", "input": input, "output": output, "ok": ok }).to_string()
    };
    let text = [
        line(
            "make report",
            &format!("make: ROWS is not set\n{hint}"),
            false,
        ),
        line("make report ROWS=data/rows.csv", "fine", true),
    ]
    .join("\n");
    workspace.write("a.jsonl", text);
    workspace.run(&["learn", "a.jsonl"]).succeeds();
    let fixes = fs::read_to_string(workspace.memory("procedural_memory.local.json")).unwrap();
    assert!(fixes.contains("make: ROWS is not set"), "{fixes}");
    assert!(!fixes.contains("CORRECT"), "{fixes}");
}

#[test]
fn files_that_are_no_sessions_are_said_or_skipped() {
    let workspace = initialised();
    workspace.write("all/package.json", r#"{"name": "x", "version": "1"}"#);
    workspace.write("all/notes.txt", "plain");
    let report = workspace.json(&["learn", "all"]);
    assert_eq!(
        (&report["skipped"], &report["transcripts"]),
        (&json!(1), &json!([]))
    );
    let ran = workspace.run(&["learn", "all/notes.txt"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("notes.txt` is no session file"),
        "{ran:?}"
    );
    let ran = workspace.run(&["learn", "no-such-file"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = workspace.run(&["learn", "all/notes.txt", "--format", "nonsense"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// The first scenario of the source document, section 6: a column without a type is refused; the
/// next one who adds a column, elsewhere and in other words, finds what was learned from it.
#[test]
fn a_column_without_its_type_is_learnt_and_found_for_another_table() {
    let workspace = initialised();
    // Other lessons lie there too. The page says the result first.
    let ran = workspace.run(&["learn", SESSIONS]);
    let first = ran.succeeds().stdout.lines().next().unwrap();
    assert!(first.contains(" lessons learned from "), "{ran:?}");
    let call = |column: &str, answer: Value| {
        let query = format!("ALTER TABLE users ADD COLUMN {column};");
        let input = json!({ "operation": "executeQuery", "query": query });
        json!({ "tool": "postgres", "input": input, "error": answer["error"], "output": answer["output"] }).to_string()
    };
    let refused = "ERROR:  syntax error at or near \";\"\nLINE 1: ALTER TABLE users ADD COLUMN last_name;\n                                              ^";
    let session = [
        json!({ "session": "first" }).to_string(),
        json!({ "user": "I need to add a last_name column to the users table." }).to_string(),
        call("last_name", json!({ "error": refused })),
        call("last_name TEXT", json!({ "output": "ALTER TABLE" })),
    ];
    workspace.write("first.jsonl", session.join("\n"));
    let learnt = workspace.json(&["learn", "first.jsonl"]);
    let ids: Vec<&str> = learnt["learned"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(ids.len(), 1, "{learnt}");
    let cause = learnt["episodes"][0]["root_cause"].as_str().unwrap();
    assert_eq!(cause, "ERROR:  syntax error at or near \";\"");

    let task = "Add an age column to the profiles table.";
    for how in [&[][..], &["--keyword"]] {
        let found =
            workspace.json(&[&["memory", "search", task, "--kind", "procedure"], how].concat());
        let first = &found["results"][0];
        assert_eq!(first["id"], ids[0], "{found}");
    }
    let hint = workspace.json(&[
        "hint",
        "--tool",
        "postgres",
        "--command",
        "ALTER TABLE profiles ADD COLUMN age;",
        "--error",
        "ERROR:  syntax error at or near \";\"\nLINE 1: ALTER TABLE profiles ADD COLUMN age;",
    ]);
    let working = hint["hints"][0]["working_code"].as_str().unwrap();
    assert!(working.contains("last_name TEXT;"), "{hint}");
}
