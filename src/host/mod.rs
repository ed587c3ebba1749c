//! Agent hosts: hook events, answers, and installation in settings files.
//!
//! - `event`: hook event in one form for all agent hosts, and its fields.
//! - `claude_code`, `codex`, `gemini`, `copilot`, `opencode`, `cline`, `cursor`: one agent host each.
//! - `respond`: answer to an event. `briefing`: text for the start of a session: rules and lessons, which meet
//!   here, and the numbers for its status line.
//! - `install`: hooks in a settings file, and their removal. `jsonc` finds positions in it.
//! - `status_line`: the status line of Claude Code in its settings. `permission`: that for the tool `lesson`.
//!   `settings_piece`: what both keep to restore a file.
//! - `delivery`: the last event of each host, and its answer.
//! - `servers`: this program as an MCP server in a settings file, and its removal.
//!
//! An error must never disturb an agent: an unreadable event is ignored, and the caller of
//! [`respond()`] answers nothing on any error.
//!
//! Deliberately absent: sockets, the settings of this program, the embedding model.

pub(crate) mod briefing;
mod claude_code;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod delivery;
mod event;
mod gemini;
mod install;
mod jsonc;
mod opencode;
mod permission;
mod respond;
mod servers;
mod settings_piece;
mod status_line;

pub use briefing::{Briefing, SessionCounts};

use serde_json::json;

use crate::lessons::SessionCalls;
use crate::model::CallAction;
use crate::rules::hearing::{MadeCall, Message, QUESTION, retain};
use crate::store::Scoped;
use memctl_redact::shorten;

pub use codex::obstacles as codex_obstacles;
pub use delivery::Delivery;
pub use event::{Event, EventKind};
pub(crate) use install::quoted;
pub use install::{
    Error, InstallReport, InstallationStatus, Place, StatusReport, install, status, uninstall,
};
pub use permission::{LESSON_TOOL, allow_lessons, allows_lessons, disallow_lessons};
pub use respond::respond;
pub use servers::{
    RegisterReport, ServerHost, ServerReport, Start, register, registered, unregister,
};
pub use status_line::{StatusLine, remove_status_line, set_status_line, status_line};

/// Maximum length of an answer, in UTF-16 units; agent hosts truncate or drop more than 10,000.
const LONGEST_ANSWER: usize = 9_000;
/// Number of calls before a message that it may be about.
const HEARD_AFTER: usize = 3;

/// Agent host with hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Host {
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
    /// Cline.
    Cline,
    /// Cursor.
    Cursor,
}

/// Form of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// JSON with an object of events; each has groups of handlers with a tool pattern.
    Groups,
    /// JSON with a version and an object of events; each has handlers.
    Handlers,
    /// One file with a plugin in JavaScript.
    Plugin,
    /// An executable file per event.
    Scripts,
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

impl Hook {
    /// Returns a hook without a tool pattern, with the usual timeout.
    const fn of_session(event: &'static str) -> Self {
        Self {
            event,
            of_tools: false,
            seconds: 5,
        }
    }
}

impl Host {
    /// Every agent host.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::Cline,
        Self::Cursor,
    ];

    /// Returns the name, as in `memctl hook claude-code`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::Cline => "cline",
            Self::Cursor => "cursor",
        }
    }

    /// Returns the name as its makers write it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "GitHub Copilot CLI",
            Self::OpenCode => "OpenCode",
            Self::Cline => "Cline",
            Self::Cursor => "Cursor",
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
            Self::Copilot => copilot::event(&fields),
            Self::OpenCode => opencode::event(&fields),
            Self::Cline => cline::event(&fields),
            Self::Cursor => cursor::event(&fields),
        }
    }

    /// Returns the answer that adds `text` to the model's context. Nothing may be added: Codex
    /// ignores answers with unknown keys. A text above the limit is shortened here, with its fences
    /// kept closed.
    pub fn answer(self, event: &Event, text: &str) -> String {
        let text = shorten(text, LONGEST_ANSWER);
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::OpenCode => {
                let output = json!({"hookEventName": event.name, "additionalContext": text});
                json!({"hookSpecificOutput": output})
            }
            Self::Copilot => json!({"additionalContext": text}),
            Self::Cline => json!({"cancel": false, "contextModification": text}),
            Self::Cursor => json!({"additional_context": text}),
        }
        .to_string()
    }

    /// Returns `true` if the agent host has an event before an agent stops, carries its last message,
    /// and takes an answer that lets it go on.
    pub const fn asks_at_stop(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::Gemini)
    }

    /// Returns the answer to an agent that is about to stop: it goes on with this text.
    pub fn answer_stop(self, text: &str) -> String {
        let decision = if self == Self::Gemini {
            "deny"
        } else {
            "block"
        };
        let reason = shorten(text, LONGEST_ANSWER);
        json!({"decision": decision, "reason": reason}).to_string()
    }

    /// Returns `true` if the model gets context from an answer before a call. To the others, a note is
    /// told with the output.
    const fn takes_notes_before(self) -> bool {
        !matches!(self, Self::Gemini | Self::Cursor)
    }

    /// Returns the answer to a call that rules act on. No answer permits a call, and a call that the
    /// agent host would ask about is still asked about.
    fn answer_before(self, event: &Event, action: CallAction, rules: &str) -> String {
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
            (_, CallAction::Off | CallAction::Note) => self.answer(event, &respond::note(&rules)),
            (Self::ClaudeCode, CallAction::Ask) => decision("ask", &asked()),
            (Self::Codex | Self::OpenCode | Self::Cline, CallAction::Ask) => {
                self.answer(event, &asked())
            }
            (Self::Copilot, CallAction::Ask) => {
                json!({"permissionDecision": "ask", "permissionDecisionReason": asked()})
                    .to_string()
            }
            (Self::Cursor, CallAction::Ask) => {
                json!({"permission": "ask", "user_message": asked(), "agent_message": asked()})
                    .to_string()
            }
            (Self::Gemini, CallAction::Ask) => {
                json!({"decision": "ask", "systemMessage": asked()}).to_string()
            }
            (Self::ClaudeCode | Self::Codex | Self::OpenCode, CallAction::Deny) => {
                decision("deny", &refused())
            }
            (Self::Copilot, CallAction::Deny) => {
                json!({"permissionDecision": "deny", "permissionDecisionReason": refused()})
                    .to_string()
            }
            (Self::Cline, CallAction::Deny) => {
                json!({"cancel": true, "errorMessage": refused()}).to_string()
            }
            (Self::Cursor, CallAction::Deny) => {
                json!({"permission": "deny", "user_message": refused(), "agent_message": refused()})
                    .to_string()
            }
            (Self::Gemini, CallAction::Deny) => {
                json!({"decision": "deny", "reason": refused()}).to_string()
            }
        }
    }

    /// Retains a message of the person. Returns the question to the agent if the message may state
    /// something lasting, and the host takes context with a prompt.
    pub(crate) fn hear(self, event: &Event, store: &Scoped, message: Message) -> Option<String> {
        let calls = SessionCalls::of_session(store, &self.session(event)).calls;
        let recent = calls.into_iter().rev().take(HEARD_AFTER);
        let recent = recent.map(|call| MadeCall {
            tool: call.tool,
            call: call.call,
        });
        let message = message.after(recent.collect());
        let asks = message.may_be_lasting && self.takes_context_at_prompt();
        retain(store, message).ok()?;
        asks.then(|| self.answer(event, QUESTION))
    }

    /// Returns `true` if the model gets context from an answer to a prompt. The others are asked once,
    /// at the end of the session.
    pub(crate) const fn takes_context_at_prompt(self) -> bool {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::OpenCode => true,
            Self::Copilot | Self::Cline | Self::Cursor => false,
        }
    }

    /// Returns the answer to a call whose rules could not be checked in time. The call runs; the user
    /// or the model learns that nothing was checked.
    pub fn late_answer(self, event: &Event) -> String {
        let message = "memctl had no time to check the user's rules about this call";
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => {
                json!({"systemMessage": message}).to_string()
            }
            Self::Copilot | Self::OpenCode | Self::Cline | Self::Cursor => {
                self.answer(event, message)
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
            Self::Copilot => "rules act before a call (`PreToolUse`, tested with 1.0.102)",
            Self::OpenCode => {
                "rules act before a call (`tool.execute.before`, tested with 1.18.33); OpenCode cannot \
                 ask for a rule, so `ask` becomes a note; a call that throws gets no hint"
            }
            Self::Cline => {
                "rules act before a call (`PreToolUse`, tested with 3.0.65); Cline cannot ask for a \
                 rule, so `ask` becomes a note; `deny` ends its task; rules are not told at the start"
            }
            Self::Cursor => {
                "not tested with Cursor: written after its documents; Cursor takes a note only after \
                 the call"
            }
        }
    }

    const fn form(self) -> Form {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => Form::Groups,
            Self::Copilot | Self::Cursor => Form::Handlers,
            Self::OpenCode => Form::Plugin,
            Self::Cline => Form::Scripts,
        }
    }

    /// Returns the session id with the agent host's name, because two agent hosts may use the same
    /// id.
    pub fn session(self, event: &Event) -> String {
        format!("{}/{}", self.name(), event.session_id)
    }

    /// Returns the settings directory in the user's home.
    pub const fn directory(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
            Self::Copilot => ".copilot",
            Self::OpenCode => ".config/opencode",
            Self::Cline => ".cline",
            Self::Cursor => ".cursor",
        }
    }

    /// Returns the settings directory in a project; `None` if there is none for hooks.
    pub const fn project_directory(self) -> Option<&'static str> {
        match self {
            Self::Copilot => Some(".github"),
            Self::OpenCode => Some(".opencode"),
            Self::Cline => None,
            _ => Some(self.directory()),
        }
    }

    /// Returns the variable that overrides the user's settings directory, and the directory below its
    /// value.
    pub const fn directory_variable(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClaudeCode => Some(("CLAUDE_CONFIG_DIR", "")),
            Self::Codex => Some(("CODEX_HOME", "")),
            Self::Gemini => Some(("GEMINI_CONFIG_DIR", "")),
            Self::Copilot => Some(("COPILOT_HOME", "")),
            Self::OpenCode => Some(("XDG_CONFIG_HOME", "opencode")),
            Self::Cline | Self::Cursor => None,
        }
    }

    /// Returns the file in that directory that contains the hooks, or the directory of their files.
    pub const fn settings_file(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Gemini => "settings.json",
            Self::Codex | Self::Cursor => "hooks.json",
            Self::Copilot => "hooks/memctl.json",
            Self::OpenCode => "plugins/memctl.js",
            Self::Cline => "hooks",
        }
    }

    /// Returns the hooks to install.
    const fn hooks(self) -> &'static [Hook] {
        match self {
            Self::ClaudeCode => claude_code::HOOKS,
            Self::Codex => codex::HOOKS,
            Self::Gemini => gemini::HOOKS,
            Self::Copilot => copilot::HOOKS,
            Self::OpenCode => opencode::HOOKS,
            Self::Cline => cline::HOOKS,
            Self::Cursor => cursor::HOOKS,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use memctl_files::named;

    use super::Host;

    fn text(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        named::read_any_text(&path).unwrap()
    }

    #[test]
    fn the_book_names_the_events_of_every_host() {
        let page = text("docs/agent-hosts.md");
        for host in Host::ALL {
            let events: Vec<_> = host.hooks().iter().map(|hook| hook.event).collect();
            let row = format!("| {} | `{}` |", host.title(), events.join("`, `"));
            assert!(page.contains(&row), "{row}");
        }
    }

    /// The plugin of Claude Code has the hooks that `hooks install` writes.
    #[test]
    fn the_plugin_has_the_same_hooks() {
        let plugin: serde_json::Value =
            serde_json::from_str(&text("plugin/hooks/hooks.json")).unwrap();
        let events: Vec<&String> = plugin["hooks"].as_object().unwrap().keys().collect();
        let hooks = Host::ClaudeCode.hooks();
        assert_eq!(
            events,
            hooks.iter().map(|hook| hook.event).collect::<Vec<_>>()
        );
    }

    #[test]
    fn recorded_sessions_have_the_events_of_their_hosts() {
        // Not recorded, as the book says.
        const MISSING: [(Host, &str); 4] = [
            (Host::ClaudeCode, "SubagentStart"),
            (Host::Codex, "SubagentStart"),
            (Host::Gemini, "PreCompress"),
            (Host::Copilot, "PostToolUseFailure"),
        ];
        // OpenCode and Cline name them differently in the event than in their settings.
        for (host, file) in [
            (Host::ClaudeCode, "claude-code-2.1.329"),
            (Host::Codex, "codex-0.169.0"),
            (Host::Gemini, "gemini-cli-0.61.0"),
            (Host::Copilot, "copilot-cli-1.0.102"),
        ] {
            let recorded = text(&format!("fixtures/hosts/{file}.events.jsonl"));
            for hook in host.hooks() {
                let is_there =
                    recorded.contains(&format!("\"hook_event_name\":\"{}\"", hook.event));
                let is_missing = MISSING.contains(&(host, hook.event));
                assert!(is_there != is_missing, "{}: {}", host.name(), hook.event);
            }
        }
    }
}
