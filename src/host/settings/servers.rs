//! This program as an MCP server in the settings of agent hosts.
//!
//! The entry is named `memctl`. An entry of that name that starts another program belongs to the user and is
//! never changed.

use std::path::Path;

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde::Serialize;

use memctl_files::named;

use super::document::{Document, member, object_for, object_in, read_in, text_in, texts_in};
use super::{Entry, Error, Fault, Found, InstallationStatus, Place, Start, codex};
use crate::host::Host;

/// Name of the entry.
pub(super) const NAME: &str = "memctl";

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
            Host::Codex => return codex::with(text, &self.0.start),
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
            return codex::without(text);
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
        return codex::started(text);
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

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
