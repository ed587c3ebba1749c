//! Options of every command, and values of options that name a kind, a type, a trust level or a host.
//!
//! An option is parsed into the type of the records. This file adds the plurals and the
//! descriptions that only the command line has.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use memctl_redact::Person;

use crate::cli::config::Environment;
use crate::host::{Host, ServerHost};
use crate::model::{CallAction, Kind, LessonScope, MemoryType, Trust};

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Workspace: the directory that contains `.agentura/` and `skills/`
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Read and change only these domains, e.g. `hr,dev`
    #[arg(long, global = true, value_name = "DOMAINS")]
    pub(crate) scope: Option<String>,
    /// Use only this user's notes and sessions; also `MEMCTL_USER`, setting `user`
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) user: Option<String>,
    /// Where the memory is kept: `auto`, `json` or `postgres`; also the setting `store`
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Print only results, warnings and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Print no colours; also set by the variable `NO_COLOR`
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Print more details
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

/// Commands that are understood without the word `memory`.
const OF_MEMORY: [&str; 4] = ["status", "purge", "disable", "enable"];
/// Commands that are understood behind the word `memory`, as the source documents have them.
const OF_RECORDS: [&str; 8] = [
    "search", "list", "show", "approve", "why", "edit", "forget", "undo",
];
/// Options of every command whose value is the next argument.
const WITH_VALUE: [&str; 3] = ["--root", "--scope", "--user"];

/// Returns the arguments with the one name that each command has, whichever was typed.
pub(crate) fn with_one_name(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut is_value = false;
    for (at, argument) in arguments.iter().enumerate().skip(1) {
        let argument = argument.to_str().unwrap_or_default();
        if !is_value && !argument.starts_with('-') {
            words.push((at, argument));
        }
        is_value = WITH_VALUE.contains(&argument);
    }
    match words[..] {
        [(at, "memory"), (_, word), ..] if OF_RECORDS.contains(&word) => {
            arguments.remove(at);
        }
        [(at, word), ..] if OF_MEMORY.contains(&word) => arguments.insert(at, "memory".into()),
        _ => {}
    }
    arguments
}

/// Returns the words of a command without `memory`, if the command has its name without it.
pub(crate) fn without_memory(words: &[String]) -> &[String] {
    match words {
        [memory, rest @ ..] if memory == "memory" => match rest {
            [word, ..] if OF_RECORDS.contains(&word.as_str()) => rest,
            _ => words,
        },
        _ => words,
    }
}

/// Kind of record, in singular or plural; a rule is also a reflexion, as in the files.
impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.noun());
        Some(value.aliases([self.nouns(), self.name(), self.plural()]))
    }
}

impl ValueEnum for MemoryType {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::BrandMemory => "Voice, messages and customers of a brand",
            Self::UserPreferences => "Preferences of a user",
            Self::CompetitiveMemory => "Actions of competitors, and their results",
            Self::TaskMemory => "Tasks, decisions and their results; expires after 90 days",
            Self::PerformanceMemory => "Performance figures of published work",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl ValueEnum for Trust {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Observed, Self::Approved, Self::User]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::Observed => "Extracted from tool output",
            Self::Approved => "Observed, and approved by a person",
            Self::User => "Written by a person",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl ValueEnum for CallAction {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Off, Self::Note, Self::Ask, Self::Deny]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            Self::Off => "None: the rule is only in prompts and at the start of sessions",
            Self::Note => "Tell the agent, and let the call run",
            Self::Ask => "Let the host ask you",
            Self::Deny => "Let the host refuse the call",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

impl ValueEnum for LessonScope {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Project, Self::Everywhere]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

impl ValueEnum for Host {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(value_of_host(self.name(), self.title()))
    }
}

impl ValueEnum for ServerHost {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(value_of_host(self.name(), self.title()))
    }
}

/// A host answers to the name of its program too: `claude`.
fn value_of_host(name: &'static str, title: &'static str) -> PossibleValue {
    let program = name.strip_suffix("-code");
    PossibleValue::new(name).help(title).aliases(program)
}

/// Settings of one agent host.
#[derive(Debug, Args)]
pub(crate) struct HostArgs<H: ValueEnum + Send + Sync + 'static> {
    /// Agent host
    #[arg(value_enum)]
    pub(crate) host: H,
    /// Use the settings of this project instead of yours
    #[arg(long)]
    pub(crate) project: bool,
}

/// Settings of one agent host, or of all.
#[derive(Debug, Args)]
pub(crate) struct HostsArgs<H: ValueEnum + Send + Sync + 'static> {
    /// Agent host; all of them by default
    #[arg(value_enum)]
    pub(crate) host: Option<H>,
    /// Use the settings of this project instead of yours
    #[arg(long)]
    pub(crate) project: bool,
}

/// Returns the person's home directory and login.
pub(crate) fn person(environment: &Environment) -> Person {
    let names = ["USER", "LOGNAME", "USERNAME"];
    let login = names.into_iter().find_map(|name| environment.var(name));
    let home = environment.home.as_ref();
    Person {
        home: home
            .map(|home| home.display().to_string())
            .unwrap_or_default(),
        login: login.unwrap_or_default(),
    }
}
