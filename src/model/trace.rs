//! What an agent did, whichever host wrote it down: calls of tools in order, and what was said
//! between them.

use serde::Serialize;
use serde_json::Value;

/// One call of a tool, with its answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The ordinal of the call in the file, from 0; calls made in parallel count one by one.
    pub index: usize,
    /// The host's own id of the call.
    pub native_id: Option<String>,
    /// The name of the tool; of a bare shell, the program.
    pub tool: String,
    /// The arguments. Long texts in them are cut in the middle.
    pub input: Value,
    /// The answer as text, without what a host or a memory put into it. Cut in the middle.
    pub output: String,
    /// The host's flag; `None` where the host has no such flag.
    pub is_error: Option<bool>,
    /// The exit code of a command, where it is known.
    pub exit_code: Option<i32>,
    /// When the call was made, as the host wrote it.
    pub time: Option<String>,
    /// Tokens that the turn of the call cost, where it is known.
    pub tokens: Option<u64>,
    /// The directory in which it ran.
    pub cwd: Option<String>,
    /// Whether a subagent made it.
    pub side: bool,
    /// Whether an answer came at all.
    pub answered: bool,
    /// Whether the command still ran when the answer came.
    pub running: bool,
}

impl Step {
    /// The shell command, where the step is one.
    pub fn command(&self) -> Option<String> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                // `["bash", "-lc", "…"]` is a shell around the command.
                match words.as_slice() {
                    [_, flag, command] if flag.starts_with('-') && flag.ends_with('c') => {
                        Some((*command).to_owned())
                    }
                    words => (!words.is_empty()).then(|| words.join(" ")),
                }
            }
            _ => None,
        };
        ["command", "cmd", "script"]
            .iter()
            .find_map(|name| self.input.get(name).and_then(text))
    }

    /// The argument of this name, as text.
    pub fn argument(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.input.get(name).and_then(Value::as_str))
    }
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The person.
    User,
    /// The model.
    Agent,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How many calls had been made before.
    pub before: usize,
    /// Who said it.
    pub by: Speaker,
    /// The words, cut in the middle.
    pub text: String,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenLine {
    /// Counted from 1; of a file that is one document, the line where reading ended.
    pub line: u64,
    /// Why.
    pub message: String,
}

/// What a reader finds on its way through a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A call, complete.
    Step(Box<Step>),
    /// Something that was said.
    Remark(Remark),
    /// A line that could not be read; reading went on.
    Broken(BrokenLine),
    /// The host's id of the session.
    Session(String),
}
