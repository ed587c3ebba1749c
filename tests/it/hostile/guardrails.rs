//! Guardrail files that cannot be written: the rule counts, and the user is told the way out.

use std::fs;

use serde_json::json;

use crate::support::{RUN, correction};
use crate::workspace::Workspace;

const OWN: &str = "skills/hr/resume-screen/GUARDRAILS.md";
const OF_DOMAIN: &str = "skills/hr/GUARDRAILS.md";
const SAID: &str = "When screening for senior roles, ALWAYS weigh system design separately.";

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
        ran.stderr.contains("the guardrail was not added: ") && ran.stderr.contains("memctl undo"),
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
fn a_correction_whose_guardrail_failed_can_be_taken_back() {
    let workspace = failed();
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(workspace.read(OF_DOMAIN), "# Of the domain\n");
    assert_eq!(
        workspace.stored("reflexion_entries.json")["entries"],
        json!([])
    );
    workspace.run(&["doctor"]).succeeds();
    mend(&workspace);
    let report = workspace.json(&correction(SAID));
    assert_eq!(report["guardrails"], json!([OWN, OF_DOMAIN]), "{report}");
    assert_eq!(sections(&workspace, OWN), ["CORR-002"]);
}
