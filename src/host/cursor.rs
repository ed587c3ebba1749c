//! Cursor.
//!
//! Not run here: this follows the documents of hooks and the code of the command line of 2026-09-18.
//! `postToolUse` means exit code 0, with the output in a JSON text; everything else that failed has
//! `postToolUseFailure`. The directory of a session is the first root of its workspace.
//!
//! Answers have the one field `additional_context`, which `preToolUse` does not take; so the agent gets a
//! note with the output of the call. An answer of another form would block the call.

use std::path::PathBuf;

use memctl_redact::Clean;

use super::Hook;
use super::event::{Event, EventKind, Fields, clip};

pub(super) const HOOKS: &[Hook] = &[
    Hook::of_session("sessionStart"),
    Hook::of_session("beforeSubmitPrompt"),
    Hook::of_session("preToolUse"),
    Hook::of_session("postToolUse"),
    Hook::of_session("postToolUseFailure"),
    Hook::of_session("sessionEnd"),
];

pub(super) fn event(fields: &Fields<'_>) -> Option<Event> {
    let event = match fields.text("hook_event_name")?.as_str() {
        "sessionStart" => fields.event(EventKind::SessionStart),
        "sessionEnd" => fields.event(EventKind::SessionEnd),
        "preToolUse" => fields.before_tool(),
        "beforeSubmitPrompt" => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("prompt"))),
            ..fields.event(EventKind::Prompt)?
        }),
        "postToolUse" => {
            let raw = fields.texts("tool_output");
            let inner = Fields::read(raw.as_bytes());
            let said = inner.filter(|inner| inner.has("output"));
            let output = said.map_or_else(|| raw.clone(), |inner| inner.texts("output"));
            Some(Event {
                output: clip(&Clean::of_owned(output)),
                arguments: fields.arguments(),
                ..fields.event(EventKind::ToolSucceeded)?
            })
        }
        "postToolUseFailure" if !fields.is_true("is_interrupt") => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("error_message"))),
            arguments: fields.arguments(),
            ..fields.event(EventKind::ToolFailed)?
        }),
        _ => None,
    }?;
    let root = || {
        let roots = fields.texts("workspace_roots");
        let first = roots.lines().next().map(PathBuf::from);
        first.filter(|root| root.is_absolute())
    };
    Some(Event {
        cwd: root().or(event.cwd),
        ..event
    })
}
