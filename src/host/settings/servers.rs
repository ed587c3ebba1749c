//! This program as an MCP server in the settings of agent hosts.
//!
//! The entry is named `memctl`. An entry of that name that starts another program belongs to the user and is
//! never changed. In the `config.toml` of Codex it is a table at the end.

use std::path::Path;

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde::Serialize;
use toml::Table;

use memctl_files::named;

use super::file::{Document, member, object_for, object_in, read_in, text_in, texts_in};
use super::{Entry, Error, Fault, Found, InstallationStatus, Place, Start};
use crate::host::Host;

/// Table of Codex that contains the servers.
pub(crate) const CODEX_SERVERS: &str = "mcp_servers";
/// Name of the entry.
const NAME: &str = "memctl";

impl Start {
    /// Returns `true` if it starts this program as a server.
    fn is_own(&self) -> bool {
        let program = Path::new(&self.command).file_stem();
        let is_memctl = program.is_some_and(|name| name.to_string_lossy().contains(NAME));
        is_memctl && self.args.iter().any(|arg| arg == "mcp")
    }
}

/// Command of the server.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Served {
    /// Command of the server; `None` if it is not installed.
    pub start: Option<Start>,
}

/// Returns the server of a place. It is outdated if an absolute path leads to no program; other arguments are
/// the user's choice.
pub fn status(place: &Place) -> Result<Found<Served>, Error> {
    let start = read_in(&place.settings, |text| started(place.host, text))?;
    let start = start.filter(Start::is_own);
    let is_gone = |start: &Start| {
        let program = Path::new(&start.command);
        program.is_absolute() && !named::is_file(program)
    };
    let standing = match &start {
        None => InstallationStatus::Absent,
        Some(start) if is_gone(start) => InstallationStatus::Outdated,
        Some(_) => InstallationStatus::Installed,
    };
    Ok(place.found(Ok((standing, Served { start }))))
}

/// The server in the settings of a host.
pub(super) struct Server<'a>(pub(super) &'a Place);

impl Entry for Server<'_> {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        match started(self.0.host, text)? {
            None => Ok(InstallationStatus::Absent),
            Some(found) if found == self.0.start => Ok(InstallationStatus::Installed),
            Some(found) if found.is_own() => Ok(InstallationStatus::Outdated),
            Some(Start { command, .. }) => Err(format!(
                "has another server named `{NAME}`, which starts `{command}`"
            )),
        }
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        let (host, Start { command, args }) = (self.0.host, &self.0.start);
        let (command, args) = (command.as_str(), args.clone());
        // As the agent host writes it itself.
        let entry = match host {
            Host::Codex => return with_table(text, &self.0.start),
            Host::ClaudeCode | Host::VsCode => {
                json!({"type": "stdio", "command": command, "args": args})
            }
            Host::Gemini | Host::Cursor | Host::ClaudeDesktop => {
                json!({"command": command, "args": args})
            }
            // 1.0.102.
            Host::Copilot => {
                json!({"type": "local", "command": command, "args": args, "tools": ["*"]})
            }
            // 1.18.33.
            Host::OpenCode => {
                let words = std::iter::once(command.to_owned()).chain(args);
                let words: CstInputValue = words.collect::<Vec<String>>().into();
                json!({"type": "local", "command": words, "enabled": true})
            }
            // 3.0.65.
            Host::Cline => {
                json!({"transport": {"type": "stdio", "command": command, "args": args}})
            }
        };
        let document = Document::read(text)?;
        object_for(&document.object, host.profile().servers)?.append(NAME, entry);
        Ok(document.text())
    }

    /// Removes the entry, and the object of servers if that becomes empty.
    fn take_out(&self, text: &str) -> Result<String, Fault> {
        if self.0.host == Host::Codex {
            return without_table(text);
        }
        let document = Document::read(text)?;
        let key = self.0.host.profile().servers;
        if let Some(servers) = object_in(&document.object, key)? {
            while let Some(entry) = member(&servers, NAME) {
                entry.remove();
            }
            document.remove_empty(key);
        }
        Ok(document.text())
    }

    fn is_empty(&self, text: &str) -> bool {
        let is_json = self.0.host != Host::Codex;
        let left = Document::read(text).map(|document| document.object.properties());
        text.trim().is_empty() || is_json && left.is_ok_and(|left| left.is_empty())
    }
}

/// Returns what the entry of our name starts.
fn started(host: Host, text: &str) -> Result<Option<Start>, Fault> {
    if host == Host::Codex {
        return started_by_codex(text);
    }
    let key = host.profile().servers;
    let document = Document::read(text)?;
    let servers = object_in(&document.object, key)?;
    let Some(entry) = servers.and_then(|servers| member(&servers, NAME)) else {
        return Ok(None);
    };
    let Some(entry) = entry.object_value() else {
        return Err(format!("has `{key}.{NAME}` that is not an object"));
    };
    let entry = object_in(&entry, "transport")?.unwrap_or(entry);
    let mut words: Vec<String> = text_in(&entry, "command").into_iter().collect();
    words.extend(texts_in(&entry, "command"));
    words.extend(texts_in(&entry, "args"));
    let mut words = words.into_iter();
    Ok(Some(Start {
        command: words.next().unwrap_or_default(),
        args: words.collect(),
    }))
}

/// Returns what the server's table in the `config.toml` of Codex starts.
fn started_by_codex(text: &str) -> Result<Option<Start>, Fault> {
    let root = parse_toml(text)?;
    let entry = root
        .get(CODEX_SERVERS)
        .and_then(|servers| servers.get(NAME));
    Ok(entry.map(|entry| {
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        let args = entry.get("args").and_then(toml::Value::as_array);
        Start {
            command: entry.get("command").and_then(text).unwrap_or_default(),
            args: args.into_iter().flatten().filter_map(text).collect(),
        }
    }))
}

/// Returns a text with the server.
fn with_table(text: &str, start: &Start) -> Result<String, Fault> {
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
        "{text}{apart}[{CODEX_SERVERS}.{NAME}]{break_}command = {command}{break_}args = [{args}]{break_}"
    );
    // Servers in another form take no table.
    if others(&with)? == others(text)? {
        Ok(with)
    } else {
        Err(format!("has `{CODEX_SERVERS}` that cannot be extended"))
    }
}

/// Returns a text without the lines of our table and of those below it. Comments stay.
fn without_table(text: &str) -> Result<String, Fault> {
    // A heading is a table by itself.
    let is_ours = |heading: &str| {
        let table = heading.parse::<Table>().unwrap_or_default();
        let servers = table.get(CODEX_SERVERS).and_then(toml::Value::as_table);
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
    let is_whole = others(&left).is_ok_and(|left| Some(left) == others(text).ok());
    if is_whole && started_by_codex(&left)?.is_none() {
        Ok(left)
    } else {
        Err(format!(
            "has `{CODEX_SERVERS}.{NAME}` in a form that you must remove by hand"
        ))
    }
}

/// Returns everything except our entry.
fn others(text: &str) -> Result<Table, Fault> {
    let mut root = parse_toml(text)?;
    if let Some(toml::Value::Table(servers)) = root.get_mut(CODEX_SERVERS) {
        servers.remove(NAME);
        if servers.is_empty() {
            root.remove(CODEX_SERVERS);
        }
    }
    Ok(root)
}

fn parse_toml(text: &str) -> Result<Table, Fault> {
    let body = text.trim_start_matches('\u{feff}');
    body.parse::<Table>().map_err(|error| {
        let reason = error.message().lines().next().unwrap_or_default();
        let before = error.span().and_then(|span| body.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        format!("has invalid TOML in line {line} ({reason})")
    })
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
