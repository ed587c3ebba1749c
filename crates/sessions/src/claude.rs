//! Claude Code: one event per line. A message of the model spans several lines, one block each; a
//! result is in a line of the user. Unknown line types are skipped, since there are many and they
//! change.

use serde_json::Value;

use crate::{Speaker, Step};

use super::calls::Calls;
use super::{LineFormat, anthropic, text};

#[derive(Debug, Default)]
pub(super) struct Reader {
    session_known: bool,
    /// Last message whose tokens were counted: its lines repeat the count.
    counted: Option<String>,
}

impl LineFormat for Reader {
    fn line(&mut self, line: &Value, calls: &mut Calls<'_>) -> Result<(), String> {
        let session = line["sessionId"].as_str().or(line["session_id"].as_str());
        if let (false, Some(session)) = (self.session_known, session) {
            calls.session(session);
            self.session_known = true;
        }
        let by = match text::of(&line["type"]) {
            "user" => Speaker::User,
            "assistant" => Speaker::Agent,
            _ => return Ok(()),
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
        anthropic::content(&message["content"], by, template, calls);
        Ok(())
    }
}

impl Reader {
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
        assert_eq!(read.session.as_deref(), Some("s1"));
    }

    #[test]
    fn token_counts_saturate() {
        let text = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"x"}}],"usage":{"input_tokens":18446744073709551615,"output_tokens":4}}}"#;
        let read = read_all(Some(Format::ClaudeCode), text);
        assert_eq!(read.steps[0].tokens, Some(u64::MAX));
    }
}
