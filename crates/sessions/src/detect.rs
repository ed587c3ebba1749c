//! Detects the format of a file from the beginning of its content. File names are not reliable.

use serde::de::IgnoredAny;

use super::text::{first, members};
use super::{Format, specstory, text};

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
/// Maximum number of inspected members of an object.
const MAX_KEYS: usize = 64;

/// Format and layout of a file that begins with `start`. A named format is taken as given; only its
/// layout is detected.
pub(super) fn detect(named: Option<Format>, start: &[u8]) -> Option<(Format, Shape)> {
    let start = String::from_utf8_lossy(start);
    let start = start.trim_start();
    let seen = match start.strip_prefix('[') {
        Some(list) => of_keys(&Keys::of(list)).map(|(format, _)| (format, Shape::Document)),
        None if start.starts_with('{') => of_objects(start),
        None => of_markdown(start).or_else(|| of_objects(start)),
    };
    match (named, seen) {
        (Some(named), Some((format, shape))) if format == named => Some((named, shape)),
        (Some(named), _) => Some((named, usual(named, start))),
        (None, seen) => seen,
    }
}

/// Format of Markdown, from the mark in its first lines: people and tools write lines before it.
fn of_markdown(start: &str) -> Option<(Format, Shape)> {
    let mut first = start.lines().take(MAX_LINES);
    let is_export = first.any(|line| line.starts_with(specstory::FIRST_LINE));
    is_export.then_some((Format::SpecStory, Shape::Markdown))
}

fn usual(format: Format, start: &str) -> Shape {
    match format {
        Format::SpecStory => Shape::Markdown,
        Format::OpenCode | Format::Cline | Format::SweAgent => Shape::Document,
        _ if start.starts_with('[') => Shape::Document,
        _ => Shape::Lines,
    }
}

fn of_objects(start: &str) -> Option<(Format, Shape)> {
    // A pretty-printed document has keys beyond the first line.
    match of_keys(&Keys::of(start)) {
        // Traces come as one per line, or as such a document.
        Some((Format::Otlp, _)) => {
            let first = start.lines().next().unwrap_or_default();
            let is_whole =
                first.len() == start.len() || serde_json::from_str::<IgnoredAny>(first).is_ok();
            let shape = if is_whole {
                Shape::Lines
            } else {
                Shape::Document
            };
            return Some((Format::Otlp, shape));
        }
        Some(found @ (_, Shape::Document)) => return Some(found),
        _ => {}
    }
    let objects = start
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('{'));
    let mut objects = objects.take(MAX_LINES);
    objects.find_map(|line| of_keys(&Keys::of(line)))
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
    if has("payload") && of_codex.contains(&kind) {
        return Some((Format::Codex, Shape::Lines));
    }
    if has("resourceSpans") {
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
    fn of(json: &str) -> Self {
        let mut keys = Self::default();
        for (name, value) in members(json).take(MAX_KEYS) {
            if name == "type" {
                keys.kind = first(value).and_then(|(value, _)| text::owned(&value));
            }
            keys.names.push(name);
        }
        keys
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
