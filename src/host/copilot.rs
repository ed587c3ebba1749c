//! GitHub Copilot CLI.
//!
//! With event names in capitals it sends the fields of Claude Code, with `tool_result` for the output. A
//! command that fails has the event of a success; its exit code is in the last line, which the agent host
//! adds. Other tools have `PostToolUseFailure` with an `error`. Answers have no envelope: Copilot ignores
//! the context in `hookSpecificOutput`. All of this is of 1.0.102.

use memctl_redact::Clean;

use super::Hook;
use super::event::{Event, EventKind, Fields, clip};

pub(super) const HOOKS: &[Hook] = &[
    Hook::of_session("SessionStart"),
    Hook::of_session("UserPromptSubmit"),
    Hook::of_session("PreToolUse"),
    Hook::of_session("PostToolUse"),
    Hook::of_session("PostToolUseFailure"),
    Hook::of_session("SessionEnd"),
];

pub(super) fn event(fields: &Fields<'_>) -> Option<Event> {
    match fields.text("hook_event_name")?.as_str() {
        "SessionStart" => fields.event(EventKind::SessionStart),
        "SessionEnd" => fields.event(EventKind::SessionEnd),
        "PreToolUse" => fields.before_tool(),
        "UserPromptSubmit" => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("prompt"))),
            ..fields.event(EventKind::Prompt)?
        }),
        "PostToolUse" => {
            let result = fields.inside("tool_result");
            let shown = result.map(|result| result.texts("text_result_for_llm"));
            let shown = shown.unwrap_or_default();
            let (output, exit_code) = match shown.trim_end().rsplit_once('\n') {
                Some((output, last)) => (output, exit_code(last)),
                None => ("", exit_code(&shown)),
            };
            let output = if exit_code.is_some() { output } else { &shown };
            Some(Event {
                output: clip(&Clean::of(output)),
                exit_code,
                ..fields.event(if exit_code.is_some_and(|code| code != 0) {
                    EventKind::ToolFailed
                } else {
                    EventKind::ToolSucceeded
                })?
            })
        }
        "PostToolUseFailure" => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("error"))),
            ..fields.event(EventKind::ToolFailed)?
        }),
        _ => None,
    }
}

/// Returns the exit code in the line that ends the output of a command:
/// `<shellId: 0 completed with exit code 1>`.
fn exit_code(line: &str) -> Option<i64> {
    let line = line.trim().strip_prefix("<shellId: ")?;
    let (_, code) = line.split_once(" completed with exit code ")?;
    code.strip_suffix('>')?.parse().ok()
}
