//! `config.toml` of Codex: the server as a table at its end, and settings that block hooks.

use std::path::Path;

use toml::{Table, Value};

use super::servers::NAME;
use super::{Fault, Start};

/// Table that contains the servers.
pub(crate) const SERVERS: &str = "mcp_servers";

/// Returns reasons in the agent host's `config.toml` why hooks in this file do not run.
pub fn obstacles(config: &str, hooks_file: &Path) -> Vec<String> {
    let config: Table = config.parse().unwrap_or_default();
    let hooks_are_off = config
        .get("features")
        .and_then(|features| features.get("hooks"))
        .and_then(Value::as_bool)
        == Some(false);
    let mut found = Vec::new();
    if hooks_are_off {
        found.push("`config.toml` has `features.hooks = false`: Codex runs no hooks".into());
    }
    // Codex stores reviewed hooks under the path of the file.
    let reviewed = format!("{}:", hooks_file.display());
    let is_reviewed = config
        .get("hooks")
        .and_then(|hooks| hooks.get("state"))
        .and_then(Value::as_table)
        .is_some_and(|state| state.keys().any(|key| key.starts_with(&reviewed)));
    if !is_reviewed {
        found.push(
            "the hooks are not reviewed in Codex yet, and it skips them: trust them at its next start, or by `/hooks`"
                .into(),
        );
    }
    found
}

/// Returns what the server's entry starts.
pub(super) fn started(text: &str) -> Result<Option<Start>, Fault> {
    let root = parse(text)?;
    let entry = root.get(SERVERS).and_then(|servers| servers.get(NAME));
    Ok(entry.map(|entry| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let args = entry.get("args").and_then(Value::as_array);
        Start {
            command: entry.get("command").and_then(text).unwrap_or_default(),
            args: args.into_iter().flatten().filter_map(text).collect(),
        }
    }))
}

/// Returns a text with the server.
pub(super) fn with(text: &str, start: &Start) -> Result<String, Fault> {
    // A JSON string is a valid basic string of TOML.
    let quoted = |text: &String| serde_json::Value::from(text.as_str()).to_string();
    let args: Vec<String> = start.args.iter().map(quoted).collect();
    let break_ = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let apart = match text {
        "" => "",
        text if text.ends_with('\n') => break_,
        _ => &break_.repeat(2),
    };
    let (command, args) = (quoted(&start.command), args.join(", "));
    let with = format!(
        "{text}{apart}[{SERVERS}.{NAME}]{break_}command = {command}{break_}args = [{args}]{break_}"
    );
    // Servers in another form take no table.
    if rest(&with)? == rest(text)? {
        Ok(with)
    } else {
        Err(format!("has `{SERVERS}` that cannot be extended"))
    }
}

/// Returns a text without the lines of our table and of those below it. Comments stay.
pub(super) fn without(text: &str) -> Result<String, Fault> {
    // A heading is a table by itself.
    let is_ours = |heading: &str| {
        let table = heading.parse::<Table>().unwrap_or_default();
        let servers = table.get(SERVERS).and_then(Value::as_table);
        servers.is_some_and(|servers| servers.contains_key(NAME))
    };
    let mut left = String::new();
    let mut within = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start_matches('\u{feff}').starts_with('[') {
            within = is_ours(line);
        }
        if !within || line.starts_with('#') {
            left.push_str(line);
        }
    }
    // A line of a list may look like a heading.
    let is_whole = rest(&left).is_ok_and(|left| Some(left) == rest(text).ok());
    if is_whole && started(&left)?.is_none() {
        Ok(left)
    } else {
        Err(format!(
            "has `{SERVERS}.{NAME}` in a form that you must remove by hand"
        ))
    }
}

/// Returns everything except our entry.
fn rest(text: &str) -> Result<Table, Fault> {
    let mut root = parse(text)?;
    if let Some(Value::Table(servers)) = root.get_mut(SERVERS) {
        servers.remove(NAME);
        if servers.is_empty() {
            root.remove(SERVERS);
        }
    }
    Ok(root)
}

fn parse(text: &str) -> Result<Table, Fault> {
    let body = text.trim_start_matches('\u{feff}');
    body.parse::<Table>().map_err(|error| {
        let reason = error.message().lines().next().unwrap_or_default();
        let before = error.span().and_then(|span| body.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        format!("has invalid TOML in line {line} ({reason})")
    })
}
