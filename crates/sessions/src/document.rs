//! Single-document formats: lists of messages, trajectories, older session files of Gemini CLI. The same
//! messages may also come one per line. A truncated document counts up to its end.

use super::text::{self, elements, members, parse};
use super::trace::Calls;
use super::{Format, LineFormat, cline, gemini, messages};
use crate::{Speaker, Step};
use serde_json::{Value, json};

/// Member names of lists. Only the first non-empty list counts, since some documents repeat the
/// session in another form.
const LISTS: &[&str] = &["trajectory", "traj", "messages", "conversation"];
/// Member name of the messages that a trajectory repeats. They count if there is no other list.
const HISTORY: &str = "history";

/// Reader for list elements, one per line or in a document.
pub(super) struct Reader {
    /// Format, as far as the elements have told it.
    pub(super) format: Format,
    gemini: gemini::Reader,
    actions: usize,
}

impl Reader {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            gemini: gemini::Reader::default(),
            actions: 0,
        }
    }

    /// Reads a document: a list, or an object that contains one.
    pub(super) fn document(&mut self, text: &str, calls: &mut Calls) {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            let message = text::broken(&error);
            let line = error.line() as u64;
            calls.broken(line, message);
        }
        let text = text.trim_start();
        if self.list(text, text, calls) {
            return;
        }
        let mut history = "";
        for (name, value) in members(text) {
            if LISTS.contains(&name.as_str()) && self.list(text, value, calls) {
                return;
            }
            if name == HISTORY {
                history = value;
            }
        }
        for (at, (element, _)) in elements(history).enumerate() {
            swe_history(&parse(element).unwrap_or_default(), at, calls);
        }
    }

    /// Reads a list of a document. Returns `true` if it has elements.
    fn list(&mut self, document: &str, list: &str, calls: &mut Calls) -> bool {
        let mut count = 0;
        for (element, rest) in elements(list) {
            count += 1;
            let read = parse(element).and_then(|element| self.line(&element, calls));
            if let Err(message) = read {
                let before = &document.as_bytes()[..document.len() - rest.len()];
                let line = memchr::memchr_iter(b'\n', before).count() as u64 + 1;
                calls.broken(line, format!("element {count}: {message}"));
            }
        }
        count > 0
    }
}

impl LineFormat for Reader {
    /// Reads an element, which is recognised by its role, action or type.
    fn line(&mut self, element: &Value, calls: &mut Calls) -> Result<(), String> {
        if !element.is_object() {
            return Err("an element is no object".to_owned());
        }
        let has = |name: &str| !element[name].is_null();
        match self.format {
            Format::OpenCode => return of_opencode(element, calls),
            Format::Cline => return cline::message(element, calls),
            _ if has("role") && !element["role"].is_string() => {
                return Err("its role is no text".to_owned());
            }
            _ if has("role") => {
                if messages::message(element, calls) {
                    self.format = Format::AnthropicMessages;
                }
            }
            _ if has("action") => {
                self.format = Format::SweAgent;
                swe_turn(element, self.actions, calls);
                self.actions += 1;
            }
            _ if has("type") => {
                self.format = Format::Gemini;
                self.gemini.line(element, calls)?;
            }
            // A conversation in a list of such.
            _ => {
                let lists = LISTS.iter().filter_map(|name| element[name].as_array());
                for element in lists
                    .into_iter()
                    .find(|list| !list.is_empty())
                    .into_iter()
                    .flatten()
                {
                    self.line(element, calls)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a message of `OpenCode`, of the document that `opencode export SESSION` writes (1.18.33). It has parts; a part
/// with the type `tool` is a call with its answer. A shell has its exit code and its own output in `metadata`; the
/// `output` beside it may have text that plugins added.
fn of_opencode(message: &Value, calls: &mut Calls) -> Result<(), String> {
    let info = &message["info"];
    let (Some(by), Some(parts)) = (Speaker::of(&info["role"]), message["parts"].as_array()) else {
        return Err("not a message of OpenCode as `opencode export` of 1.18 writes it".to_owned());
    };
    if let Some(session) = info["sessionID"].as_str() {
        calls.session(session);
    }
    for part in parts {
        match part["type"].as_str().unwrap_or_default() {
            "text" if part["synthetic"] != true => {
                calls.add_remark(by, part["text"].as_str().unwrap_or_default());
            }
            "tool" => calls.call(opencode_step(part, info)),
            _ => {}
        }
    }
    Ok(())
}

fn opencode_step(part: &Value, info: &Value) -> Step {
    let state = &part["state"];
    let metadata = &state["metadata"];
    let exit_code = text::code(&metadata["exit"]);
    let own = metadata["output"].as_str().filter(|_| exit_code.is_some());
    let result = state["error"].as_str().or(own).or(state["output"].as_str());
    let status = state["status"].as_str().unwrap_or_default();
    let failed = status == "error" || exit_code.is_some_and(|code| code != 0);
    Step {
        native_id: text::owned(&part["callID"]),
        tool: text::of(&part["tool"]).to_owned(),
        input: state["input"].clone(),
        output: text::output(result.unwrap_or_default()),
        is_error: Some(failed),
        exit_code,
        cwd: text::owned(&info["path"]["cwd"]),
        answered: true,
        ..Step::default()
    }
}

/// Reads an element of a `trajectory` of SWE-agent. An action is a shell command, which may use the agent's own programs.
/// There is no error flag and no exit code.
pub(super) fn swe_turn(turn: &Value, ordinal: usize, calls: &mut Calls) {
    calls.add_remark(Speaker::Agent, text::of(&turn["thought"]));
    if let Some(call) = swe_call(turn, format!("trajectory[{ordinal}]")) {
        calls.call(Step {
            output: text::output(text::of(&turn["observation"])),
            cwd: working_dir(&turn["state"]),
            answered: true,
            ..call
        });
    }
}

/// Reads a message of a `history`, which has the same actions, each with its answer behind it. Demonstrations that the program was given are not its session.
pub(super) fn swe_history(message: &Value, ordinal: usize, calls: &mut Calls) {
    if message["is_demo"] == true {
        return;
    }
    let message_text = messages::words(&message["content"]);
    match text::of(&message["role"]) {
        "assistant" => {
            calls.add_remark(
                Speaker::Agent,
                message["thought"].as_str().unwrap_or(&message_text),
            );
            if let Some(call) = swe_call(message, format!("history[{ordinal}]")) {
                calls.call(call);
            }
        }
        // The program writes the task and the answers as a user.
        "user" | "tool" => calls.answer_next(|step| step.output = text::output(&message_text)),
        _ => {}
    }
}

/// Call of an `action`; `None` if it is empty.
fn swe_call(of: &Value, native_id: String) -> Option<Step> {
    let command = text::of(&of["action"]);
    Some(Step {
        native_id: Some(native_id),
        tool: command.split_whitespace().next()?.to_owned(),
        input: json!({ "command": command }),
        ..Step::default()
    })
}

/// Directory in the state, which is an object or a string with its JSON.
fn working_dir(state: &Value) -> Option<String> {
    match state {
        Value::String(json) => text::owned(&text::value(json)["working_dir"]),
        state => text::owned(&state["working_dir"]),
    }
}
