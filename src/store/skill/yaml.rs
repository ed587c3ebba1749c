//! YAML metadata.
//!
//! Invariant: parsing is fast for every text. Events, depth, aliases and the size after alias
//! expansion are limited. The caller limits the size of the text itself.

use serde_json::{Map, Value};
use serde_saphyr::DuplicateKeyPolicy;

use super::lines;

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
        let spelled = lines::read(yaml);
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
