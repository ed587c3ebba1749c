//! Cases 1–9 and 13: the files, and what happens to what others wrote into them.

use std::fs;
use std::path::Path;

use chrono::{DateTime, Utc};
use memctl::model::{Execution, Scope};
use memctl::store::{Error, Scoped};
use serde_json::{Value, json};

use super::{correct, execution, over, python, rule, snapshot, store};
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const RUN: [&str; 4] = ["run", SKILL, "--input", "fixtures/sample_input.json"];

fn now() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339("2026-02-20T12:43:41.681444Z")
        .unwrap()
        .to_utc()
}

fn log(dir: &Path, id: &str) -> Result<String, Error> {
    let mut record: Execution = serde_json::from_value(json!({ "skill": SKILL })).unwrap();
    id.clone_into(&mut record.execution_id);
    let store = Scoped::new(dir, Scope::All);
    let mut writer = store.write(&mut || "random".to_owned())?;
    Ok(writer.append(record, now())?.execution_id)
}

/// The text of the entry that holds this, as it stands in its file: from its brace to its brace.
fn entry(workspace: &Workspace, file: &str, holds: &str) -> String {
    let text = workspace.read(&format!(".agentura/{file}"));
    let entries: Vec<&str> = text.split("\n    {").collect();
    let found = entries.iter().find(|entry| entry.contains(holds)).unwrap();
    found.rsplit_once("\n    }").unwrap().0.to_owned()
}

#[test]
fn case_01_the_seed_samples_are_counted_and_reading_changes_nothing() {
    let workspace = over("seed");
    let directory = workspace.root().join(".agentura");
    let before = snapshot(&directory);
    assert_eq!(before.len(), 3);

    let status = workspace.run(&["memory", "status"]);
    assert!(status.succeeds().stdout.contains(
        "\nStore: JSONStore\nExecutions: 1  |  Corrections: 1  |  Reflexions: 1  |  Tests: 0\n"
    ));
    let search = workspace.json(&["memory", "search", "5 years of Python"]);
    assert_eq!(search["results"][0]["id"], "REFL-003");
    let prompt = workspace.run(&["memory", "prompt", SKILL]);
    assert!(prompt.succeeds().stdout.contains(
        "- **REFL-003** (confidence: 96%): When screening resumes for engineering roles, ALWAYS check"
    ));
    for arguments in [
        &["memory", "list"][..],
        &["memory", "list", "executions"],
        &["memory", "list", "corrections"],
        &["memory", "show", "EXEC-20260220124341"],
        &["memory", "show", "CORR-003"],
        &["memory", "show", "refl-"],
        &["doctor"],
        &["config", "show"],
        &["run", SKILL, "--dry-run"],
        &[&RUN[..], &["--no-memory"]].concat(),
    ] {
        workspace.run(arguments).succeeds();
    }
    let lines = super::reading::watched(&workspace, &[], 1, || {});
    assert!(lines[0].starts_with("EXEC-20260220124341"), "{lines:?}");
    assert_eq!(snapshot(&directory), before);
}

#[test]
fn case_02_what_is_written_is_read_by_python() {
    let workspace = Workspace::sample();
    for _ in 0..2 {
        workspace.json(&RUN);
    }
    correct(&workspace, SKILL, "latest", "Always quote the résumé.").succeeds();
    for (file, root, first) in [
        ("episodic_memory.json", "entries", "execution_id"),
        ("corrections.json", "corrections", "correction_id"),
        ("reflexion_entries.json", "entries", "reflexion_id"),
    ] {
        let text = workspace.read(&format!(".agentura/{file}"));
        let head = format!("{{\n  \"{root}\": [\n    {{\n      \"{first}\": \"");
        assert!(text.starts_with(&head), "{text}");
        assert!(text.ends_with("\n    }\n  ]\n}\n") || text.ends_with("\n    }\n  ]\n}"));
    }
    let Some(seen) = python(
        &workspace,
        "print(json.dumps([[e['execution_id'] for e in store.get_executions()],
            [c['user_correction'] for c in store.get_corrections()],
            [r['reflexion_id'] for r in store.get_all_reflexions()]]))",
    ) else {
        return;
    };
    assert_eq!(
        seen,
        json!([
            ["EXEC-20260220124341", "EXEC-20260220124341-2"],
            ["Always quote the résumé."],
            ["REFL-001"]
        ])
    );
    // And back: Python rewrites the whole file in its own style, and nothing is missing here.
    python(
        &workspace,
        "store.log_execution({'execution_id': 'EXEC-20260220124500-0a1b2c', 'skill': 'hr/x',
            'input_summary': {'name': 'Zoë'}, 'output_summary': {'n': float('nan')}}); print(1)",
    )
    .unwrap();
    let listed = workspace.json(&["memory", "list", "executions"]);
    assert_eq!(listed["total"], 3);
    workspace.json(&RUN);
    let text = workspace.read(".agentura/episodic_memory.json");
    assert!(text.contains("\"name\": \"Zo\\u00eb\"") && text.contains("\"n\": NaN"));
    let count = python(&workspace, "print(len(store.get_executions()))").unwrap();
    assert_eq!(count, 4);
}

#[test]
fn case_03_unknown_keys_and_their_order_survive_every_write() {
    let workspace = over("reference");
    let untouched = [
        ("episodic_memory.json", "EXEC-20260301092519-5c0d4f"),
        ("corrections.json", "\"CORR-002\""),
        ("reflexion_entries.json", "\"REFL-003\""),
    ];
    let before = untouched.map(|(file, holds)| entry(&workspace, file, holds));
    let cases = snapshot(
        &workspace
            .memory("failure_cases.json")
            .parent()
            .unwrap()
            .join(""),
    )
    .remove(&workspace.memory("failure_cases.json"));
    let changed = entry(
        &workspace,
        "episodic_memory.json",
        "EXEC-20260301091500-3fa9c2",
    );

    workspace.json(&RUN);
    workspace.json(&["reject", "EXEC-20260301091500", "--reason", "no"]);
    let said = "Never recommend an interview without two references.";
    correct(&workspace, SKILL, "EXEC-20260301091500", said).succeeds();
    workspace.run(&["memory", "forget", "REFL-001"]).succeeds();

    let after = untouched.map(|(file, holds)| entry(&workspace, file, holds));
    assert_eq!(after, before);
    // Of the entry that was changed, everything else is as it was, to the byte.
    assert_eq!(
        entry(
            &workspace,
            "episodic_memory.json",
            "EXEC-20260301091500-3fa9c2"
        ),
        changed.replace("\"accepted\"", "\"rejected\"") + ",\n      \"reviewer_notes\": \"no\""
    );
    // What is not ours is not touched at all.
    assert_eq!(
        snapshot(&workspace.root().join(".agentura"))
            .remove(&workspace.memory("failure_cases.json")),
        cases
    );
}

#[test]
fn case_04_numbers_stay_as_they_were_written() {
    let workspace = Workspace::sample();
    let numbers = r#"{"big": 123456789012345678901234567890, "cost": 0.0093, "latency": 3489.2794929999127, "exponent": 1e+16, "zero": 0.0, "whole": 1062, "minus": -0.0}"#;
    let text = format!(
        "{{\"entries\": [{{\"execution_id\": \"EXEC-1\", \"skill\": \"{SKILL}\", \"outcome\": \"accepted\", \"input_summary\": {numbers}, \"output_summary\": {numbers}, \"cost_usd\": 0.0, \"latency_ms\": 1e+16}}]}}"
    );
    workspace.write(".agentura/episodic_memory.json", text);
    // Into another entry of the same file, because an offline answer repeats the case; into its own
    // anew; and into another file.
    workspace.write("input.json", numbers);
    workspace.json(&["run", SKILL, "--input", "input.json"]);
    workspace.json(&["reject", "EXEC-1"]);
    correct(&workspace, SKILL, "EXEC-1", "Always round to whole points.").succeeds();
    let ours = workspace.run(&["memory", "show", "EXEC-1", "--json"]);
    let executions = workspace.read(".agentura/episodic_memory.json");
    let corrections = workspace.read(".agentura/corrections.json");
    let literals = [
        "123456789012345678901234567890",
        "0.0093",
        "3489.2794929999127",
        "1e+16",
        "0.0",
        "1062",
        "-0.0",
    ];
    for text in [&ours.stdout, &executions, &corrections] {
        for literal in literals {
            let found = text
                .split([' ', ':', ',', '}', '\n', '\r'])
                .any(|w| w == literal);
            assert!(found, "{literal}: {text}");
        }
    }
    assert!(executions.contains("\"cost_usd\": 0.0, \"latency_ms\": 1e+16"));
}

#[test]
fn case_04_numbers_of_a_better_output_stay_as_they_were_written() {
    let workspace = Workspace::sample();
    workspace.json(&RUN);
    let said = "Always round to whole points.";
    correct(&workspace, SKILL, "latest", said).succeeds();
    // Said again, now with the output as it should have been.
    let right = r#"{"big":123456789012345678901234567890,"exponent":1e+16,"whole":54.0}"#;
    workspace.write("right.json", right);
    let again = [
        "correct", SKILL, "--execution-id", "latest", "--correction", said, "--expected",
        "right.json",
    ];
    assert_eq!(workspace.json(&again)["correction_id"], "CORR-001");
    let shown = workspace
        .run(&["memory", "show", "CORR-001", "--json"])
        .stdout;
    assert!(
        shown.contains(&format!("\"expected_output\":{right}")),
        "{shown}"
    );
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn case_05_text_in_any_script_comes_back_equal() {
    let workspace = Workspace::sample();
    let text = "résumé — 日本語 😀 \u{7f} \\ \" / \u{2028} é";
    let input = workspace.write("input.json", json!({ "candidate": text }).to_string());
    let input = input.to_str().unwrap();
    let prompt = format!("When {text} is read, always keep {text}.");
    let run = workspace.run(&["run", SKILL, "--input", input]);
    // Too unlike every known case to be answered; a model that repeats its question is.
    run.fails(4, "is near enough");
    workspace.json(&["run", SKILL, "--input", input, "--model", "exec:cat"]);
    correct(&workspace, SKILL, "latest", &prompt).succeeds();
    let execution = &workspace.stored("episodic_memory.json")["entries"][0];
    assert_eq!(execution["input_summary"]["candidate"], text);
    let stored = &workspace.stored("corrections.json")["corrections"][0];
    assert_eq!(stored["user_correction"], prompt.as_str());
    if let Some(seen) = python(
        &workspace,
        "print(json.dumps([store.get_executions()[0]['input_summary']['candidate'],
            store.get_corrections()[0]['user_correction']]))",
    ) {
        assert_eq!(seen, json!([text, prompt]));
    }
}

#[test]
fn case_06_values_that_only_python_reads_are_kept_and_hide_no_other() {
    let workspace = over("reference");
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(status["executions"], 5);
    assert_eq!(status["problems"], json!([]));
    let listed = workspace.json(&["memory", "list", "executions"]);
    assert_eq!(listed["records"].as_array().unwrap().len(), 5);
    workspace
        .run(&["memory", "show", "EXEC-20260301091742-00be17"])
        .succeeds();
    // They are told of and are no damage.
    let doctor = workspace.json(&["doctor"]);
    assert_eq!(doctor["healthy"], true);
    assert!(
        doctor["problems"]
            .to_string()
            .contains("EXEC-20260301091742-00be17"),
        "{doctor}"
    );
    workspace.json(&RUN);
    workspace.json(&["accept", "latest"]);
    workspace.run(&["doctor", "--repair"]).succeeds();
    let text = workspace.read(".agentura/episodic_memory.json");
    for kept in ["\"overall_score\": NaN", "\"limit\": Infinity", "\\udcff"] {
        assert!(text.contains(kept), "{kept}");
    }
    if let Some(count) = python(&workspace, "print(len(store.get_executions()))") {
        assert_eq!(count, 6);
    }
}

#[test]
fn case_07_a_run_gets_an_id_of_its_second_and_a_thousand_get_a_thousand() {
    let workspace = Workspace::sample();
    let ids: Vec<Value> = (0..3)
        .map(|_| workspace.json(&RUN)["execution_id"].clone())
        .collect();
    assert_eq!(
        ids,
        [
            "EXEC-20260220124341", "EXEC-20260220124341-2", "EXEC-20260220124341-3"
        ]
    );
    let store = workspace.store();
    let mut writer = store.write(&mut || "random".to_owned()).unwrap();
    let mut ids: Vec<String> = (0..1000)
        .map(|_| {
            let record: Execution = serde_json::from_value(json!({ "skill": SKILL })).unwrap();
            writer.append(record, now()).unwrap().execution_id
        })
        .collect();
    assert_eq!(
        ids.last().map(String::as_str),
        Some("EXEC-20260220124341-1003")
    );
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 1000);
}

#[test]
fn case_08_an_id_that_is_given_is_kept_and_given_once() {
    let workspace = Workspace::empty();
    let directory = workspace.root().join(".agentura");
    let reference = "EXEC-20260220124341-0a1b2c";
    assert_eq!(log(&directory, reference).unwrap(), reference);
    let before = fs::read(directory.join("episodic_memory.json")).unwrap();
    assert!(matches!(log(&directory, reference), Err(Error::Exists(id)) if id == reference));
    assert_eq!(
        fs::read(directory.join("episodic_memory.json")).unwrap(),
        before
    );
}

#[test]
fn case_09_times_are_iso_8601_in_both_directions() {
    let workspace = Workspace::sample();
    workspace.json(&RUN);
    correct(&workspace, SKILL, "latest", "Always quote the evidence.").succeeds();
    let time = &workspace.stored("episodic_memory.json")["entries"][0]["timestamp"];
    assert_eq!(time, "2026-02-20T12:43:41.681444+00:00");
    if let Some(offsets) = python(
        &workspace,
        "times = [e['timestamp'] for e in store.get_executions() + store.get_corrections()]
times += [r['created_at'] for r in store.get_all_reflexions()]
print(json.dumps([datetime.fromisoformat(t).utcoffset().total_seconds() for t in times]))",
    ) {
        assert_eq!(offsets, json!([0.0, 0.0, 0.0]));
    }
    let at = |time: &str| {
        let mut entry = execution(
            &format!("EXEC-{}", time.len()),
            SKILL,
            &json!({}),
            &json!({}),
        );
        entry["timestamp"] = json!(time);
        store(&workspace, "episodic_memory.json", &[entry]);
        workspace.run(&["memory", "list", "executions"]).stdout
    };
    for time in [
        "2026-02-20T12:43:00+00:00",
        "2026-02-20T12:43:00Z",
        "2026-02-20T12:43:00.5+00:00",
        "2026-02-20T12:43:00.123456Z",
        "2026-02-20T13:43:00+01:00",
    ] {
        let listed = at(time);
        assert!(listed.contains(" 41s"), "{time}: {listed}");
    }
}

#[test]
fn case_13_ids_count_on_from_the_highest() {
    let check = |existing: &[&str], correction: &str, reflexion: &str| {
        let workspace = Workspace::sample();
        let output = json!({ "overall_score": 72 });
        store(
            &workspace,
            "episodic_memory.json",
            &[execution("EXEC-20260220124341", SKILL, &json!({}), &output)],
        );
        let corrections: Vec<Value> = existing
            .iter()
            .map(|n| json!({ "correction_id": n.replace('#', "CORR"), "skill": "hr/other" }))
            .collect();
        let rules: Vec<Value> = existing
            .iter()
            .map(|n| rule(&n.replace('#', "REFL"), "hr/other", &json!({})))
            .collect();
        store(&workspace, "corrections.json", &corrections);
        store(&workspace, "reflexion_entries.json", &rules);
        let ran = correct(&workspace, SKILL, "latest", "Always name the source.");
        let made = ran.succeeds().document();
        assert_eq!(made["correction_id"], correction, "{existing:?}");
        assert_eq!(made["reflexion_id"], reflexion, "{existing:?}");
    };
    check(&[], "CORR-001", "REFL-001");
    check(&["#-001", "#-007", "weird"], "CORR-008", "REFL-008");
    check(&["#-007", "#-002"], "CORR-008", "REFL-008");
    check(&["#-999"], "CORR-1000", "REFL-1000");
    check(&["#-1000", "#-998"], "CORR-1001", "REFL-1001");
}
