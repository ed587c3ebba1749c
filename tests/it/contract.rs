//! Interface for other programs: with `--json` one document on standard output, with at least these
//! fields, and everything else on standard error.

use serde_json::Value;

use crate::support::{RUN, correction};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";

/// The document must have these fields: `name`, `name.name` for a field of a field, and `name[]`
/// for one of each item of a list, which must not be empty. Answers the document.
#[track_caller]
fn check(ran: &Ran, fields: &[&str]) -> Value {
    let document = ran.document();
    for field in fields {
        has(&document, field, field);
    }
    document
}

#[track_caller]
fn has(value: &Value, path: &str, whole: &str) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let field = value.get(name.trim_end_matches("[]"));
    let field = field.unwrap_or_else(|| panic!("no `{whole}` in {value}"));
    let items = match field {
        Value::Array(items) if name.ends_with("[]") => {
            assert!(!items.is_empty(), "`{whole}` is empty in {value}");
            items.iter().collect()
        }
        other => {
            assert!(!name.ends_with("[]"), "`{whole}` is no list in {value}");
            vec![other]
        }
    };
    if !rest.is_empty() {
        for item in items {
            has(item, rest, whole);
        }
    }
}

fn json(workspace: &Workspace, arguments: &[&str]) -> Ran {
    workspace.run(&[arguments, &["--json"]].concat())
}

#[test]
fn every_command_answers_with_the_documented_fields() {
    let workspace = Workspace::sample();
    let ok = |arguments: &[&str], fields: &[&str]| {
        let ran = json(&workspace, arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        check(&ran, fields)
    };
    ok(&["init"], &["directory", "skills", "origin", "created[]"]);
    let run = [
        "execution_id", "skill", "outcome", "output", "model_used", "cost_usd", "latency_ms",
        "usage", "injected", "layers[].layer", "layers[].source", "layers[].tokens",
    ];
    ok(&RUN, &run);
    let said = "When screening, never score above 60 without distributed systems.";
    let correct = |said| correction(said);
    let corrected = [
        "correction_id", "reflexion_id", "rule", "applies_when", "root_cause", "confidence",
        "tests", "guardrails", "conflicts", "duplicate_of", "distilled_by", "not_learned",
    ];
    let learnt = ok(&correct(said), &corrected);
    assert!(learnt["reflexion_id"].is_string() && learnt["not_learned"].is_null());
    let vague = ok(&correct("this is wrong"), &corrected);
    assert!(vague["not_learned"].is_null() && vague["doubt"].is_string());
    assert_eq!(vague["status"], "candidate");
    // The case that answers is known to be wrong by now, which is said beside the document.
    let again = json(&workspace, &RUN);
    assert!(again.stderr.starts_with("warning: "), "{again:?}");
    check(
        &again,
        &["injected[].id", "injected[].kind", "nearest_case.source"],
    );
    let dry = ok(&[&RUN[..], &["--dry-run"]].concat(), &run);
    assert!(dry["execution_id"].is_null());
    let accepted = json(&workspace, &["accept", "latest"]);
    assert!(accepted.stderr.contains("has corrected this output"));
    check(&accepted, &["execution_id", "skill", "before", "outcome"]);
    ok(
        &["reject", "latest", "--reason", "no"],
        &["execution_id", "outcome", "reason"],
    );
    let status = ok(
        &["memory", "status"],
        &[
            "store", "executions", "corrections", "reflexions", "procedures", "memories",
            "sessions", "tests", "bytes", "problems",
        ],
    );
    for (kind, count) in [("executions", 2), ("corrections", 2), ("reflexions", 2)] {
        assert_eq!(status[kind], count, "{kind}");
    }
    ok(
        &["memory", "search", "distributed systems"],
        &[
            "query",
            "took_ms",
            "results[].id",
            "results[].kind",
            "results[].skill",
            "results[].score",
            "results[].snippet",
            "results[].ranks.keyword",
            "results[].ranks.semantic",
            "results[].origin",
            "results[].trust",
        ],
    );
    ok(
        &["memory", "prompt", SKILL],
        &[
            "skill", "prompt", "layers[].layer", "layers[].source", "layers[].tokens",
            "injected[].id", "injected[].kind", "omitted",
        ],
    );
    ok(
        &["memory", "list"],
        &[
            "kind", "total", "records[].id", "records[].skill", "records[].created",
            "records[].summary",
        ],
    );
    ok(
        &["memory", "show", "REFL-001"],
        &["id", "kind", "record.rule"],
    );
    ok(
        &["doctor"],
        &["healthy", "problems", "dangling", "skills", "repaired"],
    );
    ok(
        &["config", "show"],
        &[
            "memory", "skills", "trusted", "settings[].name", "settings[].value",
            "settings[].origin", "keys[].name", "keys[].set",
        ],
    );
    ok(&["trust"], &["directory", "digest"]);
    ok(&["completions", "bash"], &["text"]);
    ok(&["man"], &["text"]);
    ok(
        &["memory", "forget", "REFL-001"],
        &["id", "kind", "summary"],
    );
}

#[test]
fn an_omitted_rule_says_why() {
    let mut workspace = Workspace::sample();
    workspace.json(&RUN);
    for said in ["Always name the source.", "Never exceed one page."] {
        let correct = correction(said);
        workspace.json(&correct);
    }
    workspace.set("MEMCTL_PROMPT_RULES_TOKENS", "0");
    let ran = json(&workspace, &["memory", "prompt", SKILL]);
    check(&ran, &["omitted[].id", "omitted[].reason"]);
}

#[test]
fn every_error_is_one_document_with_the_code_of_its_kind() {
    let workspace = Workspace::sample();
    workspace.write("broken.json", "{");
    workspace.write(".agentura/corrections.json", "no json at all");
    workspace.json(&RUN);
    let refused = |arguments: &[&str], code: i32, kind: &str| {
        let ran = json(&workspace, arguments);
        let error = check(&ran, &["error.kind", "error.message", "error.hint"]);
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        assert_eq!(error["error"]["kind"], kind, "{arguments:?}");
        assert_eq!(error.as_object().unwrap().len(), 1);
        assert_eq!(ran.stderr, "", "{arguments:?}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with(|c: char| !c.is_uppercase()),
            "{message}"
        );
    };
    refused(&[], 2, "usage");
    refused(&["memory"], 2, "usage");
    refused(&["nonsense"], 2, "usage");
    refused(&["memory", "search"], 2, "usage");
    refused(&["memory", "search", "x", "-n", "0"], 2, "usage");
    refused(&["run", "hr"], 2, "input");
    refused(&["run", "hr/no-such-skill"], 2, "not_found");
    refused(&["run", SKILL, "--input", "broken.json"], 2, "input");
    refused(&["run", SKILL, "--input", "missing.json"], 2, "not_found");
    refused(&["memory", "show", "REFL-001"], 2, "not_found");
    refused(&["correct"], 2, "usage");
    let correct = correction("Always x.");
    refused(&correct, 3, "store");
    refused(
        &[
            "run",
            "dev/code-review",
            "--input",
            "fixtures/sample_input.json",
        ],
        4,
        "model",
    );
    refused(&["run", SKILL, "--model", "exec:false"], 4, "model");
    refused(&["run", SKILL, "--scope", "dev"], 5, "permission");
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn warnings_and_notes_stand_on_standard_error() {
    let workspace = Workspace::sample();
    let skill = "hr/resume-screen";
    workspace.write(
        "skills/hr/resume-screen/SKILL.md",
        "---\nname: other\ndescription: d\n---\nBody.",
    );
    // An unknown setting, and a skill under another name.
    workspace.write(".agentura/config.toml", "nonsense = 1\n");
    let ran = json(&workspace, &["memory", "prompt", skill]);
    assert_eq!(ran.code, 0);
    check(&ran, &["prompt", "warnings[]"]);
    for warning in ["nonsense", "`other`"] {
        assert!(ran.stderr.contains(warning), "{warning}: {ran:?}");
    }
    let plain = workspace.run(&["memory", "prompt", skill]);
    assert!(!plain.succeeds().stdout.contains("warning"));
    // A torn file may have kept rules out of the prompt, which is printed and exits with 3.
    workspace.write(
        ".agentura/reflexion_entries.json",
        "{\"entries\": [{\"reflexion_id\": \"REFL-001\", \"skill\": \"hr/resume-screen\", \"rule\": \"R\"}, {\"ru",
    );
    let ran = json(&workspace, &["memory", "prompt", skill]);
    assert_eq!(ran.code, 3);
    check(&ran, &["prompt", "warnings[]"]);
    for warning in [
        "nonsense",
        "`other`",
        "reflexion_entries.json` may be missing in the prompt",
    ] {
        assert!(ran.stderr.contains(warning), "{warning}: {ran:?}");
    }
    let plain = workspace.run(&["memory", "prompt", skill]);
    assert_eq!(plain.code, 3, "{plain:?}");
    assert!(plain.stdout.contains("Body."), "{plain:?}");
    assert!(!plain.stdout.contains("warning"), "{plain:?}");
    // A sample input is announced by a note.
    let ran = workspace.run(&[
        "run", "support/ticket-triage", "--json", "--model", "exec:cat",
    ]);
    assert_eq!(ran.code, 0);
    check(&ran, &["sample_input"]);
    assert!(ran.stderr.contains("sample_input.json"), "{ran:?}");
    let quiet = [
        "run", "support/ticket-triage", "--json", "--model", "exec:cat", "--quiet",
    ];
    let ran = workspace.run(&quiet);
    assert!(!ran.stderr.contains("sample_input.json"), "{ran:?}");
}
