//! Metadata of a skill: YAML, or what its lines say.
//!
//! Line-based metadata parser, for metadata that is invalid YAML.
//!
//! Real skill files contain `description: Use when: the user asks`, tabs, and values that begin
//! with `@` or `%`. This parser accepts `key: value` at the start of a line, quotes, and lines that
//! continue a value, without regard to YAML. It never fails, takes linear time, and skips lines
//! that it does not understand.

use memctl_files::yaml;
use memctl_files::yaml::{Invalid, Numbers};
use serde_json::{Map, Value};

/// Parses a YAML map. The error is the line in the YAML, from 1, and the reason.
pub(super) fn read(text: &str) -> Result<Map<String, Value>, Invalid> {
    match yaml::parse(text, Numbers::AsWritten)? {
        Value::Object(map) => Ok(map),
        // Empty or comment-only metadata is an empty map.
        Value::Null => Ok(Map::new()),
        _ => Err((1, "it is no map".to_owned())),
    }
}

/// Recognised keys and values. A later key of the same name wins, as in most YAML parsers.
pub(super) fn read_lines(text: &str) -> Map<String, Value> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if let Some((key, value)) = key_of(line) {
            found.push((key, value.to_owned()));
            is_open = true;
        } else if line.starts_with('#') || line.starts_with("---") {
            is_open = false;
        } else if let Some((_, value)) = found.last_mut().filter(|_| is_open) {
            value.extend([" ", line.trim()]);
        }
    }
    let values = found.into_iter().map(|(key, value)| {
        // The marks of a block say how its lines are joined.
        let is_mark = |c| matches!(c, '|' | '>' | '+' | '-');
        let text = match value.split_once(' ') {
            Some((marks, text)) if marks.starts_with(['|', '>']) && marks.chars().all(is_mark) => {
                text
            }
            _ => &value,
        };
        let text = unquoted(text);
        let value = Some(text).filter(|text| !text.is_empty());
        (key.to_owned(), Value::from(value))
    });
    values.collect()
}

/// Splits `key: value`. The key starts the line and is one plain word.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_key = !key.is_empty() && key.len() <= 64 && key.chars().all(plain);
    let is_separated = rest.is_empty() || rest.starts_with([' ', '\t']);
    // A list item is not a key, although keys may contain dashes.
    (is_key && is_separated && !key.starts_with('-')).then(|| (key, rest.trim()))
}

/// Removes quotes around the whole text; an unmatched quote stays.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    if let Some(inner) = inner('"') {
        return inner.replace("\\\"", "\"").replace("\\n", "\n");
    }
    if let Some(inner) = inner('\'') {
        return inner.replace("''", "'");
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_yaml_is_bounded() {
        let laughs: Vec<String> = ('b'..='i')
            .zip('a'..)
            .map(|(this, last)| format!("{this}: &{this} [*{last},*{last},*{last},*{last}]"))
            .collect();
        let steps: Vec<String> = (0..300).map(|n| format!("{}a:", " ".repeat(n))).collect();
        let n = 30_000;
        for yaml in [
            format!("a: &a [x,x,x,x]\n{}", laughs.join("\n")),
            steps.join("\n"),
            format!("a: {}", "[".repeat(n)),
            format!("a: {}", "{a: ".repeat(n / 4)),
            format!("a:\n {}", "- ".repeat(n)),
            "? ".repeat(n),
            "&a ".repeat(n / 2),
            format!("a: &a [{}]", "*a,".repeat(n / 2)),
            format!("<<: {}", "*x ".repeat(n / 2)),
            "---\n".repeat(1000),
        ] {
            // Any result is fine, as long as it arrives.
            drop(read(&yaml));
        }
    }
}

#[cfg(test)]
mod tests_of_lines {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_author_meant_is_read() {
        let check = |text: &str, expected: Value| {
            assert_eq!(Value::Object(read_lines(text)), expected, "{text}");
        };
        check(
            "description: Use when: it breaks",
            json!({"description": "Use when: it breaks"}),
        );
        check(
            "name: @scope/x\nv: %d",
            json!({"name": "@scope/x", "v": "%d"}),
        );
        check("name:\t\"x: y\"", json!({"name": "x: y"}));
        check(
            "a: 'it''s'\nb: \"say\" hi",
            json!({"a": "it's", "b": "\"say\" hi"}),
        );
        check(
            "a: one\n  two\nthree\nb: x",
            json!({"a": "one two three", "b": "x"}),
        );
        check(
            "a: |\n  x\n\n  z\nb: >-\n  1",
            json!({"a": "x  z", "b": "1"}),
        );
        check(
            "tags:\n  - a\n- b\nname: x",
            json!({"tags": "- a - b", "name": "x"}),
        );
        check("a:\n  just text", json!({"a": "just text"}));
        check("a:", json!({"a": null}));
        check("# c\na: 1\n# d\na: 2", json!({"a": "2"}));
        check("a: 1\n---\nb: 2", json!({"a": "1", "b": "2"}));
        check("no keys here\n- a: b\nhttp://x", json!({}));
        check("a: \"", json!({"a": "\""}));
        check("", json!({}));
    }
}
