//! Conversion of tool spans with other attribute names.

use serde_json::{Map, Value};

use super::{Event, add, read};

/// Adds tool attributes to a span of `OpenInference` or `OpenLLMetry`.
pub(super) fn of_attributes(name: &str, attributes: &mut Map<String, Value>) {
    let text = |key: &str| {
        let text = attributes.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let is = |key: &str| text(key).is_some_and(|kind| kind.eq_ignore_ascii_case("tool"));
    let (tool, arguments, result) = if is("openinference.span.kind") {
        let tool = text("tool.name").unwrap_or_else(|| name.to_owned());
        (
            tool,
            text("input.value").map(Value::String),
            text("output.value").map(Value::String),
        )
    } else if is("traceloop.span.kind") {
        let own = || name.strip_suffix(".tool").unwrap_or(name).to_owned();
        let (input, output) = (
            text("traceloop.entity.input"),
            text("traceloop.entity.output"),
        );
        let tool = text("traceloop.entity.name").unwrap_or_else(own);
        (
            tool,
            input.map(|input| given(&input)),
            output.map(|output| gotten(&output)),
        )
    } else {
        return;
    };
    let id = text("tool_call.id").or(text("tool.id")).map(Value::String);
    add(
        attributes,
        "gen_ai.operation.name",
        Some("execute_tool".into()),
    );
    add(attributes, "gen_ai.tool.name", Some(tool.into()));
    add(attributes, "gen_ai.tool.call.id", id);
    add(attributes, "gen_ai.tool.call.arguments", arguments);
    add(attributes, "gen_ai.tool.call.result", result);
}

/// Arguments recorded by `OpenLLMetry`: `args` and `kwargs` of a function, or `LangChain`'s form of
/// them. Other values are unchanged.
fn given(text: &str) -> Value {
    let Some(Value::Object(input)) = serde_json::from_str(text).ok() else {
        return Value::String(text.to_owned());
    };
    let full = |name: &str| {
        let value = input.get(name)?;
        let is_empty = match value {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            Value::Array(values) => values.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        (!is_empty).then(|| value.clone())
    };
    if input.contains_key("input_str") {
        return full("inputs").or(full("input_str")).unwrap_or_default();
    }
    match (full("args"), full("kwargs")) {
        (None, Some(named)) => named,
        (Some(Value::Array(args)), None) if args.len() == 1 && args[0].is_string() => {
            args[0].clone()
        }
        (Some(args), Some(Value::Object(named))) => {
            let mut all = named;
            all.insert("args".to_owned(), args);
            Value::Object(all)
        }
        _ => Value::Object(input),
    }
}

/// Result recorded by `OpenLLMetry`: JSON, which `LangChain` wraps in an envelope.
fn gotten(text: &str) -> Value {
    let output: Value =
        serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let inner = output
        .get("output")
        .filter(|_| output.get("kwargs").is_some());
    let Some(inner) = inner else {
        return output;
    };
    let content = inner.pointer("/kwargs/content").or(inner.get("content"));
    content.unwrap_or(inner).clone()
}

/// Adds tool attributes from span events: arguments come as a tool message, the result as a choice.
pub(super) fn of_events(attributes: &mut Map<String, Value>, events: &[Event]) {
    for (name, event) in events {
        let (new, body) = match name.as_str() {
            "gen_ai.tool.message" => ("gen_ai.tool.call.arguments", event.get("content")),
            "gen_ai.choice" => ("gen_ai.tool.call.result", event.get("message")),
            _ => continue,
        };
        let value = body.map(|body| {
            let read = read(body);
            // Blocks of a result are texts or JSON.
            let texts = read.as_array().and_then(|blocks| {
                let text = |block: &Value| {
                    let text = block.get("text").and_then(Value::as_str).map(str::to_owned);
                    text.or_else(|| block.get("json").map(Value::to_string))
                };
                blocks.iter().map(text).collect::<Option<Vec<_>>>()
            });
            texts.map_or(read, |texts| Value::String(texts.join("\n")))
        });
        add(attributes, new, value);
    }
    if attributes
        .get("tool.status")
        .is_some_and(|status| status == "error")
    {
        add(attributes, "error.type", Some("error".into()));
    }
}
