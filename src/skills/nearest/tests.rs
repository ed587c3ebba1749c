//! The nearest case among examples, executions and corrections.

use std::path::Path;

use memctl_search::words;
use serde_json::json;

use super::*;
use crate::model::Scope;

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn example(name: &str, input: &Value) -> Example {
    Example {
        name: name.to_owned(),
        input: raw(input),
        output: raw(&json!({ "of": name })),
    }
}

fn execution(id: &str, input: &Value, outcome: &str, from: Option<&str>) -> Value {
    let nearest = from.map(|source| json!({ "source": source, "similarity": 0.9 }));
    json!({ "execution_id": id, "skill": "hr/a", "timestamp": "2026-01-01T00:00:00Z",
        "input_summary": input, "output_summary": { "of": id }, "outcome": outcome,
        "model_used": "m", "reflexions_injected": [], "nearest_case": nearest })
}

fn correction(id: &str, of: &str, expected: Option<&str>, by: &str) -> Value {
    json!({ "correction_id": id, "execution_id": of, "skill": "hr/a",
        "timestamp": "2026-01-01T00:00:00Z", "user_correction": "no", "source": by,
        "expected_output": expected.map(|of| json!({ "of": of })) })
}

fn write(dir: &Path, executions: &[Value], corrections: &[Value]) {
    let file = |name: &str, root: &Value| {
        let text = serde_json::to_string_pretty(root).unwrap();
        std::fs::write(dir.join(name), text).unwrap();
    };
    file("episodic_memory.json", &json!({ "entries": executions }));
    file("corrections.json", &json!({ "corrections": corrections }));
}

fn skill() -> SkillPath {
    "hr/a".parse().unwrap()
}

/// Source, id of a rejecting correction, and similarity of the nearest case; or whether there are
/// cases at all.
type Told = Result<(String, Option<String>, f64), bool>;

fn ask(dir: &Path, examples: &[Example], input: &Value, floor: f64) -> Told {
    let store = Scoped::new(dir, Scope::All);
    match nearest(Some(&store), &skill(), examples, &raw(input), floor).unwrap() {
        Nearest::Case(case) => {
            let of: Value = serde_json::from_str(case.output.get()).unwrap();
            let name = case.source.trim_start_matches("examples/");
            assert_eq!(of["of"], name.trim_end_matches(".json"));
            Ok((case.source, case.wrong, case.similarity))
        }
        Nearest::TooFar => Err(true),
        Nearest::NoCases => Err(false),
    }
}

#[test]
fn the_same_input_is_certain_and_the_newest_of_equals_wins() {
    let dir = tempfile::tempdir().unwrap();
    let input = json!({ "role": "Backend Engineer", "years": 5 });
    let other = json!({ "role": "Accountant", "years": 9 });
    let executions = [
        execution("EXEC-1", &input, "accepted", None),
        execution("EXEC-2", &other, "accepted", None),
        execution("EXEC-3", &input, "accepted", None),
        execution("EXEC-4", &input, "pending_review", None),
        execution("EXEC-5", &json!({}), "accepted", None),
    ];
    write(dir.path(), &executions, &[]);
    let source = |input| ask(dir.path(), &[], &input, 0.5).map(|told| (told.0, told.2));
    assert_eq!(source(input), Ok(("EXEC-3".to_owned(), 1.0)));
    assert_eq!(source(json!({})), Ok(("EXEC-5".to_owned(), 1.0)));
    assert_eq!(source(json!({ "role": "Gardener" })), Err(true));
    write(dir.path(), &executions[3..4], &[]);
    assert_eq!(source(json!({ "role": "Backend Engineer" })), Err(false));
}

#[test]
fn a_case_that_is_known_to_be_wrong_answers_last() {
    let dir = tempfile::tempdir().unwrap();
    let input = json!({ "role": "Backend Engineer", "skill": "Python" });
    let near = json!({ "role": "Backend Engineer", "skill": "Go" });
    let examples = [example("near", &near), example("wrong", &input)];
    let answered = execution(
        "EXEC-1",
        &input,
        "pending_review",
        Some("examples/wrong.json"),
    );
    write(
        dir.path(),
        &[answered],
        &[correction("CORR-1", "EXEC-1", None, "")],
    );
    let told = |examples: &[Example], floor| ask(dir.path(), examples, &input, floor).unwrap();
    assert_eq!(told(&examples, 0.3).0, "examples/near.json");
    let wrong = (
        "examples/wrong.json".to_owned(),
        Some("CORR-1".to_owned()),
        1.0,
    );
    assert_eq!(told(&examples, 0.99), wrong);
    assert_eq!(told(&examples[1..], 0.3), wrong);
}

#[test]
fn without_a_store_only_examples_are_cases() {
    let input = json!({ "role": "Cook" });
    let examples = [example("a", &input)];
    let found = nearest(None, &skill(), &examples, &raw(&input), 0.5).unwrap();
    assert!(matches!(found, Nearest::Case(case) if case.source == "examples/a.json"));
    let none = nearest(None, &skill(), &[], &raw(&input), 0.5).unwrap();
    assert!(matches!(none, Nearest::NoCases));
}

#[test]
fn a_case_whose_answer_was_rejected_is_none() {
    let input = json!({"text": "oak"});
    let executions = [
        execution("EXEC-0", &input, "accepted", Some("EXEC-1")),
        execution("EXEC-1", &input, "accepted", None),
    ];
    let corrections = [correction("CORR-0", "EXEC-0", None, "")];
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &executions, &corrections);
    assert_eq!(ask(dir.path(), &[], &input, 0.1), Err(false));
}

#[test]
fn a_correction_answers_before_an_execution_and_an_agents_not_at_all() {
    let input = json!({ "text": "oak" });
    let executions = [
        execution("EXEC-0", &input, "pending_review", None),
        execution("EXEC-1", &input, "accepted", None),
    ];
    let dir = tempfile::tempdir().unwrap();
    let source = |by: &str, expected| {
        let correction = correction("CORR-0", "EXEC-0", expected, by);
        write(dir.path(), &executions, &[correction]);
        ask(dir.path(), &[example("e", &input)], &input, 0.9)
            .unwrap()
            .0
    };
    assert_eq!(source("", Some("CORR-0")), "CORR-0");
    assert_eq!(source("agent", Some("CORR-0")), "EXEC-1");
    assert_eq!(source("", None), "EXEC-1");
}

#[test]
fn the_newest_executions_are_compared() {
    let input = |n: usize| json!({ "text": format!("w{n}") });
    let id = |n: usize| format!("EXEC-{n}");
    let executions: Vec<Value> = (0..NEWEST + 2)
        .map(|n| execution(&id(n), &input(n), "accepted", None))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &executions, &[]);
    let source = |n| ask(dir.path(), &[], &input(n), 0.99).map(|told| told.0);
    assert_eq!(source(NEWEST + 1), Ok(id(NEWEST + 1)));
    assert_eq!(source(2), Ok(id(2)));
    assert_eq!(source(1), Err(true));
}

#[test]
fn features_are_words_and_other_scalars_with_their_paths() {
    let of = |value: &Value| features(&raw(value));
    let input =
        json!({"role": "Engineer, engineer", "cv": {"years": 5, "open": true}, "tags": ["go", 1]});
    let engineer = words("engineer").remove(0);
    let expected = [".cv.open=true", ".cv.years=5", ".tags=1", &engineer, "go"];
    let mut expected = expected.map(|feature| xxh3_64(feature.as_bytes()));
    expected.sort_unstable();
    assert_eq!(of(&input), expected);
    assert_eq!(of(&json!({})), of(&json!([])));
    assert_eq!(of(&json!({})).len(), 1);
}

#[test]
fn rare_features_count_more_than_common_ones() {
    let case = |name: &str| example(name, &json!({ "text": format!("oak {name}") }));
    let examples = [case("pine"), case("elm"), case("ash")];
    let dir = tempfile::tempdir().unwrap();
    let ask = |text: &str| ask(dir.path(), &examples, &json!({ "text": text }), 0.01);
    let (source, _, similarity) = ask("pine fir").unwrap();
    assert!(
        source == "examples/pine.json" && similarity > 0.4,
        "{source} {similarity}"
    );
    assert_eq!(ask("fir"), Err(true));
}
