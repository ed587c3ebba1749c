//! A shell line as the simple commands that it runs.
//!
//! - `scan`: the line split at its operators: words with their places, joins, redirections, lines within.
//! - `wrappers`: layers before the program of a command, and programs that run another one.
//! - `options`: options between a program and its subcommand, and the command of a runner such as `npx`.
//! - `prose`: text for people within a command.
//! - `handed`: values of the variables that the line sets, and files that a search or a pipe hands on to a command.
//!
//! `peeler` combines them in [`commands`]. Chains, pipes, subshells, substitutions, `sh -c '…'`, `ssh HOST '…'` and
//! `find -exec` are split, and so is the input of a shell that the line contains. Assignments and wrappers
//! such as `sudo -u X` are removed one after the other, so that a pattern may begin with the program, a
//! wrapper or an assignment.
//!
//! Nothing is executed, and no line makes it fail.
//!
//! Deliberately not read: the content of variables that the line does not set, of aliases, functions and scripts; brace
//! and glob expansion; the result of `eval`; PowerShell and `cmd`. Lines within lines are read four levels deep, and of
//! a line at most 1,000 commands.

mod handed;
mod options;
mod peeler;
mod prose;
mod scan;
mod wrappers;

pub use options::{Bare, shows_help, takes_value};
pub use peeler::commands;
pub use prose::{EXTENSIONS as PROSE_EXTENSIONS, is_prose, takes_text};
pub use scan::{Join, KEYWORDS, Raw, Word, is_assignment, scan};
pub use wrappers::{Layer, layer};

/// Texts of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The command as written, then without one layer after the other.
    pub forms: Vec<String>,
    /// The last form without quotes.
    pub plain: String,
    /// The command with its input, if the line contains that.
    pub fed: Option<String>,
    /// The last form with each value of a variable that the line sets, or with the files that are handed to it.
    pub filled: Vec<String>,
    /// The last form without the options before its subcommand, and without a runner.
    pub bare: Vec<Bare>,
}

impl Reading {
    /// All texts, with and without quotes.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let written = self.forms.iter().chain(std::iter::once(&self.plain));
        let bare = self.bare.iter().flat_map(|bare| &bare.forms);
        let with_values = self.fed.iter().chain(&self.filled);
        written.chain(with_values).chain(bare).map(String::as_str)
    }
}

/// Simple command of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// As it is typed.
    pub typed: Reading,
    /// Without options in its text for people, if it has such text.
    pub quiet: Option<Reading>,
    /// Without its text for people, if it has such text.
    pub silent: Option<Reading>,
    /// The pipeline that ends with it, if it is not the first: as typed, and without layers.
    pub pipeline: Vec<String>,
    /// Program and arguments, without layers and quotes.
    pub words: Vec<String>,
    /// The command behind a runner on this machine, with the values of variables and the files that are handed to it.
    /// Empty in a container.
    pub executed: Vec<String>,
    /// Names of the runner whose shell runs it: `docker exec web sh -c '…'`.
    pub runners: Vec<String>,
    /// Files that its output goes to.
    pub targets: Vec<String>,
    /// Standard input, if the line contains it.
    pub body: String,
    /// Variables that commands before it in the line have set.
    pub variables: String,
    /// Directory that commands before it in the line have changed to; empty if none has.
    pub directory: String,
    /// Number of the chain: commands of one chain run only if those before them succeeded.
    pub chain: usize,
    /// The line goes on, or succeeds, although this command failed: `x || true`, `! x`.
    pub may_fail: bool,
}

impl Simple {
    /// All texts that a pattern may be tried on.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let others = self.quiet.iter().chain(&self.silent);
        let readings = std::iter::once(&self.typed).chain(others);
        let pipeline = self.pipeline.iter().map(String::as_str);
        readings.flat_map(Reading::texts).chain(pipeline)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Last name of a path.
pub fn basename(path: &str) -> &str {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.filter(|name| !name.is_empty()).unwrap_or(path)
}

/// Returns `true` for a program that reads commands.
pub fn is_shell(program: &str) -> bool {
    ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish"].contains(&basename(program))
}

#[cfg(test)]
mod tests;
