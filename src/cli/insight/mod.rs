//! Commands that show what memory does: `stats`, `watch`.

pub(super) mod stats;
pub(super) mod watch;
