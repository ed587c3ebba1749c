//! `OpenCode`: the document of `opencode export SESSION` (written by 1.18.33).
//!
//! A message has parts; a part with the type `tool` is a call with its answer. A shell has its exit code and
//! its own output in `metadata`; the `output` beside it may have text that plugins added.

use serde_json::Value;

use crate::{Speaker, Step};

use super::text;
use super::trace::Calls;

/// Reads a message.
pub(super) fn message(message: &Value, calls: &mut Calls) -> Result<(), String> {
    let info = &message["info"];
    let (Some(by), Some(parts)) = (Speaker::of(&info["role"]), message["parts"].as_array()) else {
        return Err("not a message of OpenCode as `opencode export` of 1.18 writes it".to_owned());
    };
    if let Some(session) = info["sessionID"].as_str() {
        calls.session(session);
    }
    for part in parts {
        match part["type"].as_str().unwrap_or_default() {
            "text" if part["synthetic"] != true => {
                calls.add_remark(by, part["text"].as_str().unwrap_or_default());
            }
            "tool" => calls.call(step(part, info)),
            _ => {}
        }
    }
    Ok(())
}

fn step(part: &Value, info: &Value) -> Step {
    let state = &part["state"];
    let metadata = &state["metadata"];
    let exit_code = text::code(&metadata["exit"]);
    let own = metadata["output"].as_str().filter(|_| exit_code.is_some());
    let result = state["error"].as_str().or(own).or(state["output"].as_str());
    let status = state["status"].as_str().unwrap_or_default();
    let failed = status == "error" || exit_code.is_some_and(|code| code != 0);
    Step {
        native_id: text::owned(&part["callID"]),
        tool: text::of(&part["tool"]).to_owned(),
        input: state["input"].clone(),
        output: text::output(result.unwrap_or_default()),
        is_error: Some(failed),
        exit_code,
        cwd: text::owned(&info["path"]["cwd"]),
        answered: true,
        ..Step::default()
    }
}
