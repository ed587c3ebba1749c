//! Agent hosts that start MCP servers, and the formats of their settings.

use std::path::Path;

use super::json::{self, EntryForm};
use super::{Start, toml};
use crate::host::Host;
use crate::host::install::Error;
use crate::host::settings_piece::is_blank;

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

/// Format of an agent host's settings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Format {
    /// JSON, with the servers in an object of this name.
    Json { key: &'static str, form: EntryForm },
    /// TOML, with a table per server.
    Toml,
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

    pub(super) const fn format(self) -> Format {
        let (key, form) = match self {
            Self::ClaudeCode => ("mcpServers", EntryForm::Stdio),
            Self::Gemini | Self::Cursor | Self::ClaudeDesktop => ("mcpServers", EntryForm::Plain),
            Self::Copilot => ("mcpServers", EntryForm::Copilot),
            Self::OpenCode => ("mcp", EntryForm::OpenCode),
            Self::Cline => ("mcpServers", EntryForm::Cline),
            Self::VsCode => ("servers", EntryForm::Stdio),
            Self::Codex => return Format::Toml,
        };
        Format::Json { key, form }
    }
}

impl Format {
    /// Returns the entry of our name.
    pub(super) fn find(self, path: &Path, text: &str) -> Result<Option<Start>, Error> {
        if is_blank(text) {
            return Ok(None);
        }
        match self {
            Self::Json { key, .. } => json::find(path, text, key),
            Self::Toml => toml::find(path, text),
        }
    }

    /// Returns the text with the entry, and the inserted piece.
    pub(super) fn add(
        self,
        path: &Path,
        text: &str,
        start: &Start,
    ) -> Result<(String, String), Error> {
        match self {
            Self::Json { key, form } => json::add(path, text, key, form, start),
            Self::Toml => toml::add(path, text, start),
        }
    }

    /// Returns the text without the entry, at any position.
    pub(super) fn remove(self, path: &Path, text: &str) -> Result<String, Error> {
        match self {
            Self::Json { key, .. } => json::remove(path, text, key),
            Self::Toml => toml::remove(path, text),
        }
    }

    /// Returns `true` if the settings are empty.
    pub(super) fn is_empty(self, path: &Path, text: &str) -> bool {
        is_blank(text)
            || match self {
                Self::Json { .. } => json::is_empty(path, text),
                Self::Toml => false,
            }
    }
}
