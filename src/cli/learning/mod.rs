//! Commands that learn from sessions of agents: `learn`, `lesson`, `hint`, `record`, `hook`, `hooks`.

pub(super) mod hint;
pub(super) mod hook;
mod hook_lessons;
pub(super) mod hooks;
pub(super) mod installation;
pub(super) mod learn;
pub(super) mod lesson;
pub(super) mod session_files;
