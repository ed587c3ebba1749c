//! OpenTelemetry traces in OTLP/JSON, with the conventions for generative AI.
//!
//! A tool call is a separate span, `execute_tool`, with arguments and result if the instrumentation
//! records them. Without such spans, the messages of `chat` spans provide calls and answers.
//!
//! Deliberately absent: names of other conventions, and of those before version 1.37.
//!
//! Spans are written when they end, in no guaranteed order. So the whole file is read before the
//! first step is emitted. Steps are sorted by start time, one session after the other.

mod span;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use crate::{Speaker, Step};

use super::text::parse;
use super::trace::Calls;
use super::{LineFormat, messages, text};

use span::{Span, spans};

/// Attributes with the session name.
const CONVERSATION: [&str; 2] = ["gen_ai.conversation.id", "session.id"];

/// Spans of a file.
#[derive(Debug, Default)]
pub(super) struct Reader {
    spans: Vec<Span>,
}

/// Reads traces from one document with several lines.
pub(super) fn document(text: &str, calls: &mut Calls) {
    let mut reader = Reader::default();
    let read = parse(text.trim()).and_then(|value| reader.line(&value, calls));
    if let Err(message) = read {
        calls.broken(1, message);
    }
    reader.end(calls);
}

impl LineFormat for Reader {
    fn line(&mut self, value: &Value, _: &mut Calls) -> Result<(), String> {
        self.spans.extend(spans(value)?);
        Ok(())
    }

    fn end(&mut self, calls: &mut Calls) {
        let mut spans = std::mem::take(&mut self.spans);
        spans.sort_by_key(|span| span.start);
        // A conversation can span several traces, and only some of their spans name it.
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for span in &spans {
            if let Some(name) = CONVERSATION.iter().find_map(|name| span.text(name)) {
                names
                    .entry(span.trace.clone())
                    .or_insert_with(|| name.to_owned());
            }
        }
        let session = |span: &Span| {
            let own = CONVERSATION.iter().find_map(|name| span.text(name));
            let of_trace = || names.get(&span.trace).unwrap_or(&span.trace);
            own.map_or_else(|| of_trace().clone(), str::to_owned)
        };
        let mut sessions: Vec<(String, Vec<&Span>)> = Vec::new();
        for span in &spans {
            let name = session(span);
            match sessions.iter_mut().find(|(other, _)| *other == name) {
                Some((_, spans)) => spans.push(span),
                None => sessions.push((name, vec![span])),
            }
        }
        if let Some((name, _)) = sessions.first().filter(|(name, _)| !name.is_empty()) {
            calls.session(name);
        }
        for (_, spans) in sessions {
            tell(&spans, calls);
        }
    }
}

/// Emits the events of a session in time order.
fn tell(spans: &[&Span], calls: &mut Calls) {
    let tools = spans.iter().filter(|span| is_tool(span));
    let id = "gen_ai.tool.call.id";
    let mut chat = Chat {
        tools: tools
            .filter_map(|span| span.text(id).or(span.text("gen_ai.tool.name")))
            .collect(),
        seen_remarks: HashSet::new(),
        called: HashSet::new(),
    };
    for span in spans {
        if is_tool(span) {
            calls.call(tool(span));
        } else {
            chat.tell(span, calls);
        }
    }
}

fn is_tool(span: &Span) -> bool {
    span.operation() == "execute_tool" && span.text("gen_ai.tool.name").is_some()
        || span.text("gen_ai.operation.name").is_none() && span.text("gen_ai.tool.name").is_some()
}

/// Step of a tool span.
fn tool(span: &Span) -> Step {
    let exit_code = span.data("process.exit.code");
    let exit_code = exit_code.and_then(|code| text::code(&code));
    let error = span.text("error.type");
    let failed = span.failed || error.is_some() || exit_code.is_some_and(|code| code != 0);
    let mut output = span
        .data("gen_ai.tool.call.result")
        .map(|value| messages::words(&value))
        .unwrap_or_default();
    if failed {
        let mut why = span.exceptions.join("\n");
        if why.is_empty() {
            why.clone_from(&span.message);
        }
        // The error type is useful only without any other text.
        if why.is_empty() && output.is_empty() {
            why.push_str(error.unwrap_or_default());
        }
        if !output.contains(&why) {
            output = format!("{why}\n{output}");
        }
    }
    Step {
        native_id: span
            .text("gen_ai.tool.call.id")
            .or(Some(&span.id))
            .map(str::to_owned),
        tool: span.text("gen_ai.tool.name").unwrap_or_default().to_owned(),
        input: input(span.data("gen_ai.tool.call.arguments")),
        output: text::output(output.trim_end()),
        is_error: Some(failed),
        exit_code,
        time: span.time(),
        cwd: span.text("process.working_directory").map(str::to_owned),
        answered: true,
        ..Step::default()
    }
}

/// Arguments as an object. Plain text is a command or code for an interpreter.
fn input(arguments: Option<Value>) -> Value {
    match arguments {
        Some(Value::String(text)) => {
            let read = serde_json::from_str(&text).ok().filter(Value::is_object);
            read.unwrap_or_else(|| json!({ "command": text }))
        }
        Some(value) => value,
        None => Value::Null,
    }
}

/// Messages of a session. Each message is repeated in later spans.
struct Chat<'a> {
    /// Ids of calls that have their own span, and tools whose spans have no such id.
    tools: HashSet<&'a str>,
    seen_remarks: HashSet<(bool, String)>,
    called: HashSet<String>,
}

impl Chat<'_> {
    fn tell(&mut self, span: &Span, calls: &mut Calls) {
        for name in ["gen_ai.input.messages", "gen_ai.output.messages"] {
            let messages = span.data(name);
            for message in messages.iter().filter_map(Value::as_array).flatten() {
                self.message(message, span, calls);
            }
        }
    }

    fn message(&mut self, message: &Value, span: &Span, calls: &mut Calls) {
        let by = Speaker::of(&message["role"]);
        let parts = message.get("parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let member = |name: &str| part.get(name);
            let text = |name: &str| member(name).and_then(Value::as_str);
            match (text("type"), by) {
                (Some("text"), Some(by)) => {
                    let words = text("content").unwrap_or_default();
                    if self
                        .seen_remarks
                        .insert((by == Speaker::User, words.to_owned()))
                    {
                        calls.add_remark(by, words);
                    }
                }
                (Some("tool_call"), _) => self.call(part, span, calls),
                (Some("tool_call_response"), _) => {
                    let id = text("id").unwrap_or_default();
                    let answer = member("response").or(member("result")).map(messages::words);
                    if calls.is_waiting(id) {
                        calls.answer(id, |step| {
                            step.output = text::output(&answer.unwrap_or_default());
                            step.is_error = member("is_error").and_then(Value::as_bool);
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Emits a call that has no span.
    fn call(&mut self, part: &Value, span: &Span, calls: &mut Calls) {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        let id = text("id").unwrap_or_default();
        let name = text("name").unwrap_or_default();
        let has_span = match id {
            "" => !self.tools.is_empty(),
            id => self.tools.contains(id) || self.tools.contains(name),
        };
        if has_span || !self.called.insert(format!("{id}\0{part}")) {
            return;
        }
        let usage = |name: &str| span.data(name)?.as_u64();
        let tokens = [
            usage("gen_ai.usage.input_tokens"),
            usage("gen_ai.usage.output_tokens"),
        ];
        calls.call(Step {
            native_id: Some(id.to_owned()).filter(|id| !id.is_empty()),
            tool: name.to_owned(),
            input: input(part.get("arguments").cloned()),
            time: span.time(),
            tokens: tokens.into_iter().flatten().reduce(u64::saturating_add),
            ..Step::default()
        });
    }
}

#[cfg(test)]
mod tests;
