//! Cline: messages of a task, `~/.cline/data/sessions/…/<session>.messages.json` (version 1, written by the
//! command line 3.0.65).
//!
//! A call is a `tool_use` block, its answer a `tool_result` block with a list of results, each with
//! `success`. The working directory is in the manifest beside the file. Deliberately absent: the calls in
//! XML of older versions of the editor extension.

use serde_json::{Value, json};

use crate::{Speaker, Step};

use super::text;
use super::trace::Calls;

/// Result of a call in the form of Cline.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Output, without the lines that Cline adds. After a failure, only that of the failed part.
    pub output: String,
    /// Exit code of a failed command.
    pub exit_code: Option<i64>,
    /// `true` if a part of the call failed.
    pub failed: bool,
}

/// Reads a message.
pub(super) fn message(message: &Value, calls: &mut Calls) -> Result<(), String> {
    let (Some(by), Some(content)) = (Speaker::of(&message["role"]), message.get("content")) else {
        return Err("not a message of Cline as version 1 has it".to_owned());
    };
    // Text of hooks and of Cline itself.
    if message["metadata"]["displayRole"] == "system" {
        return Ok(());
    }
    if let Some(words) = content.as_str() {
        calls.add_remark(by, typed(words));
    }
    for block in content.as_array().into_iter().flatten() {
        let field = |name: &str| block[name].as_str().unwrap_or_default();
        match field("type") {
            "text" => calls.add_remark(by, typed(field("text"))),
            "tool_use" => calls.call(Step {
                native_id: Some(field("id").to_owned()),
                tool: field("name").to_owned(),
                input: input(&block["input"]),
                time: message["ts"].as_u64().map(|at| at.to_string()),
                ..Step::default()
            }),
            "tool_result" => {
                let outcome = outcome(&block["content"]);
                let is_error = outcome.failed || block["is_error"] == true;
                calls.answer(field("tool_use_id"), |step| {
                    step.output = text::output(&outcome.output);
                    step.is_error = Some(is_error);
                    step.exit_code = outcome.exit_code.and_then(|code| i32::try_from(code).ok());
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the words of the user without the tag around them.
fn typed(words: &str) -> &str {
    let words = words.trim();
    let inside = words.strip_prefix("<user_input").and_then(|rest| {
        let (_, rest) = rest.split_once('>')?;
        rest.strip_suffix("</user_input>")
    });
    inside.unwrap_or(words)
}

/// Returns the arguments of a call; a list of commands becomes one text, as other agent hosts have it.
pub fn input(arguments: &Value) -> Value {
    match arguments["commands"].as_array() {
        Some(commands) => {
            let commands: Vec<&str> = commands.iter().filter_map(Value::as_str).collect();
            json!({"command": commands.join("\n")})
        }
        None => arguments.clone(),
    }
}

/// Returns the outcome of a call from its results.
pub fn outcome(results: &Value) -> Outcome {
    let parts = results.as_array().map_or(&[][..], Vec::as_slice);
    let text = |part: &Value| {
        let result = part["result"].as_str().or_else(|| part["text"].as_str());
        result.unwrap_or_default().to_owned()
    };
    let Some(part) = parts.iter().find(|part| part["success"] == false) else {
        let texts: Vec<String> = match results {
            Value::String(output) => vec![output.clone()],
            _ => parts.iter().map(text).collect(),
        };
        return Outcome {
            output: texts.join("\n"),
            ..Outcome::default()
        };
    };
    let output = text(part);
    let framed = output.strip_prefix("[Command exited with code ");
    let exit_code = framed.and_then(|rest| rest.split_once(']')?.0.parse().ok());
    let is_frame = |line: &&str| {
        line.starts_with("[Command exited with code ") || matches!(*line, "[stderr]" | "[stdout]")
    };
    let lines: Vec<&str> = output.lines().filter(|line| !is_frame(line)).collect();
    let output = lines.join("\n").trim().to_owned();
    let error = part["error"].as_str().unwrap_or_default();
    Outcome {
        output: if output.is_empty() {
            error.to_owned()
        } else {
            output
        },
        exit_code,
        failed: true,
    }
}
