//! Host-independent trace of an agent: tool calls in order, and the messages between them. Readers add
//! calls and answers as they find them; each answer is matched with its call.

use memctl_redact::{Clean, composed};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Format, own_words, text};

/// One tool call with its answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// Ordinal of the call in the file, from 0; parallel calls count separately.
    pub index: usize,
    /// The agent host's id of the call.
    pub native_id: Option<String>,
    /// Name of the tool, or of the program in a bare shell call.
    pub tool: String,
    /// Arguments, with long texts truncated in the middle.
    pub input: Value,
    /// Answer text, without additions by the host or a memory; truncated in the middle.
    pub output: String,
    /// The host's error flag; `None` if the host has no such flag.
    pub is_error: Option<bool>,
    /// Exit code of a command, if known.
    pub exit_code: Option<i32>,
    /// Time of the call, in the host's format.
    pub time: Option<String>,
    /// Tokens of the turn that made the call, if known.
    pub tokens: Option<u64>,
    /// Working directory of the call.
    pub cwd: Option<String>,
    /// `true` if a subagent made the call.
    pub side: bool,
    /// `true` if an answer arrived.
    pub answered: bool,
    /// `true` if the command still ran when the answer arrived.
    pub running: bool,
}

impl Step {
    /// Call as a hook reports it: a command, or the whole input of another tool as JSON.
    pub fn of_call(tool: &str, call: &str) -> Self {
        let input = match serde_json::from_str(call) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            _ => json!({ "command": call }),
        };
        Self {
            tool: tool.to_owned(),
            input,
            ..Self::default()
        }
    }

    /// Returns `true` if the arguments are known: some files hold only the name of a tool.
    pub fn has_input(&self) -> bool {
        !self.input.is_null()
    }

    /// Returns the text of the call as a hook reports it: the command or code, else the whole
    /// input.
    pub fn call_text(&self) -> String {
        let code = || self.argument(&["code"]).map(str::to_owned);
        let all = || match &self.input {
            Value::String(text) => text.clone(),
            input => input.to_string(),
        };
        self.command().or_else(code).unwrap_or_else(all)
    }

    /// Returns the shell command, if the step is one.
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

    /// Returns the first argument with one of these names, as text.
    pub fn argument(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.input.get(name).and_then(Value::as_str))
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Agent,
    /// Somebody else: text that a host or the user put into a message, and did not type.
    Other,
}

impl Speaker {
    /// Author of a message with this role, as any host names it; `None` for other roles.
    pub(crate) fn of(role: &Value) -> Option<Self> {
        match role.as_str()? {
            "user" | "human" => Some(Self::User),
            "assistant" | "model" | "gemini" => Some(Self::Agent),
            _ => None,
        }
    }
}

/// A message of the user or the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Number of calls made before the message.
    pub before: usize,
    /// Author of the message.
    pub by: Speaker,
    /// Text, truncated in the middle.
    pub text: String,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BrokenLine {
    /// Line number from 1; in a single-document file, the line where reading stopped.
    pub line: u64,
    /// Reason for the failure.
    pub message: String,
}

/// A session with all its calls and messages.
#[derive(Debug, Default)]
pub struct Session {
    /// Format; `None` if none was named and none is detected.
    pub format: Option<Format>,
    /// The agent host's id of the session; empty if the file has none.
    pub id: String,
    /// Calls, in their order.
    pub steps: Vec<Step>,
    /// Messages, in their order.
    pub remarks: Vec<Remark>,
    /// Lines that could not be read, the first ones; reading continued.
    pub broken: Vec<BrokenLine>,
}

impl Session {
    /// Returns `true` if the file holds no call, no message, and nothing that may have been one.
    pub fn is_empty(&self) -> bool {
        self.steps.len() + self.remarks.len() + self.broken.len() == 0
    }

    /// Directory that the session began in; empty if it names none.
    pub fn directory(&self) -> &str {
        let mut named = self.steps.iter().filter_map(|step| step.cwd.as_deref());
        named.next().unwrap_or_default()
    }
}

/// Begin of an answer that says that a tool refused its call, in hosts without an error flag too.
const REFUSED: &str = "<tool_use_error>";

/// Number of last calls that an answer may be for.
const RECENT: usize = 256;
/// Maximum number of broken lines of a file.
const MAX_BROKEN: usize = 100;

/// Session that is being read.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) session: Session,
}

impl Calls {
    /// Adds a call and sets its ordinal.
    pub(super) fn call(&mut self, mut step: Step) {
        settle(&mut step);
        step.index = self.session.steps.len();
        text::cut_values(&mut step.input);
        self.session.steps.push(step);
    }

    /// Last calls without an answer, in their order.
    fn waiting(&mut self) -> impl DoubleEndedIterator<Item = &mut Step> {
        let steps = &mut self.session.steps;
        let from = steps.len().saturating_sub(RECENT);
        steps[from..].iter_mut().filter(|step| !step.answered)
    }

    /// Last call with this id, if it has no answer.
    fn find(&mut self, id: &str) -> Option<&mut Step> {
        let mut waiting = self.waiting();
        waiting.rfind(|step| step.native_id.as_deref() == Some(id))
    }

    /// Returns `true` if a call with this id has no answer.
    pub(super) fn is_waiting(&mut self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// Updates a call before its answer.
    pub(super) fn amend(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.find(id) {
            change(step);
        }
    }

    /// Updates a call with its answer and marks it as answered.
    pub(super) fn answer(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        answered(self.find(id), change);
    }

    /// Updates the oldest unanswered call, for hosts without ids.
    pub(super) fn answer_next(&mut self, change: impl FnOnce(&mut Step)) {
        answered(self.waiting().next(), change);
    }

    /// Adds a remark, without text that hosts inject. What a person did not type of a message is
    /// said by somebody else.
    pub(super) fn add_remark(&mut self, by: Speaker, words: &str) {
        let words = text::without_injected(words);
        let words = words.trim();
        if by != Speaker::User {
            return self.remark(by, words);
        }
        let own = own_words(words);
        if own.len() < words.len() {
            self.remark(Speaker::Other, words);
        }
        self.remark(by, &own);
    }

    fn remark(&mut self, by: Speaker, words: &str) {
        if !words.is_empty() {
            self.session.remarks.push(Remark {
                before: self.session.steps.len(),
                by,
                text: text::cut(&Clean::of(&composed(words)), text::MAX_REMARK),
            });
        }
    }

    pub(super) fn session(&mut self, id: &str) {
        id.clone_into(&mut self.session.id);
    }

    /// Sets the id of the session, unless it is known.
    pub(super) fn session_once(&mut self, id: &str) {
        if self.session.id.is_empty() {
            self.session(id);
        }
    }

    pub(super) fn broken(&mut self, line: u64, message: String) {
        if self.session.broken.len() < MAX_BROKEN {
            self.session.broken.push(BrokenLine { line, message });
        }
    }
}

fn answered(step: Option<&mut Step>, change: impl FnOnce(&mut Step)) {
    if let Some(step) = step {
        change(step);
        settle(step);
        step.answered = true;
    }
}

/// Sets the error flag of an answer that states an error itself.
fn settle(step: &mut Step) {
    if step.output.trim_start().starts_with(REFUSED) {
        step.is_error = Some(true);
    }
}
