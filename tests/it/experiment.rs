//! The experiment from outside: hints and rules withheld at random, and their log.

use std::fs;

use serde_json::{Value, json};

use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const ERROR: &str = "error: externally-managed-environment";

/// A workspace with a name and a fix, in which nearly everything is withheld.
fn withholding() -> Workspace {
    let mut workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.write(
        ".agentura/workspace.json",
        r#"{"origin": "o", "tombstone_key": "a fixed key"}"#,
    );
    let fix = pattern!({"procedure_id": "PROC-001", "created_at": "", "error_key": ERROR, "failing_code": "pip install x",
        "working_code": "pip install --user x", "success_output": "ok"});
    workspace.write(
        ".agentura/procedural_memory.json",
        json!({ "entries": [fix] }).to_string(),
    );
    workspace.set("MEMCTL_EXPERIMENT_WITHHOLD", "0.5");
    workspace
}

fn hint(workspace: &Workspace, session: &str) -> Value {
    let command = [
        "hint", "--error", ERROR, "--command", "pip install y", "--session", session,
    ];
    workspace.json(&command)
}

fn log(workspace: &Workspace) -> Vec<Value> {
    let text = fs::read_to_string(workspace.memory("hints.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_session_sees_one_treatment_and_both_are_followed_alike() {
    let workspace = withholding();
    let treatments: Vec<bool> = (0..12)
        .map(|n| {
            let session = format!("s{n}");
            let first = hint(&workspace, &session);
            let withheld = first["hints"].as_array().unwrap().is_empty();
            assert_eq!(first["withheld"].is_array(), withheld, "{first}");
            if withheld {
                assert_eq!(first["withheld"], json!(["PROC-001"]));
                // The same in the whole session.
                assert!(
                    hint(&workspace, &session)["hints"]
                        .as_array()
                        .unwrap()
                        .is_empty()
                );
            }
            let done = [
                "record", "success", "--code", "pip install --user x", "--output", "ok",
                "--session", &session,
            ];
            workspace.run(&done).succeeds();
            withheld
        })
        .collect();
    assert!(
        treatments.contains(&true) && treatments.contains(&false),
        "{treatments:?}"
    );
    let log = log(&workspace);
    let logged: Vec<bool> = log
        .iter()
        .map(|t| t["withheld"].as_bool().unwrap())
        .collect();
    assert_eq!(logged, treatments);
    for trial in &log {
        let withheld = trial["withheld"].as_bool().unwrap();
        assert_eq!(trial["error_key"], ERROR);
        assert_eq!(
            (&trial["hints"], &trial["share"]),
            (&json!(["PROC-001"]), &json!(0.5))
        );
        assert_eq!(trial["overcome"], true);
        assert_eq!(trial["repeats"], u64::from(withheld));
        assert_eq!(trial["helped"], !withheld);
    }
    // Only shown hints count for or against a fix.
    let shown = treatments.iter().filter(|withheld| !**withheld).count();
    let fix = &workspace.stored("procedural_memory.json")["entries"][0];
    assert_eq!(
        (&fix["shown"], &fix["helped"]),
        (&json!(shown), &json!(shown))
    );
}

#[test]
fn without_a_session_or_an_experiment_nothing_is_withheld() {
    let mut workspace = withholding();
    for _ in 0..3 {
        let report = workspace.json(&["hint", "--error", ERROR]);
        assert_eq!(report["hints"][0]["id"], "PROC-001");
        assert!(report["withheld"].is_null());
    }
    workspace.set("MEMCTL_EXPERIMENT_WITHHOLD", "0");
    for n in 0..12 {
        assert_eq!(
            hint(&workspace, &format!("s{n}"))["hints"][0]["id"],
            "PROC-001"
        );
    }
}

#[test]
fn hooks_withhold_too_and_the_end_of_a_session_writes_it_down() {
    let workspace = withholding();
    let event = |name: &str, session: &str, more: Value| {
        let mut event = json!({"hook_event_name": name, "session_id": session,
            "cwd": workspace.root(), "tool_name": "Bash"});
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        let path = workspace.write("event.json", event.to_string());
        let mut command = workspace.command();
        command
            .args(["hook", "claude-code"])
            .stdin(fs::File::open(path).unwrap());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let answers: Vec<bool> = (0..12)
        .map(|n| {
            let session = format!("h{n}");
            let command = json!({"command": "pip install y"});
            let said = json!({"error": format!("Exit code 1\n{ERROR}"), "tool_input": command});
            let told = event("PostToolUseFailure", &session, said.clone());
            event("PostToolUseFailure", &session, said);
            event("SessionEnd", &session, json!({}));
            told.contains("CORRECT")
        })
        .collect();
    assert!(
        answers.contains(&true) && answers.contains(&false),
        "{answers:?}"
    );
    let log = log(&workspace);
    let shown: Vec<bool> = log
        .iter()
        .map(|t| !t["withheld"].as_bool().unwrap())
        .collect();
    assert_eq!(shown, answers);
    assert!(
        log.iter()
            .all(|t| t["repeats"] == 1 && t["overcome"] == false),
        "{log:?}"
    );
}

#[test]
fn withheld_rules_are_named_and_recorded() {
    let mut workspace = withholding();
    let rules: Vec<Value> = (1..=20)
        .map(|n| json!({"reflexion_id": format!("REFL-{n:03}"), "skill": SKILL, "rule": format!("Rule {n}.")}))
        .collect();
    workspace.write(
        ".agentura/reflexion_entries.json",
        json!({ "entries": rules }).to_string(),
    );
    let run = ["run", SKILL, "--input", "fixtures/sample_input.json"];
    let report = workspace.json(&run);
    let withheld = report["withheld"].as_array().unwrap();
    let injected = report["injected"].as_array().unwrap();
    assert!(!withheld.is_empty() && !injected.is_empty());
    assert_eq!(withheld.len() + injected.len(), 20);
    let reasons = report["omitted"].as_array().unwrap().iter();
    let mut reasons = reasons.map(|o| o["reason"].as_str().unwrap());
    assert!(reasons.all(|reason| reason == "withheld at random (`experiment.withhold`)"));
    let execution = &workspace.stored("episodic_memory.json")["entries"][0];
    assert_eq!(execution["reflexions_withheld"], report["withheld"]);
    assert_eq!(execution["experiment_withhold"], 0.5);
    let prompt = workspace.json(&["memory", "prompt", SKILL]);
    for id in prompt["withheld"].as_array().unwrap() {
        assert!(
            !prompt["prompt"]
                .as_str()
                .unwrap()
                .contains(id.as_str().unwrap()),
            "{id}"
        );
    }
    // Outside an experiment an execution carries no trace of one.
    workspace.set("MEMCTL_EXPERIMENT_WITHHOLD", "0");
    workspace.run(&run).succeeds();
    let execution = &workspace.stored("episodic_memory.json")["entries"][1];
    assert!(execution["experiment_withhold"].is_null());
    assert_eq!(
        execution["reflexions_injected"].as_array().unwrap().len(),
        20
    );
}

#[test]
fn a_share_that_is_none_is_wrong_usage() {
    let mut workspace = withholding();
    workspace.set("MEMCTL_EXPERIMENT_WITHHOLD", "0.95");
    workspace
        .run(&["hint", "--error", ERROR])
        .fails(2, "`experiment.withhold` is `0.95`");
    let shown = workspace.run(&["config", "show"]);
    assert!(shown.succeeds().stdout.contains("experiment.withhold"));
}
