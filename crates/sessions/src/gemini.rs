//! Gemini CLI: one message per line. A message is written again once its calls are done.
//!
//! This host does not report failed commands as errors: the status is `success`, and only a line
//! `Exit Code: N` in the output shows the failure.

use std::collections::VecDeque;

use memctl_files::json::leaves;
use serde_json::Value;

use crate::{Speaker, Step};

use super::trace::Calls;
use super::{LineFormat, text};

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Working directory, which only the text names that opens a session.
    cwd: Option<String>,
    /// Ids of known messages and calls, newest last.
    taken: VecDeque<String>,
}

/// Number of ids remembered to detect repeated lines.
const MEMORY: usize = 512;

impl LineFormat for Reader {
    /// Reads a message. A call that is written again counts once.
    fn line(&mut self, message: &Value, calls: &mut Calls) -> Result<(), String> {
        calls.session_once(text::of(&message["sessionId"]));
        if self.cwd.is_none() {
            // The second has the fields of the session that the host rewrites.
            let texts = [&message["content"], &message["$set"]];
            self.cwd = texts.into_iter().find_map(first_directory);
        }
        let Some(by) = Speaker::of(&message["type"]) else {
            return Ok(());
        };
        let words = parts(&message["content"]);
        let id = text::of(&message["id"]);
        if !words.is_empty() && (id.is_empty() || self.is_new(format!("said {id}"))) {
            calls.add_remark(by, &words);
        }
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            let id = text::of(&call["id"]);
            if !calls.is_waiting(id) && self.is_new(id.to_owned()) {
                calls.call(Step {
                    native_id: Some(id.to_owned()),
                    tool: text::of(&call["name"]).to_owned(),
                    input: call["args"].clone(),
                    time: text::owned(&message["timestamp"]),
                    cwd: self.cwd.clone(),
                    tokens: message["tokens"]["total"].as_u64(),
                    ..Step::default()
                });
            }
            let status = call["status"].as_str();
            let runs = matches!(status, Some("executing" | "scheduled" | "validating"));
            if !runs && !call["result"].is_null() {
                let result = response(&call["result"]);
                calls.answer(id, |step| answer(step, &result, status));
            }
        }
        Ok(())
    }
}

impl Reader {
    fn is_new(&mut self, id: String) -> bool {
        if self.taken.contains(&id) {
            return false;
        }
        self.taken.push_back(id);
        if self.taken.len() > MEMORY {
            self.taken.pop_front();
        }
        true
    }
}

/// First directory of the list that the host puts before the first message.
fn first_directory(value: &Value) -> Option<String> {
    let mut texts = leaves(value).into_iter().filter_map(Value::as_str);
    texts.find_map(|text| {
        let (_, rest) = text.split_once("**Workspace Directories:**\n  - ")?;
        rest.lines().next().map(str::to_owned)
    })
}

fn answer(step: &mut Step, result: &str, status: Option<&str>) {
    let output = text::output(result);
    let (output, exit_code) = unframed(output.trim());
    step.output = output;
    step.exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
    let failed =
        matches!(status, Some("error" | "cancelled")) || step.exit_code.is_some_and(|c| c != 0);
    // The host omits exit code 0, and `success` means only that the command ran.
    step.is_error = status.map(|_| failed);
}

/// Returns the output of the command without the lines that Gemini CLI adds before and behind it, and the exit code
/// that one of these names. A line of the output may look like one of them.
pub fn unframed(shown: &str) -> (String, Option<i64>) {
    const LABELS: [&str; 4] = [
        "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ",
    ];
    let is_tag = |line: &str| ["<untrusted_context>", "</untrusted_context>"].contains(&line);
    let mut lines: Vec<&str> = shown.lines().collect();
    let mut exit_code = None;
    let is_added = |line: &&str| is_tag(line) || LABELS.iter().any(|label| line.starts_with(label));
    while let Some(line) = lines.pop_if(|line| is_added(&&**line)) {
        let code = line.strip_prefix("Exit Code: ");
        exit_code = exit_code.or_else(|| code?.trim().parse().ok());
    }
    let lines = lines.into_iter().filter(|line| !is_tag(line));
    let lines = lines.map(|line| line.strip_prefix("Output: ").unwrap_or(line));
    (lines.collect::<Vec<_>>().join("\n"), exit_code)
}

/// Text of a content: a string, or parts with `text`.
fn parts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Text of a result: `functionResponse.response.output`, or `.error`.
fn response(result: &Value) -> String {
    let parts = match result {
        Value::Array(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    let mut texts = Vec::new();
    for part in parts {
        let response = part.pointer("/functionResponse/response");
        let result = ["output", "error"]
            .iter()
            .find_map(|name| response?.get(name))
            .or_else(|| part.get("text"))
            .unwrap_or(part);
        texts.push(
            result
                .as_str()
                .map_or_else(|| result.to_string(), str::to_owned),
        );
    }
    texts.join("\n")
}
