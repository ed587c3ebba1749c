//! `memctl edit` from outside: the record's text changes, everything else keeps its bytes.

use serde_json::{Value, json};

use crate::support::correction;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const RULES: &str = ".agentura/reflexion_entries.json";

/// A workspace with one rule, which two programs and a person have written to.
fn ruled() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let args = ["run", SKILL, "--input", "fixtures/sample_input.json"];
    workspace.json(&args);
    correct(&workspace, "Never name competitors in the summary");
    let text = workspace.read(RULES).replace(
        "\"validated_by_test\": false,\n      \"generated_test_ids\": []",
        "\"validated_by_test\": true,\n      \"generated_test_ids\": [\"test_correction_1\"],\n      \
         \"times_injected\": 7, \"times_helped\": 3, \"utility_score\": 0.45,\n      \
         \"by_hand\":  {\"cost\": 1062.0, \"big\": 12345678901234567890123}",
    );
    assert!(text.contains("by_hand"), "{text}");
    workspace.write(RULES, text);
    workspace
}

fn correct(workspace: &Workspace, said: &str) {
    let args = correction(said);
    workspace.run(&args).succeeds();
}

fn entry(workspace: &Workspace, file: &str) -> Value {
    workspace.stored(file)["entries"][0].clone()
}

#[test]
fn an_edited_rule_is_another_rule() {
    let workspace = ruled();
    let before = entry(&workspace, "reflexion_entries.json");
    let args = [
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "rule=When a summary is written, NEVER name competitors.",
        "--set",
        "confidence=0.95",
    ];
    let report = workspace.json(&args);
    assert_eq!(
        (&report["id"], &report["kind"]),
        (&json!("REFL-001"), &json!("reflexion"))
    );
    assert_eq!(report["changed"], json!(["rule", "confidence"]));
    let guardrails = "skills/hr/resume-screen/GUARDRAILS.md";
    assert_eq!(report["guardrails"], json!([guardrails]));
    assert!(
        workspace
            .read(guardrails)
            .contains("NEVER name competitors.")
    );
    let after = entry(&workspace, "reflexion_entries.json");
    for (field, value) in [
        (
            "rule",
            json!("When a summary is written, NEVER name competitors."),
        ),
        ("confidence", json!(0.95)),
        ("validated_by_test", json!(false)),
        ("generated_test_ids", json!([])),
        ("times_injected", json!(0)),
        ("times_helped", json!(0)),
        ("utility_score", json!(0.5)),
        ("distilled_by", json!("user")),
    ] {
        assert_eq!(after[field], value, "{field}");
    }
    for field in [
        "reflexion_id", "correction_id", "created_at", "mistake", "skill",
    ] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let text = workspace.read(RULES);
    let kept = "\"by_hand\":  {\"cost\": 1062.0, \"big\": 12345678901234567890123}";
    assert!(text.contains(kept), "{text}");
    let prompt = workspace.run(&["memory", "prompt", SKILL]);
    assert!(
        prompt
            .succeeds()
            .stdout
            .contains("When a summary is written")
    );
    let found = workspace.json(&["memory", "search", "written", "--keyword"]);
    assert_eq!(found["results"][0]["id"], "REFL-001");
    // The same again changes nothing.
    let report = workspace.json(&args);
    assert_eq!(
        (&report["changed"], &report["warnings"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(workspace.read(RULES), text);
}

#[test]
fn other_words_are_as_sure_as_they_were_before_anybody_tried_them() {
    let workspace = ruled();
    let confidence = entry(&workspace, "reflexion_entries.json")["confidence"].clone();
    let counted = (confidence.as_f64().unwrap() * 4.0 + 1.0) / 7.0;
    let text = workspace
        .read(RULES)
        .replace(
            &format!("\"confidence\": {confidence}"),
            &format!("\"confidence\": {counted:.4}"),
        )
        .replace(
            "\"times_helped\": 3",
            "\"times_helped\": 1, \"times_harmed\": 2",
        );
    workspace.write(RULES, text);
    let set = "rule=When a summary is written, NEVER name competitors.";
    let report = workspace.json(&["memory", "edit", "REFL-001", "--set", set]);
    let reset = report["reset"].as_array().unwrap();
    assert!(reset.contains(&json!("confidence")), "{report}");
    let after = entry(&workspace, "reflexion_entries.json");
    let off = after["confidence"].as_f64().unwrap() - confidence.as_f64().unwrap();
    assert!(off.abs() < 5e-4, "{after}");
    assert_eq!(after["times_harmed"], json!(0));
}

#[test]
fn fields_around_a_rule_do_not_make_it_another() {
    let workspace = ruled();
    let args = [
        "memory", "edit", "refl-0", "--set", "confidence=0.65", "--set", "root_cause=It guessed.",
    ];
    let report = workspace.json(&args);
    assert_eq!(report["changed"], json!(["confidence", "root_cause"]));
    assert_eq!(report["reset"], json!([]));
    let after = entry(&workspace, "reflexion_entries.json");
    assert_eq!(
        (&after["validated_by_test"], &after["times_injected"]),
        (&json!(true), &json!(7))
    );
    assert_eq!(
        (&after["confidence"], &after["root_cause"]),
        (&json!(0.65), &json!("It guessed."))
    );
    // One that contradicts another, as a model judged before, says so after the edit.
    correct(&workspace, "Prefer tables over lists in the rationale");
    let judged =
        json!([{"id": "REFL-002", "relation": "contradicts", "reason": "not both", "by": "m"}]);
    let related = format!("\"relations\": {judged}, \"by_hand\":");
    workspace.write(
        RULES,
        workspace.read(RULES).replace("\"by_hand\":", &related),
    );
    let report = workspace.json(&[
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "rule=Prefer lists over tables in the rationale",
    ]);
    assert!(
        report["warnings"]
            .to_string()
            .contains("contradicts `REFL-002`"),
        "{report}"
    );
}

#[test]
fn uneditable_field_is_refused_before_any_write() {
    let workspace = ruled();
    let text = workspace.read(RULES);
    for (id, set, said) in [
        (
            "REFL-001",
            "reflexion_id=REFL-009",
            "`reflexion_id` of the rule `REFL-001` cannot be edited",
        ),
        (
            "REFL-001",
            "correction_id=CORR-009",
            "these can be edited: rule, applies_when, mistake",
        ),
        ("REFL-001", "utility_score=1", "cannot be edited"),
        (
            "REFL-001",
            "confidence=2",
            "it must be a number from 0 to 1",
        ),
        ("REFL-001", "rule= ", "it must say something"),
        ("REFL-001", "rule", "expected FIELD=VALUE"),
        ("latest", "outcome=accepted", "cannot be edited"),
        ("REFL-009", "rule=x", "rule `REFL-009` not found"),
    ] {
        workspace
            .run(&[
                "memory", "edit", id, "--set", "confidence=0.1", "--set", set,
            ])
            .fails(2, said);
        assert_eq!(workspace.read(RULES), text, "{set}");
    }
    workspace
        .run(&["memory", "edit", "REFL-001"])
        .fails(2, "nothing to change");
    workspace
        .run(&[
            "memory", "edit", "REFL-001", "--set", "rule=x", "--scope", "dev",
        ])
        .fails(2, "rule `REFL-001` not found");
    assert_eq!(workspace.read(RULES), text);
}

#[test]
fn notes_fixes_and_procedures_are_edited_in_their_own_fields() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    let note = json!({"id": "MEM-001", "memory_type": "brand_memory", "content": "old",
        "metadata": {"z": 1}, "created_at": "2026-01-01T00:00:00Z", "updated_at": "", "mine": 1});
    workspace.write(
        ".agentura/memories.json",
        json!({"entries": [note]}).to_string(),
    );
    let edit = |id: &str, set: &[&str]| {
        let mut args = vec!["memory", "edit", id];
        args.extend(set.iter().flat_map(|set| ["--set", *set]));
        workspace.json(&args)
    };
    let password = format!("password: {}{}", "hunter2", "Xy9!qw");
    let report = edit(
        "MEM-001",
        &[
            &format!("content=the key is {password}"),
            "metadata={\"z\": 1.0, \"big\": 12345678901234567890123}",
            "expires_at=2027-01-31T12:00:00+01:00",
        ],
    );
    assert!(
        report["warnings"]
            .to_string()
            .contains("secrets were redacted"),
        "{report}"
    );
    let stored = workspace.read(".agentura/memories.json");
    assert!(!stored.contains("hunter2"), "{stored}");
    assert!(
        stored.contains("12345678901234567890123") && stored.contains("1.0"),
        "{stored}"
    );
    let after = entry(&workspace, "memories.json");
    assert_eq!(
        (&after["expires_at"], &after["mine"]),
        (&json!("2027-01-31T11:00:00.000000+00:00"), &json!(1))
    );
    assert!(
        after["updated_at"]
            .as_str()
            .unwrap()
            .starts_with("2026-02-20T")
    );
    edit("MEM-001", &["expires_at="]);
    assert_eq!(
        entry(&workspace, "memories.json")["expires_at"],
        Value::Null
    );

    // A lesson that had retired is told again in other words.
    let path = ".agentura/procedural_memory.local.json";
    let procedures = workspace.read(path).replace(
        "\"state\": \"episode\"",
        "\"state\": \"retired\", \"shown\": 4, \"helped\": 0, \"harmed\": 4",
    );
    workspace.write(path, procedures);
    let report = edit("PROC-001", &["lesson=Give `jq -L lib` the report."]);
    assert_eq!(report["changed"], json!(["lesson"]));
    assert_eq!(
        report["reset"],
        json!(["distilled_by", "worded_by", "shown", "harmed", "state"])
    );
    let stored = entry(&workspace, "procedural_memory.json");
    assert_eq!(stored["lesson"], "Give `jq -L lib` the report.");

    let empty = workspace.run(&["edit", "PROC-001", ""]);
    empty.fails(2, "memctl forget PROC-001");
}

/// Other programs name skills in their own forms.
#[test]
fn a_rule_of_a_skill_without_a_slash_is_edited() {
    let workspace = ruled();
    let text = workspace
        .read(RULES)
        .replace("\"hr/resume-screen\"", "\"screen\"");
    workspace.write(RULES, text);
    let edited = workspace.run(&["edit", "REFL-001", "Never name a competitor."]);
    edited.succeeds();
    assert_eq!(
        entry(&workspace, "reflexion_entries.json")["rule"],
        "Never name a competitor."
    );
}
