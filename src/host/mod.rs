//! Agent hosts: hook events, answers, and installation in settings files.
//!
//! - `event`: hook event in one form for all agent hosts, and its fields.
//! - `claude_code`, `codex`, `gemini`: one agent host each.
//! - `respond`: answer to an event.
//! - `install`: hooks in a settings file, and their removal. `jsonc` finds positions in it.
//! - `status_line`: the status line of Claude Code in its settings.
//! - `servers`: this program as an MCP server in a settings file, and its removal.
//!
//! An error must never disturb an agent: an unreadable event is ignored, and the caller of
//! [`respond()`] answers nothing on any error.
//!
//! Deliberately absent: sockets, the settings of this program, the embedding model.

mod claude_code;
mod codex;
mod event;
mod gemini;
mod install;
mod jsonc;
mod respond;
mod servers;
mod status_line;

use serde_json::json;

use crate::guard::shorten;
use crate::model::CheckAction;

pub use codex::obstacles as codex_obstacles;
pub use event::{Event, EventKind};
pub(crate) use install::quoted;
pub use install::{
    Error, InstallReport, Place, Standing, StatusReport, install, status, uninstall,
};
pub use respond::respond;
pub use servers::{
    RegisterReport, ServerHost, ServerReport, Start, register, registered, unregister,
};
pub use status_line::{StatusLine, remove_status_line, set_status_line, status_line};

/// Maximum length of an answer, in UTF-16 units; agent hosts truncate or drop more than 10,000.
const LONGEST_ANSWER: usize = 9_000;

/// Agent host with hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// `OpenAI` Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
}

/// Hook entry for an agent host's settings.
#[derive(Debug, Clone, Copy)]
struct Hook {
    /// Event name of the agent host.
    event: &'static str,
    /// `true` if the agent host expects a tool pattern for this event.
    of_tools: bool,
    /// Timeout of the agent host in seconds. The hook itself ends much earlier.
    seconds: u32,
}

impl Host {
    /// Every agent host.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Gemini];

    /// Returns the name, as in `memctl hook claude-code`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the agent host of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// Parses an event from standard input; `None` for events without use, and for unreadable
    /// input.
    pub fn event(self, bytes: &[u8]) -> Option<Event> {
        let fields = event::Fields::read(bytes)?;
        match self {
            Self::ClaudeCode => claude_code::event(&fields),
            Self::Codex => codex::event(&fields),
            Self::Gemini => gemini::event(&fields),
        }
    }

    /// Returns the answer that adds `text` to the model's context. All three agent hosts understand
    /// this form. Nothing may be added: Codex ignores answers with unknown keys. A text above the
    /// limit is shortened here, with its fences kept closed.
    pub fn answer(self, event: &Event, text: &str) -> String {
        let text = shorten(text, LONGEST_ANSWER);
        json!({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})
            .to_string()
    }

    /// Returns the answer to a call that rules act on. No answer permits a call, and a call that the
    /// agent host would ask about is still asked about.
    fn answer_before(self, event: &Event, action: CheckAction, rules: &str) -> String {
        let rules = shorten(rules, LONGEST_ANSWER - 200);
        let asked =
            || format!("The user wants to be asked about this call, by their rule: {rules}");
        let refused = || format!("A rule of the user refuses this call: {rules}");
        let decision = |decision: &str, reason: &str| {
            let output = json!({"hookEventName": event.name, "permissionDecision": decision,
                "permissionDecisionReason": reason});
            json!({"hookSpecificOutput": output}).to_string()
        };
        match (self, action) {
            (_, CheckAction::Note) => self.answer(event, &respond::note(&rules)),
            (Self::ClaudeCode, CheckAction::Ask) => decision("ask", &asked()),
            (Self::Codex, CheckAction::Ask) => self.answer(event, &asked()),
            (Self::Gemini, CheckAction::Ask) => {
                json!({"decision": "ask", "systemMessage": asked()}).to_string()
            }
            (Self::ClaudeCode | Self::Codex, CheckAction::Deny) => decision("deny", &refused()),
            (Self::Gemini, CheckAction::Deny) => {
                json!({"decision": "deny", "reason": refused()}).to_string()
            }
        }
    }

    /// Returns limits of the agent host for rules that act on calls.
    const fn limits(self) -> &'static str {
        match self {
            Self::ClaudeCode => {
                "rules act before a call (`PreToolUse`, tested with 2.1.329); a note reaches the \
                 agent with the output of the call"
            }
            Self::Codex => {
                "rules act before a call (`PreToolUse`, tested with 0.169.0); Codex cannot ask for a \
                 rule, so `ask` becomes a note"
            }
            Self::Gemini => {
                "rules act before a call (`BeforeTool`, tested with 0.61.0); Gemini CLI takes a note \
                 only after the call"
            }
        }
    }

    /// Returns the session id with the agent host's name, because two agent hosts may use the same
    /// id.
    pub fn session(self, event: &Event) -> String {
        format!("{}/{}", self.name(), event.session_id)
    }

    /// Returns the settings directory, in the user's home and in a project.
    pub const fn directory(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
        }
    }

    /// Returns the variable that overrides the user's settings directory.
    pub const fn directory_variable(self) -> &'static str {
        match self {
            Self::ClaudeCode => "CLAUDE_CONFIG_DIR",
            Self::Codex => "CODEX_HOME",
            Self::Gemini => "GEMINI_CONFIG_DIR",
        }
    }

    /// Returns the file in that directory that contains the hooks.
    pub const fn settings_file(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Gemini => "settings.json",
            Self::Codex => "hooks.json",
        }
    }

    /// Returns the hooks to install.
    const fn hooks(self) -> &'static [Hook] {
        match self {
            Self::ClaudeCode => claude_code::HOOKS,
            Self::Codex => codex::HOOKS,
            Self::Gemini => gemini::HOOKS,
        }
    }
}
