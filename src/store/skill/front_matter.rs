//! Splits SKILL.md into metadata and prompt.
//!
//! Metadata is either between `---` lines at the top (as in the Agent Skills standard), or in a
//! `yaml` code block under a `## Skill Metadata` heading, optionally below a `skill:` key. The
//! prompt is the file without the metadata, its heading and its block.
//!
//! Invariants: no input panics, recurses without bound or takes long. If YAML parsing fails, the
//! metadata is read line by line, with a remark. The file is refused only if that finds no key
//! either. Unknown keys are kept.
//!
//! Real skill files contain `description: Use when: the user asks`, tabs, and values that begin with `@` or
//! `%`. For such metadata, the line parser accepts `key: value` at the start of a line, quotes, and lines that
//! continue a value. It never fails, takes linear time, and skips lines in any other form.

use memctl_files::yaml::{self, Invalid};
use serde_json::{Map, Value};

/// Metadata and prompt of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontMatter {
    /// Keys in file order. Never empty.
    pub metadata: Map<String, Value>,
    /// The prompt, trimmed.
    pub body: String,
    /// Line number in the file and YAML's reason, if the metadata had to be read line by line.
    pub tolerated: Option<(usize, String)>,
}

/// Maximum size of metadata in bytes; handwritten metadata is far smaller.
const MAX_METADATA: usize = 64 * 1024;

/// Reads a file with `\n` line ends and without a byte order mark.
///
/// # Errors
///
/// The line and the reason of metadata that cannot be read; `None` if there is none, or it is empty.
pub fn read(text: &str) -> Result<FrontMatter, Option<Invalid>> {
    let mut refused = None;
    for split in [at_the_top(text), in_a_section(text)] {
        let tried = split.and_then(|split| match split {
            Some(split) => split.parse(),
            None => Err(None),
        });
        match tried {
            Ok(read) => return Ok(read),
            Err(reason) => refused = refused.or(reason),
        }
    }
    Err(refused)
}

/// Unparsed parts of a file.
struct Split<'a> {
    yaml: &'a str,
    /// Line number in the file where `yaml` begins.
    first_line: usize,
    body: String,
}

fn at_the_top(text: &str) -> Result<Option<Split<'_>>, Option<Invalid>> {
    let start = text.len() - text.trim_start_matches(['\n', ' ', '\t']).len();
    // Indented dashes are not front matter.
    let start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let before = text[..start].matches('\n').count();
    let mut lines = text[start..].split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| is_rule(line)) else {
        return Ok(None);
    };
    let from = start + opening.len();
    let mut to = from;
    for line in lines {
        if is_rule(line) {
            return Ok(Some(Split {
                yaml: &text[from..to],
                first_line: before + 2,
                body: text[to + line.len()..].trim().to_owned(),
            }));
        }
        to += line.len();
    }
    let reason = "the `---` of this line is never closed by another one";
    Err(Some((before + 1, reason.to_owned())))
}

/// Line of three or more dashes.
fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|b| b == b'-')
}

fn in_a_section(text: &str) -> Result<Option<Split<'_>>, Option<Invalid>> {
    let mut at = 0;
    let mut heading = None;
    let mut block: Option<(usize, usize)> = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        match (heading, block) {
            (Some(heading), Some((from, first_line))) if line.trim_start().starts_with("```") => {
                let body = [&text[..heading], text[end..].trim_start()].concat();
                return Ok(Some(Split {
                    yaml: &text[from..at],
                    first_line,
                    body: body.trim().to_owned(),
                }));
            }
            (Some(_), None) if is_yaml_fence(line) => block = Some((end, number + 2)),
            (Some(_), None) if !line.trim().is_empty() => heading = None,
            _ => {}
        }
        if block.is_none() && is_metadata_heading(line) {
            heading = Some(at);
        }
        at = end;
    }
    match block {
        None => Ok(None),
        Some((_, first_line)) => {
            let reason = "the code block that begins here is never closed";
            Err(Some((first_line - 1, reason.to_owned())))
        }
    }
}

fn is_metadata_heading(line: &str) -> bool {
    line.strip_prefix("##")
        .is_some_and(|rest| rest.trim() == "Skill Metadata")
}

fn is_yaml_fence(line: &str) -> bool {
    matches!(line.trim(), "```yaml" | "```yml")
}

impl Split<'_> {
    fn parse(self) -> Result<FrontMatter, Option<Invalid>> {
        if self.yaml.len() > MAX_METADATA {
            let length = self.yaml.len();
            let reason = format!("it has {length} bytes; at most {MAX_METADATA} are read");
            return Err(Some((self.first_line, reason)));
        }
        let (metadata, tolerated) = match read_map(self.yaml) {
            Ok(metadata) => (metadata, None),
            Err((line, reason)) => {
                let line = self.first_line + line - 1;
                let metadata = read_lines(self.yaml);
                if metadata.is_empty() {
                    return Err(Some((line, reason)));
                }
                (metadata, Some((line, reason)))
            }
        };
        let metadata = match metadata {
            map if map.is_empty() => return Err(None),
            map => below_skill(map),
        };
        Ok(FrontMatter {
            metadata,
            body: self.body,
            tolerated,
        })
    }
}

/// The older form puts all keys below `skill:`.
fn below_skill(mut map: Map<String, Value>) -> Map<String, Value> {
    match map.get_mut("skill") {
        Some(Value::Object(inner)) if !inner.is_empty() => std::mem::take(inner),
        _ => map,
    }
}

/// Parses a YAML map. The error is the line in the YAML, from 1, and the reason.
fn read_map(text: &str) -> Result<Map<String, Value>, Invalid> {
    match yaml::parse(text)? {
        Value::Object(map) => Ok(map),
        // Empty or comment-only metadata is an empty map.
        Value::Null => Ok(Map::new()),
        _ => Err((1, "it is no map".to_owned())),
    }
}

/// Recognised keys and values. A later key of the same name wins, as in most YAML parsers.
fn read_lines(text: &str) -> Map<String, Value> {
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
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "reads better with `json!`")]
    fn check(text: &str, metadata: Value, body: &str) {
        let read = read(text).unwrap_or_else(|refused| panic!("{text:?}: {refused:?}"));
        assert_eq!(Value::Object(read.metadata), metadata, "{text:?}");
        assert_eq!(read.body, body, "{text:?}");
        assert_eq!(read.tolerated, None, "{text:?}");
    }

    #[test]
    fn front_matter_stands_at_the_top() {
        check(
            "---\nname: a\n---\nDo it.\n",
            json!({"name": "a"}),
            "Do it.",
        );
        check("\n \n---\nname: a\n---\nx", json!({"name": "a"}), "x");
        check("----- \nname: a\n---\t\nx", json!({"name": "a"}), "x");
        check("---\nname: a\n---", json!({"name": "a"}), "");
        check(
            "---\nname: a\n---\n\none\n\n---\n\ntwo\n",
            json!({"name": "a"}),
            "one\n\n---\n\ntwo",
        );
        // With both forms, the top wins and the section is part of the prompt.
        let section = "## Skill Metadata\n```yaml\nname: b\n```";
        let both = format!("---\nname: a\n---\n{section}\n");
        check(&both, json!({"name": "a"}), section);
        // Empty front matter counts as missing.
        check(
            "---\n---\n## Skill Metadata\n```yaml\nname: b\n```\nx",
            json!({"name": "b"}),
            "---\n---\nx",
        );
    }

    #[test]
    fn a_metadata_section_is_taken_out_of_the_prompt() {
        check(
            "# Title\n\n## Skill Metadata\n\n```yaml\nname: a\nrole: agent\n```\n\n## Task\nDo it.\n",
            json!({"name": "a", "role": "agent"}),
            "# Title\n\n## Task\nDo it.",
        );
        check(
            "## Skill Metadata\n```yml\nskill:\n  name: a\n```\nx",
            json!({"name": "a"}),
            "x",
        );
        // A block that does not directly follow the heading is an example.
        assert_eq!(
            read("## Skill Metadata\nThis is how:\n```yaml\nname: a\n```\n"),
            Err(None)
        );
    }

    #[test]
    fn every_key_is_kept_in_its_order() {
        let text = "---\nname: pdf\ndescription: >\n  Reads\n  PDFs.\nlicense: MIT\n\
                    metadata:\n  author: a\n  version: \"1.0\"\nallowed-tools: Bash(git:*) Read\n\
                    user-invocable: true\ntags: [a, b]\n---\nx";
        let read = read(text).unwrap();
        assert_eq!(
            read.metadata.keys().collect::<Vec<_>>(),
            [
                "name", "description", "license", "metadata", "allowed-tools", "user-invocable",
                "tags"
            ]
        );
        assert_eq!(read.metadata["description"], "Reads PDFs.\n");
        assert_eq!(read.metadata["metadata"]["version"], "1.0");
    }

    #[test]
    fn invalid_yaml_is_read_line_by_line_with_a_remark() {
        let check = |yaml: &str, line: usize, metadata: Value| {
            let read = read(&format!("---\n{yaml}\n---\nx")).unwrap();
            assert_eq!(Value::Object(read.metadata), metadata, "{yaml}");
            assert_eq!(read.body, "x");
            let (at, reason) = read.tolerated.expect(yaml);
            assert_eq!(at, line, "{yaml}: {reason}");
            assert!(!reason.contains('\n'));
        };
        check(
            "name: a\ndescription: Use when: it breaks",
            3,
            json!({"name": "a", "description": "Use when: it breaks"}),
        );
        check("name: @a", 2, json!({"name": "@a"}));
        check("name: a\nd: %x", 3, json!({"name": "a", "d": "%x"}));
        check("name: [a", 2, json!({"name": "[a"}));
    }

    #[test]
    fn unreadable_metadata_is_refused_with_its_line() {
        for text in [
            "", "\n\n", "# Only a prompt\n", "---\n---\nx", "---\n# c\n\n---\nx",
        ] {
            assert_eq!(read(text), Err(None), "{text:?}");
        }
        let check = |text: &str, expected: usize| match read(text) {
            Err(Some((line, _))) => assert_eq!(line, expected, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        };
        check("\n---\nname: a\n", 2);
        check("---\n- a\n- b\n---\nx", 2);
        check("---\njust words\n---\nx", 2);
        check("a\n## Skill Metadata\n```yaml\nname: a\n", 3);
        check(&format!("---\nname: {}\n---\n", "x".repeat(70_000)), 2);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            drop(read(&text));
            drop(read(&format!("---\n{text}\n---\n")));
            drop(read(&format!("## Skill Metadata\n```yaml\n{text}\n```\n")));
        }

        #[test]
        fn no_text_that_looks_like_yaml_panics(
            text in r#"([a-c]: ?|- |["'|>&*!@%#{}\[\],?]|\n|  |\t|---|é|x){0,40}"#
        ) {
            drop(read(&format!("---\n{text}\n---\nx")));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = super::super::Text::from_bytes(&bytes).text;
            drop(read(&text));
            drop(read(&format!("---\n{text}\n---\n")));
        }
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

    #[test]
    fn intended_metadata_is_read() {
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
