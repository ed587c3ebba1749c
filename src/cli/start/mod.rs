//! Commands that begin a memory: `init`.

pub(super) mod init;
pub(super) mod merge_driver;
