//! SWE-agent: a document whose `trajectory` lists actions with observations. An action is a shell
//! command, which may use the agent's own programs. There is no error flag and no exit code. A document
//! may hold only the `history`, whose messages have the same actions, each with its answer behind it.

use serde_json::{Value, json};

use crate::{Speaker, Step};

use super::trace::Calls;
use super::{messages, text};

/// Reads an element of a `trajectory`.
pub(super) fn turn(turn: &Value, ordinal: usize, calls: &mut Calls) {
    calls.add_remark(Speaker::Agent, text::of(&turn["thought"]));
    if let Some(call) = call(turn, format!("trajectory[{ordinal}]")) {
        calls.call(Step {
            output: text::output(text::of(&turn["observation"])),
            cwd: working_dir(&turn["state"]),
            answered: true,
            ..call
        });
    }
}

/// Reads a message of a `history`. Demonstrations that the program was given are not its session.
pub(super) fn history(message: &Value, ordinal: usize, calls: &mut Calls) {
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
            if let Some(call) = call(message, format!("history[{ordinal}]")) {
                calls.call(call);
            }
        }
        // The program writes the task and the answers as a user.
        "user" | "tool" => calls.answer_next(|step| step.output = text::output(&message_text)),
        _ => {}
    }
}

/// Call of an `action`; `None` if it is empty.
fn call(of: &Value, native_id: String) -> Option<Step> {
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
