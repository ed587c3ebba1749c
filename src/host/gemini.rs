//! Gemini CLI.
//!
//! Every tool call has the same event, `AfterTool`. A failing command is not marked as an error:
//! the only sign is the line `Exit Code: N` in the text for the model, which is missing for 0.
//! Other tools have an `error`. Tags that are not part of the output surround the text.
//!
//! The answer to `BeforeTool` may refuse a call or ask, and its context is ignored (0.61.0). So the
//! agent gets a note with the output of the call, from `AfterTool`. `PreCompress` has no answer either: what
//! was told at the start is told again with the next output.

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
        event: "BeforeAgent",
        of_tools: false,
        seconds: 5,
    },
    Hook {
        event: "BeforeTool",
        of_tools: true,
        seconds: 5,
    },
    Hook {
        event: "AfterTool",
        of_tools: true,
        seconds: 5,
    },
    Hook::of_session("AfterAgent"),
    Hook::of_session("PreCompress"),
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
        "PreCompress" => fields.event(EventKind::Compacting),
        "BeforeTool" => fields.before_tool(),
        "AfterAgent" => fields.stop("prompt_response"),
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
                arguments: fields.arguments(),
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

/// Returns the output of the command, without the lines that the agent host adds.
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
