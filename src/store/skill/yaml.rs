//! YAML metadata.
//!
//! Invariant: parsing is fast for every text. Events, depth, aliases and the size after alias
//! expansion are limited. The caller limits the size of the text itself.
//!
//! Line-based metadata parser, for metadata that is invalid YAML.
//!
//! Real skill files contain `description: Use when: the user asks`, tabs, and values that begin
//! with `@` or `%`. This parser accepts `key: value` at the start of a line, quotes, and lines that
//! continue a value, whatever they mean in YAML. It never fails, takes linear time, and skips lines
//! that it does not understand.

use serde_json::{Map, Value};
use serde_saphyr::DuplicateKeyPolicy;

/// Maximum total size of all values in bytes, after alias expansion.
const MAX_SCALARS: usize = 256 * 1024;

/// Parses a YAML map. The error is the line in the YAML, from 1, and the reason.
pub(super) fn read(yaml: &str) -> Result<Map<String, Value>, (usize, String)> {
    // Empty or comment-only metadata is an empty map.
    let says_nothing = |line: &str| line.trim().is_empty() || line.starts_with('#');
    if yaml.lines().all(says_nothing) {
        return Ok(Map::new());
    }
    let options = serde_saphyr::options! {
        // Far above handwritten metadata, far below dangerous sizes.
        budget: serde_saphyr::budget! {
            max_events: 20_000,
            max_nodes: 10_000,
            max_aliases: 100,
            max_anchors: 100,
            max_depth: 32,
            max_documents: 1,
            max_merge_keys: 100,
            max_total_scalar_bytes: MAX_SCALARS,
        },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // Otherwise a skill called `on` would be called `true`.
        strict_booleans: true,
        with_snippet: false,
    };
    let mut map: Map<String, Value> =
        serde_saphyr::from_str_with_options(yaml, options).map_err(|error| explain(&error))?;
    // `007` and `1.10` are kept as text, although YAML reads them as numbers.
    if map.values().any(Value::is_number) {
        let spelled = read_lines(yaml);
        for (key, value) in map.iter_mut().filter(|(_, value)| value.is_number()) {
            if let Some(Value::String(text)) = spelled.get(key)
                // Excludes anchors and tags.
                && text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
            {
                let comment = text.find(" #").unwrap_or(text.len());
                *value = Value::String(text[..comment].trim_end().to_owned());
            }
        }
    }
    Ok(map)
}

fn explain(error: &serde_saphyr::Error) -> (usize, String) {
    let line = error
        .location()
        .and_then(|location| usize::try_from(location.line()).ok())
        .map_or(1, |line| line.max(1));
    let message = error.to_string();
    // The first line is the reason; its position is relative to the YAML block.
    let reason = message.lines().next().unwrap_or_default();
    let reason = reason.split(" at line ").next().unwrap_or(reason);
    (line, reason.chars().take(200).collect())
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_the_text_that_was_written() {
        let check = |yaml: &str, expected: Value| {
            assert_eq!(read(yaml).map(Value::Object), Ok(expected), "{yaml}");
        };
        check(
            "name: 007\nversion: 1.10 # now",
            json!({"name": "007", "version": "1.10"}),
        );
        check("name: &a 5", json!({"name": 5}));
        check("flag: true\nword: on", json!({"flag": true, "word": "on"}));
        check("name: a\nname: b", json!({"name": "b"}));
        check("# c\n\n", json!({}));
    }

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
