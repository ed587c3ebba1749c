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

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Assertion, Check, JsonType, Operator, Unit};

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
    let found = spaces.filter_map(|at| Some((text[..at].parse().ok()?, text[at..].trim())));
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

/// Path into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path {
    steps: Vec<Step>,
}

/// Step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    pub const fn root() -> Self {
        Self { steps: Vec::new() }
    }

    /// Path of a field below this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        let mut steps = self.steps.clone();
        steps.push(Step::Name(name.to_owned()));
        Self { steps }
    }

    /// Returns `true` for the path of the whole output.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Selected values; `None` for a missing one.
    pub fn select<'v>(&self, value: &'v Value) -> Vec<Option<&'v Value>> {
        let mut found = vec![Some(value)];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|value| match (step, value) {
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
        f.write_str("$")?;
        for step in &self.steps {
            match step {
                Step::Each => f.write_str("[*]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Name(name) if is_plain(name) => write!(f, ".{name}")?,
                Step::Name(name) => {
                    let escaped = name.replace('\\', "\\\\").replace('\'', "\\'");
                    write!(f, "['{escaped}']")?;
                }
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.to_string()
    }
}

impl TryFrom<String> for Path {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no path; one looks like `$.items[*].price`");
        let mut rest = text.trim().strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(Step::Each);
                rest = after;
            } else if let Some(after) = rest.strip_prefix("['") {
                let (name, after) = name_in_quotes(after).ok_or_else(wrong)?;
                steps.push(Step::Name(name));
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or_else(wrong)?;
                steps.push(Step::Index(index.parse().map_err(|_| wrong())?));
                rest = after;
            } else {
                let after = rest.strip_prefix('.').ok_or_else(wrong)?;
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if !is_plain(&after[..end]) {
                    return Err(wrong());
                }
                steps.push(Step::Name(after[..end].to_owned()));
                rest = &after[end..];
            }
        }
        Ok(Self { steps })
    }
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
            let path: Path = path.parse().unwrap();
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
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_read_as_it_is_written(names in prop::collection::vec(".*", 0..4), each: bool) {
            let mut path = names.iter().fold(Path::root(), |path, name| path.field(name));
            if each {
                path.steps.push(Step::Each);
            }
            prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path));
        }
    }
}
