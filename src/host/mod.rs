//! Coding-agent hosts: what they tell their hooks, what they understand as an answer, and where they
//! want hooks to be written down.
//!
//! - `event`: what happened, in one form for all hosts, and the fields that it is read from.
//! - `claude_code`, `codex`, `gemini`: one host each.
//! - `respond`: from an event to what the agent is told.
//! - `install`: the hooks in a settings file, there and gone again. `jsonc` finds the places in it.
//! - `servers`: this program as an MCP server in a settings file, likewise.
//!
//! Nothing here may ever be in an agent's way: whatever is odd about an event is no event, and
//! whoever calls [`respond()`] answers nothing on any error.
//!
//! Deliberately absent: sockets, the settings of this program, the model of the search.

mod claude_code;
mod codex;
mod event;
mod gemini;
mod install;
mod jsonc;
mod respond;
mod servers;

use serde_json::json;

use crate::guard::shorten;

pub use codex::obstacles as codex_obstacles;
pub use event::{Event, EventKind};
pub use install::{
    Error, InstallReport, Place, Standing, StatusReport, install, status, uninstall,
};
pub use respond::respond;
pub use servers::{
    RegisterReport, ServerHost, ServerReport, Start, register, registered, unregister,
};

/// What is told to a model at once, in units of UTF-16; hosts cut or drop what is longer than 10,000.
const LONGEST_ANSWER: usize = 9_000;

/// A host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// `OpenAI` Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
}

/// A hook as a host wants it written down.
#[derive(Debug, Clone, Copy)]
struct Hook {
    /// The host's name of the event.
    event: &'static str,
    /// Whether the host wants a pattern of tools for this event.
    of_tools: bool,
    /// After so many seconds the host gives up. Ours gives up long before.
    seconds: u32,
}

impl Host {
    /// Every host.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Gemini];

    /// The name, as in `memctl hook claude-code`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// The host of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// Reads an event from what the host has written on standard input; `None` for what is of no
    /// interest, and for whatever cannot be read.
    pub fn event(self, bytes: &[u8]) -> Option<Event> {
        let fields = event::Fields::read(bytes)?;
        match self {
            Self::ClaudeCode => claude_code::event(&fields),
            Self::Codex => codex::event(&fields),
            Self::Gemini => gemini::event(&fields),
        }
    }

    /// The answer that puts `text` before the model. All three hosts understand this form, and
    /// nothing may be added: Codex ignores answers with keys that it does not know. A text that no
    /// host would take whole is shortened here, where a fence in it stays closed.
    pub fn answer(self, event: &Event, text: &str) -> String {
        let text = shorten(text, LONGEST_ANSWER);
        json!({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})
            .to_string()
    }

    /// What the session of an event is called here: the same name may be given by two hosts.
    pub fn session(self, event: &Event) -> String {
        format!("{}/{}", self.name(), event.session_id)
    }

    /// The directory of its settings, in the user's home and in a project.
    pub const fn directory(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
        }
    }

    /// The variable that names another directory for the user's own settings.
    pub const fn directory_variable(self) -> &'static str {
        match self {
            Self::ClaudeCode => "CLAUDE_CONFIG_DIR",
            Self::Codex => "CODEX_HOME",
            Self::Gemini => "GEMINI_CONFIG_DIR",
        }
    }

    /// The file in that directory that holds the hooks.
    pub const fn settings_file(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Gemini => "settings.json",
            Self::Codex => "hooks.json",
        }
    }

    /// The hooks that are installed.
    const fn hooks(self) -> &'static [Hook] {
        match self {
            Self::ClaudeCode => claude_code::HOOKS,
            Self::Codex => codex::HOOKS,
            Self::Gemini => gemini::HOOKS,
        }
    }
}
