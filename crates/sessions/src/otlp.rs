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
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for span in &spans {
            if let Some(name) = span.conversation() {
                names.entry(&span.trace).or_insert(name);
            }
        }
        let session = |span: &Span| {
            let of_trace = || names.get(&*span.trace).copied();
            let name = span.conversation().or_else(of_trace);
            name.unwrap_or(&span.trace).to_owned()
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
        let in_order = sessions.into_iter().flat_map(|(_, spans)| spans);
        for span in in_order.filter(|span| span.is_tool()) {
            calls.call(span.step());
        }
    }
}

/// One span with the relevant fields.
#[derive(Debug, Clone, Default, PartialEq)]
struct Span {
    /// Trace id in hexadecimal.
    trace: String,
    /// Span id in hexadecimal.
    id: String,
    /// Start time in nanoseconds since 1970; 0 if missing.
    start: u64,
    /// Attributes of the resource and the span; those of the span take precedence.
    attributes: Map<String, Value>,
    /// `true` if the status is an error.
    failed: bool,
    /// Status message.
    message: String,
    /// Recorded exceptions as `type: message`.
    exceptions: Vec<String>,
}

impl Span {
    /// Text attribute; `None` if it is empty or has another type.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.attributes.get(name)?.as_str();
        text.filter(|text| !text.is_empty())
    }

    /// Structured attribute, directly or as JSON text.
    fn data(&self, name: &str) -> Option<Value> {
        match self.attributes.get(name)? {
            Value::String(text) => Some(text::value(text)),
            value => Some(value.clone()),
        }
    }

    /// Name of the session, if the span has it.
    fn conversation(&self) -> Option<&str> {
        CONVERSATION.iter().find_map(|name| self.text(name))
    }

    /// Returns `true` for a call of a tool.
    fn is_tool(&self) -> bool {
        let operation = self.text("gen_ai.operation.name");
        self.text("gen_ai.tool.name").is_some()
            && operation.is_none_or(|operation| operation == "execute_tool")
    }

    /// Start time as RFC 3339; `None` if missing.
    fn time(&self) -> Option<String> {
        let nanoseconds = i64::try_from(self.start).ok().filter(|at| *at > 0)?;
        let at = chrono::DateTime::from_timestamp_nanos(nanoseconds);
        Some(at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
    }

    /// Step of a call.
    fn step(&self) -> Step {
        let exit_code = self.data("process.exit.code");
        let exit_code = exit_code.and_then(|code| text::code(&code));
        let error = self.text("error.type");
        let failed = self.failed || error.is_some() || exit_code.is_some_and(|code| code != 0);
        let mut output = self
            .data("gen_ai.tool.call.result")
            .map(|value| messages::words(&value))
            .unwrap_or_default();
        if failed {
            let mut why = self.exceptions.join("\n");
            if why.is_empty() {
                why.clone_from(&self.message);
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
            native_id: self
                .text("gen_ai.tool.call.id")
                .or(Some(&self.id))
                .map(str::to_owned),
            tool: self.text("gen_ai.tool.name").unwrap_or_default().to_owned(),
            input: match self.data("gen_ai.tool.call.arguments") {
                // Plain text is a command or code for an interpreter.
                Some(Value::String(text)) => json!({ "command": text }),
                arguments => arguments.unwrap_or_default(),
            },
            output: text::output(output.trim_end()),
            is_error: Some(failed),
            exit_code,
            time: self.time(),
            cwd: self.text("process.working_directory").map(str::to_owned),
            answered: true,
            ..Step::default()
        }
    }
}

/// All spans of a JSON value: one line of an exporter, or a list of such values.
///
/// # Errors
///
/// The actual content of the value, as text.
fn spans(value: &Value) -> Result<Vec<Span>, String> {
    let mut found = Vec::new();
    let all = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    for data in all {
        let others = ["resourceLogs", "resourceMetrics"];
        if others.iter().any(|name| !data[name].is_null()) {
            return Err("it holds logs or metrics, and no traces".to_owned());
        }
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

fn read(span: &Value, of_resource: &Map<String, Value>) -> Span {
    let text = |name: &str| text::of(&span[name]).to_owned();
    let status = &span["status"];
    let code = &status["code"];
    let mut all = of_resource.clone();
    all.extend(attributes(span));
    let exceptions = list(span, "events").iter().map(attributes);
    let exceptions = exceptions.filter_map(|of_event| {
        let text = |name: &str| of_event.get(name).and_then(Value::as_str);
        let message = text("exception.message").or(text("exception.stacktrace"));
        match (text("exception.type"), message) {
            // A message that includes its type is kept as a terminal would show it.
            (Some(kind), Some(message)) if !message.contains(": ") => {
                Some(format!("{kind}: {message}"))
            }
            (kind, message) => message.or(kind).map(str::to_owned),
        }
    });
    Span {
        trace: text("traceId"),
        id: text("spanId"),
        start: number(&span["startTimeUnixNano"]),
        attributes: all,
        failed: code == 2 || code == "STATUS_CODE_ERROR",
        message: text::of(&status["message"]).to_owned(),
        exceptions: exceptions.collect(),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Number of 64 bits, which exporters write as text.
fn number(value: &Value) -> u64 {
    let text = || text::of(value).parse().ok();
    value.as_u64().or_else(text).unwrap_or(0)
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
        "intValue" => value.as_i64().map_or_else(
            || {
                text::of(value)
                    .parse::<i64>()
                    .map_or(Value::Null, Value::from)
            },
            Value::from,
        ),
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
        let found = spans(&text).unwrap();
        let span = &found[0];
        for (name, value) in [
            ("service.name", json!("s")),
            ("n", json!(7)),
            ("b", json!(true)),
            ("l", json!(["x", 0.5])),
            ("o", json!({"k": 1})),
        ] {
            assert_eq!(span.attributes[name], value);
        }
        assert_eq!((span.failed, &*span.exceptions[0]), (true, "E: m"));
        assert_eq!(span.time().unwrap(), "2023-11-14T22:13:20.000000Z");
        assert!(spans(&json!({"resourceLogs": []})).is_err());
        assert!(spans(&json!({})).is_err());
        let odd = json!({"resourceSpans": [{}, 7, {"scopeSpans": [{"spans": [null]}]}]});
        assert_eq!(spans(&odd).unwrap().len(), 1);
    }
}
