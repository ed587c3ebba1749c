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
//! Deliberately absent: the meaning of the keys.

use serde_json::{Map, Value};

use super::{lines, yaml};

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

/// Reason why a file has no usable metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// No metadata, or empty metadata.
    Missing,
    /// Unreadable metadata.
    Unreadable {
        /// Line number in the file, from 1.
        line: usize,
        /// Reason as text.
        reason: String,
    },
}

/// Maximum size of metadata in bytes; handwritten metadata is far smaller.
const MAX_METADATA: usize = 64 * 1024;

/// Reads a file with `\n` line ends and without a byte order mark.
///
/// # Errors
///
/// [`Refused`] if no metadata can be read.
pub fn read(text: &str) -> Result<FrontMatter, Refused> {
    let mut refused = Refused::Missing;
    for split in [at_the_top(text), in_a_section(text)] {
        let tried = split.and_then(|split| match split {
            Some(split) => split.parse(),
            None => Err(Refused::Missing),
        });
        match tried {
            Ok(read) => return Ok(read),
            // Prefer the first reason that is more specific than `Missing`.
            Err(reason) if refused == Refused::Missing => refused = reason,
            Err(_) => {}
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

fn at_the_top(text: &str) -> Result<Option<Split<'_>>, Refused> {
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
    Err(Refused::Unreadable {
        line: before + 1,
        reason: "the `---` of this line is never closed by another one".to_owned(),
    })
}

/// Line of three or more dashes.
fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|b| b == b'-')
}

fn in_a_section(text: &str) -> Result<Option<Split<'_>>, Refused> {
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
        Some((_, first_line)) => Err(Refused::Unreadable {
            line: first_line - 1,
            reason: "the code block that begins here is never closed".to_owned(),
        }),
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
    fn parse(self) -> Result<FrontMatter, Refused> {
        if self.yaml.len() > MAX_METADATA {
            return Err(Refused::Unreadable {
                line: self.first_line,
                reason: format!(
                    "it has {} bytes; at most {MAX_METADATA} are read",
                    self.yaml.len()
                ),
            });
        }
        let (metadata, tolerated) = match yaml::read(self.yaml) {
            Ok(metadata) => (metadata, None),
            Err((line, reason)) => {
                let line = self.first_line + line - 1;
                let metadata = lines::read(self.yaml);
                if metadata.is_empty() {
                    return Err(Refused::Unreadable { line, reason });
                }
                (metadata, Some((line, reason)))
            }
        };
        let metadata = match metadata {
            map if map.is_empty() => return Err(Refused::Missing),
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
            Err(Refused::Missing)
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
    fn what_yaml_refuses_is_read_line_by_line_and_remarked() {
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
    fn what_cannot_be_read_at_all_is_refused_with_its_line() {
        for text in [
            "", "\n\n", "# Only a prompt\n", "---\n---\nx", "---\n# c\n\n---\nx",
        ] {
            assert_eq!(read(text), Err(Refused::Missing), "{text:?}");
        }
        let check = |text: &str, expected: usize| match read(text) {
            Err(Refused::Unreadable { line, .. }) => assert_eq!(line, expected, "{text:?}"),
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
            let text = super::super::root::Text::from_bytes(&bytes).text;
            drop(read(&text));
            drop(read(&format!("---\n{text}\n---\n")));
        }
    }
}
