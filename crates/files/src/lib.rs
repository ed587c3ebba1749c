//! File access below a directory with untrusted content, without following links.
//!
//! A workspace comes from a clone or an archive. Each name in it may be a link to a user's file, an
//! endless device, a pipe without a writer, or a second name of a foreign file. A [`Directory`]
//! opens paths step by step, follows no link, accepts regular files only, and never blocks on
//! opening. New files are private. Temporary names are random, so that nothing can be planted under
//! them.
//!
//! Files that a user names on the command line, and the user's files of other programs, are opened
//! by path, only in `named`. The lint `disallowed_methods` keeps other modules from both.
//!
//! The operating system is asked here alone; each of these modules says what it promises on which
//! system:
//!
//! | module | what it promises |
//! |---|---|
//! | `directory`, `file` | no link is followed; a file has one name and is private before it is written; reads and writes at an offset |
//! | `write` | a file is replaced as a whole or not at all, and durable on return; if wanted, only the version that was read |
//! | `named` | files that a user names, opened by their path; files of a project that other programs use too: no link is followed |
//! | `process` | a started program ends with all that it has started; git runs nothing of a repository, and is not waited for without end; interrupts, local sockets, directories of the user |
//!
//! Locks are those of the standard library (`File::try_lock`): one holder of a file at a time, free
//! when its process ends in any way.
//!
//! On Windows, names are opened by their path while their directories are held open, which keeps
//! those from being renamed; private files have the permissions of the user's directory; and
//! renaming is as durable as the file system makes it, since directories cannot be synced.
//!
//! Beside them: `text` reads text in the encodings of people's tools and finds what git could not merge, and `yaml`
//! reads YAML as JSON values. `json` finds and changes values in JSON text byte for byte. `parallel` spreads work over the processors.
//!
//! Deliberately absent: any idea of the content of files; the environment and the clock, which callers pass;
//! and a defence against a process of the same user that swaps directories. Such a process could write to the
//! files itself.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests make and read the files that the code must cope with"
    )
)]

mod directory;
mod file;
pub mod json;
pub mod named;
pub mod parallel;
pub mod process;
pub mod text;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
mod write;
pub mod yaml;

// Both systems have the same functions, and the modules above write down what each promises. No other
// file asks which system it is compiled for.
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use directory::{Directory, Found};
pub use file::{FileState, FoundKind, Reason, Refused, owned};
pub use named::SharedFile;
pub use process::{git, user_directories};
/// Reads and writes at an offset. They do not wait for each other, and threads may share the file. The position
/// of the file's cursor is unspecified afterwards: seek before using it.
pub use system::files::PositionedFile;
pub use write::is_temporary;

#[cfg(test)]
mod tests;

/// Makes a symbolic link. The program makes none: its tests do.
pub fn make_link(
    target: impl AsRef<std::path::Path>,
    link: impl AsRef<std::path::Path>,
) -> std::io::Result<()> {
    system::files::make_link(target.as_ref(), link.as_ref())
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
    let pairs = bytes.iter().map(|byte| [byte >> 4, byte & 15]);
    pairs.flatten().map(digit).collect()
}
