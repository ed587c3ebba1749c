//! The system calls of Windows.

pub(super) mod files;
pub(super) mod process;
mod replace;
