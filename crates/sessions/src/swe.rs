//! SWE-agent: a document whose `trajectory` lists actions with observations. An action is a shell
//! command, which may use the agent's own programs. There is no error flag and no exit code. A document
//! may hold only the `history`, whose messages have the same actions, each with its answer behind it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::calls::Calls;
use super::text::{self, Text};
use super::{anthropic, broken};

#[derive(Deserialize)]
pub(super) struct Turn<'a> {
    #[serde(borrow, default)]
    pub(super) action: Option<Text<'a>>,
    #[serde(borrow, default)]
    observation: Option<Text<'a>>,
    #[serde(borrow, default)]
    thought: Option<Text<'a>>,
    /// Object, or a string with its JSON.
    #[serde(borrow, default)]
    state: Option<&'a RawValue>,
}

pub(super) fn turn(turn: &Turn<'_>, ordinal: usize, calls: &mut Calls<'_>) {
    if let Some(thought) = &turn.thought {
        calls.said(Speaker::Agent, &thought.0);
    }
    let command = turn.action.as_ref().map_or("", |action| &action.0);
    if command.trim().is_empty() {
        return;
    }
    let program = command.split_whitespace().next().unwrap_or_default();
    calls.call(Step {
        native_id: Some(format!("trajectory[{ordinal}]")),
        tool: program.to_owned(),
        input: serde_json::json!({ "command": command }),
        output: turn
            .observation
            .as_ref()
            .map(|said| text::output(&said.0))
            .unwrap_or_default(),
        cwd: turn.state.and_then(working_dir),
        answered: true,
        ..Step::default()
    });
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thought: Option<Text<'a>>,
    #[serde(borrow, default)]
    action: Option<Text<'a>>,
    #[serde(default)]
    is_demo: Option<bool>,
}

/// Reads a message of a `history`. Demonstrations that the program was given are not its session.
pub(super) fn history(json: &str, ordinal: usize, calls: &mut Calls<'_>) -> Result<(), String> {
    let message: Message<'_> = serde_json::from_str(json).map_err(|error| broken(&error))?;
    if message.is_demo == Some(true) {
        return Ok(());
    }
    let said = message.content.map(anthropic::words).unwrap_or_default();
    match message.role.as_ref().map_or("", |role| &role.0) {
        "assistant" => {
            let thought = message
                .thought
                .as_ref()
                .map_or(said.as_str(), |text| &text.0);
            calls.said(Speaker::Agent, thought);
            let command = message.action.as_ref().map_or("", |action| &action.0);
            if let Some(program) = command.split_whitespace().next() {
                calls.call(Step {
                    native_id: Some(format!("history[{ordinal}]")),
                    tool: program.to_owned(),
                    input: serde_json::json!({ "command": command }),
                    ..Step::default()
                });
            }
        }
        // The program writes the task and the answers as a user.
        "user" | "tool" => calls.answer_next(|step| step.output = text::output(&said)),
        _ => {}
    }
    Ok(())
}

fn working_dir(state: &RawValue) -> Option<String> {
    let mut state = text::value(state.get());
    if let Some(json) = state.as_str() {
        state = text::value(json);
    }
    Some(state.get("working_dir")?.as_str()?.to_owned())
}
