//! Paths into an output: a small subset of JSON Path (RFC 9535).
//!
//! Supports `$`, `.name`, `['any name']`, `[0]` and `[*]`; no filters, slices or descendants. A
//! step into a missing value selects one missing value, so that an assertion on it fails instead of
//! passing vacuously.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Path into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Path {
    steps: Vec<Step>,
}

/// Step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
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
        self.with(Step::Name(name.to_owned()))
    }

    /// Path of every item below this one.
    #[must_use]
    pub fn each(&self) -> Self {
        self.with(Step::Each)
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { steps }
    }

    /// Steps, from the root.
    pub fn steps(&self) -> &[Step] {
        &self.steps
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
                path = path.each();
            }
            prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path));
        }
    }
}
