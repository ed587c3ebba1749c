//! Nearest-case answers: the known case whose input is most similar to the given one.
//!
//! Known cases are the skill's examples, executions that a person accepted, and corrections with an
//! expected output. Similarity is the cosine of the words and fields of two inputs. Each feature is
//! weighted by its rarity among the cases, so that features shared by all inputs count little.
//!
//! A case that was corrected without an expected output is known to be wrong. It answers only if no
//! other case is similar enough, and then names the correction.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{Correction, Execution, Outcome, Record as _, Trust};
use crate::search::words;
use crate::skill::Example;

/// Known input with its output.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Execution id, correction id, or path of an example.
    pub(crate) source: String,
    pub(crate) input: Box<RawValue>,
    pub(crate) output: Box<RawValue>,
    /// Id of the correction that rejects this output without a better one.
    pub(crate) wrong: Option<String>,
}

/// Case that answers, and the similarity of its input.
#[derive(Debug, Clone)]
pub(crate) struct Nearest {
    pub(crate) case: Case,
    pub(crate) similarity: f64,
}

/// Collects the known cases of a skill: examples, accepted executions, then corrections.
pub(crate) fn cases(
    examples: Vec<Example>,
    executions: &[Execution],
    corrections: &[Correction],
) -> Vec<Case> {
    let by_id: HashMap<&str, &Execution> = executions
        .iter()
        .map(|e| (e.execution_id.as_str(), e))
        .collect();
    let mut wrong: HashMap<&str, &str> = HashMap::new();
    let mut corrected = Vec::new();
    // A correction passed on by an agent does not count before a person approves it.
    let counting = corrections
        .iter()
        .filter(|correction| correction.trust() > Trust::Observed);
    for correction in counting {
        let Some(execution) = by_id.get(correction.execution_id.as_str()) else {
            continue;
        };
        wrong.insert(&execution.execution_id, &correction.correction_id);
        if let Some(output) = &correction.expected_output {
            corrected.push(Case {
                source: correction.correction_id.clone(),
                input: execution.input_summary.clone(),
                output: output.clone(),
                wrong: None,
            });
        } else if let Some(nearest) = &execution.nearest_case {
            wrong.insert(&nearest.source, &correction.correction_id);
        }
    }
    let doubt = |source: &str| wrong.get(source).map(|id| (*id).to_owned());
    let examples = examples.into_iter().map(|example| {
        let source = format!("examples/{}.json", example.name.trim_end_matches(".json"));
        let wrong = doubt(&source);
        Case {
            source,
            input: example.input,
            output: example.output,
            wrong,
        }
    });
    let accepted = executions
        .iter()
        .filter(|e| e.outcome == Outcome::Accepted && !wrong.contains_key(e.execution_id.as_str()));
    let accepted = accepted.map(|execution| Case {
        source: execution.execution_id.clone(),
        input: execution.input_summary.clone(),
        output: execution.output_summary.clone(),
        wrong: None,
    });
    examples.chain(accepted).chain(corrected).collect()
}

/// Returns the most similar case with a similarity of at least `floor`; the last one wins a tie. A
/// case known to be wrong loses to any other. The second value is the highest similarity found.
pub(crate) fn nearest(cases: Vec<Case>, input: &RawValue, floor: f64) -> (Option<Nearest>, f64) {
    let features: Vec<Features> = cases.iter().map(|case| features(&case.input)).collect();
    let asked = self::features(input);
    let rarity = rarity(&features);
    let mut best: Option<Nearest> = None;
    let mut greatest = 0.0_f64;
    for (case, features) in cases.into_iter().zip(&features) {
        let similarity = cosine(&asked, features, &rarity);
        greatest = greatest.max(similarity);
        let better = best.as_ref().is_none_or(|best| {
            let trusted = (case.wrong.is_none(), best.case.wrong.is_none());
            match trusted {
                (true, false) => true,
                (false, true) => false,
                _ => similarity >= best.similarity,
            }
        });
        if similarity >= floor && better {
            best = Some(Nearest { case, similarity });
        }
    }
    (best, greatest)
}

type Features = BTreeMap<String, f64>;

/// Features of an input: its words, and its scalar fields with their values.
fn features(json: &RawValue) -> Features {
    let mut out = Features::new();
    if let Ok(value) = serde_json::from_str(json.get()) {
        walk("", &value, &mut out);
    }
    // Repetitions of a word add less than its first occurrence.
    for weight in out.values_mut() {
        *weight = 1.0 + weight.ln();
    }
    out
}

fn walk(path: &str, value: &Value, out: &mut Features) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                walk(&format!("{path}.{key}"), value, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                walk(path, item, out);
            }
        }
        Value::String(text) => {
            for word in words(text) {
                *out.entry(word).or_default() += 1.0;
            }
        }
        scalar => *out.entry(format!("{path}={scalar}")).or_default() += 1.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of cases are small")]
fn rarity(cases: &[Features]) -> HashMap<String, f64> {
    let mut holding: HashMap<String, usize> = HashMap::new();
    for feature in cases.iter().flat_map(BTreeMap::keys) {
        *holding.entry(feature.clone()).or_default() += 1;
    }
    let total = cases.len() as f64;
    holding
        .into_iter()
        .map(|(feature, n)| (feature, (1.0 + total / n as f64).ln()))
        .collect()
}

fn cosine(a: &Features, b: &Features, rarity: &HashMap<String, f64>) -> f64 {
    // A feature that no case has counts as the rarest, and lowers every similarity alike.
    let rarest = rarity
        .values()
        .copied()
        .fold(std::f64::consts::LN_2, f64::max);
    let weight = |feature: &String| rarity.get(feature).copied().unwrap_or(rarest);
    let dot: f64 = a
        .iter()
        .filter_map(|(feature, x)| b.get(feature).map(|y| x * y * weight(feature).powi(2)))
        .sum();
    let norm = |features: &Features| {
        let squares = features
            .iter()
            .map(|(feature, x)| (x * weight(feature)).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let product = norm(a) * norm(b);
    if product > 0.0 {
        (dot / product).min(1.0)
    } else {
        // Two inputs without any word or value are equal.
        f64::from(u8::from(a.is_empty() && b.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    fn case(source: &str, input: &Value, wrong: bool) -> Case {
        Case {
            source: source.to_owned(),
            input: raw(input),
            output: raw(&json!({})),
            wrong: wrong.then(|| "CORR-001".to_owned()),
        }
    }

    fn ask(cases: &[Case], input: &Value, floor: f64) -> Option<(String, f64)> {
        let (nearest, _) = nearest(cases.to_vec(), &raw(input), floor);
        nearest.map(|n| (n.case.source, n.similarity))
    }

    #[test]
    fn the_same_input_is_certain_and_the_newest_of_equals_wins() {
        let input = json!({ "role": "Backend Engineer", "years": 5 });
        let cases = [
            case("old", &input, false),
            case("other", &json!({ "role": "Accountant", "years": 9 }), false),
            case("new", &input, false),
        ];
        let (source, similarity) = ask(&cases, &input, 0.5).unwrap();
        assert_eq!(source, "new");
        assert!((similarity - 1.0).abs() < 1e-9);
        assert_eq!(ask(&cases, &json!({ "role": "Gardener" }), 0.5), None);
        assert_eq!(ask(&cases, &json!({}), 0.1), None);
        assert_eq!(
            ask(&[case("empty", &json!({}), false)], &json!({}), 0.9)
                .unwrap()
                .0,
            "empty"
        );
    }

    #[test]
    fn a_case_that_is_known_to_be_wrong_answers_last() {
        let input = json!({ "role": "Backend Engineer", "skill": "Python" });
        let near = json!({ "role": "Backend Engineer", "skill": "Go" });
        let wrong = case("wrong", &input, true);
        assert_eq!(
            ask(&[wrong.clone(), case("near", &near, false)], &input, 0.3)
                .unwrap()
                .0,
            "near"
        );
        assert_eq!(
            ask(std::slice::from_ref(&wrong), &input, 0.3).unwrap().0,
            "wrong"
        );
        assert_eq!(
            ask(&[case("near", &near, false), wrong], &input, 0.99)
                .unwrap()
                .0,
            "wrong"
        );
    }

    #[test]
    fn corrections_make_cases_and_doubts() {
        let execution = |id: &str, outcome: &str, from: Option<&str>| -> Execution {
            let nearest = from.map(|source| json!({ "source": source, "similarity": 0.9 }));
            serde_json::from_value(json!({ "execution_id": id, "outcome": outcome,
                "input_summary": { "id": id }, "output_summary": { "of": id }, "nearest_case": nearest }))
            .unwrap()
        };
        let correction = |id: &str, of: &str, expected: Option<Value>| -> Correction {
            serde_json::from_value(json!({ "correction_id": id, "execution_id": of,
                "expected_output": expected }))
            .unwrap()
        };
        let example = Example {
            name: "a.json".into(),
            input: raw(&json!(1)),
            output: raw(&json!(2)),
        };
        let cases = cases(
            vec![example],
            &[
                execution("EXEC-1", "accepted", None),
                execution("EXEC-2", "pending_review", Some("examples/a.json")),
                execution("EXEC-3", "accepted", None),
                execution("EXEC-4", "rejected", None),
            ],
            &[
                correction("CORR-1", "EXEC-2", None),
                correction("CORR-2", "EXEC-3", Some(json!({ "right": 1 }))),
            ],
        );
        let seen: Vec<_> = cases
            .iter()
            .map(|c| (c.source.as_str(), c.wrong.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                ("examples/a.json", Some("CORR-1")),
                ("EXEC-1", None),
                ("CORR-2", None)
            ]
        );
    }
}
