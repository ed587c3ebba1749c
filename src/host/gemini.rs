//! Gemini CLI.
//!
//! There is one event for every call of a tool, `AfterTool`. A failing command is no error to this
//! host: the only sign is a line `Exit Code: N` in what the model is shown, which is left out for 0.
//! Other tools have an `error`. The text stands in a frame of tags that is no part of it.

use crate::guard::Clean;

use super::Hook;
use super::event::{Event, EventKind, Fields, clip};

pub(super) const HOOKS: &[Hook] = &[
    Hook {
        event: "SessionStart",
        of_tools: false,
        seconds: 5,
    },
    Hook {
        event: "AfterTool",
        of_tools: true,
        seconds: 5,
    },
    Hook {
        event: "SessionEnd",
        of_tools: false,
        seconds: 5,
    },
];

pub(super) fn event(fields: &Fields<'_>) -> Option<Event> {
    match fields.text("hook_event_name")?.as_str() {
        "SessionStart" => fields.event(EventKind::SessionStart),
        "SessionEnd" => fields.event(EventKind::SessionEnd),
        "BeforeAgent" => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("prompt"))),
            ..fields.event(EventKind::Prompt)?
        }),
        "AfterTool" => {
            let response = fields.inside("tool_response");
            let shown = response.as_ref().map(|r| r.texts("llmContent"));
            let shown = shown.unwrap_or_default();
            let exit_code = shown
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok());
            let error = response.as_ref().map(|r| r.texts("error"));
            let error = error.filter(|error| !error.is_empty());
            let failed = error.is_some() || exit_code.is_some_and(|code: i64| code != 0);
            let output = error.unwrap_or_else(|| unframed(&shown));
            Some(Event {
                output: clip(&Clean::of_owned(output)),
                exit_code,
                ..fields.event(if failed {
                    EventKind::ToolFailed
                } else {
                    EventKind::ToolSucceeded
                })?
            })
        }
        _ => None,
    }
}

/// What the command printed, without what the host put around it.
fn unframed(shown: &str) -> String {
    let is_frame = |line: &&str| {
        let tags = ["<untrusted_context>", "</untrusted_context>"];
        let labels = ["Exit Code: ", "Process Group PGID: ", "Background PIDs: "];
        tags.contains(line) || labels.iter().any(|label| line.starts_with(label))
    };
    let lines = shown.lines().filter(|line| !is_frame(line));
    let lines = lines.map(|line| line.strip_prefix("Output: ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}
