//! Native format: JSON Lines with a step or a remark per line. See `docs/reference/session-files.md`.

use serde_json::{Value, json};

use crate::{Speaker, Step};

use super::trace::Calls;
use super::{LineFormat, messages, text};

#[derive(Debug, Default)]
pub(super) struct Reader {
    cwd: Option<String>,
}

impl LineFormat for Reader {
    fn line(&mut self, line: &Value, calls: &mut Calls) -> Result<(), String> {
        if let Some(session) = line["session"].as_str() {
            calls.session(session);
        }
        self.cwd = text::owned(&line["cwd"]).or(self.cwd.take());
        calls.add_remark(Speaker::User, text::of(&line["user"]));
        calls.add_remark(Speaker::Agent, text::of(&line["agent"]));
        let Some(tool) = text::owned(&line["tool"]) else {
            return Ok(());
        };
        let (error, exit_code) = (&line["error"], text::code(&line["exit_code"]));
        let result = if error.is_null() {
            &line["output"]
        } else {
            error
        };
        let input = match &line["input"] {
            // Plain text is a command or code for an interpreter.
            Value::String(text) => json!({ "command": text }),
            value => value.clone(),
        };
        let failed = match (line["ok"].as_bool(), exit_code) {
            (Some(ok), _) => Some(!ok),
            (None, Some(code)) => Some(code != 0),
            (None, None) => (!error.is_null()).then_some(true),
        };
        calls.call(Step {
            native_id: text::owned(&line["id"]),
            tool,
            input,
            output: text::output(&messages::words(result)),
            is_error: failed,
            exit_code,
            time: text::owned(&line["time"]),
            tokens: line["tokens"].as_u64(),
            cwd: self.cwd.clone(),
            answered: true,
            ..Step::default()
        });
        Ok(())
    }
}
