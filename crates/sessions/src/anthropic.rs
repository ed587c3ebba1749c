//! Messages with a list of content blocks: `text`, `tool_use`, `tool_result`. Used by the Messages
//! API and by Claude Code.

use serde_json::Value;

use crate::{Speaker, Step};

use super::calls::Calls;
use super::text;

/// Returns `true` if the content has tool blocks of the API.
pub(super) fn has_tool_blocks(content: &Value) -> bool {
    let mut blocks = content.as_array().into_iter().flatten();
    blocks.any(|block| {
        matches!(
            text::of(&block["type"]),
            "tool_use" | "tool_result" | "server_tool_use"
        )
    })
}

/// Extracts calls, answers and text from a message. With `by` as `None` the text is dropped;
/// `template` has the common fields of all calls.
pub(super) fn content(
    content: &Value,
    by: Option<Speaker>,
    mut template: Step,
    calls: &mut Calls<'_>,
) {
    if let (Some(by), Some(words)) = (by, content.as_str()) {
        calls.said(by, words);
    }
    for block in content.as_array().into_iter().flatten() {
        match (text::of(&block["type"]), by) {
            ("text" | "input_text" | "output_text", Some(by)) => {
                calls.said(by, text::of(&block["text"]));
            }
            ("tool_use" | "server_tool_use", _) => {
                calls.call(Step {
                    native_id: text::owned(&block["id"]),
                    tool: text::of(&block["name"]).to_owned(),
                    input: block["input"].clone(),
                    ..template.clone()
                });
                // The token count is per message, so only its first call carries it.
                template.tokens = None;
            }
            ("tool_result", _) => calls.answer(text::of(&block["tool_use_id"]), |step| {
                step.output = text::output(&words(&block["content"]));
                step.is_error = block["is_error"].as_bool();
                step.exit_code = exit_code(&step.output);
            }),
            _ => {}
        }
    }
}

/// Text of a string, or of a list of blocks.
pub(super) fn words(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(words) => words.clone(),
        Value::Array(blocks) if blocks.iter().all(Value::is_object) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        // Some hosts use an object; its JSON serves as text.
        other => other.to_string(),
    }
}

/// Exit code from the first line `Exit code N`.
pub(super) fn exit_code(output: &str) -> Option<i32> {
    let digits = output.strip_prefix("Exit code ")?.lines().next()?;
    digits.trim().parse().ok()
}
