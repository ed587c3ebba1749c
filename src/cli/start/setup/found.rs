//! Agent hosts on this machine.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::context::Context;
use crate::cli::learning::hooks;
use crate::host::{Host, ServerHost};
use crate::platform::named as files;

/// Agent host that `setup` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AgentHost {
    /// Claude Code
    ClaudeCode,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// GitHub Copilot CLI
    Copilot,
    /// `OpenCode`
    #[value(name = "opencode")]
    OpenCode,
    /// Cline
    Cline,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
}

/// Agent host that is set up.
#[derive(Debug, Clone)]
pub(super) struct FoundHost {
    pub(super) host: AgentHost,
    /// Program or directory that shows that it is installed; `None` if the user named it.
    pub(super) found_by: Option<PathBuf>,
}

impl AgentHost {
    pub(super) const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::Cline,
        Self::Cursor,
        Self::VsCode,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self.hooks() {
            Some(host) => host.name(),
            None => ServerHost::VsCode.name(),
        }
    }

    /// Agent host of the hooks; `None` if it has none.
    pub(super) const fn hooks(self) -> Option<Host> {
        match self {
            Self::ClaudeCode => Some(Host::ClaudeCode),
            Self::Codex => Some(Host::Codex),
            Self::Gemini => Some(Host::Gemini),
            Self::Copilot => Some(Host::Copilot),
            Self::OpenCode => Some(Host::OpenCode),
            Self::Cline => Some(Host::Cline),
            Self::Cursor => Some(Host::Cursor),
            Self::VsCode => None,
        }
    }

    /// Agent host of the MCP server.
    pub(super) const fn server(self) -> ServerHost {
        match self {
            Self::ClaudeCode => ServerHost::ClaudeCode,
            Self::Codex => ServerHost::Codex,
            Self::Gemini => ServerHost::Gemini,
            Self::Copilot => ServerHost::Copilot,
            Self::OpenCode => ServerHost::OpenCode,
            Self::Cline => ServerHost::Cline,
            Self::Cursor => ServerHost::Cursor,
            Self::VsCode => ServerHost::VsCode,
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::Cline => "cline",
            Self::Cursor => "cursor",
            Self::VsCode => "code",
        }
    }

    /// Directory of its settings, which it makes when it first runs.
    fn directory(self, context: &Context) -> Option<PathBuf> {
        match self.hooks() {
            Some(host) => hooks::directory(context, host),
            None => Some(context.environment.all_settings_dir.as_ref()?.join("Code")),
        }
    }
}

/// Returns the hosts that the user named, each once.
pub(super) fn named(hosts: &[AgentHost]) -> Vec<FoundHost> {
    let mut all: Vec<FoundHost> = Vec::new();
    for &host in hosts {
        if all.iter().all(|known| known.host != host) {
            all.push(FoundHost {
                host,
                found_by: None,
            });
        }
    }
    all
}

/// Returns the hosts whose program is on the `PATH`, or whose settings directory is there.
pub(super) fn found(context: &Context) -> Vec<FoundHost> {
    let path = context.environment.search_path();
    let found_by = |host: AgentHost| {
        let mut programs = path.iter().map(|dir| dir.join(host.program()));
        let program = programs.find(|program| files::is_file(program));
        let directory = || host.directory(context).filter(|dir| files::is_dir(dir));
        program.or_else(directory)
    };
    let all = AgentHost::ALL.into_iter();
    all.filter_map(|host| {
        let found_by = Some(found_by(host)?);
        Some(FoundHost { host, found_by })
    })
    .collect()
}
