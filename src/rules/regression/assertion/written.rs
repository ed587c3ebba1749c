//! Short form of an assertion, as a person or a model writes it: `$.overall_score < 60`.
//!
//! ```text
//! PATH < | <= | > | >= | == | != NUMBER      PATH == VALUE          PATH in [VALUE, …]
//! PATH contains | not contains TEXT          PATH matches | not matches REGEX
//! PATH words | characters | items <= NUMBER  PATH exists            PATH is integer | number | …
//! ```

use serde_json::Value;

use super::{Assertion, Check, JsonType, Operator, Path, Unit};

const FORM: &str = "an assertion looks like `$.overall_score < 60` or `$ not contains \"soon\"`";

/// Reads the short form.
///
/// # Errors
///
/// Returns a description of what is wrong.
pub fn read(text: &str) -> Result<Assertion, String> {
    let wrong = || format!("`{}` is no assertion: {FORM}", text.trim());
    let (path, rest) = path(text.trim()).ok_or_else(wrong)?;
    let check = check(path, rest).ok_or_else(wrong)?;
    let assertion = Assertion {
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

fn check(path: Path, rest: &str) -> Option<Check> {
    let (word, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let value = value.trim();
    if let Some(is) = operator(word) {
        return match serde_json::from_str::<Value>(value).ok()? {
            Value::Number(value) => Some(Check::Compare { path, is, value }),
            value if is == Operator::Exactly => Some(Check::Equals { path, value }),
            _ => None,
        };
    }
    let counted = || {
        let (sign, number) = value.split_once(' ')?;
        Some((operator(sign)?, number.trim().parse::<u64>().ok()?))
    };
    let length = |unit: Unit| {
        let (is, value) = counted()?;
        Some((unit, is, value))
    };
    match word {
        "contains" => Some(Check::Contains {
            path,
            text: plain(value)?,
        }),
        "matches" => Some(Check::Matches {
            path,
            pattern: plain(value)?,
        }),
        "not" => match value.split_once(' ')? {
            ("contains", text) => Some(Check::NotContains {
                path,
                text: plain(text)?,
            }),
            ("matches", text) => Some(Check::NotMatches {
                path,
                pattern: plain(text)?,
            }),
            _ => None,
        },
        "in" => Some(Check::OneOf {
            path,
            values: serde_json::from_str(value).ok()?,
        }),
        "exists" if value.is_empty() => Some(Check::Required { path }),
        "is" => {
            let is = serde_json::from_value::<JsonType>(Value::String(value.to_owned())).ok()?;
            Some(Check::Type { path, is })
        }
        "items" => {
            let (is, value) = counted()?;
            Some(Check::Count { path, is, value })
        }
        "words" | "characters" => {
            let unit = if word == "words" {
                Unit::Words
            } else {
                Unit::Characters
            };
            let (unit, is, value) = length(unit)?;
            Some(Check::Length {
                path,
                unit,
                is,
                value,
            })
        }
        _ => None,
    }
}

fn operator(sign: &str) -> Option<Operator> {
    serde_json::from_value(Value::String(sign.to_owned())).ok()
}

/// Text in quotation marks, or as it stands.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    let read = serde_json::from_str::<String>(text).ok();
    let read = read.or_else(|| Some(text.strip_prefix('\'')?.strip_suffix('\'')?.to_owned()));
    Some(read.unwrap_or_else(|| text.to_owned())).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_short_form_is_read() {
        let checked = |text: &str, expected: Value| {
            let read = read(text).unwrap();
            assert_eq!(json!(read.check), expected, "{text}");
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
    fn what_is_none_is_told() {
        for text in [
            "", "be kind", "$.a", "$.a < b", "$.a != \"b\"", "a < 1", "$.a words <= x",
            "$.a contains", "$.a is tall", "$ matches (",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
