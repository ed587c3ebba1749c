//! Commands that show what memory does: `stats`, `watch`, `statusline`.

pub(super) mod stats;
pub(super) mod statusline;
pub(super) mod watch;
