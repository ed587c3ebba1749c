//! `OpenAI` Codex CLI.
//!
//! Every tool call has the same event, `PostToolUse`, with the output but without an exit code. The
//! exit code is in the session's rollout file, which is written before the hook runs; the end of
//! that file is searched for the call. Without an exit code, only an unmistakable failure counts,
//! because a hint after a success would be noise.
//!
//! The answer to `PreToolUse` may refuse a call, or add context. `ask` is in the schema, and 0.169.0
//! discards an answer with it; so a rule that asks becomes a note here.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;

use memctl_files::named;
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
    Hook::of_session("Stop"),
    Hook {
        event: "SessionEnd",
        of_tools: false,
        seconds: 3,
    },
];

/// Number of bytes to search at the end of a rollout. Little more than the output follows the call.
const SEARCHED: u64 = 512 << 10;

/// Line prefixes that only failures print.
const FAILURES: &[&str] = &[
    "Traceback (most recent call last)",
    "error: ",
    "error[",
    "Error: ",
    "fatal: ",
    "bash: ",
    "/bin/bash: ",
    "zsh: ",
    "sh: ",
    "npm error",
    "npm ERR!",
    "thread 'main' panicked",
];

pub(super) fn event(fields: &Fields<'_>) -> Option<Event> {
    match fields.text("hook_event_name")?.as_str() {
        "SessionStart" => fields.event(EventKind::SessionStart),
        "SubagentStart" => fields.event(EventKind::SubagentStart),
        "SessionEnd" => fields.event(EventKind::SessionEnd),
        "PreToolUse" => fields.before_tool(),
        "Stop" => fields.stop("last_assistant_message"),
        "UserPromptSubmit" => Some(Event {
            output: clip(&Clean::of_owned(fields.texts("prompt"))),
            ..fields.event(EventKind::Prompt)?
        }),
        "PostToolUse" => {
            let output = clip(&Clean::of_owned(fields.texts("tool_response")));
            let event = fields.event(EventKind::ToolSucceeded)?;
            let call = fields.text("tool_use_id");
            let exit_code = match (&event.transcript_path, call) {
                (Some(path), Some(call)) => exit_code(path, &call),
                _ => None,
            };
            let failed = exit_code.map_or_else(|| looks_failed(&output), |code| code != 0);
            Some(Event {
                kind: if failed {
                    EventKind::ToolFailed
                } else {
                    EventKind::ToolSucceeded
                },
                output,
                exit_code,
                ..event
            })
        }
        _ => None,
    }
}

/// Returns reasons in the agent host's `config.toml` why hooks in this file do not run.
pub fn obstacles(config: &str, hooks_file: &Path) -> Vec<String> {
    let config: toml::Table = config.parse().unwrap_or_default();
    let hooks_are_off = config
        .get("features")
        .and_then(|features| features.get("hooks"))
        .and_then(toml::Value::as_bool)
        == Some(false);
    let mut found = Vec::new();
    if hooks_are_off {
        found.push("`config.toml` has `features.hooks = false`: Codex runs no hooks".into());
    }
    // Codex stores reviewed hooks under the path of the file.
    let reviewed = format!("{}:", hooks_file.display());
    let is_reviewed = config
        .get("hooks")
        .and_then(|hooks| hooks.get("state"))
        .and_then(toml::Value::as_table)
        .is_some_and(|state| state.keys().any(|key| key.starts_with(&reviewed)));
    if !is_reviewed {
        found.push("the hooks are not reviewed in Codex yet".into());
    }
    found
}

fn looks_failed(output: &str) -> bool {
    output
        .lines()
        .any(|line| FAILURES.iter().any(|begin| line.starts_with(begin)))
}

/// Returns the exit code of a call, from the end of the session's rollout.
fn exit_code(rollout: &Path, call: &str) -> Option<i64> {
    let mut file = named::open_plain(rollout).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED)))
        .ok()?;
    let mut end = Vec::new();
    file.take(SEARCHED).read_to_end(&mut end).ok()?;
    let lines = end.rsplit(|b| *b == b'\n');
    lines
        .filter(|line| memchr::memmem::find(line, call.as_bytes()).is_some())
        .filter(|line| memchr::memmem::find(line, b"exit_code").is_some())
        .find_map(|line| {
            let line: Value = serde_json::from_slice(line).ok()?;
            let item = &line["payload"]["item"];
            (item["id"] == call).then(|| item["exit_code"].as_i64())?
        })
}
