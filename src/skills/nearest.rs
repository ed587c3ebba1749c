//! Nearest-case answers: the known case whose input is most similar to the given one.
//!
//! Cases are the skill's examples, and those of its newest executions that a person accepted or corrected with
//! an expected output. Of equally similar cases a correction answers before an execution, an execution before
//! an example, and the newest of a kind first.
//!
//! A case corrected without an expected output is wrong. Such an execution never answers. Such an example
//! answers only if no other case is similar enough, and its answer names the correction.
//!
//! Inputs are compared by their features: words, and other scalars with their paths. Features shared by all
//! cases count little.
//!
//! Deliberately absent: a table of the inputs. The newest executions are read and compared.

use std::collections::{HashMap, HashSet};

use memctl_search::each_word;
use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Correction, Execution, Outcome, Record as _, SkillPath, Trust};
use crate::store::skill::Example;
use crate::store::workspace::Error;
use crate::store::{Scoped, Selection};

/// Number of newest executions that are compared.
const NEWEST: usize = 5_000;

/// Known output for an input.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Execution id, correction id, or path of an example.
    pub(crate) source: String,
    pub(crate) output: Box<RawValue>,
    /// Id of the correction that rejects this output without a better one.
    pub(crate) wrong: Option<String>,
    /// Similarity of its input, from 0 to 1, in steps of a millionth.
    pub(crate) similarity: f64,
}

/// Finds the most similar case with a similarity of at least `floor`, which must not be 0. How like two inputs are is
/// the share of their weight that they have in common (a weighted Dice coefficient). Without a store, only examples
/// are cases.
pub(crate) fn nearest(
    store: Option<&Scoped>,
    skill: &SkillPath,
    examples: &[Example],
    input: &RawValue,
    floor: f64,
) -> Result<Option<Case>, Error> {
    let records = match store {
        Some(store) => Records::read(store, skill)?,
        None => Records::default(),
    };
    let cases = records.cases(examples);
    let mut holding: HashMap<u64, u32> = HashMap::new();
    for feature in cases.iter().flat_map(|case| &case.features) {
        *holding.entry(*feature).or_default() += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "cases are few thousands")]
    let count = cases.len() as f64;
    // A feature that no case has counts like one that a single case has.
    let weight = |feature: u64| {
        let holding = holding.get(&feature).copied().unwrap_or(1);
        (1.0 + count / f64::from(holding)).ln()
    };
    let query = features(input).into_iter();
    let query: HashMap<u64, f64> = query.map(|one| (one, weight(one))).collect();
    let sum: f64 = query.values().sum();
    let compared = cases.iter().filter_map(|case| {
        let features = case.features.iter();
        let shared: f64 = features.clone().filter_map(|one| query.get(one)).sum();
        if shared <= 0.0 {
            return None;
        }
        let own: f64 = features.map(|one| weight(*one)).sum();
        let similarity = 2.0 * shared / (sum + own);
        // Smaller differences are ties.
        Some((case, (similarity * 1e6).round() / 1e6))
    });
    let near = compared.filter(|(_, similarity)| *similarity >= floor);
    // The last of the equally good ones.
    let best = near.max_by(|(a, of_a), (b, of_b)| {
        let by_verdict = a.wrong.is_none().cmp(&b.wrong.is_none());
        by_verdict.then(of_a.total_cmp(of_b))
    });
    Ok(best.map(|(case, similarity)| Case {
        source: case.source.clone(),
        output: case.output.to_owned(),
        wrong: case.wrong.map(str::to_owned),
        similarity,
    }))
}

/// Case with the features of its input, sorted.
struct Known<'a> {
    source: String,
    output: &'a RawValue,
    wrong: Option<&'a str>,
    features: Vec<u64>,
}

/// Executions of a skill, and the corrections that count, both oldest first.
#[derive(Default)]
struct Records {
    executions: Vec<Execution>,
    corrections: Vec<Correction>,
}

impl Records {
    fn read(store: &Scoped, skill: &SkillPath) -> Result<Self, Error> {
        let of_skill = |newest| Selection {
            skill: Some(skill),
            newest,
        };
        let mut corrections = store.list::<Correction>(&of_skill(None))?.records;
        // A correction passed on by an agent does not count before a person approves it.
        corrections.retain(|correction| correction.trust() > Trust::Observed);
        Ok(Self {
            executions: store.list(&of_skill(Some(NEWEST)))?.records,
            corrections,
        })
    }

    /// All cases, those that answer last first.
    fn cases<'a>(&'a self, examples: &'a [Example]) -> Vec<Known<'a>> {
        let by_id = self.executions.iter().map(|one| (&*one.execution_id, one));
        let by_id: HashMap<&str, &Execution> = by_id.collect();
        let corrections = self.corrections.iter();
        let corrected: Vec<(&Correction, &Execution)> = corrections
            .filter_map(|correction| Some((correction, *by_id.get(&*correction.execution_id)?)))
            .collect();
        let ids: HashSet<&str> = corrected.iter().map(|(_, e)| &*e.execution_id).collect();
        // Sources of rejected answers, with the newest correction of each.
        let rejected: HashMap<&str, &str> = corrected
            .iter()
            .filter(|(correction, _)| correction.expected_output.is_none())
            .filter_map(|(correction, execution)| {
                let source = &execution.nearest_case.as_ref()?.source;
                Some((&**source, &*correction.correction_id))
            })
            .collect();
        let case = |source: String, output: &'a RawValue, input: &RawValue| Known {
            wrong: rejected.get(&*source).copied(),
            source,
            output,
            features: features(input),
        };
        let of_examples = examples.iter().map(|example| {
            let source = format!("examples/{}.json", example.name.trim_end_matches(".json"));
            case(source, &example.output, &example.input)
        });
        let accepted = self.executions.iter().filter(|execution| {
            let id = &*execution.execution_id;
            let is_accepted = execution.outcome == Outcome::Accepted;
            is_accepted && !ids.contains(id) && !rejected.contains_key(id)
        });
        let accepted =
            accepted.map(|e| case(e.execution_id.clone(), &e.output_summary, &e.input_summary));
        let expected = corrected.iter().filter_map(|(correction, execution)| {
            let output = correction.expected_output.as_ref()?;
            let source = correction.correction_id.clone();
            Some(case(source, output, &execution.input_summary))
        });
        of_examples.chain(accepted).chain(expected).collect()
    }
}

/// Hashes of the features of an input, sorted; that of the empty feature if there are no others, so that two inputs
/// without content are equal.
fn features(json: &RawValue) -> Vec<u64> {
    fn collect(path: &str, value: &Value, features: &mut Vec<u64>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    collect(&format!("{path}.{key}"), value, features);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(path, item, features)),
            Value::String(text) => each_word(text, |word| features.push(xxh3_64(word.as_bytes()))),
            scalar => features.push(xxh3_64(format!("{path}={scalar}").as_bytes())),
        }
    }
    let mut features = Vec::new();
    if let Ok(value) = serde_json::from_str(json.get()) {
        collect("", &value, &mut features);
    }
    if features.is_empty() {
        features.push(xxh3_64(b""));
    }
    features.sort_unstable();
    features.dedup();
    features
}

#[cfg(test)]
mod tests {
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

    /// Source, id of a rejecting correction, and similarity of the nearest case.
    type Told = Option<(String, Option<String>, f64)>;

    fn ask(dir: &Path, examples: &[Example], input: &Value, floor: f64) -> Told {
        let store = Scoped::new(dir, Scope::All);
        let found = nearest(Some(&store), &skill(), examples, &raw(input), floor).unwrap();
        found.map(|case| {
            let of: Value = serde_json::from_str(case.output.get()).unwrap();
            let name = case.source.trim_start_matches("examples/");
            assert_eq!(of["of"], name.trim_end_matches(".json"));
            (case.source, case.wrong, case.similarity)
        })
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
        assert_eq!(source(input), Some(("EXEC-3".to_owned(), 1.0)));
        assert_eq!(source(json!({})), Some(("EXEC-5".to_owned(), 1.0)));
        assert_eq!(source(json!({ "role": "Gardener" })), None);
        write(dir.path(), &executions[3..4], &[]);
        assert_eq!(source(json!({ "role": "Backend Engineer" })), None);
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
        assert!(matches!(found, Some(case) if case.source == "examples/a.json"));
        let none = nearest(None, &skill(), &[], &raw(&input), 0.5).unwrap();
        assert!(none.is_none());
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
        assert_eq!(ask(dir.path(), &[], &input, 0.1), None);
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
        assert_eq!(source(NEWEST + 1), Some(id(NEWEST + 1)));
        assert_eq!(source(2), Some(id(2)));
        assert_eq!(source(1), None);
    }

    #[test]
    fn features_are_words_and_other_scalars_with_their_paths() {
        let of = |value: &Value| features(&raw(value));
        let input = json!({"role": "Engineer, engineer", "cv": {"years": 5, "open": true}, "tags": ["go", 1]});
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
        assert_eq!(ask("fir"), None);
    }
}
