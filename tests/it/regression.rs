//! Regression tests from corrections: the written files, and the files that are never overwritten.

use serde_json::{Value, json};

use crate::support::{correct, correction};
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const SAID: &str =
    "A candidate with 5 years Python but no distributed systems should score below 60.";
const CASE: &str = "skills/hr/resume-screen/tests/generated/test_correction_1.json";

/// A project with one execution whose score is 72.
fn executed() -> Workspace {
    let workspace = Workspace::sample();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    workspace
}

fn case(workspace: &Workspace, path: &str) -> Value {
    serde_json::from_str(&workspace.read(path)).unwrap()
}

#[test]
fn a_correction_leaves_a_case() {
    let workspace = executed();
    let args = [&correction(SAID)[..], &["--assert", "$.overall_score < 60"]].concat();
    let corrected = workspace.json(&args);
    assert!(
        corrected["tests"]
            .as_array()
            .unwrap()
            .contains(&json!(CASE)),
        "{corrected}"
    );
    let case = case(&workspace, CASE);
    assert_eq!(
        case["assertions"],
        json!([{"type": "compare", "path": "$.overall_score", "is": "<", "value": 60,
            "said": "$.overall_score < 60"}])
    );
    assert_eq!(case["rubric"], Value::Null);
    for (field, value) in [
        ("skill", SKILL),
        ("correction_id", "CORR-001"),
        ("reflexion_id", "REFL-001"),
        ("execution_id", "EXEC-20260220124341"),
    ] {
        assert_eq!(case[field], value);
    }
    let input: Value = serde_json::from_str(&workspace.read("fixtures/sample_input.json")).unwrap();
    assert_eq!(case["input"], input);
}

#[test]
fn demand_without_an_assertion_is_left_to_a_judge_and_a_remark_leaves_no_case() {
    let workspace = executed();
    correct(
        &workspace,
        "Always weigh system design separately from coding skills.",
    );
    let case = case(&workspace, CASE);
    assert_eq!(case["assertions"], json!([]));
    assert!(
        case["rubric"]
            .as_str()
            .unwrap()
            .contains("weigh system design")
    );
    let nothing = correct(&workspace, "The overall score should be 40.");
    assert_eq!(nothing["tests"], json!([]));
}

#[test]
fn the_same_correction_is_one_case_and_a_hand_edit_of_it_stays() {
    let workspace = executed();
    let first = correct(&workspace, SAID);
    let text = workspace.read(CASE);
    let again = correct(&workspace, SAID);
    assert_eq!(first["tests"], again["tests"]);
    assert_eq!(workspace.read(CASE), text);
    // What is known better later reaches a case that nobody has touched …
    let expected = ["--expected", "fixtures/expected_output.json"];
    let args = correction(SAID);
    workspace.json(&[&args[..], &expected].concat());
    assert!(workspace.read(CASE).contains("\"hold\""));
    // … and no other.
    let edited = workspace.read(CASE).replace("\"hold\"", "\"halt\"");
    workspace.write(CASE, &edited);
    workspace.json(&[&args[..], &expected].concat());
    assert_eq!(workspace.read(CASE), edited);
}

#[test]
fn a_secret_of_the_input_is_not_in_the_case() {
    let workspace = Workspace::sample();
    let input = workspace.write(
        "in.json",
        r#"{"resume_text": "key AKIAIOSFODNN7EXAMPLQ of five years Python", "n": 1}"#,
    );
    let model = workspace.write("model.jsonl", r#"{"reply": {"overall_score": 72}}"#);
    let model = format!("scripted:{}", model.display());
    workspace.json(&[
        "run",
        SKILL,
        "--input",
        input.to_str().unwrap(),
        "--model",
        &model,
    ]);
    correct(&workspace, SAID);
    assert!(!workspace.read(CASE).contains("AKIAIOSFODNN7EXAMPLQ"));
}

#[cfg(unix)]
#[test]
fn a_directory_that_leads_out_is_not_written_to() {
    let workspace = executed();
    let outside = workspace.home().join("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(
        &outside,
        workspace.root().join("skills/hr/resume-screen/tests"),
    )
    .unwrap();
    let corrected = correct(&workspace, SAID);
    assert_eq!(corrected["tests"], json!([]));
    assert_eq!(corrected["reflexion_id"], "REFL-001");
    assert!(
        corrected["warnings"]
            .to_string()
            .contains("the test was not written")
    );
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}
