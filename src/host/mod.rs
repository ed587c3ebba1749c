//! Agent hosts: hook events, answers, and the entries of this program in their settings files.
//!
//! - `hosts`: the hosts, and the particulars of each.
//! - `event`: hook event in one form for all hosts, and its fields; how a call ended, and what no event has.
//! - `hook_call`: from an event to its answer, and to what the memory keeps of it; the last event of each host, and
//!   its answer.
//! - `respond`: what rules and lessons have to say, in the form of each host. `briefing`: text for the start of a session from
//!   rules and lessons, and the numbers for its status line.
//! - `settings`: hooks, MCP server, status line and permission in settings files, and their removal.
//!
//! An error must never disturb an agent: an unreadable event is ignored, and on any error the caller of
//! [`HookCall`] answers nothing.
//!
//! Deliberately absent: sockets, the settings of this program, the embedding model.

pub(crate) mod briefing;
mod event;
mod hook_call;
mod hosts;
mod respond;
mod settings;

pub use briefing::{Briefing, SessionCounts};
pub use event::{Event, EventKind};
pub use hook_call::{Asks, Delivery, HookCall, HookSettings};
pub use hosts::{Host, ServerFile};
pub use settings::claude_code::{CORRECT_TOOL, LESSON_TOOL, has_other_status_line};
pub use settings::hooks::{
    Events, FoundHooks, codex_obstacles, hook_command, status as hooks_status,
};
pub(crate) use settings::quoted;
pub use settings::servers::{Served, status as server_status};
pub use settings::{Error, Found, InstallationStatus, Installed, Item, Place, Start};

/// Maximum length of an answer, in UTF-16 units; agent hosts truncate or drop more than 10,000.
const LONGEST_ANSWER: usize = 9_000;
