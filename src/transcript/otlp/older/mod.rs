//! Conversion of other conventions to the current one.
//!
//! Before version 1.37 of the conventions for generative AI, messages were span events, and the
//! provider was `gen_ai.system`. `OpenLLMetry` uses one attribute per message field
//! (`gen_ai.prompt.0.content`), and so does `OpenInference`
//! (`llm.input_messages.0.message.content`). Both have their own names for tool spans. This module
//! adds the current attributes to such spans. Existing attributes are kept, since some programs
//! write both.
//!
//! - `message`: messages. `fields`: attributes with numbered names. `tool`: tool spans.
//!
//! Supported formats: the instrumentations of `OpenAI`'s client by `OpenLLMetry` 0.40 and
//! `OpenInference` 0.1, Strands Agents 1.0, Azure AI Inference 1.0. Other spans are unchanged.

mod fields;
mod message;
mod tool;

use serde_json::{Map, Value};

/// Span event: name and attributes.
pub(super) type Event = (String, Map<String, Value>);

/// Adds current attributes to a span with this name.
pub(super) fn fill(name: &str, attributes: &mut Map<String, Value>, events: &[Event]) {
    let renamed = [
        ("gen_ai.provider.name", "gen_ai.system"),
        ("gen_ai.provider.name", "llm.provider"),
        ("gen_ai.request.model", "llm.model_name"),
        ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        (
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
        ),
        ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
        (
            "gen_ai.conversation.id",
            "traceloop.association.properties.session_id",
        ),
    ];
    for (new, old) in renamed {
        let value = attributes.get(old).cloned();
        add(attributes, new, value);
    }
    tool::of_attributes(name, attributes);
    let is_tool = attributes
        .get("gen_ai.operation.name")
        .is_some_and(|operation| operation == "execute_tool");
    if is_tool {
        tool::of_events(attributes, events);
        return;
    }
    let of_messages = [
        (
            "gen_ai.input.messages",
            ["gen_ai.prompt.", "llm.input_messages."],
        ),
        (
            "gen_ai.output.messages",
            ["gen_ai.completion.", "llm.output_messages."],
        ),
    ];
    for (new, prefixes) in of_messages {
        let found = prefixes
            .iter()
            .map(|prefix| fields::numbered(attributes, prefix));
        let mut messages: Vec<Value> = found
            .flatten()
            .map(|message| message::of_today(message.get("message").unwrap_or(&message)))
            .collect();
        let is_input = new == "gen_ai.input.messages";
        messages.extend(
            events
                .iter()
                .filter_map(|(name, event)| message::of_event(name, event, is_input)),
        );
        let messages = Some(messages).filter(|messages| !messages.is_empty());
        add(attributes, new, messages.map(Value::Array));
    }
}

/// Adds an attribute unless it exists.
fn add(attributes: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        attributes.entry(name).or_insert(value);
    }
}

/// Parsed JSON of a text, or the value itself.
fn read(value: &Value) -> Value {
    let text = value.as_str();
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| value.clone())
}

#[cfg(test)]
mod tests;
