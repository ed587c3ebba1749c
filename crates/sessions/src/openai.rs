//! Messages with `tool_calls`, answered by messages with the role `tool`. Most programs set no
//! error flag.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::anthropic::{self, Content};
use super::calls::Calls;
use super::text::{self, Text};

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
    /// Older form with one call per message.
    #[serde(borrow, default)]
    function_call: Option<Function<'a>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Text<'a>>,
    #[serde(default)]
    is_error: Option<bool>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    /// JSON in a string or, from some local servers, the object itself.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Reads a message. Returns `true` if it contains blocks of the Anthropic format.
pub(super) fn message(message: &Message<'_>, calls: &mut Calls<'_>) -> bool {
    let role = message.role.as_ref().map_or("", |role| &role.0);
    let by = match role {
        "user" | "human" => Speaker::User,
        "assistant" | "model" => Speaker::Agent,
        "tool" | "function" => {
            let said = message.content.map(anthropic::words).unwrap_or_default();
            let change = |step: &mut Step| {
                let said = said.strip_prefix("OBSERVATION:\n").unwrap_or(&said);
                step.output = text::output(said);
                step.is_error = message.is_error;
            };
            match &message.tool_call_id {
                Some(id) => calls.answer(&id.0, change),
                None => calls.answer_next(change),
            }
            return false;
        }
        _ => return false,
    };
    let content = message
        .content
        .and_then(|raw| serde_json::from_str::<Content<'_>>(raw.get()).ok());
    let other = content.as_ref().is_some_and(anthropic::has_tool_blocks);
    if let Some(content) = content {
        anthropic::content(content, Some(by), Step::default(), calls);
    }
    let old = message
        .function_call
        .iter()
        .map(|function| (None, function));
    let new = message.tool_calls.iter().flatten();
    for (id, function) in new
        .filter_map(|call| Some((call.id.as_ref(), call.function.as_ref()?)))
        .chain(old)
    {
        let arguments =
            function
                .arguments
                .map(|raw| match serde_json::from_str::<Text<'_>>(raw.get()) {
                    Ok(json) => text::value(&json.0),
                    Err(_) => text::value(raw.get()),
                });
        calls.call(Step {
            native_id: id.map(Text::owned),
            tool: function.name.as_ref().map(Text::owned).unwrap_or_default(),
            input: arguments.unwrap_or_default(),
            ..Step::default()
        });
    }
    other
}
