//! A rule in force against a lesson that advises what the rule forbids.

use serde_json::{Value, json};

use crate::workspace::Workspace;

const ERROR: &str = "error: lock file is out of date";

/// A workspace of the user with an approved rule against `npm`, and a lesson.
fn workspace(is_rule_approved: bool) -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let lesson = pattern!({"procedure_id": "PROC-001", "error_key": ERROR, "failing_code": "make deps",
        "working_code": "npm ci", "trust": "approved", "created_at": "2026-02-01T00:00:00Z"});
    let lessons = json!({ "entries": [lesson] });
    workspace.write(".agentura/procedural_memory.json", lessons.to_string());
    let rule = json!({"reflexion_id": "REFL-001", "rule": "Use pnpm, not npm.",
        "seen_by": [{"on": "command", "match": r"^npm\b"}]});
    let rules = json!({ "entries": [rule] }).to_string();
    workspace.write(".agentura/reflexion_entries.json", rules);
    if is_rule_approved {
        workspace.run(&["memory", "approve", "REFL-001"]).succeeds();
    }
    workspace
}

fn hinted(workspace: &Workspace) -> Vec<Value> {
    let report = workspace.json(&["hint", "--error", ERROR]);
    let hints = report["hints"].as_array().unwrap().iter();
    hints.map(|hint| hint["id"].clone()).collect()
}

#[test]
fn a_lesson_that_a_rule_in_force_forbids_is_never_told() {
    let before = hinted(&workspace(false));
    assert_eq!(before, [json!("PROC-001")]);
    let after = hinted(&workspace(true));
    assert_eq!(after, [Value::Null; 0]);
}
