//! The nearest case from the index against a comparison with every record.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

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
fn saved_tables_follow_the_files_and_survive_damage() {
    let dir = tempfile::tempdir().unwrap();
    let input = |n: usize| json!({ "text": format!("w{n} w{} common words", n % 7), "n": n % 5 });
    let id = |n: usize| format!("EXEC-{n}");
    let mut executions: Vec<Value> = (0..300)
        .map(|n| execution(&id(n), &input(n), "pending_review", None))
        .collect();
    write(dir.path(), &executions, &[]);
    let source = |n| ask(dir.path(), &[], &input(n), 0.99).map(|told| told.0);
    assert!(source(7).is_err());
    let tables = || {
        let files = std::fs::read_dir(dir.path().join(".index/search")).unwrap();
        let names = files.map(|file| file.unwrap().path());
        let is_table = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "inputs");
        names.filter(is_table).collect::<Vec<_>>()
    };
    assert!(!tables().is_empty());
    // A changed record has another place in the index.
    for n in [7, 200] {
        executions[n]["outcome"] = json!("accepted");
    }
    executions.remove(0);
    write(dir.path(), &executions, &[]);
    assert_eq!(source(7), Ok(id(7)));
    assert_eq!(source(200), Ok(id(200)));
    // New records, fewer and more than an index keeps in memory.
    for first in [300, 310] {
        let more = (first..first + first / 2 - 140)
            .map(|n| execution(&id(n), &input(n), "accepted", None));
        executions.extend(more);
        write(dir.path(), &executions, &[]);
        assert_eq!(source(first + 3), Ok(id(first + 3)));
        assert_eq!(source(200), Ok(id(200)));
    }
    for table in tables() {
        let mut bytes = std::fs::read(&table).unwrap();
        for at in (60..bytes.len()).step_by(50) {
            bytes[at] ^= 0x40;
        }
        std::fs::write(&table, bytes).unwrap();
    }
    assert_eq!(source(200), Ok(id(200)));
    for table in tables() {
        std::fs::write(&table, b"").unwrap();
    }
    assert_eq!(source(7), Ok(id(7)));
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

/// Compares with every record, by the words of the module.
fn compare_all(
    examples: &[Example],
    executions: &[Value],
    corrections: &[Value],
    asked: &Value,
    floor: f64,
) -> Told {
    type Features = BTreeMap<u64, u32>;
    let terms = Terms::of_skill("hr/a");
    let features = |input: &Value| {
        terms
            .of_input(&raw(input))
            .into_iter()
            .collect::<Features>()
    };
    let example_input = |e: &Example| serde_json::from_str::<Value>(e.input.get()).unwrap();
    let counts = |c: &&Value| c["source"] != "agent";
    let of = |id: &Value| executions.iter().find(|e| e["execution_id"] == *id);
    let counting: Vec<&Value> = corrections
        .iter()
        .filter(counts)
        .filter(|c| of(&c["execution_id"]).is_some())
        .collect();
    let mut doubts: HashMap<&str, &str> = HashMap::new();
    let mut corrected = HashSet::new();
    for correction in &counting {
        let execution = of(&correction["execution_id"]).unwrap();
        corrected.insert(execution["execution_id"].as_str().unwrap());
        if correction["expected_output"].is_null()
            && let Some(source) = execution["nearest_case"]["source"].as_str()
        {
            doubts.insert(source, correction["correction_id"].as_str().unwrap());
        }
    }
    let mut cases: Vec<(String, Option<&str>, Value)> = Vec::new();
    for example in examples {
        let source = format!("examples/{}.json", example.name);
        let doubt = doubts.get(source.as_str()).copied();
        cases.push((source, doubt, example_input(example)));
    }
    for execution in executions {
        let id = execution["execution_id"].as_str().unwrap();
        if execution["outcome"] == "accepted" && !corrected.contains(id) && !doubts.contains_key(id)
        {
            cases.push((id.to_owned(), None, execution["input_summary"].clone()));
        }
    }
    for correction in counting.iter().filter(|c| !c["expected_output"].is_null()) {
        let id = correction["correction_id"].as_str().unwrap().to_owned();
        let execution = of(&correction["execution_id"]).unwrap();
        cases.push((id, None, execution["input_summary"].clone()));
    }
    let are_any = !cases.is_empty();
    let mut holding: HashMap<u64, u32> = HashMap::new();
    for feature in cases.iter().flat_map(|case| features(&case.2).into_keys()) {
        *holding.entry(feature).or_default() += 1;
    }
    let all = u32::try_from(cases.len().max(1)).unwrap();
    let weight = |feature: &u64, count: u32| {
        let holding = holding.get(feature).copied().unwrap_or(1);
        let rarity = (1.0 + f64::from(all) / f64::from(holding)).ln();
        rarity * (1.0 + f64::from(count).ln())
    };
    let length = |f: &Features| {
        f.iter()
            .map(|(f, n)| weight(f, *n).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    let asked = features(asked);
    let similarity = |input: &Value| {
        let input = features(input);
        let dot: f64 = input
            .iter()
            .filter_map(|(f, n)| Some(weight(f, *n) * weight(f, *asked.get(f)?)))
            .sum();
        Similarity::new(dot / (length(&input) * length(&asked))).value()
    };
    let cases = cases
        .into_iter()
        .map(|case| (case.0, case.1, similarity(&case.2)));
    let near = cases.filter(|case| case.2 >= floor);
    // The last of the equally good ones.
    let best = near.max_by(|a, b| a.1.is_none().cmp(&b.1.is_none()).then(a.2.total_cmp(&b.2)));
    match best {
        Some((source, doubt, similarity)) => Ok((source, doubt.map(str::to_owned), similarity)),
        None => Err(are_any),
    }
}

fn input() -> impl Strategy<Value = Value> {
    let words = prop::collection::vec(
        prop::sample::select(vec!["ash", "birch", "cedar", "oak"]),
        0..4,
    );
    (words, 0u8..4, any::<bool>()).prop_map(|(words, number, has_number)| {
        let mut input = json!({ "text": words.join(" ") });
        if has_number {
            input["n"] = json!(number);
        }
        input
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_index_finds_what_a_comparison_with_all_records_finds(
        examples in prop::collection::vec(input(), 0..3),
        runs in prop::collection::vec((input(), 0u8..3, prop::option::of(0usize..14)), 0..14),
        corrections in prop::collection::vec((0usize..16, any::<bool>(), 0u8..4), 0..6),
        asked in input(),
        floor in 0.05f64..1.0,
    ) {
        let examples: Vec<Example> = (0..).zip(&examples).map(|(n, input)| example(&format!("e{n}"), input)).collect();
        let executions: Vec<Value> = (0..).zip(&runs).map(|(n, (input, outcome, from))| {
            let outcome = ["accepted", "pending_review", "rejected"][usize::from(*outcome)];
            let from = from.map(|from| match from {
                0..3 => format!("examples/e{from}.json"),
                _ => format!("EXEC-{}", from - 3),
            });
            execution(&format!("EXEC-{n}"), input, outcome, from.as_deref())
        }).collect();
        let corrections: Vec<Value> = (0..).zip(&corrections).map(|(n, (of, expects, by)): (u32, _)| {
            let id = format!("CORR-{n}");
            let by = if *by == 0 { "agent" } else { "" };
            correction(&id, &format!("EXEC-{of}"), expects.then_some(id.as_str()), by)
        }).collect();
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &executions, &corrections);
        prop_assert_eq!(
            ask(dir.path(), &examples, &asked, floor),
            compare_all(&examples, &executions, &corrections, &asked, floor)
        );
    }
}
