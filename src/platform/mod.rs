//! Files without links: every read and write below a directory that somebody else may have filled.
//!
//! A workspace comes from a clone or an archive, so each name in it may be a link to a file of the
//! user, a device that never ends, a pipe that nobody writes to, or a second name of a foreign file.
//! A [`Directory`] opens what lies below it step by step, follows no link on the way, takes regular
//! files only, and never waits for one to open. New files are private and get random temporary
//! names, so that nothing can lie in wait under them.
//!
//! Files that a person names on the command line, and those of other programs, are opened by path:
//! in `named`, and nowhere else. The lint `disallowed_methods` keeps other modules from both.
//!
//! Deliberately absent: Windows (`sys` is the one file with system calls), and a defence against a
//! process of the same user that swaps directories meanwhile: it could write to the files itself.

mod directory;
mod exchange;
mod file;
pub(crate) mod named;
mod refused;
mod sys;
mod temporary;
mod write;

pub use directory::{Directory, Found, FoundKind};
pub use refused::{Reason, Refused};
pub use temporary::is_temporary;

#[cfg(test)]
mod tests;
