//! Assertions: demands that a program can check.
//!
//! An [`Assertion`] is one demand of a correction: a comparison at a [`Path`], a count, a length, a
//! required or forbidden text. memctl decides it, also for the tests of other frameworks.
//!
//! They come from a model or a person, in the short form that [`read()`] reads, or from an expected
//! output. Nothing derives them from sentences. Demands that need judgement are not assertions.
//!
//! Short form of an assertion, as a person or a model writes it: `$.overall_score < 60`.
//!
//! The path is a small subset of JSON Path (RFC 9535): `$`, `.name`, `['any name']`, `[0]` and `[*]`; no
//! filters, slices or descendants. A step into a missing value selects one missing value, so that an
//! assertion on it fails instead of passing vacuously.
//!
//! ```text
//! PATH < | <= | > | >= | == | != NUMBER      PATH == VALUE          PATH in [VALUE, …]
//! PATH contains | not contains TEXT          PATH matches | not matches REGEX
//! PATH words | characters | items <= NUMBER  PATH exists            PATH is integer | number | …
//! ```

use std::fmt;

use memctl_files::json::leaves;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::model::words::names;

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

const FORM: &str = "an assertion looks like `$.overall_score < 60` or `$ not contains \"soon\"`";

/// Reads the short form.
///
/// # Errors
///
/// Returns a description of what is wrong.
pub fn read(text: &str) -> Result<Assertion, String> {
    let wrong = || format!("`{}` is no assertion: {FORM}", text.trim());
    let (path, rest) = path(text.trim()).ok_or_else(wrong)?;
    let check = check(rest).ok_or_else(wrong)?;
    let assertion = Assertion {
        path,
        check,
        said: text.trim().to_owned(),
    };
    assertion.usable()?;
    Ok(assertion)
}

/// Path at the start, and the rest. A name in quotes may have spaces.
fn path(text: &str) -> Option<(Path, &str)> {
    let spaces = text.match_indices(' ').map(|(at, _)| at);
    let found =
        spaces.filter_map(|at| Some((text[..at].to_owned().try_into().ok()?, text[at..].trim())));
    found.max_by_key(|(_, rest): &(Path, &str)| std::cmp::Reverse(rest.len()))
}

fn check(rest: &str) -> Option<Check> {
    let (word, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let value = value.trim();
    if let Some(is) = operator(word) {
        return match serde_json::from_str::<Value>(value).ok()? {
            Value::Number(value) => Some(Check::Compare { is, value }),
            value if is == Operator::Exactly => Some(Check::Equals { value }),
            _ => None,
        };
    }
    let counted = || {
        let (sign, number) = value.split_once(' ')?;
        Some((operator(sign)?, number.trim().parse::<u64>().ok()?))
    };
    let length = |unit| counted().map(|(is, value)| Check::Length { unit, is, value });
    match word {
        "contains" => plain(value).map(|text| Check::Contains { text }),
        "matches" => plain(value).map(|pattern| Check::Matches { pattern }),
        "not" => match value.split_once(' ')? {
            ("contains", text) => plain(text).map(|text| Check::NotContains { text }),
            ("matches", text) => plain(text).map(|pattern| Check::NotMatches { pattern }),
            _ => None,
        },
        "in" => serde_json::from_str(value)
            .ok()
            .map(|values| Check::OneOf { values }),
        "exists" if value.is_empty() => Some(Check::Required),
        "is" => {
            let is: Option<JsonType> = serde_json::from_value(value.into()).ok();
            is.map(|is| Check::Type { is })
        }
        "items" => counted().map(|(is, value)| Check::Count { is, value }),
        "words" => length(Unit::Words),
        "characters" => length(Unit::Characters),
        _ => None,
    }
}

fn operator(sign: &str) -> Option<Operator> {
    serde_json::from_value(sign.into()).ok()
}

/// Text in quotation marks, or as it stands.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let read = serde_json::from_str::<String>(text).ok();
    let read = read.or_else(|| Some(text.strip_prefix('\'')?.strip_suffix('\'')?.to_owned()));
    Some(read.unwrap_or_else(|| text.to_owned())).filter(|text| !text.is_empty())
}

/// Path into a JSON value, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Path(String);

/// Step of a path.
enum Step {
    /// Field of an object.
    Name(String),
    /// Item of an array, from 0.
    Index(usize),
    /// Every item of an array.
    Each,
}

impl Path {
    /// Path of the whole output.
    pub fn root() -> Self {
        Self("$".to_owned())
    }

    /// Path of a field below this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        if is_plain(name) {
            return Self(format!("{self}.{name}"));
        }
        let escaped = name.replace('\\', "\\\\").replace('\'', "\\'");
        Self(format!("{self}['{escaped}']"))
    }

    /// Returns `true` for the path of the whole output.
    pub fn is_root(&self) -> bool {
        self.0 == "$"
    }

    /// Selected values; `None` for a missing one.
    pub fn select<'v>(&self, value: &'v Value) -> Vec<Option<&'v Value>> {
        let mut found = vec![Some(value)];
        for step in steps(&self.0).unwrap_or_default() {
            found = found
                .into_iter()
                .flat_map(|value| match (&step, value) {
                    (Step::Each, Some(Value::Array(items))) => items.iter().map(Some).collect(),
                    (Step::Name(name), Some(Value::Object(fields))) => vec![fields.get(name)],
                    (Step::Index(index), Some(Value::Array(items))) => vec![items.get(*index)],
                    _ => vec![None],
                })
                .collect();
        }
        found
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl TryFrom<String> for Path {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        match steps(text) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(format!(
                "`{text}` is no path; one looks like `$.items[*].price`"
            )),
        }
    }
}

/// Reads a path; `None` if it is none.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[*]") {
            steps.push(Step::Each);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("['") {
            let (name, after) = name_in_quotes(after)?;
            steps.push(Step::Name(name));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (index, after) = after.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let name = Some(&after[..end]).filter(|name| is_plain(name))?;
            steps.push(Step::Name(name.to_owned()));
            rest = &after[end..];
        }
    }
    Some(steps)
}

/// Name up to the closing `']`, and the rest.
fn name_in_quotes(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '\'' => return Some((name, text[at + 1..].strip_prefix(']')?)),
            c => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const CASES: &str = include_str!("assertion_cases.json");

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

    #[test]
    fn the_short_form_is_read() {
        let checked = |text: &str, expected: Value| {
            let mut read = json!(read(text).unwrap());
            read.as_object_mut().unwrap().remove("said");
            assert_eq!(read, expected, "{text}");
        };
        checked(
            "$.overall_score < 60",
            json!({"type": "compare", "path": "$.overall_score", "is": "<", "value": 60}),
        );
        checked(
            "$.a == \"b c\"",
            json!({"type": "equals", "path": "$.a", "value": "b c"}),
        );
        checked(
            "$.a in [1, 2]",
            json!({"type": "one_of", "path": "$.a", "values": [1, 2]}),
        );
        checked(
            "$ not contains \"soon\"",
            json!({"type": "not_contains", "path": "$", "text": "soon"}),
        );
        checked(
            "$['a b'] matches ^x y$",
            json!({"type": "matches", "path": "$['a b']", "pattern": "^x y$"}),
        );
        checked(
            "$.s words <= 20",
            json!({"type": "length", "path": "$.s", "unit": "words", "is": "<=", "value": 20}),
        );
        checked(
            "$.l items == 3",
            json!({"type": "count", "path": "$.l", "is": "==", "value": 3}),
        );
        checked("$.l exists", json!({"type": "required", "path": "$.l"}));
        checked(
            "$.l is integer",
            json!({"type": "type", "path": "$.l", "is": "integer"}),
        );
    }

    #[test]
    fn invalid_assertion_is_refused_with_a_reason() {
        for text in [
            "", "be kind", "$.a", "$.a < b", "$.a != \"b\"", "a < 1", "$.a words <= x",
            "$.a contains", "$.a is tall", "$ matches (",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_lead_to_values_and_to_what_is_missing() {
        let value = json!({"a": {"b c": 1}, "list": [{"n": 1}, {"m": 2}], "none": null});
        let check = |path: &str, expected: &[Option<Value>]| {
            let path = Path::try_from(path.to_owned()).unwrap();
            let found: Vec<Option<Value>> = path
                .select(&value)
                .into_iter()
                .map(Option::<&Value>::cloned)
                .collect();
            assert_eq!(found, expected, "{path}");
        };
        check("$.a['b c']", &[Some(json!(1))]);
        check("$.list[*].n", &[Some(json!(1)), None]);
        check("$.list[1].m", &[Some(json!(2))]);
        check("$.list[7]", &[None]);
        check("$.a.x.y", &[None]);
        check("$.none", &[Some(Value::Null)]);
        for wrong in ["", "a", "$a", "$.", "$.a b", "$[", "$['a", "$[x]", "$..a"] {
            assert!(Path::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_field_of_any_name_is_found(names in prop::collection::vec(".*", 0..4)) {
            let path = names.iter().fold(Path::root(), |path, name| path.field(name));
            let value = names.iter().rev().fold(json!(1), |value, name| json!({ name: value }));
            prop_assert_eq!(path.select(&value), [Some(&json!(1))]);
        }
    }
}
