//! Native format: JSON Lines with a step or a remark per line. See `docs/reference/session-files.md`.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Speaker, Step};

use super::anthropic;
use super::calls::Calls;
use super::text::{self, Text};
use super::{LineFormat, broken};

#[derive(Debug, Default)]
pub(super) struct Reader {
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    session: Option<Text<'a>>,
    #[serde(borrow, default)]
    cwd: Option<Text<'a>>,
    #[serde(borrow, default)]
    user: Option<Text<'a>>,
    #[serde(borrow, default)]
    agent: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    ok: Option<bool>,
    #[serde(default)]
    exit_code: Option<i32>,
    #[serde(borrow, default)]
    time: Option<Text<'a>>,
    #[serde(default)]
    tokens: Option<u64>,
}

impl LineFormat for Reader {
    fn line(&mut self, line: &[u8], calls: &mut Calls<'_>) -> Result<(), String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| broken(&error))?;
        if let Some(session) = &line.session {
            calls.session(&session.0);
        }
        if let Some(cwd) = &line.cwd {
            self.cwd = Some(cwd.owned());
        }
        if let Some(words) = &line.user {
            calls.said(Speaker::User, &words.0);
        }
        if let Some(words) = &line.agent {
            calls.said(Speaker::Agent, &words.0);
        }
        let Some(tool) = &line.tool else {
            return Ok(());
        };
        let error = line.error.filter(|raw| raw.get() != "null");
        let said = error
            .or(line.output)
            .map(anthropic::words)
            .unwrap_or_default();
        let input = match line.input.map(|raw| text::value(raw.get())) {
            // Plain text is a command or code for an interpreter.
            Some(Value::String(text)) => serde_json::json!({ "command": text }),
            Some(value) => value,
            None => Value::Null,
        };
        let failed = match (line.ok, line.exit_code) {
            (Some(ok), _) => Some(!ok),
            (None, Some(code)) => Some(code != 0),
            (None, None) => error.is_some().then_some(true),
        };
        calls.call(Step {
            native_id: line.id.as_ref().map(Text::owned),
            tool: tool.owned(),
            input,
            output: text::output(&said),
            is_error: failed,
            exit_code: line.exit_code,
            time: line.time.as_ref().map(Text::owned),
            tokens: line.tokens,
            cwd: self.cwd.clone(),
            answered: true,
            ..Step::default()
        });
        Ok(())
    }
}
