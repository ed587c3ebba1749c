//! Guardrail files that cannot be written: the rule counts, the user is told, and the file follows.

use std::fs;

use serde_json::json;

use crate::support::{RUN, correction};
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const OWN: &str = "skills/hr/resume-screen/GUARDRAILS.md";
const OF_DOMAIN: &str = "skills/hr/GUARDRAILS.md";
const SAID: &str = "When screening for senior roles, ALWAYS weigh system design separately.";
const LATER: &str = "When a candidate names no salary, ALWAYS leave the field empty.";

/// A workspace in which the guardrail of `REFL-001` could not be written to the skill's own file.
fn failed() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.write(OF_DOMAIN, "# Of the domain\n");
    let own = workspace.root().join(OWN);
    drop(fs::remove_file(&own));
    fs::create_dir(&own).unwrap();
    workspace.run(&RUN).succeeds();
    let ran = workspace.run(&[&correction(SAID)[..], &["--json"]].concat());
    let report = ran.succeeds().document();
    assert_eq!(report["guardrails"], json!([OF_DOMAIN]));
    assert!(
        ran.stderr.contains("the guardrail was not added: ")
            && ran.stderr.contains("doctor --repair"),
        "{ran:?}"
    );
    workspace
}

fn mend(workspace: &Workspace) {
    let own = workspace.root().join(OWN);
    fs::remove_dir(own).unwrap();
    workspace.write(OWN, "# Guardrails\n");
}

fn sections(workspace: &Workspace, file: &str) -> Vec<String> {
    let text = workspace.read(file);
    let sources = text
        .lines()
        .filter_map(|line| line.strip_prefix("**Source**: "));
    sources.map(str::to_owned).collect()
}

#[test]
fn the_user_is_told_until_the_file_has_it() {
    let workspace = failed();
    let told = |workspace: &Workspace| {
        let doctor = workspace.run(&["doctor"]);
        assert_eq!(doctor.code, 1, "{doctor:?}");
        assert!(
            doctor.stdout.contains("guardrail: REFL-001")
                && doctor.stdout.contains("hr/resume-screen/GUARDRAILS.md"),
            "{doctor:?}"
        );
        let prompt = workspace.run(&["memory", "prompt", SKILL]);
        assert!(
            prompt
                .succeeds()
                .stderr
                .contains("the guardrail of `REFL-001`"),
            "{prompt:?}"
        );
    };
    told(&workspace);
    // It is still not possible.
    assert_eq!(workspace.run(&["doctor", "--repair"]).code, 1);
    let accepted = workspace.run(&["accept", "latest"]);
    assert!(
        accepted
            .succeeds()
            .stderr
            .contains("the guardrail was not added"),
        "{accepted:?}"
    );
    told(&workspace);
    mend(&workspace);
    let doctor = workspace.run(&["doctor", "--repair"]);
    assert!(doctor.succeeds().stdout.contains(OWN), "{doctor:?}");
    assert_eq!(sections(&workspace, OWN), ["CORR-001"]);
    assert_eq!(sections(&workspace, OF_DOMAIN), ["CORR-001"]);
    let rule = &workspace.stored("reflexion_entries.json")["entries"][0];
    assert!(rule["guardrails_pending"].is_null(), "{rule}");
    let prompt = workspace.run(&["memory", "prompt", SKILL]);
    assert_eq!(prompt.succeeds().stderr, "");
    // What a person takes out stays out.
    workspace.write(OWN, "# Mine\n");
    workspace.run(&["doctor", "--repair"]).succeeds();
    workspace.run(&["accept", "latest"]).succeeds();
    assert_eq!(workspace.read(OWN), "# Mine\n");
}

#[test]
fn next_correction_of_the_skill_updates_the_file() {
    let next: [&[&str]; 3] = [&["accept", "latest"], &correction(LATER), &correction(SAID)];
    for line in next {
        let workspace = failed();
        mend(&workspace);
        let report = workspace.json(line);
        let files = report["guardrails"].as_array().unwrap();
        assert!(files.contains(&json!(OWN)), "{line:?}: {report}");
        assert_eq!(sections(&workspace, OWN)[0], "CORR-001", "{line:?}");
        workspace.run(&["doctor"]).succeeds();
    }
}

#[test]
fn a_correction_whose_guardrail_failed_can_be_taken_back() {
    let workspace = failed();
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(workspace.read(OF_DOMAIN), "# Of the domain\n");
    assert_eq!(
        workspace.stored("reflexion_entries.json")["entries"],
        json!([])
    );
    workspace.run(&["doctor"]).succeeds();
}

#[test]
fn names_in_a_record_open_no_file() {
    let workspace = failed();
    mend(&workspace);
    let path = workspace.memory("reflexion_entries.json");
    let forged = fs::read_to_string(&path).unwrap().replace(
        "\"hr/resume-screen/GUARDRAILS.md\"",
        "\"../outside.md\", \"dev/GUARDRAILS.md\", \"/tmp/outside.md\"",
    );
    fs::write(&path, forged).unwrap();
    workspace.write("outside.md", "# Outside\n");
    workspace.write("skills/dev/GUARDRAILS.md", "# Of others\n");
    workspace.run(&["doctor", "--repair"]).succeeds();
    assert_eq!(workspace.read("outside.md"), "# Outside\n");
    assert_eq!(workspace.read("skills/dev/GUARDRAILS.md"), "# Of others\n");
}
