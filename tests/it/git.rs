//! The real git merges two branches that both learned, with the driver that `init --git` installs.
//!
//! Every step leaves a word of its own in the input, the correction, the rule, the test and the
//! guardrail, which shows that a reference leads to the right record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

pub(crate) const SKILL: &str = "hr/resume-screen";
const OTHER: &str = "support/reply-draft";

const OURS: [&str; 20] = [
    "apples", "bridges", "candles", "dolphins", "engines", "feathers", "glaciers", "hammers",
    "islands", "jackets", "kettles", "lanterns", "mirrors", "needles", "orchards", "pillows",
    "quarries", "ribbons", "saddles", "tunnels",
];
const THEIRS: [&str; 20] = [
    "umbrellas", "violins", "windmills", "yachts", "zebras", "anchors", "baskets", "cathedrals",
    "deserts", "elevators", "fountains", "gardens", "harbours", "insects", "jungles", "kitchens",
    "libraries", "mountains", "notebooks", "oceans",
];

/// A repository with a workspace in it.
pub(crate) struct Repository {
    pub(crate) workspace: Workspace,
    /// Which side the clock tells apart: no two sides do anything in the same microsecond.
    clock: u32,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self {
            workspace: Workspace::sample(),
            clock: 0,
        };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.workspace.run(&["init", "--git"]).succeeds();
        repository
            .workspace
            .write("replies.jsonl", "{\"reply\": {\"overall_score\": 72}}\n");
        repository.commit("a workspace");
        repository
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(self.workspace.root())
            .env_clear()
            .env("HOME", self.workspace.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("MEMCTL_NOW", "2026-04-01T00:00:00.5+00:00");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "n")
                .env(format!("GIT_{role}_EMAIL"), "e@x");
        }
        command
    }

    pub(crate) fn try_git(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let ran = self.try_git(args);
        assert_eq!(ran.code, 0, "git {args:?}: {ran:?}");
        ran.stdout + &ran.stderr
    }

    pub(crate) fn commit(&self, subject: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
    }

    /// Everything that is not committed; the workspace must be as git has it otherwise.
    fn status(&self) -> String {
        self.git(&["status", "--short"])
    }

    /// Sets the clock to second `n` of a day, at a fraction of it that is this side's alone.
    fn at(&mut self, side: u32, n: u32) {
        self.clock += 1;
        let now = format!(
            "2026-03-01T10:{:02}:{:02}.{:03}{:03}+00:00",
            n / 60,
            n % 60,
            side,
            self.clock
        );
        self.workspace.set("MEMCTL_NOW", &now);
    }

    /// Runs a skill, corrects it, and learns a rule, a test and a guardrail from it.
    pub(crate) fn learn(&mut self, skill: &str, side: u32, n: u32, word: &str) {
        self.at(side, n);
        self.workspace
            .write("input.json", json!({"about": word}).to_string());
        let args = [
            "run", skill, "--input", "input.json", "--model", "scripted:replies.jsonl",
        ];
        let run = self.workspace.json(&args);
        let id = run["execution_id"].as_str().unwrap().to_owned();
        let said =
            format!("Never mention {word} in the summary; the overall_score must be below 60");
        let args = [
            "correct", skill, "--execution-id", &id, "--correction", &said,
        ];
        let corrected = self.workspace.json(&args);
        assert!(corrected["reflexion_id"].is_string(), "{corrected}");
        assert_eq!(corrected["duplicate_of"], Value::Null, "{corrected}");
        std::fs::remove_file(self.workspace.root().join("input.json")).unwrap();
    }

    fn entries(&self, file: &str) -> Vec<Value> {
        let key = if file == "corrections.json" {
            "corrections"
        } else {
            "entries"
        };
        match std::fs::read(self.workspace.memory(file)) {
            Ok(text) => serde_json::from_slice::<Value>(&text).unwrap()[key]
                .as_array()
                .unwrap()
                .clone(),
            Err(_) => Vec::new(),
        }
    }

    fn by_id(&self, file: &str, field: &str) -> BTreeMap<String, Value> {
        let entries = self.entries(file);
        let count = entries.len();
        let by_id: BTreeMap<String, Value> = entries
            .into_iter()
            .map(|entry| (entry[field].as_str().unwrap().to_owned(), entry))
            .collect();
        assert_eq!(by_id.len(), count, "an id is there twice in {file}");
        by_id
    }

    /// Nothing is lost, every reference leads to the right record, and all checks pass.
    pub(crate) fn holds(&self, words: &[(&str, &str)]) {
        let executions = self.by_id("episodic_memory.json", "execution_id");
        let corrections = self.by_id("corrections.json", "correction_id");
        let rules = self.by_id("reflexion_entries.json", "reflexion_id");
        assert_eq!(executions.len(), words.len());
        assert_eq!(corrections.len(), words.len());
        assert_eq!(rules.len(), words.len());
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for (id, rule) in &rules {
            let of = rule["correction_id"].as_str().unwrap();
            let correction = &corrections[of];
            let execution = &executions[correction["execution_id"].as_str().unwrap()];
            let word = execution["input_summary"]["about"]
                .as_str()
                .unwrap()
                .to_owned();
            for text in [&rule["rule"], &correction["user_correction"]] {
                assert!(
                    text.as_str().unwrap().contains(&word),
                    "{id}: {word} is not in {text}"
                );
            }
            let skill = rule["skill"].as_str().unwrap();
            assert!(words.contains(&(skill, &word)), "{word}");
            for other in [correction, execution] {
                assert_eq!(other["skill"], skill);
            }
            for injected in execution["reflexions_injected"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let injected = &rules[injected.as_str().unwrap()];
                assert_eq!(injected["skill"], skill);
                // It was there before, and so has an older birth.
                assert!(injected["created_at"].as_str() < execution["timestamp"].as_str());
            }
            self.case_holds(
                skill,
                of,
                id,
                &word,
                correction["execution_id"].as_str().unwrap(),
            );
            let why = self.workspace.json(&["memory", "why", id]);
            let chain = why["chain"].as_array().unwrap();
            let ids: Vec<&str> = chain
                .iter()
                .map(|link| link["id"].as_str().unwrap())
                .collect();
            assert!(ids.contains(&of), "{why}");
            assert!(
                !chain.iter().any(|link| link["state"] == "missing"),
                "{why}"
            );
            seen.insert(word);
        }
        assert_eq!(seen.len(), words.len());
        let doctor = self.workspace.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{doctor:?}");
        self.workspace
            .run(&["memory", "audit", "verify"])
            .succeeds();
        for (skill, _) in words {
            let tests = self
                .workspace
                .root()
                .join(format!("skills/{skill}/tests/generated"));
            let cases = std::fs::read_dir(tests).unwrap().flatten();
            let cases = cases.filter(|f| {
                let name = f.file_name().into_string().unwrap();
                name.starts_with("test_correction_") && name.strip_suffix(".json").is_some()
            });
            let of_skill = words.iter().filter(|(of, _)| of == skill).count();
            assert_eq!(cases.count(), of_skill, "{skill}");
        }
    }

    fn case_holds(&self, skill: &str, correction: &str, rule: &str, word: &str, execution: &str) {
        let number: u32 = correction.trim_start_matches("CORR-").parse().unwrap();
        let stem = format!("skills/{skill}/tests/generated/test_correction_{number}");
        let case: Value =
            serde_json::from_str(&self.workspace.read(&format!("{stem}.json"))).unwrap();
        assert_eq!(case["correction_id"], correction);
        assert_eq!(case["reflexion_id"], rule);
        assert_eq!(case["execution_id"], execution);
        assert_eq!(case["id"], format!("test_correction_{number}"));
        assert_eq!(case["input"]["about"], word);
        let guardrails = self
            .workspace
            .read(&format!("skills/{skill}/GUARDRAILS.md"));
        let source = format!("**Source**: {correction}\n");
        assert_eq!(guardrails.matches(&source).count(), 1, "{correction}");
        let end = guardrails.find(&source).unwrap();
        let section = &guardrails[guardrails[..end].rfind("## GRD-").unwrap()..end];
        assert!(section.contains(word), "{word}: {section}");
    }
}

/// Words with their skill.
fn of<'a>(skill: &'a str, words: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    words.iter().map(|word| (skill, *word)).collect()
}

/// Two branches, `main` and `feature`, that have each learned something since they parted.
pub(crate) fn two(count: usize) -> (Repository, Vec<(&'static str, &'static str)>) {
    let mut repository = Repository::new();
    repository.learn(SKILL, 1, 0, "carpets");
    repository.commit("both have this");
    repository.git(&["switch", "-q", "-c", "feature"]);
    for (n, word) in THEIRS.iter().take(count).enumerate() {
        repository.learn(SKILL, 2, 10 + u32::try_from(n).unwrap(), word);
        repository.commit(word);
    }
    repository.git(&["switch", "-q", "main"]);
    for (n, word) in OURS.iter().take(count).enumerate() {
        repository.learn(SKILL, 3, 10 + u32::try_from(n).unwrap(), word);
    }
    repository.commit("ours");
    let mut words = of(SKILL, &["carpets"]);
    words.extend(of(SKILL, &OURS[..count]));
    words.extend(of(SKILL, &THEIRS[..count]));
    (repository, words)
}

#[test]
fn two_branches_that_learnt_twenty_times_are_merged_without_a_conflict() {
    let (repository, words) = two(20);
    let said = repository.git(&["merge", "--no-edit", "feature"]);
    assert!(
        said.contains("20 records from their side got new ids: CORR-002 → CORR-022"),
        "{said}"
    );
    repository.holds(&words);
    // Tests of theirs are in new files, which a person adds.
    repository.commit("follow");
    repository.holds(&words);
    assert_eq!(repository.status(), "");
    // The tables and the index notice that the files are others.
    let found = repository.workspace.json(&["memory", "search", "zebras"]);
    assert_eq!(
        found["results"][0]["snippet"]
            .as_str()
            .unwrap()
            .matches("zebras")
            .count(),
        1,
        "{found}"
    );
    let prompt = repository.workspace.run(&["memory", "prompt", SKILL]);
    assert!(
        prompt.stdout.contains("oceans") && prompt.stdout.contains("tunnels"),
        "{prompt:?}"
    );
    // The next record gets an unused id.
    let next = repository
        .workspace
        .json(&["run", SKILL, "--model", "scripted:replies.jsonl"]);
    assert!(next["execution_id"].is_string());
}

#[test]
fn the_same_twenty_twice_are_rebased() {
    let (repository, words) = two(6);
    repository.git(&["switch", "-q", "feature"]);
    repository.git(&["rebase", "-q", "main"]);
    repository.holds(&words);
    repository.commit("follow");
    assert_eq!(
        repository
            .git(&["rev-list", "--count", "--merges", "HEAD"])
            .trim(),
        "0"
    );
    // A rebased branch merges back without conflicts.
    repository.git(&["switch", "-q", "main"]);
    repository.git(&["merge", "-q", "--ff-only", "feature"]);
    repository.holds(&words);
    assert_eq!(repository.status(), "");
}

#[test]
fn a_file_that_only_one_branch_changed_keeps_its_ids_and_is_named() {
    let mut repository = Repository::new();
    for (side, branch, skill, word) in [
        (2, "feature", OTHER, "violins"),
        (3, "main", SKILL, "apples"),
    ] {
        if branch != "main" {
            repository.git(&["switch", "-q", "-c", branch]);
        }
        repository.learn(skill, side, 10, word);
        repository.commit(word);
        repository.git(&["switch", "-q", "main"]);
    }
    let said = repository.git(&["merge", "--no-edit", "feature"]);
    let guardrails = "skills/support/reply-draft/GUARDRAILS.md";
    let note = format!("{guardrails} names records by their former ids");
    assert!(said.contains(&note), "{said}");
    let rules = repository.entries("reflexion_entries.json");
    let ids: Vec<_> = rules.iter().map(|rule| &rule["reflexion_id"]).collect();
    assert_eq!(ids, ["REFL-002", "REFL-001"], "{rules:#?}");
    assert_eq!(rules[0]["merged_from"], json!(["REFL-001"]));
    assert_eq!(rules[0]["correction_id"], "CORR-002");
}

/// Ann shares a merge of Ben's before she pulls: her side changes the rules alone, theirs all files.
#[test]
fn references_are_right_where_one_branch_changed_a_file_alone() {
    let (mut repository, words) = two(1);
    repository.git(&["branch", "ann", "feature"]);
    repository.git(&["merge", "-q", "--no-edit", "feature"]);
    repository.commit("follow");
    repository.git(&["switch", "-q", "ann"]);
    repository.at(4, 90);
    repository
        .workspace
        .run(&["edit", "REFL-001", "--set", "root_cause=Mine."])
        .succeeds();
    repository.commit("a change of one file");
    let said = repository.git(&["merge", "--no-edit", "main"]);
    assert!(!said.contains("former ids"), "{said}");
    repository.holds(&words);
    let rule = &repository.entries("reflexion_entries.json")[0];
    assert_eq!(rule["root_cause"], "Mine.");
    repository.git(&["switch", "-q", "main"]);
    repository.git(&["merge", "-q", "--no-edit", "ann"]);
    repository.holds(&words);
}

/// A rule that both branches have changed.
fn edited(ours: &[&str], theirs: &[&str]) -> (Repository, Ran) {
    let mut repository = Repository::new();
    repository.learn(SKILL, 1, 0, "carpets");
    repository.commit("both have this");
    for (side, branch, changes) in [(2, "feature", theirs), (3, "main", ours)] {
        if branch != "main" {
            repository.git(&["switch", "-q", "-c", branch]);
        }
        repository.at(side, 50);
        repository.workspace.run(changes).succeeds();
        repository.commit(branch);
        repository.git(&["switch", "-q", "main"]);
    }
    let merged = repository.try_git(&["merge", "--no-edit", "feature"]);
    (repository, merged)
}

#[test]
fn edits_of_one_record_are_joined_field_by_field() {
    let rule = [
        "memory", "edit", "REFL-001", "--set", "mistake=Named carpets.",
    ];
    let cause = [
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "root_cause=Nobody said so.",
    ];
    let (repository, merged) = edited(&rule, &cause);
    assert_eq!(merged.code, 0, "{merged:?}");
    let rule = &repository.entries("reflexion_entries.json")[0];
    assert_eq!(rule["mistake"], "Named carpets.");
    assert_eq!(rule["root_cause"], "Nobody said so.");
    assert_eq!(rule["merge_conflict"], Value::Null);
    repository.holds(&[(SKILL, "carpets")]);
}

#[test]
fn two_edits_of_one_field_are_left_to_a_person_and_the_file_stays_json() {
    let mine = [
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "root_cause=Mine, on carpets.",
    ];
    let other = [
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "root_cause=Other, on carpets.",
    ];
    for side in ["--ours", "--theirs"] {
        let (repository, merged) = edited(&mine, &other);
        assert_eq!(merged.code, 1, "{merged:?}");
        assert!(
            merged.stdout.contains("memctl memory resolve REFL-001"),
            "{merged:?}"
        );
        let rule = &repository.entries("reflexion_entries.json")[0];
        assert_eq!(rule["root_cause"], "Mine, on carpets.");
        assert_eq!(
            rule["merge_conflict"],
            json!({"/root_cause": "Other, on carpets."})
        );
        let doctor = repository.workspace.run(&["doctor"]);
        assert_eq!(doctor.code, 1);
        assert!(
            doctor
                .stdout
                .contains("REFL-001: two branches set `/root_cause`"),
            "{doctor:?}"
        );
        assert!(
            doctor
                .stdout
                .contains("memctl memory resolve REFL-001 --ours"),
            "{doctor:?}"
        );
        let wrong = ["memory", "resolve", "CORR-001", side];
        repository
            .workspace
            .run(&wrong)
            .fails(2, "has no open merge conflict");
        let report = repository
            .workspace
            .json(&["memory", "resolve", "REFL-001", side]);
        assert_eq!(report["decided"], json!(["/root_cause"]));
        let rule = &repository.entries("reflexion_entries.json")[0];
        let expected = if side == "--ours" {
            "Mine, on carpets."
        } else {
            "Other, on carpets."
        };
        assert_eq!(rule["root_cause"], expected);
        assert!(!rule.as_object().unwrap().contains_key("merge_conflict"));
        repository.commit("resolved");
        repository.holds(&[(SKILL, "carpets")]);
        // It can be undone like any change.
        repository.workspace.run(&["memory", "undo"]).succeeds();
        assert!(
            repository
                .workspace
                .read(".agentura/reflexion_entries.json")
                .contains("merge_conflict")
        );
    }
}

#[test]
fn record_that_one_branch_removed_stays_removed() {
    let edit = ["memory", "edit", "REFL-001", "--set", "root_cause=Mine."];
    let forget = ["memory", "forget", "REFL-001"];
    for (ours, theirs) in [
        (&edit[..], &forget[..]),
        (&forget, &edit),
        (&forget, &forget),
    ] {
        let (repository, merged) = edited(ours, theirs);
        assert_eq!(merged.code, 0, "{merged:?}");
        assert_eq!(
            repository.entries("reflexion_entries.json"),
            [] as [Value; 0]
        );
        let stones = repository.workspace.read(".agentura/tombstones.jsonl");
        assert!(stones.contains("REFL-001"), "{stones}");
        repository.workspace.run(&["doctor"]).succeeds();
        repository
            .workspace
            .run(&["memory", "audit", "verify"])
            .succeeds();
    }
}

/// A record that was born and forgotten on one branch must not take one of the other branch with it.
#[test]
fn a_tombstone_means_the_record_of_its_branch() {
    let mut repository = Repository::new();
    repository.git(&["switch", "-q", "-c", "feature"]);
    repository.learn(SKILL, 2, 10, "violins");
    repository
        .workspace
        .run(&["memory", "forget", "REFL-001"])
        .succeeds();
    repository.commit("learned and forgotten");
    repository.git(&["switch", "-q", "main"]);
    repository.learn(SKILL, 3, 10, "apples");
    repository.commit("ours");
    repository.git(&["merge", "-q", "--no-edit", "feature"]);
    let rules = repository.entries("reflexion_entries.json");
    assert_eq!(rules.len(), 1);
    assert!(rules[0]["rule"].as_str().unwrap().contains("apples"));
    let why = repository.workspace.json(&["memory", "why", "REFL-001"]);
    assert_eq!(why["chain"][0]["state"], Value::Null, "{why}");
    repository.workspace.run(&["doctor"]).succeeds();
}

#[test]
fn a_merge_works_from_a_directory_below_and_in_another_worktree() {
    let (mut repository, words) = two(2);
    let below = repository.workspace.root().join("skills/hr");
    let mut command = repository.command(&["merge", "-q", "--no-edit", "feature"]);
    let ran = Ran::of(command.current_dir(below).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    repository.holds(&words);
    repository.commit("follow");
    repository.git(&["branch", "elsewhere"]);
    repository.learn(SKILL, 3, 30, OURS[2]);
    repository.commit("goes on");
    let tree = repository.workspace.home().join("a tree");
    repository.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "elsewhere"]);
    let mut command = repository.command(&["merge", "-q", "--no-edit", "feature", "main"]);
    // Only one of the two is new there.
    let ran = Ran::of(command.current_dir(&tree).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        std::fs::read_to_string(tree.join(".agentura/corrections.json"))
            .unwrap()
            .contains(OURS[2])
    );
}

/// A workspace in a directory with a space in its name, inside of a larger repository.
#[test]
fn a_workspace_need_not_be_the_whole_repository() {
    let mut repository = Repository::new();
    let inner = "some project/.agentura";
    let root = repository.workspace.root();
    std::fs::create_dir_all(root.join(inner)).unwrap();
    let add = |repository: &mut Repository, side: u32, n: u32, said: &str| {
        repository.at(side, n);
        let at = root.join("some project");
        let mut command = repository.workspace.command();
        let args = ["memory", "add", "--type", "task_memory", "--content", said];
        let ran = Ran::of(command.current_dir(at).args(args).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    let mut init = repository.workspace.command();
    let ran = Ran::of(
        init.current_dir(root.join("some project"))
            .args(["init", "--git"])
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    add(&mut repository, 1, 0, "both know the harbour");
    repository.commit("a workspace inside");
    repository.git(&["switch", "-q", "-c", "feature"]);
    add(&mut repository, 2, 1, "theirs knows the mountain");
    repository.commit("theirs");
    repository.git(&["switch", "-q", "main"]);
    add(&mut repository, 3, 1, "ours knows the river");
    repository.commit("ours");
    repository.git(&["merge", "-q", "--no-edit", "feature"]);
    let text = std::fs::read_to_string(root.join(inner).join("memories.json")).unwrap();
    let memories: Value = serde_json::from_str(&text).unwrap();
    let ids: Vec<&str> = memories["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["id"].as_str().unwrap())
        .collect();
    // In the order of time; theirs is the older one here.
    assert_eq!(ids, ["MEM-001", "MEM-003", "MEM-002"], "{text}");
    assert_eq!(memories["entries"][1]["merged_from"], json!(["MEM-002"]));
    // Undo reverts the last change, and no change of a record that has another id now.
    for _ in 0..2 {
        let mut undo = repository.workspace.command();
        undo.current_dir(root.join("some project"))
            .args(["memory", "undo"]);
        undo.output().unwrap();
    }
    let text = std::fs::read_to_string(root.join(inner).join("memories.json")).unwrap();
    let is_there = ["harbour", "mountain", "river"].map(|word| text.contains(word));
    assert_eq!(is_there, [true, true, false], "{text}");
}

#[test]
fn a_clone_is_told_that_it_does_not_know_how() {
    let (repository, words) = two(1);
    let clone = repository.workspace.home().join("clone");
    repository.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let run = |args: &[&str]| {
        let mut command = repository.workspace.command();
        Ran::of(command.current_dir(&clone).args(args).output().unwrap())
    };
    let doctor = run(&["doctor"]);
    assert!(doctor.stdout.contains("memctl init --git"), "{doctor:?}");
    let installed = run(&["init", "--git"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    assert!(!run(&["doctor"]).stdout.contains("init --git"));
    assert!(run(&["init", "--git"]).stdout.contains("Already set up"));
    let pull = [
        "pull", "-q", "--no-rebase", "--no-edit", "origin", "feature",
    ];
    let pulled = Ran::of(
        repository
            .command(&pull)
            .current_dir(&clone)
            .output()
            .unwrap(),
    );
    assert_eq!(pulled.code, 0, "{pulled:?}");
    let rules = std::fs::read_to_string(clone.join(".agentura/reflexion_entries.json")).unwrap();
    for (_, word) in words {
        assert!(rules.contains(word), "{word}");
    }
}

/// An unreadable file gets git's conflict markers, and nothing is lost.
#[test]
fn a_torn_file_is_left_to_a_person() {
    let mut repository = Repository::new();
    repository.git(&["switch", "-q", "-c", "feature"]);
    repository.learn(SKILL, 2, 10, "violins");
    let rules = repository.workspace.memory("reflexion_entries.json");
    let text = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, &text[..text.len() - 9]).unwrap();
    repository.commit("torn");
    repository.git(&["switch", "-q", "main"]);
    repository.learn(SKILL, 3, 10, "apples");
    repository.commit("ours");
    let merged = repository.try_git(&["merge", "--no-edit", "feature"]);
    assert_eq!(merged.code, 1, "{merged:?}");
    let said = format!("{}{}", merged.stdout, merged.stderr);
    assert!(
        said.contains("not merged, conflict markers are in the file"),
        "{said}"
    );
    let text = std::fs::read_to_string(&rules).unwrap();
    for part in ["<<<<<<< ours", "apples", "violins", ">>>>>>> theirs"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn without_git_nothing_is_said_and_nothing_is_done() {
    let workspace = Workspace::empty();
    let made = workspace.run(&["init"]);
    made.succeeds();
    assert!(
        !made.stdout.contains("git") || made.stdout.contains(".gitignore"),
        "{made:?}"
    );
    assert!(!Path::new(&workspace.root()).join(".gitattributes").exists());
    workspace
        .run(&["init", "--git"])
        .fails(2, "not a git repository");
    let doctor = workspace.json(&["doctor"]);
    assert_eq!(doctor["git"], json!([]));
    assert_eq!(doctor["git_offer"], Value::Null);
    let empty = Workspace::empty();
    empty
        .run(&["init", "--git"])
        .fails(2, "not a git repository");
    assert!(!empty.root().join(".agentura").exists());
}

/// Git is changed on request only, and what a repository carries is no request.
#[test]
fn init_leaves_git_alone_and_doctor_offers_the_merge_driver() {
    let workspace = Workspace::empty();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(workspace.root()).env_clear();
        command.env("HOME", workspace.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Ran::of(command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap())
    };
    let attributes = workspace.root().join(".gitattributes");
    assert_eq!(git(&["init", "-q"]).code, 0);
    let settings = workspace.read(".git/config");
    workspace.run(&["init"]).succeeds();
    assert!(!attributes.exists());
    assert_eq!(workspace.read(".git/config"), settings);
    let doctor = workspace.json(&["doctor"]);
    assert_eq!(doctor["healthy"], true);
    assert!(
        doctor["git_offer"]
            .to_string()
            .contains("memctl init --git")
    );
    // An ignored memory is merged by nobody.
    workspace.write(".gitignore", ".agentura/\n");
    assert_eq!(workspace.json(&["doctor"])["git_offer"], Value::Null);
    std::fs::remove_file(workspace.root().join(".gitignore")).unwrap();

    workspace.run(&["init", "--git"]).succeeds();
    assert!(attributes.exists());
    assert_eq!(workspace.json(&["doctor"])["git_offer"], Value::Null);
    let again = workspace.run(&["init", "--git"]);
    assert!(again.stdout.contains("Already set up"), "{again:?}");

    // Attributes of a cloned repository install nothing.
    std::fs::write(workspace.root().join(".git/config"), &settings).unwrap();
    workspace.run(&["init"]).succeeds();
    assert_eq!(workspace.read(".git/config"), settings);
}
