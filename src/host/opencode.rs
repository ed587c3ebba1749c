//! `OpenCode`.
//!
//! It runs plugins in its own process. The installed one (`plugin.js`) passes events to this program in the
//! form of Claude Code, with the exit code of a shell. It puts rules into the system prompt, and every other
//! answer behind the output of the call. A call that throws has no event after it, so its hint has no place (1.18.33).

use memctl_redact::Clean;

use super::Hook;
use super::event::{Event, EventKind, Fields, clip};

pub(super) const HOOKS: &[Hook] = &[
    Hook::of_session("chat.message"),
    Hook::of_session("experimental.chat.system.transform"),
    Hook::of_session("tool.execute.before"),
    Hook::of_session("tool.execute.after"),
    Hook::of_session("event"),
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
            let exit_code = fields.value("exit_code").as_i64();
            Some(Event {
                output: clip(&Clean::of_owned(fields.texts("tool_response"))),
                exit_code,
                ..fields.event(if exit_code.is_some_and(|code| code != 0) {
                    EventKind::ToolFailed
                } else {
                    EventKind::ToolSucceeded
                })?
            })
        }
        _ => None,
    }
}
