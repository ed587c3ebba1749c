//! Cline.
//!
//! Its hooks are executable files, one per event, in `~/.cline/hooks`; the fields of a call are in
//! `tool_call` or `tool_result`. A shell call has a list of commands and a list of results, of which a
//! failed one begins with `[Command exited with code N]`. The answer `contextModification` reaches the
//! model from the two events of a call alone, and `cancel` ends the whole task. All of this is of the
//! command line 3.0.65, which sends no `UserPromptSubmit`.

use serde_json::{Value, json};

use crate::guard::Clean;

use super::Hook;
use super::event::{Event, EventKind, Fields, clip};

pub(super) const HOOKS: &[Hook] = &[
    Hook::of_session("PreToolUse"),
    Hook::of_session("PostToolUse"),
    Hook::of_session("TaskComplete"),
];

pub(super) fn event(fields: &Fields<'_>) -> Option<Event> {
    let name = fields.text("hookName")?;
    let call = match name.as_str() {
        "tool_call" => fields.inside("tool_call"),
        "tool_result" => fields.inside("tool_result"),
        _ => None,
    };
    let context = fields.inside("sessionContext");
    let session = context.and_then(|context| context.text("rootSessionId"));
    let mut input = call
        .as_ref()
        .map_or(Value::Null, |call| call.value("input"));
    // One text, as other agent hosts report a command.
    if let Some(commands) = input["commands"].as_array() {
        let commands: Vec<&str> = commands.iter().filter_map(Value::as_str).collect();
        input = json!({"command": commands.join("\n")});
    }
    let canonical = json!({
        "session_id": session.or_else(|| fields.text("taskId")),
        "cwd": fields.texts("workspaceRoots").lines().next(),
        "hook_event_name": name,
        "tool_name": call.as_ref().and_then(|call| call.text("name")),
        "tool_input": input,
    })
    .to_string();
    let plain = Fields::read(canonical.as_bytes())?;
    match name.as_str() {
        "tool_call" => plain.before_tool(),
        "agent_end" => plain.event(EventKind::SessionEnd),
        "tool_result" => {
            let results = call?.value("output");
            let (output, exit_code, failed) = outcome(&results);
            Some(Event {
                output: clip(&Clean::of_owned(output)),
                exit_code,
                ..plain.event(if failed {
                    EventKind::ToolFailed
                } else {
                    EventKind::ToolSucceeded
                })?
            })
        }
        _ => None,
    }
}

/// Returns the output of a call, its exit code, and `true` if a part of it failed. After a failure, only
/// the output of the failed part counts.
fn outcome(results: &Value) -> (String, Option<i64>, bool) {
    let parts = results.as_array().map_or(&[][..], Vec::as_slice);
    let text = |part: &Value| part["result"].as_str().unwrap_or_default().to_owned();
    let Some(part) = parts.iter().find(|part| part["success"] == false) else {
        let texts: Vec<String> = match results {
            Value::String(output) => vec![output.clone()],
            _ => parts.iter().map(text).collect(),
        };
        return (texts.join("\n"), None, false);
    };
    let said = text(part);
    let framed = said.strip_prefix("[Command exited with code ");
    let code = framed.and_then(|rest| rest.split_once(']')?.0.parse().ok());
    let is_frame = |line: &&str| {
        line.starts_with("[Command exited with code ") || matches!(*line, "[stderr]" | "[stdout]")
    };
    let lines: Vec<&str> = said.lines().filter(|line| !is_frame(line)).collect();
    let output = lines.join("\n").trim().to_owned();
    let error = || part["error"].as_str().unwrap_or_default().to_owned();
    (if output.is_empty() { error() } else { output }, code, true)
}
