//! OpenTelemetry traces in OTLP/JSON, with the conventions for generative AI.
//!
//! A tool call is a span, `execute_tool`, with arguments and result if the instrumentation records them.
//!
//! Spans are written when they end, in no guaranteed order. So the whole file is read before the first step is
//! emitted. Steps are sorted by start time, one session after the other.
//!
//! Deliberately absent: messages, and calls that only messages tell; names of other conventions, and of those
//! before version 1.37.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Step;

use super::text::{self, parse};
use super::trace::Calls;
use super::{LineFormat, messages};

/// Attributes with the session name.
const CONVERSATION: [&str; 2] = ["gen_ai.conversation.id", "session.id"];

/// Spans of a file.
#[derive(Debug, Default)]
pub(super) struct Reader {
    spans: Vec<Span>,
}

/// Span with the relevant fields.
#[derive(Debug)]
struct Span {
    /// Trace id in hexadecimal.
    trace: String,
    /// Start time in nanoseconds since 1970; 0 if missing.
    start: i64,
    /// Name of the session, if the span has it.
    session: Option<String>,
    /// Call, of a span that is one of a tool.
    step: Option<Step>,
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
            if let Some(name) = &span.session {
                names.entry(span.trace.clone()).or_insert(name.clone());
            }
        }
        let mut sessions: Vec<(String, Vec<Step>)> = Vec::new();
        for span in spans {
            let of_trace = || names.get(&span.trace).cloned();
            let name = span.session.or_else(of_trace).unwrap_or(span.trace);
            match sessions.iter_mut().find(|(other, _)| *other == name) {
                Some((_, steps)) => steps.extend(span.step),
                None => sessions.push((name, span.step.into_iter().collect())),
            }
        }
        if let Some((name, _)) = sessions.first().filter(|(name, _)| !name.is_empty()) {
            calls.session(name);
        }
        for step in sessions.into_iter().flat_map(|(_, steps)| steps) {
            calls.call(step);
        }
    }
}

/// All spans of a JSON value: one line of an exporter, or a list of such values.
///
/// # Errors
///
/// The reason, as text.
fn spans(value: &Value) -> Result<Vec<Span>, String> {
    let mut found = Vec::new();
    let all = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    for data in all {
        if data["resourceSpans"].is_null() {
            return Err("it has no `resourceSpans`".to_owned());
        }
        for resource in list(data, "resourceSpans") {
            let of_resource = attributes(&resource["resource"]);
            let scopes = list(resource, "scopeSpans").iter();
            let spans = scopes.flat_map(|scope| list(scope, "spans"));
            found.extend(spans.map(|span| read(span, &of_resource)));
        }
    }
    Ok(found)
}

/// Reads a span. Its attributes take precedence over those of the resource.
fn read(span: &Value, of_resource: &Map<String, Value>) -> Span {
    let mut all = of_resource.clone();
    all.extend(attributes(span));
    let start = span["startTimeUnixNano"].as_i64();
    // Exporters write numbers of 64 bits as text.
    let start = start.or_else(|| text::of(&span["startTimeUnixNano"]).parse().ok());
    let start = start.unwrap_or_default();
    let session = CONVERSATION.iter().find_map(|name| text_of(&all, name));
    let operation = text_of(&all, "gen_ai.operation.name");
    let is_call = operation.is_none_or(|operation| operation == "execute_tool");
    let tool = text_of(&all, "gen_ai.tool.name").filter(|_| is_call);
    Span {
        trace: text::of(&span["traceId"]).to_owned(),
        start,
        session: session.map(str::to_owned),
        step: tool.map(|tool| step(tool, span, &all, start)),
    }
}

/// Step of a call.
fn step(tool: &str, span: &Value, attributes: &Map<String, Value>, start: i64) -> Step {
    let data = |name: &str| match attributes.get(name) {
        Some(Value::String(text)) => text::value(text),
        value => value.cloned().unwrap_or_default(),
    };
    let status = &span["status"];
    let exit_code = text::code(&data("process.exit.code"));
    let error = text_of(attributes, "error.type");
    let is_error = error.is_some()
        || status["code"] == 2
        || status["code"] == "STATUS_CODE_ERROR"
        || exit_code.is_some_and(|code| code != 0);
    let mut output = messages::words(&data("gen_ai.tool.call.result"));
    if is_error {
        let exceptions: Vec<String> = list(span, "events").iter().filter_map(exception).collect();
        let mut why = exceptions.join("\n");
        if why.is_empty() {
            text::of(&status["message"]).clone_into(&mut why);
        }
        // The error type is useful only without any other text.
        if why.is_empty() && output.is_empty() {
            why.push_str(error.unwrap_or_default());
        }
        if !output.contains(&why) {
            output = format!("{why}\n{output}");
        }
    }
    let time = (start > 0).then(|| chrono::DateTime::from_timestamp_nanos(start));
    let id = text_of(attributes, "gen_ai.tool.call.id").or(span["spanId"].as_str());
    Step {
        native_id: id.map(str::to_owned),
        tool: tool.to_owned(),
        input: match data("gen_ai.tool.call.arguments") {
            // Plain text is a command or code for an interpreter.
            Value::String(text) => json!({ "command": text }),
            arguments => arguments,
        },
        output: text::output(output.trim_end()),
        is_error: Some(is_error),
        exit_code,
        time: time.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)),
        cwd: text_of(attributes, "process.working_directory").map(str::to_owned),
        answered: true,
        ..Step::default()
    }
}

/// Exception of an event, as a terminal would show it: its type, unless the message has that.
fn exception(event: &Value) -> Option<String> {
    let all = attributes(event);
    let message = text_of(&all, "exception.message").or(text_of(&all, "exception.stacktrace"));
    match (text_of(&all, "exception.type"), message) {
        (Some(kind), Some(message)) if !message.contains(": ") => {
            Some(format!("{kind}: {message}"))
        }
        (kind, message) => message.or(kind).map(str::to_owned),
    }
}

/// Text of an attribute; `None` if it is empty or has another type.
fn text_of<'a>(attributes: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = attributes.get(name)?.as_str();
    text.filter(|text| !text.is_empty())
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn attributes(of: &Value) -> Map<String, Value> {
    list(of, "attributes").iter().filter_map(pair).collect()
}

fn pair(pair: &Value) -> Option<(String, Value)> {
    let key = pair["key"].as_str()?;
    Some((key.to_owned(), plain(pair.get("value")?)))
}

/// Plain JSON value of an `AnyValue`.
fn plain(any: &Value) -> Value {
    let Some((kind, value)) = any.as_object().and_then(|fields| fields.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" => {
            let number = value.as_i64().or_else(|| text::of(value).parse().ok());
            number.map_or(Value::Null, Value::from)
        }
        "arrayValue" => list(value, "values").iter().map(plain).collect(),
        "kvlistValue" => list(value, "values").iter().filter_map(pair).collect(),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::read_all;
    use super::*;

    /// Line with one span.
    fn span(
        id: &str,
        start: u64,
        name: &str,
        attributes: &[(&str, Value)],
        failed: Option<&str>,
    ) -> String {
        let attributes: Vec<Value> = attributes
            .iter()
            .map(|(key, value)| {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                json!({"key": key, "value": {"stringValue": text}})
            })
            .collect();
        let status = failed.map_or(json!({}), |message| json!({"code": 2, "message": message}));
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
            "traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": id, "name": name,
            "startTimeUnixNano": (1_700_000_000_000_000_000 + start).to_string(),
            "attributes": attributes, "status": status,
        }]}]}]})
        .to_string()
    }

    fn tool(id: &str, start: u64, arguments: &Value, result: &str, failed: Option<&str>) -> String {
        let attributes = [
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!("shell")),
            ("gen_ai.tool.call.id", json!(id)),
            ("gen_ai.tool.call.arguments", arguments.clone()),
            ("gen_ai.tool.call.result", json!(result)),
            ("gen_ai.conversation.id", json!("conv-1")),
        ];
        span(id, start, "execute_tool shell", &attributes, failed)
    }

    #[test]
    fn spans_of_tools_are_steps_in_the_order_of_their_beginning() {
        let chat = [
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.input.messages", json!([])),
        ];
        let lines = [
            tool("c2", 20, &json!({"command": "python3 x.py"}), "ok", None),
            "not JSON".to_owned(),
            tool(
                "c1",
                10,
                &json!({"command": "python x.py"}),
                "",
                Some("python: command not found"),
            ),
            span("m", 5, "chat m", &chat, None),
        ];
        let read = read_all(None, lines.join("\n"));
        assert_eq!(read.format, Some(Format::Otlp));
        let steps: Vec<_> = read
            .steps
            .iter()
            .map(|step| (step.command().unwrap(), step.is_error, step.output.as_str()))
            .collect();
        assert_eq!(
            steps,
            [
                (
                    "python x.py".to_owned(),
                    Some(true),
                    "python: command not found"
                ),
                ("python3 x.py".to_owned(), Some(false), "ok"),
            ]
        );
        assert_eq!(read.broken.len(), 1);
        assert_eq!(read.id, "conv-1");
        assert_eq!(
            read.steps[0].time.as_deref(),
            Some("2023-11-14T22:13:20.000000Z")
        );
    }

    #[test]
    fn a_document_over_several_lines_is_read_too() {
        let line = tool("c1", 10, &json!("ls"), "x", None);
        let value: Value = serde_json::from_str(&line).unwrap();
        for text in [
            serde_json::to_string_pretty(&value).unwrap(),
            serde_json::to_string_pretty(&json!([value])).unwrap(),
        ] {
            let read = read_all(None, &text);
            assert_eq!(
                (read.format, read.steps.len()),
                (Some(Format::Otlp), 1),
                "{text}"
            );
            assert_eq!(read.steps[0].command().as_deref(), Some("ls"));
            let cut = read_all(Some(Format::Otlp), &text[..text.len() - 9]);
            assert_eq!(cut.broken.len(), 1);
        }
    }

    #[test]
    fn values_of_every_type_are_read() {
        let text = json!({"resourceSpans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
            "scopeSpans": [{"scope": {}, "spans": [{
                "traceId": "t", "spanId": "a", "name": "chat x",
                "startTimeUnixNano": "1700000000000000001",
                "attributes": [
                    {"key": "n", "value": {"intValue": "7"}}, {"key": "b", "value": {"boolValue": true}},
                    {"key": "l", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"doubleValue": 0.5}]}}},
                    {"key": "o", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": 1}}]}}},
                ],
                "events": [{"name": "exception", "attributes": [
                    {"key": "exception.type", "value": {"stringValue": "E"}},
                    {"key": "exception.message", "value": {"stringValue": "m"}}]}],
                "status": {"code": 2, "message": "no"},
            }]}],
        }]});
        let of_resource = &text["resourceSpans"][0];
        let span = &of_resource["scopeSpans"][0]["spans"][0];
        let all = attributes(span);
        for (name, value) in [
            ("n", json!(7)),
            ("b", json!(true)),
            ("l", json!(["x", 0.5])),
            ("o", json!({"k": 1})),
        ] {
            assert_eq!(all[name], value);
        }
        let named = attributes(&of_resource["resource"]);
        assert_eq!(named["service.name"], "s");
        assert_eq!(exception(&span["events"][0]).unwrap(), "E: m");
        assert!(spans(&json!({"resourceLogs": []})).is_err());
        assert!(spans(&json!({})).is_err());
        let odd = json!({"resourceSpans": [{}, 7, {"scopeSpans": [{"spans": [null]}]}]});
        assert_eq!(spans(&odd).unwrap().len(), 1);
    }
}
