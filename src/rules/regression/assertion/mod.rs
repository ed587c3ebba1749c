//! Assertions: demands that a program can check.
//!
//! An [`Assertion`] is one demand of a correction: a comparison at a [`Path`], a count, a length, a
//! required or forbidden text. memctl decides it, also for the tests of other frameworks.
//!
//! They come from a model or a person, in the short form that [`read()`] reads, or from an expected
//! output. Nothing derives them from sentences. Demands that need judgement are not assertions.

mod written;

use std::fmt;

use memctl_files::json::leaves;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::model::words::names;

pub use written::{Path, read};

/// Demand and the text of the correction that states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assertion {
    /// Place of the value.
    pub path: Path,
    /// Condition to check.
    #[serde(flatten)]
    pub check: Check,
    /// Sentence of the correction; empty for an assertion written by hand.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// Condition that a program can check. With `[*]` in the path, it must hold for every item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the fields are named after what the documentation of their variant says"
)]
pub enum Check {
    /// The value is a number that satisfies the comparison.
    Compare { is: Operator, value: Number },
    /// The value is an array whose number of items satisfies the comparison.
    Count { is: Operator, value: u64 },
    /// The length of the value's text satisfies the comparison.
    Length {
        unit: Unit,
        is: Operator,
        value: u64,
    },
    /// The value equals this JSON value; `1` equals `1.0`.
    Equals { value: Value },
    /// The value equals one of these.
    OneOf { values: Vec<Value> },
    /// The value exists and is not `null`.
    Required,
    /// The value has this JSON type.
    Type { is: JsonType },
    /// The value's text contains this, from the start of a word, ignoring case.
    Contains { text: String },
    /// The value's text does not contain this as separate words, ignoring case. An output without
    /// text fails at the path `$`: an empty answer is no better answer.
    NotContains { text: String },
    /// The value's text contains a match of this regular expression.
    Matches { pattern: String },
    /// The value's text contains no match of this regular expression. An output without text fails
    /// at the path `$`.
    NotMatches { pattern: String },
}

names! {
    /// Comparison operator.
    #[expect(missing_docs, reason = "the signs are the definition")]
    Operator {
        Below = "<",
        AtMost = "<=",
        Above = ">",
        AtLeast = ">=",
        Exactly = "==",
        Not = "!=",
    }
}

names! {
    /// Unit of a length.
    Unit {
        /// Runs of non-white-space characters.
        Words = "words",
        /// Unicode code points.
        Characters = "characters",
    }
}

names! {
    /// JSON type. An integer is a number without a fraction.
    #[expect(missing_docs, reason = "the names are those of JSON Schema")]
    JsonType {
        Integer = "integer",
        Number = "number",
        String = "string",
        Boolean = "boolean",
        Array = "array",
        Object = "object",
    }
}

impl Assertion {
    /// Checks an output.
    ///
    /// # Errors
    ///
    /// Returns a lower-case fragment that describes the difference.
    pub fn check(&self, output: &Value) -> Result<(), String> {
        let path = &self.path;
        let forbids = matches!(
            self.check,
            Check::NotContains { .. } | Check::NotMatches { .. }
        );
        for found in path.select(whole(output)) {
            let value = found.ok_or_else(|| format!("there is no `{path}`"))?;
            if forbids && path.is_root() && text_of(value).trim().is_empty() {
                return Err("the output is empty".to_owned());
            }
            let result = self.check.holds(value);
            result.map_err(|reason| format!("`{path}` {reason}"))?;
        }
        Ok(())
    }

    /// Checks that the assertion is valid: a pattern written by hand may not compile.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem.
    pub fn usable(&self) -> Result<(), String> {
        match &self.check {
            Check::Matches { pattern } | Check::NotMatches { pattern } => Regex::new(pattern)
                .map(drop)
                .map_err(|error| format!("`{pattern}` is not a valid regular expression: {error}")),
            _ => Ok(()),
        }
    }
}

/// Output without its wrapper: `{"raw_output": text}`, the form of a reply that is not JSON,
/// becomes the text.
pub fn whole(output: &Value) -> &Value {
    match output {
        Value::Object(fields) if fields.len() == 1 => fields.get("raw_output").unwrap_or(output),
        _ => output,
    }
}

impl Check {
    #[expect(clippy::cast_precision_loss, reason = "lengths and counts stay far below 2^52")]
    fn holds(&self, found: &Value) -> Result<(), String> {
        let not = |is: &Operator, value: &dyn fmt::Display| format!("not {} {value}", is.name());
        let (holds, reason) = match self {
            Self::Compare { is, value } => {
                let number = found.as_f64();
                let number = number.ok_or_else(|| format!("is {}, not a number", short(found)))?;
                let holds = is.holds(number, value.as_f64().unwrap_or(f64::NAN));
                (holds, format!("is {found}, {}", not(is, value)))
            }
            Self::Count { is, value } => {
                let items = found.as_array();
                let items = items
                    .ok_or_else(|| format!("is {}, not an array", short(found)))?
                    .len();
                let holds = is.holds(items as f64, *value as f64);
                (holds, format!("has {items} items, {}", not(is, value)))
            }
            Self::Length { unit, is, value } => {
                let text = text_of(found);
                let length = match unit {
                    Unit::Words => text.split_whitespace().count(),
                    Unit::Characters => text.chars().count(),
                };
                let holds = is.holds(length as f64, *value as f64);
                (holds, format!("has {length} {unit}, {}", not(is, value)))
            }
            Self::Equals { value } => {
                let reason = format!("is {}, not {}", short(found), short(value));
                (same(found, value), reason)
            }
            Self::OneOf { values } => {
                let all = short(&Value::Array(values.clone()));
                let holds = values.iter().any(|value| same(found, value));
                (holds, format!("is {}, none of {all}", short(found)))
            }
            Self::Required => (!found.is_null(), "is null".to_owned()),
            Self::Type { is } => {
                let reason = format!("is {}, not of type {}", short(found), is.name());
                (is.fits(found), reason)
            }
            Self::Contains { text } => {
                let holds = has_words(&text_of(found), text, false);
                (holds, format!("does not say {}", quoted(text)))
            }
            Self::NotContains { text } => {
                let holds = !has_words(&text_of(found), text, true);
                (holds, format!("says {}", quoted(text)))
            }
            Self::Matches { pattern } => {
                let holds = matches(pattern, &text_of(found))?;
                (holds, format!("does not match {}", quoted(pattern)))
            }
            Self::NotMatches { pattern } => {
                let holds = !matches(pattern, &text_of(found))?;
                (holds, format!("matches {}", quoted(pattern)))
            }
        };
        if holds { Ok(()) } else { Err(reason) }
    }
}

fn matches(pattern: &str, text: &str) -> Result<bool, String> {
    let regex = Regex::new(pattern).map_err(|error| format!("cannot be matched: {error}"))?;
    Ok(regex.is_match(text))
}

/// Readable text of a value: each string, number and truth value on its own line, without keys.
fn text_of(value: &Value) -> String {
    let line = |leaf: &Value| match leaf {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        scalar => Some(scalar.to_string()),
    };
    let lines: Vec<String> = leaves(value).into_iter().filter_map(line).collect();
    lines.join("\n")
}

/// Returns true if a text contains these words, ignoring case. They must start at a word boundary
/// and, with `alone`, also end at one. Scripts without spaces have no boundaries.
fn has_words(text: &str, words: &str, alone: bool) -> bool {
    let (text, words) = (text.to_lowercase(), words.to_lowercase());
    let bound = |a: Option<char>, b: Option<char>| {
        let is_word = |c: char| (c.is_alphanumeric() || c == '_') && u32::from(c) < 0x2E80;
        !(a.is_some_and(is_word) && b.is_some_and(is_word))
    };
    let (first, last) = (words.chars().next(), words.chars().next_back());
    if first.is_none() {
        return false;
    }
    let mut from = 0;
    while let Some(at) = text[from..].find(&words).map(|at| from + at) {
        let end = at + words.len();
        let begins = bound(text[..at].chars().next_back(), first);
        let ends = !alone || bound(last, text[end..].chars().next());
        if begins && ends {
            return true;
        }
        from = at + first.map_or(1, char::len_utf8);
    }
    false
}

/// Returns true if two values are equal; numbers compare by value.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Value for a message, cut to 60 characters.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn quoted(text: &str) -> String {
    short(&Value::String(text.to_owned()))
}

impl Operator {
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Below => a < b,
            Self::AtMost => a <= b,
            Self::Above => a > b,
            Self::AtLeast => a >= b,
            #[expect(clippy::float_cmp, reason = "both were read from text")]
            Self::Exactly => a == b,
            #[expect(clippy::float_cmp, reason = "both were read from text")]
            Self::Not => a != b,
        }
    }
}

impl JsonType {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Integer => value
                .as_f64()
                .is_some_and(|number| number.fract().abs() < f64::EPSILON),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &str = include_str!("cases.json");

    #[test]
    fn every_check_is_decided_as_the_table_says() {
        let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() > 40);
        for case in cases {
            let assertion: Assertion = serde_json::from_value(case["assertion"].clone()).unwrap();
            let found = assertion.check(&case["output"]);
            assert_eq!(found.is_ok(), case["holds"], "{case}: {found:?}");
        }
    }

    #[test]
    fn difference_is_described() {
        let check = |assertion: &str, output: &str, expected: &str| {
            let assertion: Assertion = serde_json::from_str(assertion).unwrap();
            let output: Value = serde_json::from_str(output).unwrap();
            assert_eq!(assertion.check(&output).unwrap_err(), expected);
        };
        let below = r#"{"type": "compare", "path": "$.score", "is": "<", "value": 60}"#;
        check(below, r#"{"score": 72}"#, "`$.score` is 72, not < 60");
        check(
            below,
            r#"{"score": "72"}"#,
            "`$.score` is \"72\", not a number",
        );
        check(below, "{}", "there is no `$.score`");
        check(
            r#"{"type": "not_contains", "path": "$", "text": "cheap"}"#,
            r#"{"raw_output": "Cheap!"}"#,
            "`$` says \"cheap\"",
        );
    }

    #[test]
    fn a_pattern_that_is_none_is_told() {
        let assertion: Assertion =
            serde_json::from_str(r#"{"type": "matches", "path": "$", "pattern": "("}"#).unwrap();
        assert!(
            assertion
                .usable()
                .unwrap_err()
                .contains("not a valid regular expression")
        );
    }
}
