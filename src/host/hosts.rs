//! Agent hosts: the particulars of each, as data.
//!
//! A new host is a row here, its answers in `respond`, and the end of its calls in `event`.

use super::EventKind;
use super::settings::servers::CODEX_SERVERS;

/// Agent host.
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
    /// Visual Studio Code, which has no hooks.
    VsCode,
    /// Claude Desktop, which has no hooks and runs no coding agent.
    ClaudeDesktop,
}

/// Form of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON with an object of events; each has groups of handlers with a tool pattern.
    Groups,
    /// JSON with a version and an object of events; each has handlers.
    Handlers,
    /// One file with a plugin in JavaScript.
    Plugin,
    /// An executable file per event.
    Scripts,
}

/// Event that a hook is installed for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hook {
    /// Name in the settings of the agent host.
    pub(super) event: &'static str,
    /// Name in the event itself.
    pub(super) sent: &'static str,
    /// Meaning. That of a finished call is a success; its fields tell whether it failed.
    pub(super) kind: EventKind,
}

const fn hook(event: &'static str, kind: EventKind) -> Hook {
    renamed(event, event, kind)
}

const fn renamed(event: &'static str, sent: &'static str, kind: EventKind) -> Hook {
    Hook { event, sent, kind }
}

/// File of the user that lists the MCP servers.
#[derive(Debug, Clone, Copy)]
pub enum ServerFile {
    /// In the settings directory of the agent host.
    InSettings(&'static str),
    /// In the home directory; in the settings directory if a variable names that.
    InHome(&'static str),
    /// In the system's configuration directory, as graphical programs have it.
    InConfiguration(&'static str),
}

/// Properties of an agent host.
pub struct Profile {
    name: &'static str,
    alias: Option<&'static str>,
    title: &'static str,
    /// Name of its program.
    pub program: &'static str,
    /// Settings directory in the user's home.
    pub directory: &'static str,
    /// Settings directory in a project; `None` if there is none for hooks.
    pub project_directory: Option<&'static str>,
    /// Variable that overrides the user's settings directory, and the directory below its value.
    pub directory_variable: Option<(&'static str, &'static str)>,
    /// File in that directory that contains the hooks, or the directory of their files.
    pub settings_file: &'static str,
    pub(super) form: Form,
    hooks: &'static [Hook],
    /// Limits for rules that act on calls.
    pub(super) limits: &'static str,
    /// File of the user that lists the MCP servers.
    pub server_file: ServerFile,
    /// File in a project that lists its servers; `None` if the agent host has no project settings.
    pub project_file: Option<&'static str>,
    /// Object that has the servers.
    pub(super) servers: &'static str,
    /// `true` if the agent host starts servers in the current project directory.
    pub starts_in_project: bool,
}

/// Properties that most agent hosts share.
const USUAL: Profile = Profile {
    name: "",
    alias: None,
    title: "",
    program: "",
    directory: "",
    project_directory: None,
    directory_variable: None,
    settings_file: "",
    form: Form::Groups,
    hooks: &[],
    limits: "",
    server_file: ServerFile::InSettings(""),
    project_file: None,
    servers: "mcpServers",
    starts_in_project: true,
};

/// In the order of [`Host`].
static PROFILES: [Profile; 9] = [
    Profile {
        name: "claude-code",
        alias: Some("claude"),
        program: "claude",
        title: "Claude Code",
        directory: ".claude",
        project_directory: Some(".claude"),
        directory_variable: Some(("CLAUDE_CONFIG_DIR", "")),
        settings_file: "settings.json",
        hooks: &[
            hook("SessionStart", EventKind::SessionStart),
            hook("SubagentStart", EventKind::SubagentStart),
            hook("UserPromptSubmit", EventKind::Prompt),
            hook("PreToolUse", EventKind::BeforeTool),
            hook("PostToolUse", EventKind::ToolSucceeded),
            hook("PostToolUseFailure", EventKind::ToolFailed),
            hook("Stop", EventKind::Stop),
            hook("SessionEnd", EventKind::SessionEnd),
        ],
        limits: "rules act before a call (`PreToolUse`, tested with 2.1.329); a note reaches the agent \
                 with the output of the call",
        server_file: ServerFile::InHome(".claude.json"),
        project_file: Some(".mcp.json"),
        ..USUAL
    },
    Profile {
        name: "codex",
        program: "codex",
        title: "Codex CLI",
        directory: ".codex",
        project_directory: Some(".codex"),
        directory_variable: Some(("CODEX_HOME", "")),
        settings_file: "hooks.json",
        hooks: &[
            hook("SessionStart", EventKind::SessionStart),
            hook("SubagentStart", EventKind::SubagentStart),
            hook("UserPromptSubmit", EventKind::Prompt),
            hook("PreToolUse", EventKind::BeforeTool),
            hook("PostToolUse", EventKind::ToolSucceeded),
            hook("Stop", EventKind::Stop),
            hook("SessionEnd", EventKind::SessionEnd),
        ],
        limits: "rules act before a call (`PreToolUse`, tested with 0.169.0); Codex cannot ask for a \
                 rule, so `ask` becomes a note",
        server_file: ServerFile::InSettings("config.toml"),
        project_file: Some(".codex/config.toml"),
        servers: CODEX_SERVERS,
        ..USUAL
    },
    Profile {
        name: "gemini",
        alias: Some("gemini-cli"),
        program: "gemini",
        title: "Gemini CLI",
        directory: ".gemini",
        project_directory: Some(".gemini"),
        directory_variable: Some(("GEMINI_CONFIG_DIR", "")),
        settings_file: "settings.json",
        // `PreCompress` comes before each request and takes no answer. Its session file tells what was summed up.
        hooks: &[
            hook("SessionStart", EventKind::SessionStart),
            hook("BeforeAgent", EventKind::Prompt),
            hook("BeforeTool", EventKind::BeforeTool),
            hook("AfterTool", EventKind::ToolSucceeded),
            hook("AfterAgent", EventKind::Stop),
            hook("SessionEnd", EventKind::SessionEnd),
        ],
        limits: "rules act before a call (`BeforeTool`, tested with 0.61.0); Gemini CLI takes a note \
                 only after the call",
        server_file: ServerFile::InSettings("settings.json"),
        project_file: Some(".gemini/settings.json"),
        ..USUAL
    },
    Profile {
        name: "copilot",
        program: "copilot",
        title: "GitHub Copilot CLI",
        directory: ".copilot",
        project_directory: Some(".github"),
        directory_variable: Some(("COPILOT_HOME", "")),
        settings_file: "hooks/memctl.json",
        form: Form::Handlers,
        // With event names in capitals it sends the fields of Claude Code (1.0.102).
        hooks: &[
            hook("SessionStart", EventKind::SessionStart),
            hook("UserPromptSubmit", EventKind::Prompt),
            hook("PreToolUse", EventKind::BeforeTool),
            hook("PostToolUse", EventKind::ToolSucceeded),
            hook("PostToolUseFailure", EventKind::ToolFailed),
            hook("SessionEnd", EventKind::SessionEnd),
        ],
        limits: "rules act before a call (`PreToolUse`, tested with 1.0.102)",
        server_file: ServerFile::InSettings("mcp-config.json"),
        project_file: Some(".github/mcp.json"),
        ..USUAL
    },
    // It runs plugins in its own process. The installed one (`plugin.js`) passes events to this program in
    // the form of Claude Code. It puts rules into the system prompt, and other answers behind the output of
    // the call.
    Profile {
        name: "opencode",
        program: "opencode",
        title: "OpenCode",
        directory: ".config/opencode",
        project_directory: Some(".opencode"),
        directory_variable: Some(("XDG_CONFIG_HOME", "opencode")),
        settings_file: "plugins/memctl.js",
        form: Form::Plugin,
        hooks: &[
            renamed("chat.message", "UserPromptSubmit", EventKind::Prompt),
            renamed(
                "experimental.chat.system.transform",
                "SessionStart",
                EventKind::SessionStart,
            ),
            renamed("tool.execute.before", "PreToolUse", EventKind::BeforeTool),
            renamed(
                "tool.execute.after",
                "PostToolUse",
                EventKind::ToolSucceeded,
            ),
            renamed("event", "SessionEnd", EventKind::SessionEnd),
        ],
        limits: "rules act before a call (`tool.execute.before`, tested with 1.18.33); OpenCode cannot \
                 ask for a rule, so `ask` becomes a note; a call that throws gets no hint",
        server_file: ServerFile::InSettings("opencode.json"),
        project_file: Some("opencode.json"),
        servers: "mcp",
        ..USUAL
    },
    // Of the command line 3.0.65, which sends no `UserPromptSubmit`.
    Profile {
        name: "cline",
        program: "cline",
        title: "Cline",
        directory: ".cline",
        settings_file: "hooks",
        form: Form::Scripts,
        hooks: &[
            renamed("PreToolUse", "tool_call", EventKind::BeforeTool),
            renamed("PostToolUse", "tool_result", EventKind::ToolSucceeded),
            renamed("TaskComplete", "agent_end", EventKind::SessionEnd),
        ],
        limits: "rules act before a call (`PreToolUse`, tested with 3.0.65); Cline cannot ask for a rule, \
                 so `ask` becomes a note; `deny` ends its task; rules are not told at the start",
        server_file: ServerFile::InSettings("data/settings/cline_mcp_settings.json"),
        ..USUAL
    },
    // Not run here: after the documents of hooks and the code of the command line of 2026-09-18.
    Profile {
        name: "cursor",
        program: "cursor",
        title: "Cursor",
        directory: ".cursor",
        project_directory: Some(".cursor"),
        settings_file: "hooks.json",
        form: Form::Handlers,
        hooks: &[
            hook("sessionStart", EventKind::SessionStart),
            hook("beforeSubmitPrompt", EventKind::Prompt),
            hook("preToolUse", EventKind::BeforeTool),
            hook("postToolUse", EventKind::ToolSucceeded),
            hook("postToolUseFailure", EventKind::ToolFailed),
            hook("sessionEnd", EventKind::SessionEnd),
        ],
        limits: "not tested with Cursor: written after its documents; Cursor takes a note only after the \
                 call",
        server_file: ServerFile::InHome(".cursor/mcp.json"),
        project_file: Some(".cursor/mcp.json"),
        starts_in_project: false,
        ..USUAL
    },
    Profile {
        name: "vscode",
        title: "Visual Studio Code",
        program: "code",
        server_file: ServerFile::InConfiguration("Code/User/mcp.json"),
        project_file: Some(".vscode/mcp.json"),
        servers: "servers",
        starts_in_project: false,
        ..USUAL
    },
    Profile {
        name: "claude-desktop",
        title: "Claude Desktop",
        program: "claude-desktop",
        server_file: ServerFile::InConfiguration("Claude/claude_desktop_config.json"),
        starts_in_project: false,
        ..USUAL
    },
];

impl Host {
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

    /// Returns the agent hosts with hooks.
    pub fn with_hooks() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|host| host.has_hooks())
    }

    /// Returns `true` if the agent host has hooks.
    pub const fn has_hooks(self) -> bool {
        !self.hooks().is_empty()
    }

    /// Returns what is particular to the agent host.
    pub const fn profile(self) -> &'static Profile {
        &PROFILES[self as usize]
    }

    /// Returns the name, as in `memctl hook claude-code`.
    pub const fn name(self) -> &'static str {
        self.profile().name
    }

    /// Returns the name of its program where that is another.
    pub const fn alias(self) -> Option<&'static str> {
        self.profile().alias
    }

    /// Returns the name as its makers write it.
    pub const fn title(self) -> &'static str {
        self.profile().title
    }

    /// Returns the agent host of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_it = |host: &Self| host.name() == name || host.alias() == Some(name);
        Self::ALL.into_iter().find(is_it)
    }

    /// Returns the hooks to install.
    pub(super) const fn hooks(self) -> &'static [Hook] {
        self.profile().hooks
    }

    /// Returns `true` if the agent host has an event before an agent stops, carries its last message,
    /// and takes an answer that lets it go on.
    pub fn asks_at_stop(self) -> bool {
        self.hooks().iter().any(|hook| hook.kind == EventKind::Stop)
    }

    /// Returns `true` if the model gets context from an answer before a call. To the others, a note is
    /// told with the output.
    pub(super) const fn takes_notes_before(self) -> bool {
        !matches!(self, Self::Gemini | Self::Cursor)
    }

    /// Returns `true` if the model gets context from an answer to a prompt. The others are asked once,
    /// at the end of the session.
    pub(crate) const fn takes_context_at_prompt(self) -> bool {
        matches!(
            self,
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::OpenCode
        )
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
    fn profiles_have_the_order_of_the_hosts() {
        for host in Host::ALL {
            let name = format!("{host:?}").to_lowercase();
            assert_eq!(host.name().replace('-', ""), name);
        }
    }

    #[test]
    fn the_book_names_the_events_of_every_host() {
        let page = text("docs/agent-hosts.md");
        for host in Host::with_hooks() {
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
        const MISSING: [(Host, &str); 3] = [
            (Host::ClaudeCode, "SubagentStart"),
            (Host::Codex, "SubagentStart"),
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
