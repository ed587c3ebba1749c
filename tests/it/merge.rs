//! `memory conflicts --merge` from outside: two duplicate rules become one.

use serde_json::{Value, json};

use crate::support::correct;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const RULES: &str = ".agentura/reflexion_entries.json";
const FIRST: &str = "Never name competitors in the summary";
const SECOND: &str = "Never name competitors in the summary; write \"other vendors\" instead";

/// Two rules that say the same, both tried: the first helped twice, the second helped once and
/// harmed once. Three corrections stand behind them.
fn two() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    for said in [FIRST, SECOND] {
        assert_eq!(correct(&workspace, said)["duplicate_of"], Value::Null);
    }
    let mut rules = workspace.stored("reflexion_entries.json");
    let counts = [
        json!({"times_injected": 5, "times_helped": 2, "times_harmed": 0, "confidence": 0.9,
            "generated_test_ids": ["test_correction_1"], "validated_by_test": true}),
        json!({"times_injected": 3, "times_helped": 1, "times_harmed": 1, "confidence": 0.8,
            "also_corrected_by": ["CORR-009"], "generated_test_ids": ["test_correction_2"],
            "validated_by_test": true}),
    ];
    for (rule, counts) in rules["entries"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(counts)
    {
        for (name, value) in counts.as_object().unwrap() {
            rule[name] = value.clone();
        }
    }
    workspace.write(RULES, rules.to_string());
    workspace
}

fn rule(workspace: &Workspace, at: usize) -> Value {
    workspace.stored("reflexion_entries.json")["entries"][at].clone()
}

fn links(workspace: &Workspace, id: &str) -> Vec<String> {
    let report = workspace.json(&["memory", "why", id]);
    let links = report["chain"].as_array().unwrap().iter();
    links
        .map(|link| {
            format!(
                "{} {}",
                link["relation"].as_str().unwrap(),
                link["id"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn one_rule_holds_for_both_and_nothing_is_lost() {
    let workspace = two();
    let before = rule(&workspace, 1);
    let listed = workspace.run(&["memory", "conflicts"]);
    let said = "to merge two rules: memctl memory conflicts --merge REFL-002 REFL-001";
    assert!(listed.succeeds().stdout.contains(said), "{listed:?}");
    let report = workspace.json(&["memory", "conflicts", "--merge", "REFL-001", "refl-002"]);
    assert_eq!(
        report,
        json!({"kept": "REFL-001", "merged": "REFL-002",
            "evidence": {"shown": 5, "helped": 2, "harmed": 1}, "guardrails": ["skills/hr/resume-screen/GUARDRAILS.md"],
            "warnings": []})
    );
    let kept = rule(&workspace, 0);
    for (field, value) in [
        ("times_injected", json!(5)),
        ("times_helped", json!(2)),
        ("times_harmed", json!(1)),
        ("utility_score", json!(0.571)),
        ("also_corrected_by", json!(["CORR-002", "CORR-009"])),
        (
            "generated_test_ids",
            json!(["test_correction_1", "test_correction_2"]),
        ),
        ("validated_by_test", json!(true)),
    ] {
        assert_eq!(kept[field], value, "{field}: {kept}");
    }
    // (0.9 × 6) / 7 = 0.77, and two corrections say it again.
    assert_eq!(kept["confidence"], json!(0.86));
    let mut merged = rule(&workspace, 1);
    assert_eq!(
        (&merged["superseded_by"], &merged["utility_score"]),
        (&json!("REFL-001"), &json!(0.0))
    );
    for field in ["superseded_by", "utility_score"] {
        merged.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(merged, before);

    assert_eq!(workspace.pairs("similar"), Vec::<Value>::new());
    let prompt = workspace.run(&["memory", "prompt", SKILL]).stdout;
    assert!(
        prompt.contains("REFL-001") && !prompt.contains("REFL-002"),
        "{prompt}"
    );
    let kept = links(&workspace, "REFL-001");
    for link in ["strengthened_by CORR-002", "supersedes REFL-002"] {
        assert!(kept.contains(&link.to_owned()), "{link}: {kept:?}");
    }
    let merged = links(&workspace, "REFL-002");
    assert!(
        merged.contains(&"superseded_by REFL-001".to_owned()),
        "{merged:?}"
    );
    assert_eq!(
        workspace.json(&["memory", "why", "REFL-001"])["evidence"],
        json!({"shown": 5, "helped": 2, "harmed": 1})
    );
    // Repeating the second correction counts for the active rule.
    let again = correct(&workspace, SECOND);
    assert_eq!(again["reflexion_id"], "REFL-001");
    assert_eq!(rule(&workspace, 0)["confidence"], json!(0.86));
}

#[test]
fn the_tests_of_the_merged_rule_are_for_the_one_that_holds() {
    let workspace = two();
    let cases = |workspace: &Workspace| {
        let report = workspace.json(&["test", SKILL, "--allow-skipped"]);
        report["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case["reflexion_id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(cases(&workspace), [json!("REFL-001"), json!("REFL-002")]);
    workspace.json(&["memory", "conflicts", "--merge", "REFL-001", "REFL-002"]);
    assert_eq!(cases(&workspace), [json!("REFL-001"), json!("REFL-001")]);
}

#[test]
fn records_that_differ_stay_two() {
    let workspace = two();
    let mut rules = workspace.stored("reflexion_entries.json");
    let entries = rules["entries"].as_array_mut().unwrap();
    let mut add = |id: &str, fields: Value| {
        let mut rule = entries[1].clone();
        rule["reflexion_id"] = json!(id);
        for (name, value) in fields.as_object().unwrap() {
            rule[name] = value.clone();
        }
        entries.push(rule);
    };
    add("REFL-003", json!({"skill": "hr/interview-questions"}));
    add("REFL-004", json!({"superseded_by": "REFL-001"}));
    add("REFL-005", json!({"utility_score": 0.1, "times_harmed": 9}));
    add(
        "REFL-006",
        json!({"rule": "Always name competitors in the summary."}),
    );
    workspace.write(RULES, rules.to_string());
    let text = workspace.read(RULES);
    for (keep, other, said) in [
        ("REFL-001", "REFL-001", "it is the same rule"),
        (
            "REFL-001",
            "REFL-003",
            "one is a rule of `hr/interview-questions`, the other of `hr/resume-screen`",
        ),
        (
            "REFL-001",
            "REFL-004",
            "`REFL-004` is not in use: `REFL-001` was put in its place",
        ),
        (
            "REFL-005",
            "REFL-002",
            "`REFL-005` is not in use: its utility 0.10 is below 0.3",
        ),
        (
            "REFL-001",
            "CORR-001",
            "`CORR-001` is a correction, not a rule",
        ),
        ("REFL-001", "REFL-099", "`REFL-099` not found"),
        ("REFL-001", "two", "`two` is not an id"),
    ] {
        workspace
            .run(&["memory", "conflicts", "--merge", keep, other])
            .fails(2, said)
            .fails(2, "hint: ");
        assert_eq!(workspace.read(RULES), text, "{said}");
    }
    workspace
        .run(&["memory", "conflicts", "--merge", "REFL-001"])
        .fails(2, "2 values required");
    workspace
        .run(&[
            "memory", "conflicts", SKILL, "--merge", "REFL-001", "REFL-002",
        ])
        .fails(2, "cannot be used with");
    // A person may intend it.
    let ran = workspace.run(&["memory", "conflicts", "--merge", "REFL-001", "REFL-006"]);
    assert!(
        ran.succeeds()
            .stdout
            .starts_with("merged REFL-006\nkept:         REFL-001\n"),
        "{ran:?}"
    );
}
