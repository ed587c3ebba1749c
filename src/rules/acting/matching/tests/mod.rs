//! Tests of what patterns match in calls.

mod after;
mod commands;
mod contents;
mod hidden;
mod paths;
mod tools;

use serde_json::{Value, json};

use super::*;
use memctl_sessions::Step;

fn call(tool: &str, input: Value) -> Call {
    let step = Step {
        tool: tool.to_owned(),
        input,
        cwd: Some("/home/u/p/web".to_owned()),
        ..Step::default()
    };
    Call::of(&step, &["/home/u/p"])
}

fn bash(line: &str) -> Call {
    call("Bash", json!({ "command": line }))
}

fn pattern(on: CallPart, texts: [&str; 3]) -> CallPattern {
    let [matches, unless, after] = texts.map(str::to_owned);
    CallPattern {
        on,
        matches,
        unless,
        after,
        within: Vec::new(),
    }
}
