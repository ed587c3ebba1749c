//! The system calls of Linux and macOS.

pub(super) mod files;
pub(super) mod process;
