//! Relations between a new rule and the existing ones, as a model judges them and a person sees them.

use serde_json::{Value, json};

use crate::support::correction;
use crate::workspace::Workspace;

const OLD: &str = "Never name competitors in the summary";
const NEW: &str = "Leave rival vendors out of what you summarise";
const MODEL: [&str; 2] = ["--model", "scripted:replies.jsonl"];

/// A workspace with the rule [`OLD`], and a script that relates [`NEW`] to it. Returns the id of the
/// rule.
fn related(relation: &str) -> (Workspace, String) {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&[
        "run",
        "hr/resume-screen",
        "--input",
        "fixtures/sample_input.json",
    ]);
    let old = workspace.json(&correction(OLD));
    let id = old["reflexion_id"].as_str().unwrap().to_owned();
    let reply = json!({ "learnable": true, "reason": "", "mistake": "m", "root_cause": "r",
        "rule": "NEVER mention rival vendors when you summarise.", "applies_when": "",
        "confidence": 0.9,
        "related": [{ "id": id, "relation": relation, "reason": "both are about rivals" }] });
    let line = json!({ "when": { "contains": ["<rules>", &id, OLD.trim_start_matches("Never ")] }, "reply": reply });
    workspace.write("replies.jsonl", format!("{line}\n"));
    (workspace, id)
}

fn correct(workspace: &Workspace, more: &[&str]) -> Value {
    workspace.json(&[&correction(NEW)[..], &MODEL, more].concat())
}

fn rules(workspace: &Workspace) -> Vec<Value> {
    let rules = workspace.stored("reflexion_entries.json");
    rules["entries"].as_array().unwrap().clone()
}

#[test]
fn rule_that_a_model_finds_to_be_the_same_strengthens_the_known_one() {
    let (workspace, id) = related("same");
    let before = rules(&workspace);
    let report = correct(&workspace, &[]);
    assert_eq!(report["duplicate_of"], id);
    assert_eq!(report["related"][0]["relation"], "same");
    assert_eq!(report["related"][0]["reason"], "both are about rivals");
    let after = rules(&workspace);
    assert_eq!(after.len(), 1);
    assert!(after[0]["confidence"].as_f64() > before[0]["confidence"].as_f64());
    // The judgement is reverted with the correction.
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(rules(&workspace), before);
}

#[test]
fn contradiction_that_a_model_finds_is_shown_kept_and_settled_by_a_person() {
    let (workspace, id) = related("contradicts");
    let report = correct(&workspace, &[]);
    assert_eq!(report["conflicts"][0]["id"], id);
    assert_eq!(report["conflicts"][0]["reason"], "both are about rivals");
    assert_eq!(rules(&workspace).len(), 2);
    let new = report["reflexion_id"].as_str().unwrap();
    // Both sides are marked in the prompt until somebody decides.
    let prompt = workspace
        .run(&["memory", "prompt", "hr/resume-screen"])
        .stdout;
    for (id, other) in [(new, id.as_str()), (&id, new)] {
        let item = prompt
            .split("- **")
            .find(|item| item.starts_with(id))
            .unwrap();
        assert!(
            item.contains(&format!("_Contradicts_: {other}")),
            "{prompt}"
        );
    }
    // Words alone do not show it; the judgement is stored with the rule.
    let listed = workspace.json(&["memory", "conflicts"]);
    assert_eq!(listed["contradictions"][0]["a"], id);
    assert_eq!(
        listed["contradictions"][0]["reason"],
        "both are about rivals (scripted/replies)"
    );
    workspace.json(&["memory", "conflicts", "--keep-both", new, &id]);
    assert_eq!(workspace.pairs("contradiction"), Vec::<Value>::new());
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(workspace.pairs("contradiction")[0]["other"], new);

    let (workspace, id) = related("contradicts");
    let report = correct(&workspace, &["--replaces", &id]);
    let old = rules(&workspace)
        .into_iter()
        .find(|rule| rule["reflexion_id"] == id);
    assert_eq!(old.unwrap()["superseded_by"], report["reflexion_id"]);
}

#[test]
fn narrower_and_unrelated_rules_stay_side_by_side() {
    let (workspace, id) = related("narrows");
    let report = correct(&workspace, &[]);
    assert_eq!(report["related"][0]["id"], id);
    assert_eq!(report["related"][0]["relation"], "narrows");
    assert_eq!(rules(&workspace)[1]["relations"][0]["id"], id);
    let (workspace, _) = related("unrelated");
    let report = correct(&workspace, &[]);
    for field in ["related", "similar"] {
        assert_eq!(report.get(field), None, "{report}");
    }
    assert_eq!(report["conflicts"], json!([]));
    assert_eq!(rules(&workspace).len(), 2);
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn program_that_runs_a_model_sees_the_known_rules() {
    let (workspace, id) = related("same");
    let reply = workspace.read("replies.jsonl");
    let reply: Value = serde_json::from_str(&reply).unwrap();
    workspace.write("rule.json", reply["reply"].to_string());
    workspace.write("model.sh", "cat > asked.txt; cat rule.json\n");
    let model = ["--model", "exec:sh model.sh"];
    let report = workspace.json(&[&correction(NEW)[..], &model].concat());
    assert_eq!(report["duplicate_of"], id);
    let asked = workspace.read("asked.txt");
    assert!(asked.contains("<rules>") && asked.contains(&id), "{asked}");
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn rule_of_a_stranger_is_not_shown_to_the_model() {
    let (mut workspace, id) = related("same");
    workspace.write("model.sh", "cat > asked.txt; exit 1\n");
    // To another user, the same files are a clone.
    let data = workspace.home().join("another-user");
    for variable in ["XDG_DATA_HOME", "LOCALAPPDATA"] {
        workspace.set(variable, data.to_str().unwrap());
    }
    let model = ["--model", "exec:sh model.sh"];
    workspace
        .run(&[&correction(NEW)[..], &model].concat())
        .succeeds();
    let asked = workspace.read("asked.txt");
    assert!(asked.contains(NEW) && !asked.contains(&id), "{asked}");
}
