//! Features of an input: its words, and its other scalars with their paths.
//!
//! Tables hold 64-bit hashes of features, with the skill as salt: a skill's inputs are compared only
//! with each other, and the index holds no text.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::search::words;

/// Hash of a feature, or of a fact about a row.
pub type Term = u64;

/// Returns the features of an input with their counts; the empty feature if it has no others, so that
/// two inputs without content are equal.
fn features(json: &RawValue) -> BTreeMap<String, u32> {
    let mut out = BTreeMap::new();
    if let Ok(value) = serde_json::from_str(json.get()) {
        collect("", &value, &mut out);
    }
    if out.is_empty() {
        out.insert(String::new(), 1);
    }
    out
}

fn collect(path: &str, value: &Value, out: &mut BTreeMap<String, u32>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(&format!("{path}.{key}"), value, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(path, item, out);
            }
        }
        Value::String(text) => {
            for word in words(text) {
                *out.entry(word).or_default() += 1;
            }
        }
        scalar => *out.entry(format!("{path}={scalar}")).or_default() += 1,
    }
}

/// Hash of an id or of a path.
pub fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

/// Terms of one skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    salt: u64,
}

impl Terms {
    /// Terms of the skill with this path.
    pub fn of_skill(skill: &str) -> Self {
        Self { salt: hash(skill) }
    }

    /// Features of an input with their counts.
    pub fn of_input(self, json: &RawValue) -> Vec<(Term, u32)> {
        let features = features(json).into_iter();
        features
            .map(|(feature, count)| (xxh3_64_with_seed(feature.as_bytes(), self.salt), count))
            .collect()
    }

    /// Term of all executions.
    pub fn execution(self) -> Term {
        self.fact(b"\0execution")
    }

    /// Term of the execution whose id has this hash.
    pub fn id(self, hash: u64) -> Term {
        self.fact_of(b"\0id ", hash)
    }

    /// Term of all corrections.
    pub fn correction(self) -> Term {
        self.fact(b"\0correction")
    }

    /// Term of the executions that the case with this hash answered.
    pub fn answered_by(self, source: u64) -> Term {
        self.fact_of(b"\0answered by ", source)
    }

    fn fact_of(self, name: &[u8], hash: u64) -> Term {
        self.fact(&[name, &hash.to_le_bytes()].concat())
    }

    /// No feature begins with a zero byte: a word has none, and a path begins with `.` or `=`.
    fn fact(self, name: &[u8]) -> Term {
        xxh3_64_with_seed(name, self.salt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn features_are_words_and_other_scalars_with_their_paths() {
        let found = features(&raw(
            r#"{"role": "Engineer, engineer", "cv": {"years": 5, "open": true}, "tags": ["go", 1]}"#,
        ));
        let found: Vec<_> = found.iter().map(|(f, n)| (f.as_str(), *n)).collect();
        let engineer = words("engineer").remove(0);
        let expected = [
            (".cv.open=true", 1),
            (".cv.years=5", 1),
            (".tags=1", 1),
            (engineer.as_str(), 2),
            ("go", 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(features(&raw("{}")), features(&raw("[]")));
        assert_eq!(features(&raw("{}")).len(), 1);
    }

    #[test]
    fn a_skill_has_its_own_terms() {
        let (a, b) = (Terms::of_skill("hr/a"), Terms::of_skill("hr/b"));
        let input = raw(r#"{"role": "Cook"}"#);
        assert_eq!(a.of_input(&input), Terms::of_skill("hr/a").of_input(&input));
        assert_ne!(a.of_input(&input), b.of_input(&input));
        assert_ne!(a.execution(), a.correction());
        assert_ne!(a.answered_by(hash("EXEC-1")), a.answered_by(hash("EXEC-2")));
    }
}
