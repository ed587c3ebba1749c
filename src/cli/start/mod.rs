//! Commands that begin a memory: `setup`, `init`.

pub(super) mod init;
pub(super) mod merge_driver;
pub(super) mod setup;
