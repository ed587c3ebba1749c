//! Conversion of older message formats to the current one: `{role, parts}`.
//!
//! Parts are texts, tool calls and tool answers. Content is a text, or a list of blocks as in
//! Bedrock and Anthropic.

use serde_json::{Map, Value, json};

use super::read;

/// Converts an event to a message; `None` if it is not a message or has the other direction.
pub(super) fn of_event(name: &str, event: &Map<String, Value>, is_input: bool) -> Option<Value> {
    let role = match name {
        "gen_ai.choice" => None,
        other => Some(other.strip_prefix("gen_ai.")?.strip_suffix(".message")?),
    };
    if role.is_some() != is_input {
        return None;
    }
    // The whole message in one attribute, or one attribute per field.
    let whole = event.get("gen_ai.event.content").map(read);
    let mut fields = match whole {
        Some(Value::Object(fields)) => fields,
        Some(_) => return None,
        None => event.clone(),
    };
    // A choice contains the message, or only its text.
    match fields.remove("message").map(|message| read(&message)) {
        Some(Value::Object(message)) => fields.extend(message),
        Some(content) => {
            fields.insert("content".to_owned(), content);
        }
        None => {}
    }
    fields
        .entry("role")
        .or_insert_with(|| role.unwrap_or("assistant").into());
    Some(of_today(&Value::Object(fields)))
}

/// Converts a message to `{role, parts}`.
pub(super) fn of_today(message: &Value) -> Value {
    let field = |name: &str| message.get(name).filter(|value| !value.is_null());
    let role = field("role").and_then(Value::as_str).unwrap_or_default();
    let mut parts = Vec::new();
    let content = field("content").map(|content| match content {
        Value::String(text) if text.starts_with('[') => {
            let blocks = read(content);
            let is_known = |blocks: &Vec<Value>| blocks.iter().any(|one| block(one).is_some());
            let is_list = role == "tool" || blocks.as_array().is_some_and(is_known);
            if is_list { blocks } else { content.clone() }
        }
        other => other.clone(),
    });
    let id = field("tool_call_id").or(field("id"));
    match content {
        Some(content) if role == "tool" && !has_blocks(&content) => {
            parts.push(json!({"type": "tool_call_response", "id": id, "response": content}));
        }
        Some(Value::Array(blocks)) => parts.extend(blocks.iter().filter_map(block)),
        Some(Value::String(text)) => parts.push(json!({"type": "text", "content": text})),
        _ => {}
    }
    // Texts of several parts: `contents.0.message_content.text`.
    for one in field("contents")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = one.pointer("/message_content/text").and_then(Value::as_str);
        parts.extend(text.map(|text| json!({"type": "text", "content": text})));
    }
    let calls = field("tool_calls").map(read);
    for call in calls.iter().filter_map(Value::as_array).flatten() {
        let call = call.get("tool_call").unwrap_or(call);
        let function = call.get("function").unwrap_or(call);
        let arguments = function.get("arguments").map(read);
        parts.push(json!({"type": "tool_call", "id": call.get("id"), "name": function.get("name"), "arguments": arguments}));
    }
    json!({"role": role, "parts": parts})
}

/// Returns `true` if the content is a list with at least one non-text block.
fn has_blocks(content: &Value) -> bool {
    let blocks = content.as_array();
    blocks.is_some_and(|blocks| {
        blocks
            .iter()
            .any(|one| block(one).is_some_and(|part| part["type"] != "text"))
    })
}

/// Converts a content block of Bedrock or Anthropic.
fn block(block: &Value) -> Option<Value> {
    let kind = block.get("type").and_then(Value::as_str);
    let call = block
        .get("toolUse")
        .or_else(|| Some(block).filter(|_| kind == Some("tool_use")));
    if let Some(call) = call {
        let id = call.get("toolUseId").or(call.get("id"));
        return Some(
            json!({"type": "tool_call", "id": id, "name": call.get("name"), "arguments": call.get("input")}),
        );
    }
    let result = block
        .get("toolResult")
        .or_else(|| Some(block).filter(|_| kind == Some("tool_result")));
    if let Some(result) = result {
        let id = result.get("toolUseId").or(result.get("tool_use_id"));
        let failed = result.get("status").map(|status| status == "error");
        let failed = failed.or(result.get("is_error").and_then(Value::as_bool));
        let texts = result
            .get("content")
            .and_then(Value::as_array)
            .map(|blocks| {
                let texts = blocks
                    .iter()
                    .filter_map(|block| block.get("text")?.as_str());
                texts.collect::<Vec<_>>().join("\n")
            });
        let content = texts.filter(|text| !text.is_empty()).map(Value::String);
        let response = content.or_else(|| result.get("content").cloned());
        return Some(
            json!({"type": "tool_call_response", "id": id, "response": response, "is_error": failed}),
        );
    }
    let text = block.get("text").and_then(Value::as_str)?;
    Some(json!({"type": "text", "content": text}))
}
