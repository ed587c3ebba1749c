//! Options of every command, and values of options that name a kind, a type, a trust level or a host.
//!
//! An option is parsed into the type of the records. This file adds the plurals and the
//! descriptions that only the command line has.

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
    let values = hosts.iter().copied();
    let values = values.map(|host| PossibleValue::new(name(host)).help(title(host)));
    PossibleValuesParser::new(values).try_map(move |chosen| {
        let mut hosts = hosts.iter().copied();
        let host = hosts.find(|host| name(*host) == chosen);
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
