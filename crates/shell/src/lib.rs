//! A shell line as the simple commands that it runs.
//!
//! - `scan`: the line split at its operators: words with their places, joins, redirections, lines within.
//! - `wrappers`: layers before the program of a command, and programs that run another one.
//! - `peel`: both together: each simple command in all its forms, without one layer after the other.
//!
//! Nothing is executed, and no line makes it fail.
//!
//! Deliberately not read: the content of variables, aliases, functions and scripts; brace and glob
//! expansion; what `eval` puts together; PowerShell and `cmd`. Lines within lines are read four levels deep, and
//! of a line at most 64 commands.

mod peel;
mod scan;
mod wrappers;

pub use peel::{Simple, basename, commands, is_shell};
pub use scan::{Join, KEYWORDS, Raw, Word, scan};
pub use wrappers::{Layer, is_assignment, layer};
