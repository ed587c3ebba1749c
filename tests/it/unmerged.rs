//! What git has left with conflict markers is named with the way out, and no command takes a side.

use std::path::Path;

use serde_json::{Value, json};

use crate::git::{Repository, SKILL, two};
use crate::workspace::Ran;

const RULES: &str = ".agentura/reflexion_entries.json";
const AGAIN: &str = "memctl init --git && git checkout --merge .agentura";
const TESTS: &str = "skills/hr/resume-screen/tests/generated";

/// Runs memctl in another directory.
fn run_in(repository: &Repository, directory: &Path, args: &[&str]) -> Ran {
    let mut command = repository.workspace.command();
    command.env("MEMCTL_NOW", "2026-03-01T10:00:00.002+00:00");
    Ran::of(command.current_dir(directory).args(args).output().unwrap())
}

#[test]
fn records_of_a_merge_without_the_driver_are_kept_until_it_is_done_again() {
    let (repository, words) = two(1);
    repository.git(&["config", "--remove-section", "merge.memctl"]);
    assert_eq!(
        repository.try_git(&["merge", "--no-edit", "feature"]).code,
        1
    );
    let workspace = &repository.workspace;
    let text = workspace.read(RULES);
    assert!(text.contains("<<<<<<< "), "{text}");
    let ran = workspace.run(&["doctor", "--repair"]);
    assert!(
        ran.stdout.contains(AGAIN) && !ran.stdout.contains("hint: memctl doctor"),
        "{ran:?}"
    );
    let report = workspace.json_of(&["doctor", "--repair"]);
    let problems = report["problems"].as_array().unwrap();
    let of_rules = |problem: &&Value| {
        problem["path"]
            .as_str()
            .unwrap()
            .ends_with("reflexion_entries.json")
    };
    let of_rules: Vec<&Value> = problems.iter().filter(of_rules).collect();
    assert_eq!(of_rules.len(), 1, "{report}");
    assert_eq!(of_rules[0]["kind"], "conflict");
    assert_eq!(report["repaired"], json!([]));
    let said = ["correct", SKILL, "Never promise an interview."];
    workspace.run(&said).fails(3, AGAIN);
    workspace
        .run(&["edit", "REFL-001", "Something else."])
        .fails(3, AGAIN);
    assert_eq!(workspace.read(RULES), text);
    workspace.run(&["init", "--git"]).succeeds();
    repository.git(&["checkout", "--merge", ".agentura", "skills"]);
    repository.commit("merged");
    repository.holds(&words);
    assert_eq!(workspace.json(&["doctor"])["healthy"], true);
}

#[test]
fn two_workspaces_that_began_apart_are_one_with_both_keys() {
    let repository = Repository::new();
    let clone = repository.workspace.home().join("clone");
    repository.git(&["rm", "-r", "-q", "--cached", ".agentura"]);
    repository.git(&["commit", "-q", "-m", "skills alone"]);
    repository.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    repository.commit("the memory again");
    let run = |args: &[&str]| run_in(&repository, &clone, args);
    let git = |args: &[&str]| {
        Ran::of(
            repository
                .command(args)
                .current_dir(&clone)
                .output()
                .unwrap(),
        )
    };
    let said = ["Never name a competitor.", "Always state the years."];
    run(&["init", "--git"]).succeeds();
    run(&["correct", SKILL, said[0]]).succeeds();
    run(&["forget", "REFL-001"]).succeeds();
    assert_eq!(git(&["add", "-A"]).code, 0);
    assert_eq!(git(&["commit", "-q", "-m", "theirs"]).code, 0);
    let workspace = &repository.workspace;
    workspace.run(&["correct", SKILL, said[1]]).succeeds();
    workspace.run(&["forget", "REFL-001"]).succeeds();
    let keys = [workspace.stored("workspace.json"), {
        let text = std::fs::read(clone.join(".agentura/workspace.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }];
    assert_ne!(keys[0]["tombstone_key"], keys[1]["tombstone_key"]);
    repository.commit("ours");
    repository.git(&[
        "pull",
        "-q",
        "--no-rebase",
        "--no-edit",
        clone.to_str().unwrap(),
        "main",
    ]);
    assert_eq!(git(&["pull", "-q", "--no-edit", "origin", "main"]).code, 0);
    // Each clone knows what both have forgotten, and its audit log is as it was.
    for said in said {
        for ran in [
            workspace.run(&["correct", SKILL, said]),
            run(&["correct", SKILL, said]),
        ] {
            assert!(ran.stdout.contains("removed on purpose"), "{ran:?}");
        }
    }
    workspace.run(&["memory", "audit", "verify"]).succeeds();
    run(&["memory", "audit", "verify"]).succeeds();
}

#[test]
fn exports_with_conflict_markers_are_written_again_and_edited_ones_are_not() {
    let mut repository = Repository::new();
    let export = |repository: &Repository| repository.workspace.json(&["test", "--export"]);
    repository.git(&["switch", "-q", "-c", "feature"]);
    repository.learn(SKILL, 2, 10, "violins");
    export(&repository);
    repository.commit("theirs");
    repository.git(&["switch", "-q", "main"]);
    repository.learn(SKILL, 3, 10, "apples");
    export(&repository);
    repository.commit("ours");
    assert_eq!(
        repository.try_git(&["merge", "--no-edit", "feature"]).code,
        1
    );
    let workspace = &repository.workspace;
    let [python, promptfoo] =
        ["test_correction_1.py", "test_promptfoo.yaml"].map(|name| format!("{TESTS}/{name}"));
    assert!(workspace.read(&python).contains("<<<<<<< "));
    let doctor = workspace.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("then: memctl test --export"),
        "{doctor:?}"
    );
    let edited = workspace
        .read(&promptfoo)
        .replace("label: memctl", "label: ours");
    workspace.write(&promptfoo, &edited);
    export(&repository);
    assert!(!workspace.read(&python).contains("<<<<<<< "));
    assert_eq!(workspace.read(&promptfoo), edited);
    std::fs::remove_file(workspace.root().join(&promptfoo)).unwrap();
    export(&repository);
    assert_eq!(
        workspace
            .read(&promptfoo)
            .matches("correction_id: ")
            .count(),
        2
    );
    let doctor = workspace.json_of(&["doctor"]);
    assert_eq!(doctor.get("unmerged"), None, "{doctor}");
}

#[test]
fn a_guardrail_file_with_markers_is_left_to_an_editor() {
    let mut repository = Repository::new();
    repository.learn(SKILL, 1, 0, "carpets");
    repository.commit("both have this");
    repository.git(&["switch", "-q", "-c", "feature"]);
    repository
        .workspace
        .run(&["edit", "REFL-001", "Name no carpets."])
        .succeeds();
    repository.commit("theirs");
    repository.git(&["switch", "-q", "main"]);
    repository
        .workspace
        .run(&["edit", "REFL-001", "Never mention carpets."])
        .succeeds();
    repository.commit("ours");
    assert_eq!(
        repository.try_git(&["merge", "--no-edit", "feature"]).code,
        1
    );
    let doctor = repository.workspace.run(&["doctor"]);
    let said = &doctor.stdout;
    assert!(
        said.contains("GUARDRAILS.md` has conflict markers of git: edit it"),
        "{doctor:?}"
    );
    assert!(!said.contains("doctor --repair"), "{doctor:?}");
}

/// Ben merges, and Ann's rule gets another number; Ann's pull is none that a driver sees.
#[test]
fn runs_and_counts_follow_a_rule_that_a_merge_elsewhere_renumbered() {
    let repository = Repository::new();
    let ann = &repository.workspace;
    ann.write("input.json", "{}");
    ann.run(&["correct", SKILL, "State the years."]).succeeds();
    repository.commit("both have this");
    let ben = ann.home().join("ben");
    repository.git(&["clone", "-q", ".", ben.to_str().unwrap()]);
    let run = |args: &[&str]| run_in(&repository, &ben, args);
    let git = |args: &[&str]| {
        let ran = Ran::of(repository.command(args).current_dir(&ben).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    run(&["init", "--git"]).succeeds();
    run(&["correct", SKILL, "Never name a competitor."]).succeeds();
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "bens"]);
    ann.run(&["correct", SKILL, "Keep the reply short."])
        .succeeds();
    repository.commit("anns");
    let model = [
        "run", SKILL, "-i", "input.json", "--model", "scripted:replies.jsonl",
    ];
    ann.run(&model).succeeds();
    ann.run(&model).succeeds();
    git(&["pull", "-q", "--no-rebase", "--no-edit", "origin", "main"]);
    repository.git(&["pull", "-q", "--ff-only", ben.to_str().unwrap(), "main"]);
    let rules = ann.json(&["list", "rules"]);
    assert_eq!(rules["total"], 3, "{rules}");
    let id_of = |words: &str| {
        let rules = rules["records"].as_array().unwrap().iter();
        let mut found = rules.filter(|rule| rule.to_string().contains(words));
        found.next().unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (hers, his) = (id_of("Keep the reply short"), id_of("competitor"));
    assert_eq!((&*hers, &*his), ("REFL-003", "REFL-002"), "{rules}");
    let executions = |id: &str| ann.json(&["why", id])["chain"][0]["executions"].clone();
    assert_eq!((executions(&hers), executions(&his)), (json!(2), json!(0)));
    let chain = ann.json(&["why", "latest"])["chain"].to_string();
    assert!(
        chain.contains(&hers) && !chain.contains(&format!("\"{his}\"")),
        "{chain}"
    );
    ann.run(&model).succeeds();
    assert_eq!((executions(&hers), executions(&his)), (json!(3), json!(1)));
    // Each count is in the record as it is shown.
    let counts = |id: &str, count: &str| ann.json(&["show", id]).to_string().contains(count);
    assert!(counts(&hers, "\"times_injected\":3") && counts(&his, "\"times_injected\":1"));
    // A verdict on a run from before is one on her rule.
    let first = ann.json(&["list", "executions"])["records"][2]["id"].clone();
    ann.run(&[
        "reject",
        first.as_str().unwrap(),
        "--reason",
        "keep the reply short",
    ])
    .succeeds();
    assert!(counts(&hers, "\"times_harmed\":1") && !counts(&his, "times_harmed"));
}
