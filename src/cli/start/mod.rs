//! Commands that begin a memory and connect agents: `setup`, `init`, `hooks`, `hook`, `statusline`.

pub(crate) mod hook;
pub(crate) mod hook_lessons;
pub(crate) mod hooks;
pub(crate) mod init;
pub(crate) mod setup;
pub(crate) mod statusline;
