//! Duplicate and contradictory rules from outside, and which of them is active.

use serde_json::{Value, json};

use crate::support::correction;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

/// A workspace with one execution to correct.
fn ran() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    workspace
}

fn correct(workspace: &Workspace, said: &str, more: &[&str]) -> Value {
    let args = correction(said);
    workspace.json(&[&args[..], more].concat())
}

fn prompt(workspace: &Workspace) -> String {
    workspace
        .run(&["memory", "prompt", SKILL])
        .succeeds()
        .stdout
        .clone()
}

#[test]
fn the_same_words_make_the_rule_stronger() {
    let workspace = ran();
    let first = correct(&workspace, "Never name competitors in the summary", &[]);
    let again = correct(&workspace, "never name  competitors in the SUMMARY", &[]);
    assert_eq!(again["duplicate_of"], first["reflexion_id"]);
    assert!(
        again["confidence"].as_f64() > first["confidence"].as_f64(),
        "{again}"
    );
    // Saying it once more for the same correction adds nothing.
    let third = correct(&workspace, "never name  competitors in the SUMMARY", &[]);
    assert_eq!(third["correction_id"], again["correction_id"]);
    let rules = workspace.stored("reflexion_entries.json");
    let rules = rules["entries"].as_array().unwrap();
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(
        rules[0]["also_corrected_by"],
        json!([again["correction_id"]])
    );
    assert_eq!(rules[0]["confidence"], again["confidence"]);
    // A correction that says more becomes a separate rule.
    let more = correct(
        &workspace,
        "Never name competitors in the summary; write \"other vendors\" instead",
        &[],
    );
    assert_eq!(more["duplicate_of"], Value::Null);
    // Nobody has said how the two are related: whoever corrects is told which one is near.
    assert_eq!(more["similar"][0]["id"], first["reflexion_id"]);
    let listed = workspace.json(&["memory", "conflicts"]);
    assert_eq!(listed["near"][0]["b"], more["reflexion_id"], "{listed}");
    assert_eq!(listed["duplicates"], json!([]));
    assert_eq!(workspace.pairs("contradiction"), Vec::<Value>::new());
}

#[test]
fn a_near_rule_is_named_and_replaced_by_who_says_so() {
    let workspace = ran();
    let old = correct(&workspace, "Prefer tables over lists in the rationale", &[]);
    let said = "Prefer lists over tables in the rationale";
    let new = correct(&workspace, said, &[]);
    assert_eq!(new["similar"][0]["id"], old["reflexion_id"]);
    assert_eq!(new["conflicts"], json!([]));
    let both = prompt(&workspace);
    assert!(both.contains("tables over lists") && both.contains("lists over tables"));

    let old_id = old["reflexion_id"].as_str().unwrap();
    correct(&workspace, said, &["--replaces", old_id]);
    let now = prompt(&workspace);
    assert!(!now.contains("tables over lists") && now.contains("lists over tables"));
    let why = workspace.json(&["memory", "prompt", SKILL]);
    let reason = why["omitted"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains(new["reflexion_id"].as_str().unwrap()),
        "{why}"
    );
    let far = correct(&workspace, "Answer in French.", &[]);
    assert!(far.get("similar").is_none(), "{far}");
}

/// Usage counts of the first rule: injected, helped, harmed.
fn counts(workspace: &Workspace) -> [u64; 3] {
    let rule = &workspace.stored("reflexion_entries.json")["entries"][0];
    ["times_injected", "times_helped", "times_harmed"]
        .map(|field| rule[field].as_u64().unwrap_or(0))
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn verdict_on_an_output_counts_for_and_against_its_rules() {
    let workspace = ran();
    correct(&workspace, "Never name competitors in the summary", &[]);
    let run = || {
        let args = [
            "run",
            SKILL,
            "--input",
            "fixtures/sample_input.json",
            "--model",
            "exec:echo {}",
        ];
        workspace.json(&args)["execution_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = run();
    assert_eq!(counts(&workspace), [1, 0, 0]);
    workspace.run(&["accept", &first]).succeeds();
    assert_eq!(counts(&workspace), [1, 1, 0]);
    // The same verdict again says nothing more, and another one takes the first back.
    workspace.run(&["accept", &first]).succeeds();
    assert_eq!(counts(&workspace), [1, 1, 0]);
    workspace
        .run(&["reject", &first, "--reason", "no"])
        .succeeds();
    assert_eq!(counts(&workspace), [1, 0, 1]);
    // A repeated correction means that the rule was not followed.
    run();
    correct(&workspace, "never name competitors in the SUMMARY", &[]);
    assert_eq!(counts(&workspace), [2, 0, 2]);
    // A correction of something else does not concern it.
    correct(&workspace, "Round all amounts to whole euros", &[]);
    assert_eq!(counts(&workspace), [2, 0, 2]);
    for _ in 0..3 {
        let id = run();
        workspace
            .run(&["reject", &id, "--rule", "REFL-001"])
            .succeeds();
    }
    let omitted = &workspace.json(&["memory", "prompt", SKILL])["omitted"][0];
    assert_eq!(omitted["id"], "REFL-001");
    assert!(
        omitted["reason"].as_str().unwrap().contains("utility"),
        "{omitted}"
    );
    // New words begin without evidence.
    let edit = ["edit", "REFL-001", "Never name competitors at all."];
    workspace.json(&edit);
    assert!(prompt(&workspace).contains("Never name competitors at all"));
    // Without a model no rule is used, and none is counted.
    let before = counts(&workspace);
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    workspace.run(&["accept", "latest"]).succeeds();
    assert_eq!(counts(&workspace), before);
}

#[test]
fn a_remark_about_one_output_waits_and_gives_its_value() {
    let workspace = Workspace::sample();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    let said = "The overall score should be 48.";
    let made = correct(&workspace, said, &[]);
    assert_eq!(made["status"], "candidate", "{made}");
    assert!(
        made["doubt"].as_str().unwrap().contains("this one output"),
        "{made}"
    );
    assert_eq!(
        (&made["guardrails"], &made["tests"]),
        (&json!([]), &json!([]))
    );
    assert!(!prompt(&workspace).contains("48"));
    let kept = correct(&workspace, said, &["--as-rule"]);
    assert_eq!(
        (&kept["status"], &kept["was_candidate"]),
        (&json!("active"), &json!(true))
    );
    assert_eq!(kept["reflexion_id"], made["reflexion_id"]);
    assert!(prompt(&workspace).contains(said));
}

/// What people type when they are annoyed. Nothing is added, and nothing is left out.
const ANNOYED: [&str; 20] = [
    "wrong again. if they mention a visa it is relocation AND legal",
    "stop writing 'soon'. name the day, or say nothing",
    "2 paragraphs max",
    "You left out the notice period.",
    "Close with the name of the team.",
    "Close every letter with the name of the team.",
    "no bullet points. ever.",
    "I told you: salaries in euros, not dollars",
    "ugh. the tone! we are not selling anything",
    "even if the CV is empty, rate it",
    "don't guess the age",
    "Bitte nicht duzen!",
    "Pas de majuscules dans les titres, merci.",
    "Gaps are not a flaw, unless they lie about them",
    "who asked for a summary? drop it",
    "years of experience first, then degrees",
    "ok but why British spelling. American please",
    "half of these skills are invented. only list what the CV says",
    "must I repeat it? references go last",
    "\"passionate\" is banned",
];

#[test]
fn an_annoyed_person_is_taken_at_their_word() {
    let workspace = ran();
    for said in ANNOYED {
        let made = correct(&workspace, said, &[]);
        assert_eq!(
            (
                &made["rule"], &made["status"], &made["applies_when"], &made["root_cause"]
            ),
            (&json!(said), &json!("active"), &json!(""), &json!("")),
            "{made}"
        );
        assert!(prompt(&workspace).contains(said), "{said}");
        let guardrails = workspace.read("skills/hr/resume-screen/GUARDRAILS.md");
        assert!(
            guardrails.contains(&format!("**Rule**: {said}\n")),
            "{guardrails}"
        );
        let test = made["tests"][0].as_str().unwrap();
        let case: Value = serde_json::from_str(&workspace.read(test)).unwrap();
        assert_eq!(
            (&case["rubric"], &case["assertions"]),
            (&json!(said), &json!([]))
        );
    }
}

#[test]
fn an_assertion_of_the_person_is_the_test() {
    let workspace = ran();
    let check = ["--assert", "$.overall_score < 60"];
    let made = correct(&workspace, "Too generous.", &check);
    let test = made["tests"][0].as_str().unwrap();
    let case: Value = serde_json::from_str(&workspace.read(test)).unwrap();
    assert_eq!(
        case["assertions"],
        json!([{"type": "compare", "path": "$.overall_score", "is": "<", "value": 60,
            "said": "$.overall_score < 60"}])
    );
    let args = [&correction("Be kind.")[..], &["--assert", "be kind"]].concat();
    workspace.run(&args).fails(2, "is no assertion");
}

#[test]
fn a_new_rule_names_the_rules_near_it() {
    let workspace = Workspace::sample();
    workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    let correct = |said: &str| {
        workspace.json(&[
            "correct", SKILL, "--execution-id", "latest", "--correction", said,
        ])
    };
    let first = correct("Always keep the summary under 120 words.");
    assert!(first.get("similar").is_none(), "{first}");
    correct("Never mention the age of a candidate.");
    let new = correct("The summary must be at least 200 words long.");
    let near = &new["similar"][0];
    assert_eq!(near["id"], first["reflexion_id"], "{new}");
    let far = correct("Always answer in French.");
    let ids = far["similar"].as_array().map_or(0, Vec::len);
    assert!(ids <= 3, "{far}");
}

#[test]
fn a_rule_needs_no_execution() {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let said = "Never name competitors in the summary.";
    let report = workspace.json(&["correct", SKILL, said]);
    assert_eq!(report["execution_id"], Value::Null);
    assert_eq!(report["status"], "active");
    assert_eq!(report["root_cause"], "");
    assert_eq!(report["tests"], json!([]));
    assert!(prompt(&workspace).contains("Never name competitors"));
    let correction = workspace.stored("corrections.json")["corrections"][0].clone();
    assert_eq!(correction["execution_id"], "");
    assert_eq!(correction["original_output"], Value::Null);
    // The same words again change nothing, and nothing is missing.
    let again = workspace.json(&["correct", SKILL, said]);
    assert_eq!(again["correction_id"], report["correction_id"]);
    workspace.run(&["doctor"]).succeeds();
    let why = workspace.json(&["memory", "why", "REFL-001"]);
    assert_eq!(why["chain"][1]["id"], report["correction_id"]);
    // The skill must exist, and the text must not be empty.
    workspace
        .run(&["correct", "hr/nothing", said])
        .fails(2, "hr/nothing");
    workspace.run(&["correct", SKILL]).fails(2, "text");
}

/// Rules of one skill about different things.
const FIFTEEN: [&str; 15] = [
    "Never name competitors in the summary.",
    "Always state the salary range in euros.",
    "Keep the rationale under 120 words.",
    "Never ask about family plans.",
    "Round every score to whole numbers.",
    "Always list the missing certificates.",
    "Write the questions in the candidate's language.",
    "Never guess the candidate's age.",
    "Always quote the sentence of the resume behind a strength.",
    "Put the weakest skill first in the gaps.",
    "Never recommend an interview without a phone number.",
    "Always compare the notice period with the start date.",
    "Use British spelling.",
    "Never mention the photo.",
    "Always name the last employer.",
];

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn a_rejection_blames_the_rule_that_its_reason_is_about_or_none() {
    let workspace = ran();
    for rule in FIFTEEN {
        correct(&workspace, rule, &["--as-rule"]);
    }
    let run = || {
        let args = [
            "run",
            SKILL,
            "--input",
            "fixtures/sample_input.json",
            "--model",
            "exec:echo {}",
        ];
        let report = workspace.json(&args);
        assert_eq!(report["injected"].as_array().unwrap().len(), 15);
        report["execution_id"].as_str().unwrap().to_owned()
    };
    let harmed = || -> Vec<String> {
        let rules = workspace.stored("reflexion_entries.json");
        let rules = rules["entries"].as_array().unwrap().iter();
        let harmed = rules.filter(|rule| rule["times_harmed"].as_u64() == Some(1));
        harmed
            .map(|rule| rule["reflexion_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = run();
    let reason = "the salary range is in dollars again, it has to be euros";
    let report = workspace.json(&["reject", &first, "--reason", reason]);
    assert_eq!(
        report["blamed"].as_array().map(Vec::len),
        Some(1),
        "{report}"
    );
    assert_eq!(report["blamed"][0]["id"], "REFL-002");
    assert_eq!(harmed(), ["REFL-002"]);
    // Another verdict takes the blame back, and a vague reason blames none.
    workspace.run(&["accept", &first]).succeeds();
    assert_eq!(harmed(), [""; 0]);
    let report = workspace.json(&["reject", &run(), "--reason", "this is just bad"]);
    assert_eq!(
        (&report["blamed"], &report["outcome"]),
        (&json!([]), &json!("rejected"))
    );
    assert_eq!(harmed(), [""; 0]);
    // A person may name the rule, and change their mind.
    let third = run();
    workspace.json(&[
        "reject", &third, "--rule", "REFL-014", "--reason", "the photo",
    ]);
    assert_eq!(harmed(), ["REFL-014"]);
    workspace.json(&["reject", &third, "--rule", "REFL-013"]);
    assert_eq!(harmed(), ["REFL-013"]);
    correct(&workspace, "Never round the salary.", &["--as-rule"]);
    workspace
        .run(&["reject", &third, "--rule", "REFL-016"])
        .fails(2, "was not in the prompt");
    assert_eq!(harmed(), ["REFL-013"]);
}

#[test]
#[cfg_attr(windows, ignore = "it runs a program of Unix")]
fn a_run_that_held_both_rules_counts_once_after_their_merge() {
    let workspace = ran();
    correct(&workspace, "Never name competitors in the summary", &[]);
    let run = || {
        let args = [
            "run",
            SKILL,
            "--input",
            "fixtures/sample_input.json",
            "--model",
            "exec:echo {}",
        ];
        workspace.json(&args)["execution_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // One run held the first rule alone, two held both.
    workspace.run(&["accept", &run()]).succeeds();
    correct(&workspace, "Rival vendors stay out of it", &["--as-rule"]);
    workspace.run(&["accept", &run()]).succeeds();
    workspace
        .run(&["reject", &run(), "--rule", "REFL-002"])
        .succeeds();
    assert_eq!(counts(&workspace), [3, 2, 0]);
    let merged = workspace.json(&["memory", "conflicts", "--merge", "REFL-001", "REFL-002"]);
    assert_eq!(
        merged["evidence"],
        json!({ "shown": 3, "helped": 2, "harmed": 1 })
    );
    assert_eq!(counts(&workspace), [3, 2, 1]);
}

/// Sentences of an annoyed person whose rules act, and those that wait, beside those of the page.
const ACTING: [&str; 9] = [
    "2 sentences, no more",
    "Sign with the name of the team.",
    "no no no. priority is a number from 1 to 4",
    "never promise a refund",
    "Reply in the language of the ticket!!",
    "angry customers first: name, apology, date. in that order",
    "P1 only if the shop is down",
    "don't say sorry twice, it sounds fake",
    "wrong again. if they name their lawyer it's legal AND P1",
];
const WAITING: [&str; 3] = [
    "Jane should have scored 55.",
    "You wrote 54, it is 70.",
    "this is not what I asked for",
];

/// Sentences of the page about corrections and of the lists above, and whether their rules act.
fn sentences() -> Vec<(&'static str, bool)> {
    let rows = include_str!("../../docs/correct.md").lines();
    let cells = rows.filter_map(|row| {
        row.strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")
    });
    let found = cells.filter(|(_, rule)| ["acts", "waits"].contains(rule));
    let of_page = found.map(|(said, rule)| (said, rule == "acts"));
    let acting = ACTING.map(|said| (said, true));
    let waiting = WAITING.map(|said| (said, false));
    of_page.chain(acting).chain(waiting).collect()
}

#[test]
fn sentences_of_an_annoyed_person_become_what_the_page_says() {
    let workspace = ran();
    let all = sentences();
    assert_eq!(all.len(), 20);
    for (said, acts) in &all {
        let report = correct(&workspace, said, &[]);
        assert_eq!(report["rule"], *said);
        assert_eq!(report["applies_when"], "", "{said}");
        assert_eq!(report["status"] == "active", *acts, "{report}");
        assert_eq!(report["doubt"].is_null(), *acts, "{report}");
        assert_eq!(
            report["tests"].as_array().unwrap().len(),
            usize::from(*acts)
        );
    }
    let prompt = prompt(&workspace);
    let guardrails = workspace.read("skills/hr/resume-screen/GUARDRAILS.md");
    let tested = workspace.json(&["test", SKILL, "--allow-skipped"]);
    for (said, acts) in &all {
        assert_eq!(prompt.contains(&format!(": {said}\n")), *acts, "{prompt}");
        let line = format!("**Rule**: {said}\n");
        assert_eq!(
            guardrails.matches(&line).count(),
            usize::from(*acts),
            "{guardrails}"
        );
    }
    let cases = tested["cases"].as_array().unwrap();
    let untested = |case: &&Value| case["status"] == "skipped";
    assert_eq!(cases.iter().filter(untested).count(), 14, "{tested}");
}
