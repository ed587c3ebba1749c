//! OTLP spans in JSON encoding.
//!
//! Exporters use all variants of the encoding: 64-bit numbers as strings or numbers, names in
//! `camelCase` or `snake_case`, codes as numbers or names.

use serde_json::{Map, Value};

/// One span with the relevant fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Span {
    /// Trace id in hexadecimal.
    pub(super) trace: String,
    /// Span id in hexadecimal.
    pub(super) id: String,
    /// Span name.
    pub(super) name: String,
    /// Start time in nanoseconds since 1970; 0 if missing.
    pub(super) start: u64,
    /// Attributes of the resource and the span; those of the span take precedence.
    pub(super) attributes: Map<String, Value>,
    /// `true` if the status is an error.
    pub(super) failed: bool,
    /// Status message.
    pub(super) message: String,
    /// Recorded exceptions as `type: message`.
    pub(super) exceptions: Vec<String>,
}

impl Span {
    /// Text attribute; `None` if it is empty or has another type.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attributes
            .get(name)?
            .as_str()
            .filter(|text| !text.is_empty())
    }

    /// Structured attribute, directly or as JSON text.
    pub(super) fn data(&self, name: &str) -> Option<Value> {
        match self.attributes.get(name)? {
            Value::String(text) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())))
            }
            value => Some(value.clone()),
        }
    }

    /// Operation name of the conventions; for older spans, the first word of the span name.
    pub(super) fn operation(&self) -> &str {
        self.text("gen_ai.operation.name")
            .unwrap_or_else(|| self.name.split(' ').next().unwrap_or_default())
    }

    /// Start time as RFC 3339; `None` if missing.
    pub(super) fn time(&self) -> Option<String> {
        let nanoseconds = i64::try_from(self.start).ok().filter(|at| *at > 0)?;
        let at = chrono::DateTime::from_timestamp_nanos(nanoseconds);
        Some(at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
    }
}

/// All spans of a JSON value: one line of an exporter, or a list of such values.
///
/// # Errors
///
/// The actual content of the value, as text.
pub(super) fn spans(value: &Value) -> Result<Vec<Span>, String> {
    let mut found = Vec::new();
    let all = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    for data in all {
        let others = ["resourceLogs", "resourceMetrics"];
        if others.iter().any(|name| named(data, name).is_some()) {
            return Err("it holds logs or metrics, and no traces".to_owned());
        }
        if named(data, "resourceSpans").is_none() {
            return Err("it has no `resourceSpans`".to_owned());
        }
        for resource in list(data, "resourceSpans") {
            let of_resource = named(resource, "resource").map(attributes);
            let of_resource = of_resource.unwrap_or_default();
            let scopes = ["scopeSpans", "instrumentationLibrarySpans"].into_iter();
            let scopes = scopes.flat_map(|name| list(resource, name));
            let spans = scopes.flat_map(|scope| list(scope, "spans"));
            found.extend(spans.map(|span| read(span, &of_resource)));
        }
    }
    Ok(found)
}

fn read(span: &Value, of_resource: &Map<String, Value>) -> Span {
    let text = |name: &str| {
        let text = named(span, name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let status = named(span, "status").unwrap_or(&Value::Null);
    let failed = match status.get("code") {
        Some(Value::String(code)) => code == "STATUS_CODE_ERROR" || code == "ERROR",
        Some(code) => code.as_u64() == Some(2),
        None => false,
    };
    let mut all = of_resource.clone();
    all.extend(attributes(span));
    let exceptions = list(span, "events")
        .iter()
        .map(attributes)
        .filter_map(|of_event| {
            let text = |name: &str| of_event.get(name).and_then(Value::as_str);
            let message = text("exception.message").or(text("exception.stacktrace"));
            match (text("exception.type"), message) {
                // A message that includes its type is kept as a terminal would show it.
                (_, Some(message))
                    if message.to_lowercase().contains("error") || message.contains(": ") =>
                {
                    Some(message.to_owned())
                }
                (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
                (kind, message) => kind.or(message).map(str::to_owned),
            }
        });
    Span {
        trace: text("traceId"),
        id: text("spanId"),
        name: text("name"),
        start: named(span, "startTimeUnixNano").map_or(0, number),
        attributes: all,
        failed,
        message: status["message"].as_str().unwrap_or_default().to_owned(),
        exceptions: exceptions.collect(),
    }
}

/// Member by its name in `camelCase` or `snake_case`.
fn named<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| {
        let mut snake = String::with_capacity(name.len() + 4);
        for c in name.chars() {
            if c.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        value.get(snake)
    })
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = named(value, name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    let text = || value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or_else(text).unwrap_or(0)
}

fn attributes(of: &Value) -> Map<String, Value> {
    list(of, "attributes").iter().filter_map(pair).collect()
}

fn pair(pair: &Value) -> Option<(String, Value)> {
    Some((
        pair.get("key")?.as_str()?.to_owned(),
        plain(pair.get("value")?),
    ))
}

/// Plain JSON value of an `AnyValue`.
fn plain(any: &Value) -> Value {
    let Some(fields) = any.as_object() else {
        return any.clone();
    };
    let Some((kind, value)) = fields.iter().next() else {
        return Value::Null;
    };
    match (kind.as_str(), value) {
        ("intValue" | "int_value", Value::String(text)) => text
            .parse::<i64>()
            .map_or_else(|_| value.clone(), Value::from),
        ("arrayValue" | "array_value", list) => {
            let values = list.get("values").and_then(Value::as_array);
            Value::Array(values.into_iter().flatten().map(plain).collect())
        }
        ("kvlistValue" | "kvlist_value", list) => {
            let pairs = list.get("values").and_then(Value::as_array);
            Value::Object(pairs.into_iter().flatten().filter_map(pair).collect())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_thing_is_said_in_several_ways() {
        let camel = json!({"resourceSpans": [{
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
        let snake = json!({"resource_spans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"string_value": "s"}}]},
            "instrumentation_library_spans": [{"spans": [{
                "trace_id": "t", "span_id": "a", "name": "chat x",
                "start_time_unix_nano": 1_700_000_000_000_000_001_u64,
                "attributes": [
                    {"key": "n", "value": {"int_value": 7}}, {"key": "b", "value": {"bool_value": true}},
                    {"key": "l", "value": {"array_value": {"values": [{"string_value": "x"}, {"double_value": 0.5}]}}},
                    {"key": "o", "value": {"kvlist_value": {"values": [{"key": "k", "value": {"int_value": "1"}}]}}},
                ],
                "events": [{"name": "exception", "attributes": [
                    {"key": "exception.type", "value": {"string_value": "E"}},
                    {"key": "exception.message", "value": {"string_value": "m"}}]}],
                "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
            }]}],
        }]});
        let one = spans(&camel).unwrap();
        assert_eq!(one, spans(&json!([snake])).unwrap());
        let span = &one[0];
        assert_eq!(span.attributes["o"], json!({"k": 1}));
        assert_eq!(
            (span.operation(), span.failed, &*span.exceptions[0]),
            ("chat", true, "E: m")
        );
        assert_eq!(span.time().unwrap(), "2023-11-14T22:13:20.000000Z");
        assert!(spans(&json!({"resourceLogs": []})).is_err());
        assert!(spans(&json!({})).is_err());
        assert_eq!(
            spans(&json!({"resourceSpans": [{}, 7, {"scopeSpans": [{"spans": [null]}]}]}))
                .unwrap()
                .len(),
            1
        );
    }
}
