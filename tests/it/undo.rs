//! `memctl undo` from outside: it restores every file of the last change byte for byte.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::correct;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

/// A workspace with an execution, a correction of it and what came of that.
fn corrected() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["run", SKILL]);
    correct(
        &workspace,
        "When a career gap exceeds two years, ALWAYS score below 60.",
    );
    workspace
}

/// What is remembered and what lies in the skills, file by file. Logs and derived files are apart.
fn state(workspace: &Workspace) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let aside = [
                ".index", ".lock", "changes.jsonl", "audit.jsonl", "audit.anchor",
                "execution_logs.jsonl", "tombstones.jsonl", "tombstones.local.json",
            ];
            if aside.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let shown = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(shown, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    for part in [".agentura", "skills"] {
        walk(&workspace.root(), &workspace.root().join(part), &mut found);
    }
    // A file without entries says what a missing one says.
    found.retain(|_, text| {
        let parsed: Result<Value, _> = serde_json::from_slice(text);
        parsed.map_or(true, |parsed| parsed["entries"] != json!([]))
    });
    found
}

/// The files that two states differ in.
fn differences(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| a.get(*name) != b.get(*name));
    differing.cloned().collect()
}

/// Does something, takes it back, and finds everything as it was; and again as it came to be when that
/// is taken back as well.
fn there_and_back(workspace: &Workspace, what: &str, act: impl FnOnce(&Workspace)) -> Value {
    let before = state(workspace);
    act(workspace);
    let after = state(workspace);
    assert!(!differences(&before, &after).is_empty(), "{what}");
    let dry = workspace.json(&["memory", "undo", "--dry-run"]);
    assert_eq!(
        differences(&state(workspace), &after),
        [""; 0],
        "dry: {what}"
    );
    let undone = workspace.json(&["memory", "undo"]);
    assert_eq!(dry["steps"], undone["steps"]);
    assert_eq!(differences(&state(workspace), &before), [""; 0], "{what}");
    let redo = undone["undo"].as_str().unwrap();
    workspace.json(&["memory", "undo", redo]);
    assert_eq!(
        differences(&state(workspace), &after),
        [""; 0],
        "again: {what}"
    );
    undone
}

#[test]
fn undo_restores_every_byte_of_a_command() {
    let workspace = corrected();
    let words = "When the role names a degree, NEVER accept a certificate instead.";
    let undone = there_and_back(&workspace, "a correction", |workspace| {
        let report = correct(workspace, words);
        assert_eq!(report["reflexion_id"], "REFL-002");
        assert!(!report["tests"].as_array().unwrap().is_empty());
    });
    assert_eq!(undone["why"], format!("correct {SKILL}"));
    let targets: Vec<&str> = undone["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["target"].as_str().unwrap())
        .collect();
    for expected in ["CORR-002", "REFL-002", "hr/resume-screen/GUARDRAILS.md"] {
        assert!(targets.contains(&expected), "{targets:?}");
    }
    there_and_back(&workspace, "a run", |workspace| {
        workspace.json(&["run", SKILL]);
    });
    there_and_back(&workspace, "a verdict", |workspace| {
        workspace.json(&["accept", "latest"]);
    });
    there_and_back(&workspace, "an edit", |workspace| {
        workspace.json(&[
            "memory",
            "edit",
            "REFL-001",
            "--set",
            "rule=When it rains, ALWAYS say so.",
        ]);
    });
    // Nothing was deleted for good, so there is nothing for git to see.
    assert!(!workspace.memory("tombstones.jsonl").exists());
    there_and_back(&workspace, "a removal", |workspace| {
        workspace.json(&["memory", "forget", "REFL-001"]);
    });
    there_and_back(&workspace, "learning", |workspace| {
        workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    });
    let session = workspace.json(&["session", "start"]);
    let session = session["session_id"].as_str().unwrap();
    let action = [
        "session", "log", session, "--step", "s", "--action", "decision", "--status", "success",
    ];
    workspace.json(&action);
    workspace.json(&["run", SKILL]);
    workspace.json(&action);
    let log = workspace.read(".agentura/execution_logs.jsonl");
    there_and_back(&workspace, "a session", |workspace| {
        workspace.json(&["memory", "forget", session]);
    });
    workspace.json(&["memory", "undo"]);
    assert_eq!(workspace.read(".agentura/execution_logs.jsonl"), log);
    there_and_back(&workspace, "a memory", |workspace| {
        workspace.json(&[
            "memory", "add", "--type", "brand_memory", "--content", "Voice: plain",
        ]);
    });
    there_and_back(&workspace, "an approval", |workspace| {
        workspace.json(&["memory", "approve", "PROC-001"]);
    });
    workspace.json(&["doctor"]);
}

#[test]
fn reverted_correction_may_be_repeated_and_a_reverted_lesson_is_not_learned_again() {
    let workspace = corrected();
    let words = "When the role names a degree, NEVER accept a certificate instead.";
    correct(&workspace, words);
    workspace.json(&["memory", "undo"]);
    let again = correct(&workspace, words);
    // The ids of what was taken back are never given again.
    assert_eq!(again["correction_id"], "CORR-003");
    assert_eq!(again["reflexion_id"], "REFL-003");
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    workspace.json(&["memory", "undo"]);
    workspace
        .run(&["learn", "fixtures/transcripts/steps.jsonl"])
        .succeeds();
    assert_eq!(
        workspace.json(&["memory", "list", "procedures"])["total"],
        0
    );
}

#[test]
fn one_after_the_other_is_taken_back_and_the_list_tells_which() {
    let workspace = corrected();
    let listed = |workspace: &Workspace| {
        let report = workspace.json(&["memory", "undo", "--list"]);
        let changes = report["changes"].as_array().unwrap().iter();
        changes
            .map(|c| {
                (
                    c["why"].as_str().unwrap().to_owned(),
                    c["undone"].as_bool().unwrap(),
                )
            })
            .collect::<Vec<_>>()
    };
    let (run, correction) = (format!("run {SKILL}"), format!("correct {SKILL}"));
    assert_eq!(
        listed(&workspace),
        [(correction.clone(), false), (run.clone(), false)]
    );
    workspace.json(&["memory", "undo"]);
    workspace.json(&["memory", "undo"]);
    let undo = "undo".to_owned();
    assert_eq!(
        listed(&workspace),
        [
            (undo.clone(), false),
            (undo, false),
            (correction, true),
            (run, true)
        ]
    );
    workspace
        .run(&["memory", "undo"])
        .fails(2, "no change of this user to revert");
    assert_eq!(workspace.json(&["memory", "status"])["executions"], 0);
}

#[test]
fn nothing_is_taken_back_by_half() {
    let workspace = corrected();
    let first = workspace.json(&["memory", "undo", "--list"])["changes"][1]["change"].clone();
    let first = first.as_str().unwrap();
    let before = state(&workspace);
    // A correction depends on the run.
    workspace
        .run(&["memory", "undo", first])
        .fails(2, "`CORR-001` depends on `EXEC-");
    // Words that a person has changed since are nobody's to take back.
    let guardrails = "skills/hr/resume-screen/GUARDRAILS.md";
    let text = workspace.read(guardrails);
    workspace.write(guardrails, text.replace("ALWAYS score", "always score"));
    workspace.run(&["memory", "undo"]).fails(2, "changed since");
    workspace.write(guardrails, text.clone());
    assert_eq!(differences(&state(&workspace), &before), [""; 0]);
    // Words that stand elsewhere in the file do not hinder.
    workspace.write(guardrails, format!("<!-- ours -->\n{text}"));
    workspace.json(&["memory", "undo"]);
    assert!(workspace.read(guardrails).starts_with("<!-- ours -->\n"));
    assert!(!workspace.read(guardrails).contains("CORR-001"));
}

/// A journal that came with a foreign checkout names files that are nobody's memory.
#[test]
fn a_forged_journal_touches_no_other_file() {
    for path in [
        "../victim.txt",
        "/etc/hostname",
        "hr/resume-screen/SKILL.md",
        "hr/resume-screen/tests/generated/../../SKILL.md",
        "hr/../../victim.txt",
    ] {
        let workspace = corrected();
        workspace.write("victim.txt", "mine\n");
        let line = json!({"change": "ffffffffffff", "at": "", "who": "", "why": "correct", "did": "file",
            "path": path, "splice": {"at": 0, "before": null, "after": "mine\n", "length": 5}});
        // A line that this user has not written is no change; one that they could have written is refused.
        let journal = workspace.read(".agentura/changes.jsonl");
        workspace.write(".agentura/changes.jsonl", format!("{journal}{line}\n"));
        let before = state(&workspace);
        let last = workspace.json(&["memory", "undo", "--dry-run"]);
        assert_eq!(last["why"], format!("correct {SKILL}"));
        workspace
            .run(&["memory", "undo", "ffffffff"])
            .fails(2, "matches no change");
        let line = workspace.signed(&line);
        workspace.write(".agentura/changes.jsonl", format!("{journal}{line}\n"));
        workspace.run(&["memory", "undo"]).fails(2, "");
        assert_eq!(differences(&state(&workspace), &before), [""; 0], "{path}");
        assert_eq!(workspace.read("victim.txt"), "mine\n");
    }
}

#[test]
fn permanent_removal_leaves_nothing_to_undo() {
    let workspace = corrected();
    workspace.json(&[
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "rule=When it rains, ALWAYS hail.",
    ]);
    workspace.json(&["memory", "forget", "REFL-001", "--for-good"]);
    let journal = workspace.read(".agentura/changes.jsonl");
    assert!(
        !journal.contains("hail") && !journal.contains("REFL-001\",\"fields"),
        "{journal}"
    );
    // The change before the removal is what can still be taken back.
    let report = workspace.json(&["memory", "undo", "--dry-run"]);
    assert_eq!(report["why"], format!("correct {SKILL}"));
}

/// A process that was killed between the journal and the write has left a line of something that never
/// happened.
#[test]
fn a_journal_without_its_writes_is_no_trouble() {
    let workspace = corrected();
    let ghost = json!({"change": "eeeeeeeeeeee", "at": "", "who": "", "why": "run hr/x", "did": "added",
        "kind": "execution", "id": "EXEC-20200101000000"});
    let journal = workspace.read(".agentura/changes.jsonl") + &workspace.signed(&ghost) + "\n";
    workspace.write(".agentura/changes.jsonl", journal);
    let report = workspace.json(&["memory", "undo"]);
    assert_eq!(report["steps"][0]["did"], "unchanged");
    assert_eq!(
        workspace.json(&["memory", "undo"])["why"],
        format!("correct {SKILL}")
    );
}

/// An undo that was killed right at its beginning is known by its name, and nothing is lost by it.
#[test]
fn an_undo_that_was_cut_short_can_be_taken_back_and_said_again() {
    let workspace = corrected();
    let list = workspace.json(&["memory", "undo", "--list"]);
    let correction = list["changes"][0]["change"].as_str().unwrap();
    let journal = workspace.read(".agentura/changes.jsonl");
    let whole = journal.lines().find(|line| line.contains(correction));
    let whole: Value = serde_json::from_str(whole.unwrap()).unwrap();
    let cut = json!({"change": "dddddddddddd", "at": "", "who": "", "why": "undo",
        "did": "undone", "of": whole["change"]});
    let cut = workspace.signed(&cut);
    workspace.write(".agentura/changes.jsonl", format!("{journal}{cut}\n"));
    let before = state(&workspace);
    workspace.json(&["memory", "undo", "dddd"]);
    assert_eq!(differences(&state(&workspace), &before), [""; 0]);
    let again = workspace.json(&["memory", "undo"]);
    assert_eq!(again["change"], correction);
    assert_eq!(workspace.json(&["memory", "status"])["reflexions"], 0);
}

/// An approval moves a lesson to the shared file, under another id. A database gives its records one id.
#[test]
fn the_page_of_an_undone_approval_says_where_the_lesson_is() {
    let workspace = Workspace::sample();
    workspace.json(&["learn", "fixtures/transcripts/steps.jsonl"]);
    let own = workspace.json(&["list", "lessons"])["records"][0]["id"].clone();
    let own = own.as_str().unwrap();
    workspace.json(&["approve", own]);
    let page = workspace.run(&["undo"]).stdout;
    assert!(page.contains("  approve by you\n"), "{page}");
    let moved = "PROC-001  to the file that git ignores";
    let is_told = |end: &str| page.contains(&format!("{moved}{end}\n"));
    assert!(is_told("") || is_told(&format!(", as {own}")), "{page}");
    let ends = page.lines().find(|line| line.ends_with(' '));
    assert_eq!(ends, None, "{page}");
}
