//! Commands that learn from sessions of agents: `learn`, `hint`, `record`, `hook`, `hooks`.

pub(super) mod hint;
pub(super) mod hook;
pub(super) mod hooks;
pub(super) mod installation;
pub(super) mod learn;
pub(super) mod session_files;
