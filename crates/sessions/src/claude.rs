//! Claude Code: one event per line. A message of the model spans several lines, one block each; a
//! result is in a line of the user. Unknown line types are skipped, since there are many and they
//! change.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::anthropic::{self, Content};
use super::calls::Calls;
use super::text::Text;
use super::{LineFormat, broken};

#[derive(Debug, Default)]
pub(super) struct Reader {
    session_known: bool,
    /// Last message whose tokens were counted: its lines repeat the count.
    counted: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow, default)]
    cwd: Option<Text<'a>>,
    #[serde(borrow, default, alias = "session_id")]
    session_id: Option<Text<'a>>,
    #[serde(default)]
    is_sidechain: Option<bool>,
    #[serde(default)]
    is_meta: Option<bool>,
    #[serde(default)]
    is_compact_summary: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

impl LineFormat for Reader {
    fn line(&mut self, line: &[u8], calls: &mut Calls<'_>) -> Result<(), String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| broken(&error))?;
        if let (false, Some(session)) = (self.session_known, &line.session_id) {
            calls.session(&session.0);
            self.session_known = true;
        }
        let kind = line.kind.as_ref().map_or("", |kind| &kind.0);
        let by = match kind {
            "user" => Speaker::User,
            "assistant" => Speaker::Agent,
            _ => return Ok(()),
        };
        let Some(message) = line.message else {
            return Ok(());
        };
        let message: Message<'_> =
            serde_json::from_str(message.get()).map_err(|error| broken(&error))?;
        let tokens = message.usage.as_ref().and_then(|usage| {
            let id = message.id.as_ref().map(Text::owned);
            if id.is_some() && id == self.counted {
                return None;
            }
            self.counted = id;
            let input = usage.input_tokens.unwrap_or(0);
            Some(input.saturating_add(usage.output_tokens.unwrap_or(0)))
        });
        let template = Step {
            time: line.timestamp.as_ref().map(Text::owned),
            cwd: line.cwd.as_ref().map(Text::owned),
            side: line.is_sidechain.unwrap_or(false),
            tokens,
            ..Step::default()
        };
        // Text that the host inserts in the name of the user.
        let silent = line.is_meta == Some(true)
            || line.is_compact_summary == Some(true)
            || line.is_sidechain == Some(true);
        let by = (!silent).then_some(by);
        if let Some(content) = message.content {
            anthropic::content(content, by, template, calls);
        }
        Ok(())
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
