//! The correction loop from outside: run, correct, and the next run follows the rule.

use serde_json::json;

use crate::workspace::Workspace;

const SEED: &str = "When screening for senior backend roles, system design experience should be weighted separately from coding skills. A candidate with 5 years Python but no distributed systems should score below 60.";

#[test]
fn without_a_model_the_corrected_output_is_the_next_answer() {
    let workspace = Workspace::sample();
    let skill = "hr/resume-screen";
    let run = ["run", skill, "--input", "fixtures/sample_input.json"];
    let first = workspace.json(&run);
    assert_eq!(first["execution_id"], "EXEC-20260220124341");
    assert_eq!(first["model_used"], "offline/nearest-case");
    assert_eq!(first["outcome"], "pending_review");
    assert_eq!(first["output"]["overall_score"], 72);
    assert_eq!(first["injected"], json!([]));

    let corrected = workspace.json(&[
        "correct",
        skill,
        "--execution-id",
        "latest",
        "--correction",
        SEED,
        "--expected",
        "fixtures/expected_output.json",
    ]);
    assert_eq!(corrected["correction_id"], "CORR-001");
    assert_eq!(corrected["reflexion_id"], "REFL-001");
    assert_eq!(corrected["distilled_by"], "offline");
    assert_eq!(corrected["confidence"], 0.9);
    assert_eq!(
        corrected["guardrails"],
        json!(["skills/hr/resume-screen/GUARDRAILS.md"])
    );

    let prompt = workspace.run(&["memory", "prompt", skill]);
    assert!(prompt.succeeds().stdout.contains(
        "## Learned Rules (from past corrections)\n\n- **REFL-001** (confidence: 90%): When screening"
    ));
    let second = workspace.json(&run);
    assert_eq!(second["output"]["overall_score"], 54);
    assert_eq!(
        second["injected"],
        json!([{ "id": "REFL-001", "kind": "reflexion" }])
    );
    assert_eq!(second["nearest_case"]["source"], "CORR-001");
    let stored = &workspace.stored("episodic_memory.json")["entries"][1];
    assert_eq!(stored["reflexions_injected"], json!(["REFL-001"]));
}
