//! Options of every command, and values of options that name a kind, a type, a trust level or a host.
//!
//! An option is parsed into the type of the records. This file adds the plurals and the
//! descriptions that only the command line has.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use memctl_redact::Person;

use crate::cli::config::Environment;
use crate::host::{Host, ServerHost};
use crate::model::{Kind, MemoryType, Trust};

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

/// Parser for an agent host with hooks.
pub(crate) fn with_hooks() -> impl TypedValueParser<Value = Host> {
    one_of(Host::ALL.to_vec(), Host::name, Host::title)
}

/// Parser for an agent host with MCP servers.
pub(crate) fn with_servers() -> impl TypedValueParser<Value = ServerHost> {
    one_of(
        ServerHost::ALL.to_vec(),
        ServerHost::name,
        ServerHost::title,
    )
}

/// Parser for an agent host of coding agents, which `setup` sets up.
pub(crate) fn of_coding_agents() -> impl TypedValueParser<Value = ServerHost> {
    let hosts = ServerHost::of_coding_agents().collect();
    one_of(hosts, ServerHost::name, ServerHost::title)
}

fn one_of<H: Copy + Send + Sync + 'static>(
    hosts: Vec<H>,
    name: fn(H) -> &'static str,
    title: fn(H) -> &'static str,
) -> impl TypedValueParser<Value = H> {
    // A host answers to the name of its program too: `claude`.
    let program = move |host: H| name(host).strip_suffix("-code");
    let values = hosts.iter().copied();
    let values = values.map(|host| {
        let value = PossibleValue::new(name(host)).help(title(host));
        value.aliases(program(host))
    });
    PossibleValuesParser::new(values).try_map(move |chosen| {
        let mut hosts = hosts.iter().copied();
        let host = hosts.find(|host| name(*host) == chosen || program(*host) == Some(&*chosen));
        host.ok_or_else(|| format!("no agent host `{chosen}`"))
    })
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
