//! `memctl why` from outside: the chain in both directions, and missing links.

use serde_json::{Value, json};

use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const MODEL: &str = "exec:echo {}";

/// The chain as `(id, relation, to)`.
fn chain(workspace: &Workspace, args: &[&str]) -> Vec<(String, String, String)> {
    let report = workspace.json(&[&["memory", "why"], args].concat());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let links = report["chain"].as_array().unwrap().iter();
    links
        .map(|link| {
            (
                text(&link["id"]),
                text(&link["relation"]),
                text(&link["to"]),
            )
        })
        .collect()
}

fn link(id: &str, relation: &str, to: &str) -> (String, String, String) {
    (id.to_owned(), relation.to_owned(), to.to_owned())
}

fn execute(workspace: &Workspace) -> String {
    let args = [
        "run",
        SKILL,
        "--input",
        "fixtures/sample_input.json",
        "--model",
        MODEL,
    ];
    let report = workspace.json(&args);
    report["execution_id"].as_str().unwrap().to_owned()
}

fn correct(workspace: &Workspace, execution: &str, said: &str, more: &[&str]) -> Value {
    let args = [
        "correct", SKILL, "--execution-id", execution, "--correction", said,
    ];
    workspace.json(&[&args[..], more].concat())
}

/// One execution that was corrected, and so many more that had the rule.
fn corrected(more: usize) -> (Workspace, String, Vec<String>) {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let first = execute(&workspace);
    correct(
        &workspace,
        &first,
        "Never name competitors in the summary",
        &[],
    );
    let others = (0..more).map(|_| execute(&workspace)).collect();
    (workspace, first, others)
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn a_rule_tells_where_it_came_from_and_where_it_went() {
    let (workspace, first, others) = corrected(5);
    workspace.run(&["accept", &others[4]]).succeeds();
    let expected = vec![
        link("REFL-001", "asked", ""),
        link("CORR-001", "distilled_from", "REFL-001"),
        link(&first, "corrects", "CORR-001"),
        link(&others[4], "injected_into", "REFL-001"),
        link(&others[3], "injected_into", "REFL-001"),
        link(&others[2], "injected_into", "REFL-001"),
    ];
    assert_eq!(chain(&workspace, &["refl-0"]), expected);
    let report = workspace.json(&["memory", "why", "REFL-001"]);
    assert_eq!(
        (&report["id"], &report["kind"]),
        (&json!("REFL-001"), &json!("reflexion"))
    );
    assert_eq!(
        report["evidence"],
        json!({"shown": 5, "helped": 1, "harmed": 0})
    );
    assert_eq!(report["chain"][0]["executions"], 5);
    assert_eq!(report["chain"][3]["state"], "accepted");
    assert!(
        report["chain"][1]["at"]
            .as_str()
            .unwrap()
            .starts_with("2026-02-20T")
    );
    let shown = workspace.run(&["memory", "why", "REFL-001"]);
    let shown = &shown.succeeds().stdout;
    for part in [
        "\n  distilled from CORR-001",
        "\n    corrects EXEC-",
        "\n  injected into EXEC-",
        "  in 5 executions",
        "evidence:     shown 5, helped 1, harmed 0",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn every_link_leads_to_the_others() {
    let (workspace, first, others) = corrected(1);
    let down = [
        link("CORR-001", "corrected_by", &first),
        link("REFL-001", "became", "CORR-001"),
        link(&others[0], "injected_into", "REFL-001"),
    ];
    assert_eq!(chain(&workspace, &[&first])[1..], down);
    let up = [
        link("REFL-001", "had_rule", &others[0]),
        link("CORR-001", "distilled_from", "REFL-001"),
        link(&first, "corrects", "CORR-001"),
    ];
    assert_eq!(chain(&workspace, &["latest"])[1..], up);
    assert_eq!(
        chain(&workspace, &["CORR-001"])[1..],
        [
            link(&first, "corrects", "CORR-001"),
            link("REFL-001", "became", "CORR-001"),
            link(&others[0], "injected_into", "REFL-001"),
        ]
    );
    let report = workspace.json(&["memory", "why", "CORR-001"]);
    assert_eq!(report["evidence"]["shown"], 1);

    // Said again, and then replaced.
    correct(
        &workspace,
        &others[0],
        "NEVER name competitors in the summary",
        &[],
    );
    assert_eq!(
        chain(&workspace, &["CORR-002"])[1..3],
        [
            link(&others[0], "corrects", "CORR-002"),
            link("REFL-001", "strengthened", "CORR-002"),
        ]
    );
    correct(
        &workspace,
        &others[0],
        "Always name competitors in the summary",
        &["--replaces", "REFL-001"],
    );
    let old = chain(&workspace, &["REFL-001"]);
    assert!(
        old.contains(&link("CORR-002", "strengthened_by", "REFL-001")),
        "{old:?}"
    );
    assert!(
        old.contains(&link("REFL-002", "superseded_by", "REFL-001")),
        "{old:?}"
    );
    let new = chain(&workspace, &["REFL-002"]);
    assert!(
        new.contains(&link("REFL-001", "supersedes", "REFL-002")),
        "{new:?}"
    );
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn forgotten_record_is_named_and_records_of_others_are_not() {
    let (workspace, first, _) = corrected(0);
    workspace.run(&["memory", "forget", "CORR-001"]).succeeds();
    let report = workspace.json(&["memory", "why", "REFL-001"]);
    let gone = &report["chain"][1];
    assert_eq!(
        (&gone["id"], &gone["state"], &gone["summary"]),
        (&json!("CORR-001"), &json!("forgotten"), &json!(""))
    );
    let own = ["REFL-001", "--scope", "hr"];
    assert_eq!(chain(&workspace, &own), [link("REFL-001", "asked", "")]);
    workspace
        .run(&["memory", "why", "CORR-001"])
        .fails(2, "correction `CORR-001` was removed on 2026-02-20");
    workspace
        .run(&["memory", "why", "CORR-001", "--scope", "hr"])
        .fails(2, "correction `CORR-001` not found");
    workspace
        .run(&["memory", "why", "REFL-001", "--scope", "dev"])
        .fails(2, "rule `REFL-001` not found");
    workspace
        .run(&["memory", "why", "three"])
        .fails(2, "is not an id");

    // A link into another domain, put there by hand, and one to what never was.
    let rules = workspace
        .read(".agentura/reflexion_entries.json")
        .replace("CORR-001", "CORR-777");
    workspace.write(".agentura/reflexion_entries.json", rules);
    let report = workspace.json(&["memory", "why", "REFL-001"]);
    assert_eq!(report["chain"][1]["state"], "missing");
    let foreign = json!({"corrections": [{"correction_id": "CORR-777", "execution_id": first,
        "skill": "dev/code-review", "timestamp": "", "user_correction": "secret plan"}]});
    workspace.write(".agentura/corrections.json", foreign.to_string());
    assert_eq!(chain(&workspace, &["REFL-001"]).len(), 3);
    assert_eq!(chain(&workspace, &own), [link("REFL-001", "asked", "")]);
}

#[test]
fn a_procedure_tells_the_sessions_that_showed_it() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    let expected = [
        link("PROC-001", "asked", ""),
        link("build-17", "seen_in", "PROC-001"),
    ];
    assert_eq!(chain(&workspace, &["PROC-001"]), expected);
    let report = workspace.json(&["memory", "why", "PROC-001"]);
    assert_eq!(
        (&report["chain"][1]["kind"], &report["chain"][1]["summary"]),
        (&json!("transcript"), &json!("in `project`"))
    );
    assert_eq!(report["chain"][0]["origins"], 1);
    assert_eq!(report["chain"][0]["state"], "episode");
    let shown = workspace.run(&["memory", "why", "PROC-001"]);
    let shown = &shown.succeeds().stdout;
    assert!(shown.contains("\n  seen in build-17"), "{shown}");
    assert!(shown.contains("\n    in `project`"), "{shown}");
}
