//! Evidence from sessions that nobody has looked at: it may sink what was observed, and never what a
//! person has approved or said.

use serde_json::{Value, json};

use crate::mcp;
use crate::serve::{Served, token};
use crate::support::correction;
use crate::workspace::Workspace;

const ERROR: &str = "error: externally-managed-environment";
const WRONG: &str = "pip install x";
const RIGHT: &str = "pip install --user x";
const SKILL: &str = "hr/resume-screen";

/// A memory with one fix, learned from a session.
fn taught() -> Workspace {
    let workspace = Workspace::empty();
    let failure = ["record", "failure", "--code", WRONG, "--error", ERROR];
    workspace.run(&failure).succeeds();
    let success = ["record", "success", "--code", RIGHT, "--output", "done"];
    workspace.run(&success).succeeds();
    workspace
}

/// A failing call of an agent; answers what the agent is told. It goes the way of a hook, but without its
/// deadline, which a busy machine may miss.
fn fails(workspace: &Workspace, session: &str) -> String {
    let hint = [
        "hint", "--error", ERROR, "--command", WRONG, "--session", session,
    ];
    workspace.run(&hint).stdout
}

/// A call that follows the hint and fails with the same error.
fn follows_in_vain(workspace: &Workspace, session: &str) -> String {
    let hint = [
        "hint", "--error", ERROR, "--command", RIGHT, "--session", session,
    ];
    workspace.run(&hint).stdout
}

fn works(workspace: &Workspace, session: &str) {
    let success = [
        "record", "success", "--code", RIGHT, "--output", "done", "--session", session,
    ];
    workspace.run(&success).succeeds();
}

fn first_fix(workspace: &Workspace) -> Value {
    workspace.stored("procedural_memory.json")["entries"][0].clone()
}

/// Shown, helped, harmed.
fn evidence(workspace: &Workspace) -> [u64; 3] {
    let fix = first_fix(workspace);
    ["shown", "helped", "harmed"].map(|name| fix[name].as_u64().unwrap_or_default())
}

#[test]
fn failing_sessions_do_not_retire_an_approved_fix() {
    let workspace = taught();
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    for session in ["a", "b", "c", "d", "e"] {
        assert!(fails(&workspace, session).contains(RIGHT), "{session}");
        follows_in_vain(&workspace, session);
    }
    assert_eq!(evidence(&workspace), [5, 0, 5]);
    assert_ne!(first_fix(&workspace)["state"], "retired");
    assert!(fails(&workspace, "f").contains(RIGHT));
    // A person hears of it.
    let said = "`PROC-001` is approved and was harmful in 5 of 5 sessions";
    let review = workspace.json(&["review"]);
    assert_eq!(review["waiting"][0]["reason"], said, "{review}");
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn failing_sessions_sink_an_observed_fix() {
    let workspace = taught();
    for session in ["a", "b", "c"] {
        assert!(fails(&workspace, session).contains(RIGHT), "{session}");
        follows_in_vain(&workspace, session);
    }
    assert_eq!(first_fix(&workspace)["state"], "retired");
    assert!(!fails(&workspace, "d").contains(RIGHT));
}

#[test]
fn loop_in_one_session_counts_once_each_way() {
    let workspace = taught();
    for _ in 0..6 {
        fails(&workspace, "loop");
        works(&workspace, "loop");
    }
    let [_, helped, harmed] = evidence(&workspace);
    assert_eq!((helped, harmed), (1, 0));
    for _ in 0..6 {
        fails(&workspace, "loop");
        follows_in_vain(&workspace, "loop");
    }
    let [_, helped, harmed] = evidence(&workspace);
    assert_eq!((helped, harmed), (1, 1));
    assert_ne!(first_fix(&workspace)["state"], "retired");
}

#[test]
fn approved_fix_is_not_crowded_out_by_observed_ones() {
    let workspace = taught();
    workspace.run(&["memory", "approve", "PROC-001"]).succeeds();
    for session in ["a", "b", "c"] {
        fails(&workspace, session);
        follows_in_vain(&workspace, session);
    }
    let mut fixes = workspace.stored("procedural_memory.json");
    let key = fixes["entries"][0]["pattern"]["error_key"].clone();
    for id in 2..60 {
        let other = pattern!({"procedure_id": format!("PROC-{id:03}"), "created_at": "", "error_key": key, "failing_code": WRONG,
            "working_code": format!("other way {id}"), "success_output": "", "helped": 9, "shown": 9});
        fixes["entries"].as_array_mut().unwrap().push(other);
    }
    workspace.write(".agentura/procedural_memory.json", fixes.to_string());
    for limit in ["1", "3"] {
        let found = workspace.json(&["hint", "--error", ERROR, "--command", WRONG, "-n", limit]);
        let ids: Vec<&str> = found["hints"]
            .as_array()
            .unwrap()
            .iter()
            .map(|h| h["id"].as_str().unwrap())
            .collect();
        assert!(ids.contains(&"PROC-001"), "{limit}: {ids:?}");
        assert_eq!(ids.len().to_string(), limit);
    }
}

/// A memory with a rule that a person gave by a correction.
fn ruled() -> Workspace {
    let workspace = Workspace::sample();
    let run = ["run", SKILL, "--input", "fixtures/sample_input.json"];
    workspace.run(&run).succeeds();
    let said = "Never name competitors in the summary";
    workspace.run(&correction(said)).succeeds();
    let rule = rule(&workspace);
    assert_eq!(rule["reflexion_id"], "REFL-001", "{rule}");
    workspace
}

fn rule(workspace: &Workspace) -> Value {
    workspace.stored("reflexion_entries.json")["entries"][0].clone()
}

fn harmed(workspace: &Workspace) -> u64 {
    rule(workspace)["times_harmed"].as_u64().unwrap_or_default()
}

#[test]
fn programs_that_reject_do_not_retire_a_rule_of_a_person() {
    let workspace = ruled();
    let served = Served::start(&workspace, &[]);
    let token = token(&workspace, "agent", "*");
    let mut last = String::new();
    for turn in 0..8 {
        let body = json!({"skill": SKILL, "input": {"n": turn}, "output": {"overall_score": 10}, "outcome": "rejected",
            "model_used": "fake/model", "reflexions_injected": ["REFL-001"]});
        let logged = served.post(&token, "/v1/executions", &body).is(201).json();
        last = logged["execution_id"].as_str().unwrap().to_owned();
    }
    drop(served);
    assert_eq!(harmed(&workspace), 0);
    let prompt = workspace.run(&["memory", "prompt", SKILL]);
    assert!(prompt.stdout.contains("REFL-001"), "{prompt:?}");
    // The person's own verdict counts, also on what a program has rejected before, and once.
    for _ in 0..2 {
        workspace
            .run(&["reject", &last, "--reason", "no"])
            .succeeds();
        assert_eq!(harmed(&workspace), 1);
    }
    workspace.run(&["accept", &last]).succeeds();
    assert_eq!(
        (
            harmed(&workspace),
            rule(&workspace)["times_helped"].as_u64()
        ),
        (0, Some(1))
    );
}

#[test]
fn corrections_by_an_agent_do_not_retire_a_rule_of_a_person() {
    let workspace = ruled();
    let served = Served::start(&workspace, &[]);
    let token = token(&workspace, "agent", "*");
    let body = json!({"skill": SKILL, "input": {}, "output": {"overall_score": 10}, "model_used": "fake/model",
        "reflexions_injected": ["REFL-001"]});
    let ids: Vec<String> = (0..3)
        .map(|_| {
            let logged = served.post(&token, "/v1/executions", &body).is(201).json();
            logged["execution_id"].as_str().unwrap().to_owned()
        })
        .collect();
    drop(served);
    // The rule again: it was not followed.
    let said = "Never name competitors in the summary";
    let mut agent = mcp::Server::greeted(&workspace, &["mcp"]);
    for id in &ids[..2] {
        agent.done(
            "correct",
            &json!({"skill": SKILL, "execution": id, "correction": said}),
        );
    }
    drop(agent);
    assert_eq!(harmed(&workspace), 0);
    workspace
        .run(&[
            "correct", SKILL, "--execution-id", &ids[2], "--correction", said,
        ])
        .succeeds();
    assert_eq!(harmed(&workspace), 1);
}
