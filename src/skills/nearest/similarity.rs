//! Similarity of inputs: the cosine of their features, which are words, and other scalars with their
//! paths.
//!
//! A feature counts `1 + ln(occurrences)`, times its rarity `ln(1 + cases / cases with it)`, so that
//! features shared by all cases count little. A feature that no case has counts like one that a single
//! case has.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use serde_json::value::RawValue;

use memctl_search::words;

/// Features of an input with their counts; the empty feature if there are no others, so that two
/// inputs without content are equal.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Features(BTreeMap<String, u32>);

impl Features {
    pub(super) fn of(json: &RawValue) -> Self {
        let mut features = Self::default();
        if let Ok(value) = serde_json::from_str(json.get()) {
            features.collect("", &value);
        }
        if features.0.is_empty() {
            features.add(String::new());
        }
        features
    }

    fn add(&mut self, feature: String) {
        *self.0.entry(feature).or_default() += 1;
    }

    fn collect(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.collect(&format!("{path}.{key}"), value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(path, item)),
            Value::String(text) => words(text).into_iter().for_each(|word| self.add(word)),
            scalar => self.add(format!("{path}={scalar}")),
        }
    }
}

/// Weights of features by how many cases have them.
#[derive(Debug)]
pub(super) struct Weights<'a> {
    cases: u32,
    holding: HashMap<&'a str, u32>,
}

impl<'a> Weights<'a> {
    pub(super) fn of(cases: impl Iterator<Item = &'a Features>) -> Self {
        let mut weights = Self {
            cases: 0,
            holding: HashMap::new(),
        };
        for case in cases {
            weights.cases += 1;
            for feature in case.0.keys() {
                *weights.holding.entry(feature).or_default() += 1;
            }
        }
        weights
    }

    fn weight(&self, feature: &str, count: u32) -> f64 {
        let holding = self.holding.get(feature).copied().unwrap_or(1);
        let rarity = (1.0 + f64::from(self.cases.max(1)) / f64::from(holding)).ln();
        rarity * (1.0 + f64::from(count).ln())
    }

    /// Similarity from 0 to 1, in steps of a millionth.
    pub(super) fn similarity(&self, a: &Features, b: &Features) -> f64 {
        let square =
            |of: &Features| -> f64 { of.0.iter().map(|(f, n)| self.weight(f, *n).powi(2)).sum() };
        let both =
            a.0.iter()
                .filter_map(|(f, n)| Some(self.weight(f, *n) * self.weight(f, *b.0.get(f)?)));
        let dot: f64 = both.sum();
        millionths(dot / (square(a) * square(b)).sqrt())
    }
}

/// Number between 0 and 1, rounded to millionths.
pub(super) fn millionths(value: f64) -> f64 {
    (value.clamp(0.0, 1.0) * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(text: &str) -> Features {
        Features::of(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn features_are_words_and_other_scalars_with_their_paths() {
        let found = features(
            r#"{"role": "Engineer, engineer", "cv": {"years": 5, "open": true}, "tags": ["go", 1]}"#,
        );
        let found: Vec<_> = found.0.iter().map(|(f, n)| (f.as_str(), *n)).collect();
        let engineer = words("engineer").remove(0);
        let expected = [
            (".cv.open=true", 1),
            (".cv.years=5", 1),
            (".tags=1", 1),
            (engineer.as_str(), 2),
            ("go", 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(features("{}"), features("[]"));
        assert_eq!(features("{}").0.len(), 1);
    }

    #[test]
    fn rare_features_count_more_than_common_ones() {
        let cases = ["oak pine", "oak elm", "oak ash"].map(|text| features(&format!("{text:?}")));
        let weights = Weights::of(cases.iter());
        let asked = features(r#""pine fir""#);
        let [pine, elm, ash] = cases
            .each_ref()
            .map(|case| weights.similarity(case, &asked));
        assert!(pine > 0.4 && elm == 0.0 && ash == 0.0, "{pine} {elm} {ash}");
        assert!(weights.weight("pine", 1) > weights.weight("oak", 1));
        for case in &cases {
            assert!(weights.similarity(case, case) > 0.999_999);
        }
    }
}
