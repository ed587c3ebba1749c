//! An event in one form for all hosts, and the tolerant reading of its fields.
//!
//! Fields that are missing, or of another type than documented, are as good as not there: hosts
//! change without asking. A tool's output may be megabytes; what is kept of it is its head and its
//! tail, between which no tool says what went wrong.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::guard::Clean;

/// What is kept of a long text, in bytes.
const HEAD: usize = 16 << 10;
const TAIL: usize = 48 << 10;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The session's name, as the host has it.
    pub session_id: String,
    /// The directory in which the session works.
    pub cwd: Option<PathBuf>,
    /// The file in which the host keeps the session.
    pub transcript_path: Option<PathBuf>,
    /// The host's own name of the event: the answer has to repeat it.
    pub name: String,
    /// What kind of event it is.
    pub kind: EventKind,
    /// The tool, as the host names it.
    pub tool: Option<String>,
    /// The command, or the whole input of another tool as JSON.
    pub input: String,
    /// What the tool printed, or the prompt.
    pub output: String,
    /// The exit code of a command, where the host tells it.
    pub exit_code: Option<i64>,
}

/// The kinds of events that are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A call of a tool has failed.
    ToolFailed,
    /// A call of a tool has succeeded.
    ToolSucceeded,
    /// A session begins, goes on, or has just been made shorter.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The user has said something.
    Prompt,
}

/// The fields of an event as they came.
#[derive(Debug)]
pub(super) struct Fields<'a>(HashMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Fields<'a> {
    /// The fields of the JSON object that these bytes are.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        serde_json::from_slice(bytes).ok().map(Self)
    }

    /// The fields of an object inside.
    pub(super) fn inside(&self, name: &str) -> Option<Fields<'a>> {
        serde_json::from_str(self.0.get(name)?.get())
            .ok()
            .map(Fields)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.get() != "null")
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.get() == "true")
    }

    /// A string; `None` for anything else, and for an empty one.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text: String = serde_json::from_str(self.0.get(name)?.get()).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// The texts of a value: a string as it is; of lists and objects every string inside, a line
    /// each.
    pub(super) fn texts(&self, name: &str) -> String {
        let Some(raw) = self.0.get(name) else {
            return String::new();
        };
        let mut texts = String::new();
        if let Ok(value) = serde_json::from_str(raw.get()) {
            collect(&value, &mut texts);
        }
        texts
    }

    /// What a tool was asked to do: its command where it has one, else the whole input.
    pub(super) fn input(&self) -> String {
        let Some(raw) = self.0.get("tool_input") else {
            return String::new();
        };
        let input = self.inside("tool_input");
        let command = input.as_ref().and_then(|input| {
            let named = ["command", "cmd", "script", "code"].into_iter();
            named
                .map(|name| input.texts(name))
                .find(|text| !text.is_empty())
        });
        clip(&match command {
            Some(command) => Clean::of_owned(command),
            None => Clean::of_json(raw.get()),
        })
    }

    /// An event with what all hosts tell; `None` where not even the session is named.
    pub(super) fn event(&self, kind: EventKind) -> Option<Event> {
        let path = |name| self.text(name).map(PathBuf::from);
        Some(Event {
            session_id: self.text("session_id")?,
            cwd: path("cwd").filter(|cwd| cwd.is_absolute()),
            transcript_path: path("transcript_path").filter(|path| path.is_absolute()),
            name: self.text("hook_event_name")?,
            kind,
            tool: self.text("tool_name"),
            input: self.input(),
            output: String::new(),
            exit_code: None,
        })
    }
}

fn collect(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) => {
            if !texts.is_empty() {
                texts.push('\n');
            }
            texts.push_str(text);
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

/// The head and the tail of a long text that has lost its secrets: half of one may not be told.
pub(super) fn clip(text: &Clean<'_>) -> String {
    text.ends(HEAD, TAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_its_command_or_all_of_it() {
        let check = |json: &str, expected: &str| {
            let fields = Fields::read(json.as_bytes()).unwrap();
            assert_eq!(fields.input(), expected, "{json}");
        };
        check(
            r#"{"tool_input": {"command": "ls -la", "description": "d"}}"#,
            "ls -la",
        );
        check(
            r#"{"tool_input": {"command": ["bash", "-lc", "ls"]}}"#,
            "bash\n-lc\nls",
        );
        check(
            r#"{"tool_input": {"file_path": "/a"}}"#,
            r#"{"file_path": "/a"}"#,
        );
        check(r#"{"tool_input": 7}"#, "7");
        check("{}", "");
    }

    #[test]
    fn secrets_that_lie_across_a_cut_are_gone() {
        let lines: Vec<String> = (2..42)
            .map(|i| format!("{i:6}\tZq9xK7mP2vL5nR8tW4yB6cD1fG3hJ0s{i:02}"))
            .collect();
        let key = format!(
            "     1\t-----BEGIN RSA PRIV{0}\n{1}\n    42\t-----END RSA PRIV{0}",
            "ATE KEY-----",
            lines.join("\n")
        );
        let text = format!("{}{key}{}", "x ".repeat(HEAD / 2 - 300), " y".repeat(TAIL));
        let kept = clip(&Clean::of(&text));
        assert!(
            kept.contains("[REDACTED:private-key]") && !kept.contains("Zq9"),
            "{kept}"
        );
    }

    #[test]
    fn strange_fields_are_no_fields() {
        assert!(Fields::read(b"[]").is_none());
        assert!(Fields::read(b"\xff\xfe").is_none());
        let deep = format!("{{\"a\": {}}}", "[".repeat(100_000));
        assert!(Fields::read(deep.as_bytes()).is_none());
        let fields = Fields::read(br#"{"session_id": 7, "cwd": "rel", "b": null, "c": true}"#);
        let fields = fields.unwrap();
        assert_eq!(fields.text("session_id"), None);
        assert!(!fields.has("b") && fields.has("c") && fields.is_true("c"));
        assert_eq!(fields.event(EventKind::Prompt), None);
    }

    #[test]
    fn long_texts_keep_both_ends() {
        let text = format!("first {} last", "é".repeat(1 << 20));
        let kept = clip(&Clean::of(&text));
        assert!(kept.len() < HEAD + TAIL + 8);
        assert!(kept.starts_with("first") && kept.ends_with("last"));
    }
}
