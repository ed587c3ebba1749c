//! File access below a directory with untrusted content, without following links.
//!
//! A workspace comes from a clone or an archive. Each name in it may be a link to a user's file, an
//! endless device, a pipe without a writer, or a second name of a foreign file. A [`Directory`]
//! opens paths step by step, follows no link, accepts regular files only, and never blocks on
//! opening. New files are private. Temporary names are random, so that nothing can be planted under
//! them.
//!
//! Files that a user names on the command line, and files of other programs, are opened by path,
//! only in `named`. The lint `disallowed_methods` keeps other modules from both.
//!
//! Deliberately absent: Windows (`sys` is the one file with system calls), and a defence against a
//! process of the same user that swaps directories. Such a process could write to the files itself.

mod directory;
mod exchange;
mod file;
mod kind;
pub(crate) mod named;
pub(crate) mod parallel;
mod refused;
mod sys;
mod temporary;
mod write;

pub use directory::{Directory, Found};
pub use kind::FoundKind;
pub use refused::{Reason, Refused};
pub use temporary::is_temporary;

#[cfg(test)]
mod tests;
