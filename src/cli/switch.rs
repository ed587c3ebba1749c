//! `memory enable`, `memory disable`, and what every other command does while memory is off.
//!
//! Off is off for all: by the marker file in the memory directory, for everybody who works there, or
//! by `MEMCTL_MEMORY=off`, for one process. What is on by one and off by the other is off. A command
//! that nobody has listed here as working without memory is refused, so that a new one cannot forget
//! to ask.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::config::{Environment, Places};
use crate::model::Scope;
use crate::platform::Directory;
use crate::store::{Scoped, is_disabled};

use super::Command;
use super::context::Context;
use super::error::CliError;
use super::memory::MemoryCommand;
use super::output::{Page, Report, Style};

/// The variable that switches memory off for one process.
const VARIABLE: &str = "MEMCTL_MEMORY";

/// Why there is no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Off {
    /// The marker file.
    Marker(PathBuf),
    /// The variable of the environment, and what it says.
    Variable(String),
}

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Marker(path) => write!(f, "memory is disabled by `{}`", path.display()),
            Self::Variable(value) => write!(f, "memory is disabled by `{VARIABLE}={value}`"),
        }
    }
}

impl Off {
    /// Whether memory is off here, and why. A value of the variable that nobody understands switches it
    /// off too: it was set to say something about memory, and the other mistake cannot be undone.
    pub(super) fn of(environment: &Environment, places: &Places) -> Option<Self> {
        let value = environment.var(VARIABLE).unwrap_or_default();
        let on = ["", "on", "1", "true", "yes"];
        if !on.contains(&value.trim().to_lowercase().as_str()) {
            return Some(Self::Variable(value));
        }
        is_disabled(&Directory::at(&places.memory))
            .then(|| Self::Marker(places.memory.join("disabled")))
    }

    /// How it is switched on again.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Marker(_) => "memctl memory enable".to_owned(),
            Self::Variable(_) => format!("unset {VARIABLE}, or set it to `on`"),
        }
    }
}

/// Refuses a command that needs memory while it is off.
pub(super) fn permit(context: &Context, command: &Command) -> Result<(), CliError> {
    match &context.off {
        Some(off) if !works_without(command) => Err(CliError::usage(off.to_string(), off.hint())),
        _ => Ok(()),
    }
}

/// Whether a command has something to do without memory: because it uses none, because it knows how
/// to do without, or because it looks after the data itself.
fn works_without(command: &Command) -> bool {
    match command {
        // They know how to do without.
        Command::Run(_)
        | Command::Hint(_)
        | Command::Hook(_)
        | Command::Mcp(_)
        // They use none.
        | Command::Hooks(_)
        | Command::Backtest(_)
        | Command::Remote(_)
        | Command::Token(_)
        | Command::Eval(_)
        | Command::Config(_)
        | Command::Trust(_)
        | Command::Completions(_)
        | Command::Man(_)
        // They look at the files as files; their repairs are refused by the store.
        | Command::MergeDriver(_)
        | Command::Doctor(_) => true,
        Command::Memory(command) => matches!(
            command,
            MemoryCommand::Status(_)
                | MemoryCommand::Export(_)
                | MemoryCommand::Purge(_)
                | MemoryCommand::Audit(_)
                | MemoryCommand::Enable(_)
                | MemoryCommand::Disable(_)
        ),
        _ => false,
    }
}

/// Switch memory on again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl memory enable")]
pub(super) struct EnableArgs {}

/// Switch memory off: nothing is read, nothing is written, nothing is lost
///
/// `run` goes on without rules and records nothing, hooks and `hint` are silent, and everything else
/// says that memory is off; `memory status`, `export`, `purge` and `enable` work. The switch is the file
/// `.agentura/disabled`. `MEMCTL_MEMORY=off` does the same for one process.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory disable\n  MEMCTL_MEMORY=off memctl run hr/resume-screen"
)]
pub(super) struct DisableArgs {}

pub(super) fn enable(context: &Context, _args: &EnableArgs) -> Result<Box<dyn Report>, CliError> {
    let changed = store(context).enable()?;
    Ok(Box::new(SwitchReport::of(context, changed)))
}

pub(super) fn disable(context: &Context, _args: &DisableArgs) -> Result<Box<dyn Report>, CliError> {
    let changed = store(context).disable()?;
    Ok(Box::new(SwitchReport::of(context, changed)))
}

/// The switch is no record, and needs no settings: those that cannot be read are no reason to leave it
/// as it is.
fn store(context: &Context) -> Scoped {
    Scoped::new(&context.places.memory, Scope::All)
}

/// How the switch stands.
#[derive(Debug, Serialize)]
struct SwitchReport {
    /// Whether memory is on now, for this process.
    enabled: bool,
    /// Whether the marker was made or removed now.
    changed: bool,
    directory: String,
    warnings: Vec<String>,
}

impl SwitchReport {
    fn of(context: &Context, changed: bool) -> Self {
        let off = Off::of(&context.environment, &context.places);
        let warnings = match &off {
            Some(off @ Off::Variable(_)) => vec![format!("{off}; {}", off.hint())],
            _ => Vec::new(),
        };
        Self {
            enabled: off.is_none(),
            changed,
            directory: context.places.memory.display().to_string(),
            warnings,
        }
    }
}

impl Report for SwitchReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let already = if self.changed { "" } else { " already" };
        let line = if self.enabled {
            format!("Memory is on{already}.")
        } else {
            format!("Memory is off{already}: nothing of it is read or written.")
        };
        page.line(line);
        page.styled(&[(Style::Dim, &self.directory)]);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_by_one_of_two_is_off() {
        let home = tempfile::tempdir().unwrap();
        let off = |value: &str| {
            let vars = [(VARIABLE, value), ("AGENTURA_KNOWLEDGE_DIR", "m")];
            let environment = Environment::fixed(home.path(), home.path(), &vars);
            Off::of(&environment, &Places::find(&environment, None))
        };
        for on in ["", "on", "1", "TRUE", "yes"] {
            assert_eq!(off(on), None, "{on}");
        }
        for word in ["off", "0", "false", "no", "nonsense"] {
            assert_eq!(off(word), Some(Off::Variable(word.to_owned())));
        }
        Scoped::new(home.path().join("m"), Scope::All)
            .disable()
            .unwrap();
        assert!(matches!(off("on"), Some(Off::Marker(_))));
        assert!(matches!(off("off"), Some(Off::Variable(_))));
    }
}
