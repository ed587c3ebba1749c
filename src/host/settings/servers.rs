//! This program as an MCP server in the settings of agent hosts.
//!
//! The entry is named `memctl`. One of that name that starts another program belongs to the user and is never
//! changed.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json;
use serde::Serialize;

use memctl_files::{SharedFile, named};

use super::{
    Document, Entry, Error, Fault, InstallationStatus, Settings, codex, member, object_for,
    object_in, read_in, text_in, texts_in,
};
use crate::host::Host;

/// Name of the entry.
pub(super) const NAME: &str = "memctl";

/// Command that starts a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Start {
    /// Program.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
}

impl Start {
    /// Returns `true` if it starts this program as a server.
    fn is_own(&self) -> bool {
        let program = Path::new(&self.command).file_stem();
        let is_memctl = program.is_some_and(|name| name.to_string_lossy().contains(NAME));
        is_memctl && self.args.iter().any(|arg| arg == "mcp")
    }
}

/// Result of an installation or removal.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RegisterReport {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// `true` if the file was changed.
    pub changed: bool,
    /// Command of the server; `None` after a removal.
    pub start: Option<Start>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Server entry in a settings file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ServerReport {
    /// Name of the agent host.
    pub host: &'static str,
    /// Path of the settings file.
    pub settings: PathBuf,
    /// Installation status.
    pub standing: InstallationStatus,
    /// Command of the server; `None` if it is not installed.
    pub start: Option<Start>,
    /// Reason why the settings cannot be read; `None` if they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ServerReport {
    /// Returns the status of an agent host whose settings cannot be read.
    pub fn broken(host: ServerHost, settings: &SharedFile, problem: String) -> Self {
        Self {
            host: host.name(),
            settings: settings.path().to_owned(),
            standing: InstallationStatus::Broken,
            start: None,
            problem: Some(problem),
        }
    }
}

/// Adds the server, or replaces an outdated entry. A repeated call changes nothing.
pub fn register(
    host: ServerHost,
    file: &SharedFile,
    state_dir: Option<&Path>,
    start: &Start,
) -> Result<RegisterReport, Error> {
    let changed = Settings { file, state_dir }.add(&Server { host, start })?;
    Ok(report(host, file, changed, Some(start.clone())))
}

/// Removes the server.
pub fn unregister(
    host: ServerHost,
    file: &SharedFile,
    state_dir: Option<&Path>,
) -> Result<RegisterReport, Error> {
    let start = &Start::default();
    let changed = Settings { file, state_dir }.remove(&Server { host, start })?;
    Ok(report(host, file, changed, None))
}

fn report(
    host: ServerHost,
    file: &SharedFile,
    changed: bool,
    start: Option<Start>,
) -> RegisterReport {
    RegisterReport {
        host: host.name(),
        settings: file.path().to_owned(),
        changed,
        start,
        notes: Vec::new(),
    }
}

/// Returns the installation status of the server. It is outdated if an absolute path leads to no
/// program; other arguments are the user's choice.
pub fn registered(host: ServerHost, settings: &SharedFile) -> Result<ServerReport, Error> {
    let own = read_in(settings, |text| started(host, text))?.filter(Start::is_own);
    let is_gone = |start: &Start| {
        let program = Path::new(&start.command);
        program.is_absolute() && !named::is_file(program)
    };
    Ok(ServerReport {
        host: host.name(),
        settings: settings.path().to_owned(),
        standing: match &own {
            None => InstallationStatus::Absent,
            Some(start) if is_gone(start) => InstallationStatus::Outdated,
            Some(_) => InstallationStatus::Installed,
        },
        start: own,
        problem: None,
    })
}

/// Agent host with MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerHost {
    /// Claude Code.
    ClaudeCode,
    /// `OpenAI` Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// GitHub Copilot CLI.
    Copilot,
    /// `OpenCode`.
    OpenCode,
    /// Cline on the command line.
    Cline,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Claude Desktop.
    ClaudeDesktop,
}

impl ServerHost {
    /// Every agent host.
    pub const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::Cline,
        Self::Cursor,
        Self::VsCode,
        Self::ClaudeDesktop,
    ];

    /// Returns those that run a coding agent: all but Claude Desktop.
    pub fn of_coding_agents() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(|host| *host != Self::ClaudeDesktop)
    }

    /// Returns the name, as in `memctl mcp install claude-code`.
    pub const fn name(self) -> &'static str {
        match self.hooks() {
            Some(host) => host.name(),
            None if matches!(self, Self::VsCode) => "vscode",
            None => "claude-desktop",
        }
    }

    /// Returns the name as its makers write it.
    pub const fn title(self) -> &'static str {
        match self.hooks() {
            Some(host) => host.title(),
            None if matches!(self, Self::VsCode) => "Visual Studio Code",
            None => "Claude Desktop",
        }
    }

    /// Returns the same agent host as one with hooks; `None` if it has none.
    pub const fn hooks(self) -> Option<Host> {
        match self {
            Self::ClaudeCode => Some(Host::ClaudeCode),
            Self::Codex => Some(Host::Codex),
            Self::Gemini => Some(Host::Gemini),
            Self::Copilot => Some(Host::Copilot),
            Self::OpenCode => Some(Host::OpenCode),
            Self::Cline => Some(Host::Cline),
            Self::Cursor => Some(Host::Cursor),
            Self::VsCode | Self::ClaudeDesktop => None,
        }
    }

    /// Returns the file in a project that lists its servers; `None` if the agent host has no
    /// project settings.
    pub const fn project_file(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some(".mcp.json"),
            Self::Codex => Some(".codex/config.toml"),
            Self::Gemini => Some(".gemini/settings.json"),
            Self::Cursor => Some(".cursor/mcp.json"),
            Self::VsCode => Some(".vscode/mcp.json"),
            Self::Copilot => Some(".github/mcp.json"),
            Self::OpenCode => Some("opencode.json"),
            Self::Cline | Self::ClaudeDesktop => None,
        }
    }

    /// Returns `true` if the agent host starts servers in the current project directory.
    pub const fn starts_in_project(self) -> bool {
        !matches!(self, Self::Cursor | Self::VsCode | Self::ClaudeDesktop)
    }

    /// Returns the object that has the servers.
    const fn key(self) -> &'static str {
        match self {
            Self::Codex => codex::SERVERS,
            Self::OpenCode => "mcp",
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }
}

/// The server in the settings of a host.
struct Server<'a> {
    host: ServerHost,
    start: &'a Start,
}

impl Entry for Server<'_> {
    const NAME: &'static str = "mcp";

    fn find(&self, text: &str) -> Result<InstallationStatus, Fault> {
        match started(self.host, text)? {
            None => Ok(InstallationStatus::Absent),
            Some(found) if found == *self.start => Ok(InstallationStatus::Installed),
            Some(found) if found.is_own() => Ok(InstallationStatus::Outdated),
            Some(Start { command, .. }) => Err(format!(
                "has another server named `{NAME}`, which starts `{command}`"
            )),
        }
    }

    fn add(&self, text: &str) -> Result<String, Fault> {
        let Start { command, args } = self.start;
        let (command, args) = (command.as_str(), args.clone());
        // As the agent host writes it itself.
        let entry = match self.host {
            ServerHost::Codex => return codex::with(text, self.start),
            ServerHost::ClaudeCode | ServerHost::VsCode => {
                json!({"type": "stdio", "command": command, "args": args})
            }
            ServerHost::Gemini | ServerHost::Cursor | ServerHost::ClaudeDesktop => {
                json!({"command": command, "args": args})
            }
            // 1.0.102.
            ServerHost::Copilot => {
                json!({"type": "local", "command": command, "args": args, "tools": ["*"]})
            }
            // 1.18.33.
            ServerHost::OpenCode => {
                let words = std::iter::once(command.to_owned()).chain(args);
                let words: CstInputValue = words.collect::<Vec<String>>().into();
                json!({"type": "local", "command": words, "enabled": true})
            }
            // 3.0.65.
            ServerHost::Cline => {
                json!({"transport": {"type": "stdio", "command": command, "args": args}})
            }
        };
        let document = Document::read(text)?;
        object_for(&document.object, self.host.key())?.append(NAME, entry);
        Ok(document.text())
    }

    fn take_out(&self, text: &str) -> Result<String, Fault> {
        if self.host == ServerHost::Codex {
            return codex::without(text);
        }
        let document = Document::read(text)?;
        if let Some(servers) = object_in(&document.object, self.host.key())? {
            while let Some(entry) = member(&servers, NAME) {
                entry.remove();
            }
        }
        Ok(document.text())
    }

    fn is_empty(&self, text: &str) -> bool {
        let is_json = self.host != ServerHost::Codex;
        let left = Document::read(text).map(|document| document.object.properties());
        text.trim().is_empty() || is_json && left.is_ok_and(|left| left.is_empty())
    }
}

/// Returns what the entry of our name starts.
fn started(host: ServerHost, text: &str) -> Result<Option<Start>, Fault> {
    if host == ServerHost::Codex {
        return codex::started(text);
    }
    let key = host.key();
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
