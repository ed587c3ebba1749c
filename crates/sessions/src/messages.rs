//! Messages of the two APIs: with a list of content blocks (`text`, `tool_use`, `tool_result`), and with
//! `tool_calls`, answered by messages with the role `tool`. Most programs of the latter set no error flag.
//!
//! Claude Code has messages of the first kind: one event per line. A message of the model spans several
//! lines, one block each; a result is in a line of the user. Unknown line types are skipped, since there
//! are many and they change.

use serde_json::Value;

use crate::{Speaker, Step};

use super::trace::Calls;
use super::{LineFormat, text};

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
pub(super) fn blocks(content: &Value, by: Option<Speaker>, mut template: Step, calls: &mut Calls) {
    if let (Some(by), Some(words)) = (by, content.as_str()) {
        calls.add_remark(by, words);
    }
    for block in content.as_array().into_iter().flatten() {
        match (text::of(&block["type"]), by) {
            ("text" | "input_text" | "output_text", Some(by)) => {
                calls.add_remark(by, text::of(&block["text"]));
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
    let is_block = |block: &Value| block["type"].is_string() || block["text"].is_string();
    match content {
        Value::Null => String::new(),
        Value::String(words) => words.clone(),
        Value::Array(blocks) if blocks.iter().all(is_block) => {
            let texts = blocks.iter();
            let texts =
                texts.filter_map(|block| block["text"].as_str().or(block["content"].as_str()));
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

/// Reads a message. Returns `true` if it contains blocks of the Anthropic format.
pub(super) fn message(message: &Value, calls: &mut Calls) -> bool {
    let content = &message["content"];
    if let "tool" | "function" = text::of(&message["role"]) {
        let result = words(content);
        let change = |step: &mut Step| {
            let result = result.strip_prefix("OBSERVATION:\n").unwrap_or(&result);
            step.output = text::output(result);
            step.is_error = message["is_error"].as_bool();
        };
        match message["tool_call_id"].as_str() {
            Some(id) => calls.answer(id, change),
            None => calls.answer_next(change),
        }
    }
    let Some(by) = Speaker::of(&message["role"]) else {
        return false;
    };
    blocks(content, Some(by), Step::default(), calls);
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
    has_tool_blocks(content)
}

/// Reader for lines of Claude Code.
#[derive(Debug, Default)]
pub(super) struct ClaudeCode {
    /// Last message whose tokens were counted: its lines repeat the count.
    counted: Option<String>,
}

impl LineFormat for ClaudeCode {
    fn line(&mut self, line: &Value, calls: &mut Calls) -> Result<(), String> {
        let session = line["sessionId"].as_str().or(line["session_id"].as_str());
        calls.session_once(session.unwrap_or_default());
        let Some(by) = Speaker::of(&line["type"]) else {
            return Ok(());
        };
        let message = &line["message"];
        let is_set = |name: &str| line[name] == true;
        let template = Step {
            time: text::owned(&line["timestamp"]),
            cwd: text::owned(&line["cwd"]),
            side: is_set("isSidechain"),
            tokens: self.tokens(message),
            ..Step::default()
        };
        // Text that the host inserts in the name of the user.
        let silent = ["isMeta", "isCompactSummary", "isSidechain"];
        let by = (!silent.into_iter().any(is_set)).then_some(by);
        blocks(&message["content"], by, template, calls);
        Ok(())
    }
}

impl ClaudeCode {
    /// Tokens of a message, the first time.
    fn tokens(&mut self, message: &Value) -> Option<u64> {
        let usage = message["usage"].as_object()?;
        let id = text::owned(&message["id"]);
        if id.is_some() && id == self.counted {
            return None;
        }
        self.counted = id;
        let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some(count("input_tokens").saturating_add(count("output_tokens")))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, tests::read_all};

    #[test]
    fn calls_answers_and_words_come_in_order() {
        let text = concat!(
            r#"{"type":"summary","summary":"x"}"#,
            "\n",
            r#"{"type":"user","sessionId":"s1","cwd":"/w","message":{"role":"user","content":"fix it"}}"#,
            "\n",
            r#"{"type":"assistant","timestamp":"t1","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"x"}}],"usage":{"input_tokens":3,"output_tokens":4}}}"#,
            "\n",
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"b","name":"Read","input":{"file_path":"/f"}}],"usage":{"input_tokens":3,"output_tokens":4}}}"#,
            "\n",
            "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":[{\"type\":\"text\",\"text\":\"two<system-reminder>no</system-reminder>\"}]}]}}\n",
            "not json\n\n",
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"Exit code 2\nno"}]}}"#,
            "\n",
            r#"{"type":"user","isMeta":true,"message":{"content":"Caveat"}}"#,
        );
        let read = read_all(None, text);
        assert_eq!(read.format, Some(Format::ClaudeCode));
        let steps: Vec<_> = read
            .steps
            .iter()
            .map(|s| {
                (
                    s.index,
                    s.tool.as_str(),
                    s.output.as_str(),
                    s.is_error,
                    s.exit_code,
                    s.tokens,
                )
            })
            .collect();
        assert_eq!(
            steps,
            [
                (0, "Bash", "Exit code 2\nno", Some(true), Some(2), Some(7)),
                (1, "Read", "two", None, None, None),
            ]
        );
        assert_eq!(read.steps[0].command().as_deref(), Some("x"));
        assert_eq!(read.remarks.len(), 1);
        assert_eq!((read.broken[0].line, read.broken.len()), (6, 1));
        assert_eq!(read.id, "s1");
    }

    #[test]
    fn token_counts_saturate() {
        let text = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"x"}}],"usage":{"input_tokens":18446744073709551615,"output_tokens":4}}}"#;
        let read = read_all(Some(Format::ClaudeCode), text);
        assert_eq!(read.steps[0].tokens, Some(u64::MAX));
    }
}
