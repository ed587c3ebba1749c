//! Detects the format of a file from the beginning of its content. File names are not reliable.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny};

use super::text::Text;
use super::{Format, markdown};

/// Layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One JSON value per line.
    Lines,
    /// One JSON value.
    Document,
    /// Text.
    Markdown,
}

/// Maximum number of inspected lines; the first ones can fit several formats.
const MAX_LINES: usize = 50;

/// Format and layout of a file that begins with `start`. A named format is taken as given; only its
/// layout is detected.
pub(super) fn detect(named: Option<Format>, start: &[u8]) -> Option<(Format, Shape)> {
    let start = start.trim_ascii_start();
    let seen = if let Some(format) = of_markdown(start) {
        Some((format, Shape::Markdown))
    } else if start.starts_with(b"[") {
        first_object(start).map(|format| (format, Shape::Document))
    } else {
        of_objects(start)
    };
    let seen = seen.map(|(format, shape)| match format {
        Format::Otlp => (format, of_traces(start)),
        _ => (format, shape),
    });
    match (named, seen) {
        (Some(named), Some((format, shape))) => {
            let shape = if format == named {
                shape
            } else {
                usual(named, start)
            };
            Some((named, shape))
        }
        (Some(named), None) => Some((named, usual(named, start))),
        (None, seen) => seen,
    }
}

/// Format of Markdown, from the first mark in its first lines: people and tools write lines before it.
fn of_markdown(start: &[u8]) -> Option<Format> {
    if start.starts_with(b"{") || start.starts_with(b"[") {
        return None;
    }
    let lines = start.split(|b| *b == b'\n').take(MAX_LINES);
    let marks = [
        (markdown::SPECSTORY, Format::SpecStory),
        (markdown::AIDER, Format::Aider),
    ];
    lines.into_iter().find_map(|line| {
        let of_mark = |(mark, _): &&(&str, Format)| line.starts_with(mark.as_bytes());
        marks.iter().find(of_mark).map(|(_, format)| *format)
    })
}

/// Traces come as one per line, or as a pretty-printed document.
fn of_traces(start: &[u8]) -> Shape {
    let first = start.split(|b| *b == b'\n').next().unwrap_or_default();
    let is_whole =
        first.len() == start.len() || serde_json::from_slice::<IgnoredAny>(first).is_ok();
    if is_whole && !start.starts_with(b"[") {
        Shape::Lines
    } else {
        Shape::Document
    }
}

fn usual(format: Format, start: &[u8]) -> Shape {
    match format {
        Format::SpecStory | Format::Aider => return Shape::Markdown,
        Format::OpenCode | Format::Cline => return Shape::Document,
        _ => {}
    }
    if format == Format::SweAgent || start.starts_with(b"[") {
        Shape::Document
    } else {
        Shape::Lines
    }
}

/// Format of a list, from its first element.
fn first_object(list: &[u8]) -> Option<Format> {
    let element = list[1..].trim_ascii_start();
    if element.is_empty() || element.starts_with(b"]") {
        return None;
    }
    of_keys(&Keys::of(element)).map(|(format, _)| format)
}

fn of_objects(start: &[u8]) -> Option<(Format, Shape)> {
    // A pretty-printed document has keys beyond the first line.
    if start.starts_with(b"{") {
        let whole = Keys::of(start);
        let found = of_keys(&whole);
        if let Some((Format::Otlp, _) | (_, Shape::Document)) = found {
            return found;
        }
    }
    let lines = start.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    lines
        .filter(|line| line.starts_with(b"{"))
        .take(MAX_LINES)
        .find_map(|line| of_keys(&Keys::of(line)))
}

fn of_keys(keys: &Keys) -> Option<(Format, Shape)> {
    let has = |name: &str| keys.names.iter().any(|key| key == name);
    let kind = keys.kind.as_deref().unwrap_or_default();
    let of_codex = [
        "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
        "token_usage_record",
    ];
    let of_claude = [
        "user", "assistant", "system", "summary", "progress", "attachment", "queue-operation",
        "file-history-snapshot", "last-prompt", "result",
    ];
    let claude_only = [
        "message", "sessionId", "session_id", "uuid", "leafUuid", "messageId", "parentUuid",
    ];
    let begins = |marks: &[&str]| marks.iter().any(|mark| kind.starts_with(mark));
    if has("payload") && of_codex.contains(&kind) || begins(&["thread.", "turn.", "item."]) {
        return Some((Format::Codex, Shape::Lines));
    }
    if has("resourceSpans") || has("resource_spans") {
        return Some((Format::Otlp, Shape::Lines));
    }
    if has("trajectory") || has("history") || has("action") && has("observation") {
        return Some((Format::SweAgent, Shape::Document));
    }
    if has("messages") && has("info") {
        return Some((Format::OpenCode, Shape::Document));
    }
    if has("messages") && has("sessionId") && has("origin") {
        return Some((Format::Cline, Shape::Document));
    }
    if has("messages") || has("traj") || has("conversation") {
        let gemini = has("projectHash") || has("startTime");
        let format = if gemini {
            Format::Gemini
        } else {
            Format::OpenaiMessages
        };
        return Some((format, Shape::Document));
    }
    if has("projectHash") || has("$set") || kind == "gemini" || has("toolCalls") {
        return Some((Format::Gemini, Shape::Lines));
    }
    if of_claude.contains(&kind) && claude_only.iter().any(|name| has(name)) {
        return Some((Format::ClaudeCode, Shape::Lines));
    }
    if has("role") && (has("content") || has("tool_calls")) {
        return Some((Format::OpenaiMessages, Shape::Lines));
    }
    let step = has("tool")
        && ["input", "output", "ok", "exit_code", "error"]
            .iter()
            .any(|n| has(n));
    let opening = kind.is_empty() && has("session") && keys.names.len() <= 3;
    (step || opening).then_some((Format::Steps, Shape::Lines))
}

/// Member names of an object, and its `type`.
#[derive(Debug, Default)]
struct Keys {
    names: Vec<String>,
    kind: Option<String>,
}

impl Keys {
    /// Reads an object that may be truncated.
    fn of(json: &[u8]) -> Self {
        let mut keys = Self::default();
        // After an error, the names read so far are kept.
        drop(serde_json::Deserializer::from_slice(json).deserialize_map(&mut keys));
        keys
    }
}

impl<'de> de::Visitor<'de> for &mut Keys {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Text<'de>>()? {
            if self.names.len() >= 64 {
                return Ok(());
            }
            let is_type = name.0 == "type";
            self.names.push(name.owned());
            if is_type {
                map.next_value_seed(Kind(&mut self.kind))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Accepts only a string.
struct Kind<'k>(&'k mut Option<String>);

impl<'de> DeserializeSeed<'de> for Kind<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let text: Text<'de> = de::Deserialize::deserialize(deserializer)?;
        *self.0 = Some(text.owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Format as F;
    use super::Shape::{Document, Lines, Markdown};
    use super::*;

    #[test]
    fn the_content_says_the_format() {
        let check = |start: &str, expected: Option<(Format, Shape)>| {
            assert_eq!(detect(None, start.as_bytes()), expected, "{start}");
        };
        check(
            r#"{"type":"session_meta","payload":{"id":1"#,
            Some((F::Codex, Lines)),
        );
        check(
            "broken\n{\"type\":\"user\",\"uuid\":\"1\"}\n",
            Some((F::ClaudeCode, Lines)),
        );
        check(
            r#"{"sessionId":"a","projectHash":"b"}"#,
            Some((F::Gemini, Lines)),
        );
        check(
            "{\n \"sessionId\": 1, \"projectHash\": 2, \"messages\": [",
            Some((F::Gemini, Document)),
        );
        check("{\n \"trajectory\": [\n", Some((F::SweAgent, Document)));
        check(
            r#" [{"role": "user", "content": "x"#,
            Some((F::OpenaiMessages, Document)),
        );
        check(
            r#"{"task": 1, "messages": []}"#,
            Some((F::OpenaiMessages, Document)),
        );
        check(
            r#"{"role":"user","content":"x"}"#,
            Some((F::OpenaiMessages, Lines)),
        );
        check(
            r#"{"tool":"bash","input":"ls","ok":true}"#,
            Some((F::Steps, Lines)),
        );
        check(r#"{"session":"s"}"#, Some((F::Steps, Lines)));
        check(
            "{\n  \"info\": {\"id\": 1},\n  \"messages\": [",
            Some((F::OpenCode, Document)),
        );
        check(
            r#"{"version":1,"sessionId":"a","origin":{},"messages":["#,
            Some((F::Cline, Document)),
        );
        check(
            "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n",
            Some((F::SpecStory, Markdown)),
        );
        check(
            "\n# aider chat started at 2026-01-02 03:04:05\n",
            Some((F::Aider, Markdown)),
        );
        check(
            "-*- mode: markdown -*-\n\n# aider chat started at 2026-01-02 03:04:05\n",
            Some((F::Aider, Markdown)),
        );
        check(
            "---\ntags: x\n---\n<!-- Generated by SpecStory -->\n",
            Some((F::SpecStory, Markdown)),
        );
        check(r#"{"history": [{"role""#, Some((F::SweAgent, Document)));
        for nothing in [
            "",
            "[]",
            "[",
            "{}",
            "plain text",
            r#"{"name":"x","version":1}"#,
            "[1,2]",
        ] {
            check(nothing, None);
        }
    }
}
