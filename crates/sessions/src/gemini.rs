//! Gemini CLI: one message per line. A message is written again once its calls are done.
//!
//! This host does not report failed commands as errors: the status is `success`, and only a line
//! `Exit Code: N` in the output shows the failure.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::calls::Calls;
use super::text::{self, Text};
use super::{LineFormat, broken};

#[derive(Debug, Default)]
pub(super) struct Reader {
    session_known: bool,
    /// Working directory, which only the text names that opens a session.
    cwd: Option<String>,
    /// Ids of known messages and calls, newest last.
    taken: std::collections::VecDeque<String>,
}

/// Number of ids remembered to detect repeated lines.
const MEMORY: usize = 512;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    session_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
    /// Fields of the session, which the host writes anew.
    #[serde(borrow, default, rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(default)]
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    total: Option<u64>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
}

impl Message<'_> {
    /// Returns `true` if this is a message.
    pub(super) fn is_one(&self) -> bool {
        self.kind.is_some()
    }
}

impl LineFormat for Reader {
    fn line(&mut self, line: &[u8], calls: &mut Calls<'_>) -> Result<(), String> {
        let message = serde_json::from_slice(line).map_err(|error| broken(&error))?;
        self.message(&message, calls);
        Ok(())
    }
}

impl Reader {
    /// Reads a message. A call that is written again counts once.
    pub(super) fn message(&mut self, message: &Message<'_>, calls: &mut Calls<'_>) {
        if let (false, Some(session)) = (self.session_known, &message.session_id) {
            calls.session(&session.0);
            self.session_known = true;
        }
        if self.cwd.is_none() {
            let texts = [message.content, message.set].into_iter().flatten();
            self.cwd = texts.map(RawValue::get).find_map(first_directory);
        }
        let kind = message.kind.as_ref().map_or("", |kind| &kind.0);
        let by = match kind {
            "user" => Speaker::User,
            "gemini" => Speaker::Agent,
            _ => return,
        };
        let said = message.content.map(parts).unwrap_or_default();
        let id = message.id.as_ref().map(Text::owned).unwrap_or_default();
        if !said.is_empty() && (id.is_empty() || self.is_new(format!("said {id}"))) {
            calls.said(by, &said);
        }
        for call in message.tool_calls.iter().flatten() {
            let id = call.id.as_ref().map(Text::owned).unwrap_or_default();
            if !calls.is_waiting(&id) && self.is_new(id.clone()) {
                calls.call(Step {
                    native_id: Some(id.clone()),
                    tool: call.name.as_ref().map(Text::owned).unwrap_or_default(),
                    input: call
                        .args
                        .map(|raw| text::value(raw.get()))
                        .unwrap_or_default(),
                    time: message.timestamp.as_ref().map(Text::owned),
                    cwd: self.cwd.clone(),
                    tokens: message.tokens.as_ref().and_then(|tokens| tokens.total),
                    ..Step::default()
                });
            }
            let Some(result) = call.result else {
                continue;
            };
            let status = call.status.as_ref().map(|status| status.0.as_ref());
            if matches!(status, Some("executing" | "scheduled" | "validating")) {
                continue;
            }
            let said = response(&text::value(result.get()));
            calls.answer(&id, |step| answer(step, &said, status));
        }
    }

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

/// First directory of the list that the host puts before the first message, in JSON.
fn first_directory(json: &str) -> Option<String> {
    let (_, rest) = json.split_once(r"**Workspace Directories:**\n  - ")?;
    let end = rest.find(r"\n").into_iter().chain(rest.find('"')).min()?;
    serde_json::from_str(&format!("\"{}\"", &rest[..end])).ok()
}

fn answer(step: &mut Step, said: &str, status: Option<&str>) {
    let output = text::output(said);
    let inside = output
        .trim()
        .trim_start_matches("<untrusted_context>")
        .trim_end_matches("</untrusted_context>")
        .trim();
    let code = |line: &str| line.strip_prefix("Exit Code: ")?.trim().parse().ok();
    step.exit_code = inside.lines().rev().find_map(code);
    let failed =
        matches!(status, Some("error" | "cancelled")) || step.exit_code.is_some_and(|c| c != 0);
    // The host omits exit code 0, and `success` means only that the command ran.
    step.is_error = status.map(|_| failed);
    inside.clone_into(&mut step.output);
}

/// Text of a content: a string, or parts with `text`.
fn parts(raw: &RawValue) -> String {
    match text::value(raw.get()) {
        Value::String(text) => text,
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
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
        let said = ["output", "error"]
            .iter()
            .find_map(|name| response?.get(name))
            .or_else(|| part.get("text"))
            .unwrap_or(part);
        texts.push(
            said.as_str()
                .map_or_else(|| said.to_string(), str::to_owned),
        );
    }
    texts.join("\n")
}
