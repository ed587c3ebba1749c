//! Claude Code.
//!
//! A failing call has its own event, `PostToolUseFailure`. For a shell, its `error` begins with the
//! line `Exit code N`. The event does not fire for unknown tools, refused permissions and invalid
//! input, which teach nothing. Cursor also runs the hooks of Claude Code's settings and marks the
//! event. It has another answer format, so such events get no answer.
//!
//! The answer to `PreToolUse` is context or a permission decision. The call runs before the model
//! reads the context, together with the output.

use memctl_redact::Clean;

use super::Hook;
use super::event::{Event, EventKind, Fields, clip};

pub(super) const HOOKS: &[Hook] = &[
    Hook {
        event: "SessionStart",
        of_tools: false,
        seconds: 5,
    },
    Hook {
        event: "SubagentStart",
        of_tools: false,
        seconds: 5,
    },
    Hook {
        event: "UserPromptSubmit",
        of_tools: false,
        seconds: 5,
    },
    Hook {
        event: "PreToolUse",
        of_tools: true,
        seconds: 5,
    },
    Hook {
        event: "PostToolUse",
        of_tools: true,
        seconds: 5,
    },
    Hook {
        event: "PostToolUseFailure",
        of_tools: true,
        seconds: 5,
    },
    Hook::of_session("Stop"),
    Hook {
        event: "SessionEnd",
        of_tools: false,
        seconds: 5,
    },
];

pub(super) fn event(fields: &Fields<'_>) -> Option<Event> {
    if fields.has("cursor_version") {
        return None;
    }
    match fields.text("hook_event_name")?.as_str() {
        "SessionStart" => fields.event(EventKind::SessionStart),
        "SubagentStart" => fields.event(EventKind::SubagentStart),
        "SessionEnd" => fields.event(EventKind::SessionEnd),
        "PreToolUse" => fields.before_tool(),
        "Stop" => fields.stop("last_assistant_message"),
        "UserPromptSubmit" if is_typed(fields) => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("prompt"))),
            ..fields.event(EventKind::Prompt)?
        }),
        "PostToolUse" => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("tool_response"))),
            ..fields.event(EventKind::ToolSucceeded)?
        }),
        "PostToolUseFailure" if !fields.is_true("is_interrupt") => {
            let error = fields.texts("error");
            let exit_code = error
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("Exit code "))
                .and_then(|code| code.trim().parse().ok());
            let said = match (exit_code, error.split_once('\n')) {
                (Some(_), Some((_, said))) => said.to_owned(),
                (Some(_), None) => String::new(),
                (None, _) => error,
            };
            Some(Event {
                output: clip(&Clean::of_owned(said)),
                exit_code,
                ..fields.event(EventKind::ToolFailed)?
            })
        }
        _ => None,
    }
}

/// Returns `true` if a person wrote the prompt, and no timer or program of the host.
fn is_typed(fields: &Fields<'_>) -> bool {
    let source = fields.text("source");
    source.is_none_or(|source| ["user", "sdk"].contains(&source.as_str()))
}
