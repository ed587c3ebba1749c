//! Cline.
//!
//! Hooks are executable files, one per event, in `~/.cline/hooks`. The fields of a call are in
//! `tool_call` or `tool_result`. A shell call has a list of commands and a list of results, of which a
//! failed one begins with `[Command exited with code N]`. The answer `contextModification` reaches the
//! model from the two events of a call alone, and `cancel` ends the whole task. All of this is of the
//! command line 3.0.65, which sends no `UserPromptSubmit`.

use serde_json::json;

use memctl_redact::Clean;
use memctl_sessions::cline::{Outcome, input, outcome};

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
    let input = call.as_ref().map(|call| input(&call.value("input")));
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
            let Outcome {
                output,
                exit_code,
                failed,
            } = outcome(&call?.value("output"));
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
