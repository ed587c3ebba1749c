//! Server entry in JSON settings, with or without comments.

use std::path::Path;

use serde_json::json;

use super::super::jsonc::{self, Node};
use super::{Error, NAME, Start, is_blank, shape};

fn parse(path: &Path, text: &str, key: &str) -> Result<Node, Error> {
    let root = jsonc::parse(text).map_err(|fault| Error::Invalid {
        path: path.to_owned(),
        line: fault.line,
        reason: fault.reason,
    })?;
    if root.members().is_none() {
        return Err(shape(path, "a value that is not an object"));
    }
    if root.get(key).is_some_and(|node| node.members().is_none()) {
        return Err(shape(path, format!("`{key}` that is not an object")));
    }
    Ok(root)
}

pub(super) fn find(path: &Path, text: &str, key: &str) -> Result<Option<Start>, Error> {
    let root = parse(path, text, key)?;
    let entry = root.get(key).and_then(|servers| servers.get(NAME));
    Ok(entry.map(|entry| {
        let command = entry.get("command").and_then(Node::text);
        let args = entry.get("args").and_then(Node::items).unwrap_or_default();
        Start {
            command: command.unwrap_or_default().to_owned(),
            args: args
                .iter()
                .filter_map(Node::text)
                .map(str::to_owned)
                .collect(),
        }
    }))
}

pub(super) fn add(
    path: &Path,
    text: &str,
    key: &str,
    typed: bool,
    start: &Start,
) -> Result<(String, String), Error> {
    let mut entry = json!({});
    if typed {
        entry["type"] = json!("stdio");
    }
    entry["command"] = json!(start.command);
    entry["args"] = json!(start.args);
    let entry = format!(
        "\"{NAME}\": {}",
        serde_json::to_string_pretty(&entry).unwrap_or_default()
    );
    let mut text = if is_blank(text) {
        "{}\n".to_owned()
    } else {
        text.to_owned()
    };
    let root = parse(path, &text, key)?;
    let insertion = if let Some(servers) = root.get(key) {
        jsonc::append(&text, servers, &entry)
    } else {
        let lines: Vec<String> = entry.lines().map(|line| format!("  {line}")).collect();
        let servers = format!("\"{key}\": {{\n{}\n}}", lines.join("\n"));
        jsonc::append(&text, &root, &servers)
    };
    text.insert_str(insertion.at, &insertion.text);
    // Check that the parser reads back the new entry.
    if find(path, &text, key)?.as_ref() == Some(start) {
        Ok((text, insertion.text))
    } else {
        Err(shape(path, "a form that cannot be extended"))
    }
}

pub(super) fn remove(path: &Path, text: &str, key: &str) -> Result<String, Error> {
    let mut text = text.to_owned();
    loop {
        let root = parse(path, &text, key)?;
        // The last of duplicate keys counts.
        let servers = root.get(key);
        let members = servers.and_then(Node::members).unwrap_or_default();
        let at = members.iter().position(|member| member.key == NAME);
        let (Some(servers), Some(at)) = (servers, at) else {
            return Ok(text);
        };
        text.replace_range(jsonc::removal(&text, servers, at), "");
    }
}

pub(super) fn is_empty(path: &Path, text: &str) -> bool {
    let root = parse(path, text, "");
    root.is_ok_and(|root| root.members().is_some_and(<[_]>::is_empty))
}
