//! What other conventions say, in the words of today's.
//!
//! Before version 1.37 of the conventions for generative AI, messages were events of a span, and the program
//! was `gen_ai.system`. `OpenLLMetry` has one attribute for every field of every message
//! (`gen_ai.prompt.0.content`), and so has `OpenInference` (`llm.input_messages.0.message.content`); both have names of their
//! own for the spans of tools. Here a span gets the attributes of today for what it says in another way;
//! an attribute that it has already stays as it is, since some programs write both.
//!
//! - `message`: messages. `fields`: attributes with numbers in their names. `tool`: spans of tools.
//!
//! The shapes are those that these programs wrote: the instrumentations of `OpenAI`'s client by `OpenLLMetry`
//! 0.40 and `OpenInference` 0.1, Strands Agents 1.0, Azure AI Inference 1.0. What is none of them is left alone.

mod fields;
mod message;
mod tool;

use serde_json::{Map, Value};

/// An event of a span: its name and its attributes.
pub(super) type Event = (String, Map<String, Value>);

/// Adds what a span of this name says in other words.
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

/// Adds an attribute that is not there yet.
fn add(attributes: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        attributes.entry(name).or_insert(value);
    }
}

/// JSON in a text, or what is not in one.
fn read(value: &Value) -> Value {
    let text = value.as_str();
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| value.clone())
}

#[cfg(test)]
mod tests;
