//! `test` from outside, with a model that follows a rule only if the prompt contains it.

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
const BELOW: &str =
    "A candidate with 5 years Python but no distributed systems should score below 60.";

/// Scores 72, unless the prompt says otherwise. Each rule is known by its words.
const MODEL: &str = r##"
import json, sys
prompt = sys.stdin.read()
learned = prompt.split("# Résumé screening")[0]
score, recommendation, note = 72, "hold", "fine"
if "<rule>" in prompt:
    print(json.dumps({"reason": "the note", "pass": "kind words" in prompt.split("<output>")[1].split("</output>")[0]}))
    sys.exit()
if "below 60" in learned: score = 55
if "at least 50" in learned: score = 90
if "GDPR" in learned: note = "GDPR applies"
if "kindly" in learned: note = "kind words"
print(json.dumps({"overall_score": score, "recommendation": recommendation, "note": note}))
"##;

/// Checks that the person gives with a correction.
fn checks(said: &str) -> &'static [&'static str] {
    let all: [(&str, &[&str]); 4] = [
        ("below 60", &["$.overall_score < 60"]),
        ("Kubernetes", &["$.note contains \"Kubernetes\""]),
        (
            "below 90",
            &["$.overall_score < 90", "$.overall_score > 80"],
        ),
        ("hold", &["$.recommendation == \"hold\""]),
    ];
    let found = all.into_iter().find(|(words, _)| said.contains(words));
    found.map_or(&[], |(_, checks)| checks)
}

struct Trained {
    workspace: Workspace,
    model: String,
}

impl Trained {
    fn new() -> Self {
        let workspace = Workspace::sample();
        let script = workspace.write("model.py", MODEL);
        let model = format!("exec:python3 {}", script.display());
        Self { workspace, model }
    }

    fn correct(&self, said: &str) -> Value {
        self.workspace.json(&["run", SKILL, "--model", &self.model]);
        let args = [
            "correct", SKILL, "--execution-id", "latest", "--correction", said, "--model",
            "offline",
        ];
        let checks = checks(said).iter().flat_map(|check| ["--assert", check]);
        let args: Vec<&str> = args.into_iter().chain(checks).collect();
        self.workspace.json(&args)
    }

    fn test(&self, more: &[&str]) -> Ran {
        let args = ["test", "--json", "--model", &self.model];
        self.workspace.run(&[&args[..], more].concat())
    }

    fn rule(&self, at: usize) -> Value {
        self.workspace.stored("reflexion_entries.json")["entries"][at].clone()
    }
}

#[test]
fn a_rule_that_makes_its_test_pass_is_validated_and_no_other() {
    let trained = Trained::new();
    let corrected = trained.correct(BELOW);
    trained.correct("Always mention \"Kubernetes\" in the note.");
    let ran = trained.test(&[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let document = ran.document();
    assert_eq!(
        (
            &document["passed"], &document["failed"], &document["skipped"]
        ),
        (&json!(1), &json!(1), &json!(0))
    );
    let case = &document["cases"][0];
    for (field, value) in [
        ("id", json!("test_correction_1")),
        ("skill", json!(SKILL)),
        ("correction_id", json!("CORR-001")),
        ("reflexion_id", json!("REFL-001")),
        ("status", json!("passed")),
        ("without_rule", json!("failed")),
        ("with_rule", json!("passed")),
    ] {
        assert_eq!(case[field], value, "{case}");
    }
    let reason = document["cases"][1]["reason"].as_str().unwrap();
    assert!(reason.contains("fails with `REFL-002` too"), "{reason}");
    let rule = trained.rule(0);
    assert_eq!(
        (&rule["validated_by_test"], &rule["generated_test_ids"]),
        (&json!(true), &json!(["test_correction_1"]))
    );
    let promised = corrected["confidence"].as_f64().unwrap();
    let confidence = ((promised * 4.0 + 1.0) / 5.0 * 1e4).round() / 1e4;
    assert_eq!(
        (&rule["times_helped"], &rule["confidence"]),
        (&json!(1), &json!(confidence)),
        "{rule}"
    );
    let other = trained.rule(1);
    assert_eq!(
        (&other["validated_by_test"], &other["generated_test_ids"]),
        (&json!(false), &json!([]))
    );
    // The same case again is no new evidence, and nothing was recorded as an execution.
    assert_eq!(trained.test(&[]).document()["passed"], 1);
    assert_eq!(trained.rule(0), rule);
    let executions = &trained.workspace.stored("episodic_memory.json")["entries"];
    assert_eq!(executions.as_array().unwrap().len(), 2);
    let prompt = trained.workspace.run(&["memory", "prompt", SKILL]);
    assert!(prompt.stdout.contains("[validated]"), "{prompt:?}");
}

#[test]
fn a_test_that_fails_takes_its_credit_back_and_blames_no_other_rule() {
    let trained = Trained::new();
    trained.correct(BELOW);
    trained.test(&[]).succeeds();
    trained.correct("The role fit should be at least 50, always.");
    let other = trained.rule(1);
    let ran = trained.test(&[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let document = ran.document();
    let case = &document["cases"][0];
    // Two for this test, and four with the judge of the other one.
    assert_eq!(
        (&case["status"], &document["calls"]),
        (&json!("failed"), &json!(6))
    );
    let reason = case["reason"].as_str().unwrap();
    assert!(reason.contains("`REFL-001` too: "), "{case}");
    assert_eq!(trained.rule(1), other);
    // Nothing shows any longer that the rule works.
    let first = trained.rule(0);
    assert_eq!(
        (&first["validated_by_test"], &first["times_harmed"]),
        (&json!(false), &json!(0))
    );
    trained.workspace.json(&["memory", "forget", "REFL-002"]);
    trained.test(&[SKILL]).fails(0, "");
    assert_eq!(trained.rule(0)["validated_by_test"], true);
}

#[test]
fn a_test_that_passes_without_its_rule_is_worthless() {
    let trained = Trained::new();
    trained.correct("The score must be below 90. The score must be above 80.");
    trained.correct("The recommendation should be \"hold\", always.");
    let path = "skills/hr/resume-screen/tests/generated/test_correction_1.json";
    let edited = trained
        .workspace
        .read(path)
        .replace("\"value\": 80", "\"value\": 70");
    trained.workspace.write(path, edited);
    let ran = trained.test(&[]);
    let case = &ran.document()["cases"][0];
    assert_eq!(
        (&case["status"], &case["without_rule"]),
        (&json!("worthless"), &json!("passed")),
        "{case}"
    );
    assert_eq!(ran.document()["worthless"], 1);
    assert!(
        case["reason"].as_str().unwrap().contains("proves nothing"),
        "{case}"
    );
    assert_eq!(trained.rule(0)["validated_by_test"], false);
}

#[test]
fn demand_without_an_assertion_is_judged() {
    let trained = Trained::new();
    trained.correct("Write the note kindly, as to a friend who is worried about it.");
    let ran = trained.test(&[]);
    let document = ran.succeeds().document();
    assert_eq!(
        (&document["passed"], &document["calls"]),
        (&json!(1), &json!(4)),
        "{document}"
    );
    assert!(
        ran.stderr
            .contains("calling `exec/python3`: 4 calls, price unknown\n"),
        "{ran:?}"
    );
}

/// Two demands: a score, and a kind note, which only the judge can tell.
const TWO: &str = "The note must be written kindly. A candidate with 5 years Python but no \
    distributed systems should score below 60.";

#[test]
fn a_rule_that_satisfies_one_of_two_demands_is_not_validated() {
    let trained = Trained::new();
    trained.correct(TWO);
    let path = "skills/hr/resume-screen/tests/generated/test_correction_1.json";
    let mut case: Value = serde_json::from_str(&trained.workspace.read(path)).unwrap();
    case["rubric"] = json!(TWO);
    trained.workspace.write(path, case.to_string());
    // The rule of another correction keeps the model from kind words.
    let stubborn = MODEL.replace("if \"kindly\" in learned", "if \"gently\" in learned");
    trained.workspace.write("model.py", &stubborn);
    let ran = trained.test(&[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let document = ran.document();
    let case = &document["cases"][0];
    assert_eq!(case["status"], "failed", "{case}");
    let reason = case["reason"].as_str().unwrap();
    assert!(reason.contains("the judge says"), "{reason}");
    assert_eq!(trained.rule(0)["validated_by_test"], false);
    // A model that follows both demands validates the rule.
    trained.workspace.write("model.py", MODEL);
    assert_eq!(trained.test(&[]).succeeds().document()["passed"], 1);
    assert_eq!(trained.rule(0)["validated_by_test"], true);
}

#[test]
fn calls_have_a_cap_and_a_broken_case_fails() {
    let trained = Trained::new();
    trained.correct(BELOW);
    let ran = trained.test(&["--max-calls", "1"]);
    let document = ran.fails(7, "no test could run").document();
    assert_eq!(
        (&document["skipped"], &document["calls"]),
        (&json!(1), &json!(1))
    );
    assert!(
        document["cases"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("--max-calls")
    );
    let path = "skills/hr/resume-screen/tests/generated/test_correction_1.json";
    trained.workspace.write(path, "{");
    let ran = trained.test(&[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("the file is no case"), "{ran:?}");
}

#[test]
fn without_a_model_it_says_what_can_be_known() {
    let trained = Trained::new();
    trained.correct(BELOW);
    let offline = |more: &[&str]| {
        trained
            .workspace
            .run(&[&["test", "--json", "--model", "offline"], more].concat())
    };
    let ran = offline(&[]);
    let document = ran.fails(7, "no test could run").document();
    offline(&["--allow-skipped"]).succeeds();
    assert_eq!(
        (&document["skipped"], &document["cases"][0]["with_rule"]),
        (&json!(1), &Value::Null)
    );
    assert!(
        document["cases"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("no model"),
        "{document}"
    );
}

#[test]
fn no_answer_is_no_pass() {
    let trained = Trained::new();
    trained.correct(BELOW);
    let failing = ["test", "--json", "--model", "exec:sh -c 'exit 3'"];
    let ran = trained.workspace.run(&failing);
    assert_eq!(ran.code, 4, "{ran:?}");
    let document = ran.document();
    assert_eq!(
        (&document["skipped"], &document["unanswered"]),
        (&json!(1), &json!(1))
    );
    // One that answers and cannot judge is another matter.
    let deaf = Trained::new();
    deaf.correct("Write the note kindly, as to a friend who is worried about it.");
    let script = deaf
        .workspace
        .write("deaf.py", "print('{\"overall_score\": 1}')");
    let model = format!("exec:python3 {}", script.display());
    let ran = deaf.workspace.run(&["test", "--json", "--model", &model]);
    let reason = ran.fails(7, "").document()["cases"][0]["reason"].to_string();
    assert!(reason.contains("cannot judge it"), "{reason}");
}

/// A judge that fails is named, with the way to do without one.
#[test]
fn a_judge_that_fails_is_named() {
    let trained = Trained::new();
    let corrected = trained
        .workspace
        .run(&["run", SKILL, "--model", &trained.model]);
    corrected.succeeds();
    let kindly = "Write the note kindly, as to a friend who is worried about it.";
    let args = [
        "correct", SKILL, kindly, "--execution-id", "latest", "--model", "offline",
    ];
    let page = trained.workspace.run(&args);
    assert!(
        page.stdout.contains("not tested without a judge"),
        "{page:?}"
    );
    let text = "import sys\nsys.exit(3) if '<rule>' in sys.stdin.read() else print('{\"overall_score\": 1}')\n";
    let script = trained.workspace.write("no_judge.py", text);
    let model = format!("exec:python3 {}", script.display());
    let ran = trained
        .workspace
        .run(&["test", "--json", "--model", &model]);
    let reason = ran.fails(4, "").document()["cases"][0]["reason"].to_string();
    assert!(
        reason.contains("the judge `exec/python3` failed"),
        "{reason}"
    );
    assert!(reason.contains("correct … --assert"), "{reason}");
}

/// A run that failed has nothing that could answer another input.
#[test]
fn a_failed_run_is_not_accepted() {
    let trained = Trained::new();
    let failing = ["run", SKILL, "--model", "exec:sh -c 'exit 3'"];
    trained.workspace.run(&failing).fails(4, "");
    let ran = trained.workspace.run(&["accept", "latest"]);
    assert!(!ran.stderr.contains("memctl accept"), "{ran:?}");
    ran.fails(2, "failed, so it has no output to accept");
    ran.fails(2, "memctl run hr/resume-screen");
}

#[test]
fn tests_stay_in_their_scope() {
    let trained = Trained::new();
    trained.correct(BELOW);
    let ran = trained.test(&["--scope", "dev"]);
    assert_eq!(ran.succeeds().document()["cases"], json!([]));
    trained.test(&[SKILL, "--scope", "dev"]).fails(5, "");
    trained.test(&["hr/nothing"]).fails(2, "");
}
