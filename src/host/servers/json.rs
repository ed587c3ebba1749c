//! Server entry in JSON settings, with or without comments.

use std::path::Path;

use serde_json::{Value, json};

use super::super::jsonc::{self, Node};
use super::{Error, NAME, Start, shape};
use crate::host::settings_piece::is_blank;

/// How an entry is written, as the agent host writes it itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum EntryForm {
    /// Command and arguments.
    Plain,
    /// With the type `stdio`.
    Stdio,
    /// With the type `local`, and every tool. Copilot CLI 1.0.102.
    Copilot,
    /// Command and arguments in one list. `OpenCode` 1.18.33.
    OpenCode,
    /// In an object `transport`. Cline 3.0.65.
    Cline,
}

impl EntryForm {
    fn entry(self, Start { command, args }: &Start) -> Value {
        match self {
            Self::Plain => json!({"command": command, "args": args}),
            Self::Stdio => json!({"type": "stdio", "command": command, "args": args}),
            Self::Copilot => {
                json!({"type": "local", "command": command, "args": args, "tools": ["*"]})
            }
            Self::OpenCode => {
                let words: Vec<&String> = std::iter::once(command).chain(args).collect();
                json!({"type": "local", "command": words, "enabled": true})
            }
            Self::Cline => {
                json!({"transport": {"type": "stdio", "command": command, "args": args}})
            }
        }
    }
}

/// Command of an entry in any form.
fn start_of(entry: &Node) -> Start {
    let entry = entry.get("transport").unwrap_or(entry);
    let texts = |node: Option<&Node>| -> Vec<String> {
        let items = node.and_then(Node::items).unwrap_or_default();
        let texts = items.iter().filter_map(Node::text);
        texts.map(str::to_owned).collect()
    };
    let command = entry.get("command");
    let (command, mut args) = if let Some(text) = command.and_then(Node::text) {
        (text.to_owned(), Vec::new())
    } else {
        let mut words = texts(command).into_iter();
        (words.next().unwrap_or_default(), words.collect())
    };
    args.extend(texts(entry.get("args")));
    Start { command, args }
}

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
    Ok(entry.map(start_of))
}

pub(super) fn add(
    path: &Path,
    text: &str,
    key: &str,
    form: EntryForm,
    start: &Start,
) -> Result<(String, String), Error> {
    let entry = format!(
        "\"{NAME}\": {}",
        serde_json::to_string_pretty(&form.entry(start)).unwrap_or_default()
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
