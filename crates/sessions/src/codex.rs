//! Codex: rollout files, with one conversation item or program event per line, and the shorter
//! output of `codex exec --json`.
//!
//! Calls and outputs are items. The exit code is in a separate event before the output, which had
//! three names over time.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::anthropic;
use super::calls::Calls;
use super::text::{self, Text};
use super::{LineFormat, broken};

#[derive(Debug, Default)]
pub(super) struct Reader {
    cwd: Option<String>,
    session_known: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    /// Item of `codex exec --json`.
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thread_id: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
struct Payload<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cwd: Option<Text<'a>>,
    #[serde(borrow, default)]
    command: Option<&'a RawValue>,
    #[serde(borrow, default)]
    aggregated_output: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(default)]
    success: Option<bool>,
}

impl<'a> Payload<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, String> {
        serde_json::from_str(raw.get()).map_err(|error| broken(&error))
    }

    fn call(&self) -> &str {
        let id = self.call_id.as_ref().or(self.id.as_ref());
        id.map_or("", |id| &id.0)
    }

    fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", |kind| &kind.0)
    }
}

impl LineFormat for Reader {
    fn line(&mut self, line: &[u8], calls: &mut Calls<'_>) -> Result<(), String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| broken(&error))?;
        let kind = line.kind.as_ref().map_or("", |kind| &kind.0);
        if let Some(item) = line.item {
            return executed(kind, item, calls);
        }
        if let ("thread.started", Some(id)) = (kind, &line.thread_id) {
            calls.session(&id.0);
        }
        let Some(payload) = line.payload else {
            return Ok(());
        };
        match kind {
            "session_meta" | "turn_context" => {
                let payload = Payload::read(payload)?;
                if let Some(cwd) = &payload.cwd {
                    self.cwd = Some(cwd.owned());
                }
                if let (false, "session_meta", Some(id)) = (self.session_known, kind, &payload.id) {
                    calls.session(&id.0);
                    self.session_known = true;
                }
            }
            "response_item" => {
                let time = line.timestamp.as_ref().map(Text::owned);
                self.item(&Payload::read(payload)?, time, calls);
            }
            "event_msg" => event(&Payload::read(payload)?, calls)?,
            _ => {}
        }
        Ok(())
    }
}

impl Reader {
    fn item(&self, item: &Payload<'_>, time: Option<String>, calls: &mut Calls<'_>) {
        match item.kind() {
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                let input = match (&item.arguments, item.input, item.action) {
                    (Some(arguments), _, _) => text::value(&arguments.0),
                    (None, Some(input), _) | (None, None, Some(input)) => text::value(input.get()),
                    _ => Value::Null,
                };
                let cwd = input
                    .get("workdir")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
                let name = item.name.as_ref().map(Text::owned);
                calls.call(Step {
                    native_id: Some(item.call().to_owned()),
                    tool: name.unwrap_or_else(|| "shell".to_owned()),
                    input,
                    time,
                    cwd: cwd.or_else(|| self.cwd.clone()),
                    ..Step::default()
                });
            }
            "function_call_output" | "custom_tool_call_output" => {
                let said = item.output.map(anthropic::words).unwrap_or_default();
                calls.answer(item.call(), |step| answer(step, &said));
            }
            "message" => {
                let by = match item.role.as_ref().map_or("", |role| &role.0) {
                    "user" => Speaker::User,
                    "assistant" => Speaker::Agent,
                    _ => return,
                };
                let said = item.content.map(anthropic::words).unwrap_or_default();
                // The host describes the environment in the name of the user.
                let hosts = [
                    "<environment_context>", "<user_instructions>", "# AGENTS.md",
                ];
                if !hosts.iter().any(|mark| said.trim_start().starts_with(mark)) {
                    calls.said(by, &said);
                }
            }
            _ => {}
        }
    }
}

/// Reads an event about a call, such as its exit code.
fn event(event: &Payload<'_>, calls: &mut Calls<'_>) -> Result<(), String> {
    match event.kind() {
        "exec_command_end" => outcome(event, calls),
        "patch_apply_end" => {
            let success = event.success;
            calls.amend(event.call(), |step| {
                step.is_error = success.map(|success| !success);
            });
        }
        "item_completed" => {
            if let Some(item) = event.item {
                let item = Payload::read(item)?;
                if matches!(
                    item.kind(),
                    "CommandExecution" | "FileChange" | "McpToolCall"
                ) {
                    outcome(&item, calls);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn outcome(item: &Payload<'_>, calls: &mut Calls<'_>) {
    let code = item.exit_code;
    let status = item.status.as_ref().map_or("", |status| &status.0);
    let failed = matches!(status, "failed" | "declined");
    calls.amend(item.call(), |step| {
        if code.is_some() {
            step.exit_code = code;
        }
        if failed || code.is_some() {
            step.is_error = Some(failed || code != Some(0));
        }
    });
}

/// Reads a complete call in one line of `codex exec --json`.
fn executed(kind: &str, item: &RawValue, calls: &mut Calls<'_>) -> Result<(), String> {
    let item = Payload::read(item)?;
    match (kind, item.kind()) {
        ("item.completed", "command_execution") => {
            let command = item.command.map(|raw| text::value(raw.get()));
            calls.call(Step {
                native_id: Some(item.call().to_owned()),
                tool: "shell".to_owned(),
                input: serde_json::json!({ "command": command }),
                output: item
                    .aggregated_output
                    .map(|o| text::output(&o.0))
                    .unwrap_or_default(),
                exit_code: item.exit_code,
                is_error: item.exit_code.map(|code| code != 0),
                answered: true,
                ..Step::default()
            });
        }
        ("item.completed", "agent_message") => {
            if let Some(words) = &item.text {
                calls.said(Speaker::Agent, &words.0);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Parses an output: some tools wrap it in JSON with the exit code, others prepend header lines.
fn answer(step: &mut Step, said: &str) {
    #[derive(Deserialize)]
    struct Wrapped {
        output: String,
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Deserialize, Default)]
    struct Metadata {
        #[serde(default)]
        exit_code: Option<i32>,
    }
    let mut code = None;
    let mut text = said.to_owned();
    if let Ok(wrapped) = serde_json::from_str::<Wrapped>(said) {
        code = wrapped.metadata.exit_code;
        text = wrapped.output;
    } else if let Some((head, body)) = said.split_once("\nOutput:\n")
        && head.lines().any(|line| line.starts_with("Wall time:"))
    {
        let exited = head
            .lines()
            .find_map(|line| line.strip_prefix("Process exited with code "))
            .or_else(|| {
                head.lines()
                    .find_map(|line| line.strip_prefix("Exit code: "))
            });
        code = exited.and_then(|digits| digits.trim().parse().ok());
        step.running = head.lines().any(|line| line.starts_with("Process running"));
        body.clone_into(&mut text);
    }
    if step.exit_code.is_none() {
        step.exit_code = code;
    }
    if let (None, Some(code)) = (step.is_error, step.exit_code) {
        step.is_error = Some(code != 0);
    }
    step.output = text::output(&text);
}
