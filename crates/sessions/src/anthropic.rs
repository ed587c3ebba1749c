//! Messages with a list of content blocks: `text`, `tool_use`, `tool_result`. Used by the Messages
//! API and by Claude Code.

use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::calls::Calls;
use super::text::{self, Text};

/// Content of a message: plain text, or blocks.
pub(super) enum Content<'a> {
    Text(Text<'a>),
    Blocks(Vec<Block<'a>>),
    Nothing,
}

#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        parse(raw).map_err(de::Error::custom)
    }
}

fn parse(raw: &RawValue) -> Result<Content<'_>, serde_json::Error> {
    Ok(match raw.get().as_bytes().first() {
        Some(b'"') => Content::Text(serde_json::from_str(raw.get())?),
        Some(b'[') => Content::Blocks(serde_json::from_str(raw.get())?),
        _ => Content::Nothing,
    })
}

/// Returns `true` if the content has tool blocks of the API.
pub(super) fn has_tool_blocks(content: &Content<'_>) -> bool {
    let Content::Blocks(blocks) = content else {
        return false;
    };
    blocks.iter().any(|block| {
        let kind = block.kind.as_ref().map_or("", |kind| &kind.0);
        matches!(kind, "tool_use" | "tool_result" | "server_tool_use")
    })
}

/// Extracts calls, answers and text from a message. With `by` as `None` the text is dropped;
/// `template` has the common fields of all calls.
pub(super) fn content(
    content: Content<'_>,
    by: Option<Speaker>,
    template: Step,
    calls: &mut Calls<'_>,
) {
    let blocks = match content {
        Content::Text(words) => {
            if let Some(by) = by {
                calls.said(by, &words.0);
            }
            return;
        }
        Content::Blocks(blocks) => blocks,
        Content::Nothing => return,
    };
    let mut template = Some(template);
    for block in blocks {
        match block.kind.as_ref().map_or("", |kind| &kind.0) {
            "text" | "input_text" | "output_text" => {
                if let (Some(by), Some(words)) = (by, block.text.and_then(string)) {
                    calls.said(by, &words);
                }
            }
            "tool_use" | "server_tool_use" => {
                let step = template.clone().unwrap_or_default();
                // The token count is per message, so only its first call carries it.
                if let Some(template) = &mut template {
                    template.tokens = None;
                }
                calls.call(Step {
                    native_id: block.id.as_ref().map(Text::owned),
                    tool: block.name.as_ref().map(Text::owned).unwrap_or_default(),
                    input: block
                        .input
                        .map(|raw| text::value(raw.get()))
                        .unwrap_or_default(),
                    ..step
                });
            }
            "tool_result" => {
                let id = block.tool_use_id.as_ref().map_or("", |id| &id.0);
                let said = block.content.map(words).unwrap_or_default();
                calls.answer(id, |step| {
                    step.output = text::output(&said);
                    step.is_error = block.is_error;
                    step.exit_code = exit_code(&step.output);
                });
            }
            _ => {}
        }
    }
}

/// String value of JSON; `None` for other types.
fn string(raw: &RawValue) -> Option<String> {
    let text: Text<'_> = serde_json::from_str(raw.get()).ok()?;
    Some(text.owned())
}

/// Text of a string, or of a list of blocks.
pub(super) fn words(raw: &RawValue) -> String {
    match parse(raw) {
        Ok(Content::Text(words)) => words.owned(),
        Ok(Content::Blocks(blocks)) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.text.and_then(string));
            texts.collect::<Vec<_>>().join("\n")
        }
        Ok(Content::Nothing) if raw.get() == "null" => String::new(),
        // Some hosts use an object; its JSON serves as text.
        _ => raw.get().to_owned(),
    }
}

/// Exit code from the first line `Exit code N`.
pub(super) fn exit_code(output: &str) -> Option<i32> {
    let digits = output.strip_prefix("Exit code ")?.lines().next()?;
    digits.trim().parse().ok()
}
