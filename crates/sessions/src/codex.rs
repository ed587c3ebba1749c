//! Codex: rollout files, with one conversation item or program event per line.
//!
//! Calls and outputs are items. The exit code is in a separate event before the output, which had
//! three names over time.

use serde_json::Value;

use crate::{Speaker, Step};

use super::trace::Calls;
use super::{LineFormat, messages, text};

#[derive(Debug, Default)]
pub(super) struct Reader {
    cwd: Option<String>,
}

impl LineFormat for Reader {
    fn line(&mut self, line: &Value, calls: &mut Calls) -> Result<(), String> {
        let kind = text::of(&line["type"]);
        let payload = &line["payload"];
        match kind {
            "session_meta" | "turn_context" => {
                self.cwd = text::owned(&payload["cwd"]).or(self.cwd.take());
                if kind == "session_meta" {
                    calls.session_once(text::of(&payload["id"]));
                }
            }
            "response_item" => self.item(payload, text::owned(&line["timestamp"]), calls),
            "event_msg" => event(payload, calls),
            _ => {}
        }
        Ok(())
    }
}

/// Id of the call that an item or an event is about.
fn call_id(item: &Value) -> &str {
    let id = item["call_id"].as_str().or(item["id"].as_str());
    id.unwrap_or_default()
}

impl Reader {
    fn item(&self, item: &Value, time: Option<String>, calls: &mut Calls) {
        match text::of(&item["type"]) {
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                let given = ["arguments", "input", "action"]
                    .iter()
                    .map(|name| &item[name]);
                let input = match given.into_iter().find(|value| !value.is_null()) {
                    Some(Value::String(text)) => text::value(text),
                    Some(value) => value.clone(),
                    None => Value::Null,
                };
                calls.call(Step {
                    native_id: Some(call_id(item).to_owned()),
                    tool: item["name"].as_str().unwrap_or("shell").to_owned(),
                    cwd: text::owned(&input["workdir"]).or_else(|| self.cwd.clone()),
                    input,
                    time,
                    ..Step::default()
                });
            }
            "function_call_output" | "custom_tool_call_output" => {
                let result = messages::words(&item["output"]);
                calls.answer(call_id(item), |step| answer(step, &result));
            }
            "message" => {
                let Some(by) = Speaker::of(&item["role"]) else {
                    return;
                };
                let message = messages::words(&item["content"]);
                // The host describes the environment in the name of the user.
                let hosts = [
                    "<environment_context>", "<user_instructions>", "# AGENTS.md",
                ];
                if !hosts
                    .iter()
                    .any(|mark| message.trim_start().starts_with(mark))
                {
                    calls.add_remark(by, &message);
                }
            }
            _ => {}
        }
    }
}

/// Reads an event about a call, such as its exit code.
fn event(event: &Value, calls: &mut Calls) {
    match text::of(&event["type"]) {
        "exec_command_end" => outcome(event, calls),
        "patch_apply_end" => calls.amend(call_id(event), |step| {
            step.is_error = event["success"].as_bool().map(|success| !success);
        }),
        "item_completed" => {
            let item = &event["item"];
            let kind = text::of(&item["type"]);
            if ["CommandExecution", "FileChange", "McpToolCall"].contains(&kind) {
                outcome(item, calls);
            }
        }
        _ => {}
    }
}

fn outcome(item: &Value, calls: &mut Calls) {
    let code = text::code(&item["exit_code"]);
    let failed = matches!(text::of(&item["status"]), "failed" | "declined");
    calls.amend(call_id(item), |step| {
        if code.is_some() {
            step.exit_code = code;
        }
        if failed || code.is_some() {
            step.is_error = Some(failed || code != Some(0));
        }
    });
}

/// Parses an output: some tools wrap it in JSON with the exit code, others prepend header lines.
fn answer(step: &mut Step, result: &str) {
    let mut code = None;
    let mut output = result.to_owned();
    let wrapped: Value = serde_json::from_str(result).unwrap_or_default();
    if let Some(inside) = wrapped["output"].as_str() {
        code = text::code(&wrapped["metadata"]["exit_code"]);
        inside.clone_into(&mut output);
    } else if let Some((head, body)) = result.split_once("\nOutput:\n")
        && head.lines().any(|line| line.starts_with("Wall time:"))
    {
        let after = |mark: &str| head.lines().find_map(|line| line.strip_prefix(mark));
        let exited = after("Process exited with code ").or_else(|| after("Exit code: "));
        code = exited.and_then(|digits| digits.trim().parse().ok());
        step.running = after("Process running").is_some();
        body.clone_into(&mut output);
    }
    if step.exit_code.is_none() {
        step.exit_code = code;
    }
    if let (None, Some(code)) = (step.is_error, step.exit_code) {
        step.is_error = Some(code != 0);
    }
    step.output = text::output(&output);
}
