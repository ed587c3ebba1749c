//! Messages with `tool_calls`, answered by messages with the role `tool`. Most programs set no
//! error flag.

use serde_json::Value;

use crate::{Speaker, Step};

use super::calls::Calls;
use super::{anthropic, text};

/// Reads a message. Returns `true` if it contains blocks of the Anthropic format.
pub(super) fn message(message: &Value, calls: &mut Calls<'_>) -> bool {
    let content = &message["content"];
    let by = match text::of(&message["role"]) {
        "user" | "human" => Speaker::User,
        "assistant" | "model" => Speaker::Agent,
        "tool" | "function" => {
            let said = anthropic::words(content);
            let change = |step: &mut Step| {
                let said = said.strip_prefix("OBSERVATION:\n").unwrap_or(&said);
                step.output = text::output(said);
                step.is_error = message["is_error"].as_bool();
            };
            match message["tool_call_id"].as_str() {
                Some(id) => calls.answer(id, change),
                None => calls.answer_next(change),
            }
            return false;
        }
        _ => return false,
    };
    anthropic::content(content, Some(by), Step::default(), calls);
    let several = message["tool_calls"].as_array().into_iter().flatten();
    let several = several.map(|call| (text::owned(&call["id"]), &call["function"]));
    // Older form with one call per message.
    let one = std::iter::once((None, &message["function_call"]));
    for (id, function) in several
        .chain(one)
        .filter(|(_, function)| function.is_object())
    {
        calls.call(Step {
            native_id: id,
            tool: text::of(&function["name"]).to_owned(),
            // JSON in a string or, from some local servers, the object itself.
            input: match &function["arguments"] {
                Value::String(json) => text::value(json),
                other => other.clone(),
            },
            ..Step::default()
        });
    }
    anthropic::has_tool_blocks(content)
}
