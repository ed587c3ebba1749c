//! Options of every command, and values of options that name a kind, a type, a trust level or a host.
//!
//! An option is parsed into the type of the records. This file adds the plurals and the
//! descriptions that only the command line has.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::host::Host;
use crate::model::{CallAction, Kind, MemoryType, Trust};
use crate::remote::Direction;

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
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
const WITH_VALUE: [&str; 4] = ["--root", "--scope", "--user", "--store"];

/// Returns the arguments with the one name that each command has, whichever was typed. `help COMMAND` is
/// `COMMAND --help`.
pub(crate) fn with_one_name(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut at = Vec::new();
    let mut is_value = false;
    for (place, argument) in arguments.iter().enumerate().skip(1) {
        let argument = argument.to_str().unwrap_or_default();
        if !is_value && !argument.starts_with('-') {
            at.push(place);
        }
        is_value = WITH_VALUE.contains(&argument);
    }
    let word = |n: usize| {
        at.get(n)
            .and_then(|at| arguments[*at].to_str())
            .unwrap_or_default()
    };
    let own = ["--all", "--help", "-h"];
    let has_own_page = arguments
        .iter()
        .any(|argument| own.iter().any(|own| argument == own));
    match (word(0), word(1)) {
        ("help", _) if !has_own_page => {
            arguments.remove(at[0]);
            arguments.push("--help".into());
            return with_one_name(arguments);
        }
        ("memory", of) if OF_RECORDS.contains(&of) => drop(arguments.remove(at[0])),
        (of, _) if OF_MEMORY.contains(&of) => arguments.insert(at[0], "memory".into()),
        _ => {}
    }
    arguments
}

/// Makes a type of the records a value of options: its values, and how each is written.
macro_rules! values {
    ($type:ident: $all:expr, $value:expr) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &$all
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let value: fn(Self) -> PossibleValue = $value;
                Some(value(*self))
            }
        }
    };
}

fn value(name: &'static str, about: &'static str) -> PossibleValue {
    PossibleValue::new(name).help(about)
}

// In singular or plural; a rule is also a reflexion, as in the files.
values!(Kind: Self::ALL, |kind| {
    let names = [kind.nouns(), kind.name(), kind.plural()];
    PossibleValue::new(kind.noun()).aliases(names)
});
values!(MemoryType: Self::ALL, |of| value(of.name(), match of {
    MemoryType::BrandMemory => "Voice, messages and customers of a brand",
    MemoryType::UserPreferences => "Preferences of a user",
    MemoryType::CompetitiveMemory => "Actions of competitors, and their results",
    MemoryType::TaskMemory => "Tasks, decisions and their results; expires after 90 days",
    MemoryType::PerformanceMemory => "Performance figures of published work",
}));
values!(Trust: [Self::Observed, Self::Approved, Self::User], |trust| value(trust.name(), match trust {
    Trust::Observed => "Extracted from tool output",
    Trust::Approved => "Observed, and approved by a person",
    Trust::User => "Written by a person",
}));
values!(CallAction: [Self::Off, Self::Note, Self::Ask, Self::Deny], |action| value(action.name(), match action {
    CallAction::Off => "None: the rule is only in prompts and at the start of sessions",
    CallAction::Note => "Tell the agent, and let the call run",
    CallAction::Ask => "Let the host ask you",
    CallAction::Deny => "Let the host refuse the call",
}));
values!(Direction: [Self::Push, Self::Pull], |way| match way {
    Direction::Push => value("push", "Send local records"),
    Direction::Pull | Direction::Both => value("pull", "Fetch records that others share"),
});
/// Returns a parser for agent hosts. A host answers to the name of its program too: `claude`, `gemini-cli`.
pub(crate) fn hosts(has_hooks: bool) -> impl TypedValueParser<Value = Host> {
    let hosts = Host::ALL
        .into_iter()
        .filter(move |host| !has_hooks || host.has_hooks());
    let values = hosts.map(|host| value(host.name(), host.title()).aliases(host.alias()));
    let none = "no agent host";
    PossibleValuesParser::new(values).try_map(move |name| Host::from_name(&name).ok_or(none))
}

/// Arguments of a command that has only the options of every command.
#[derive(Debug, Args)]
pub(crate) struct NoArgs {}

/// Settings of one agent host; of one with hooks if `HOOKS`.
#[derive(Debug, Args)]
pub(crate) struct HostArgs<const HOOKS: bool> {
    /// Agent host
    #[arg(value_parser = hosts(HOOKS))]
    pub(crate) host: Host,
    /// Use the settings of this project instead of yours
    #[arg(long)]
    pub(crate) project: bool,
}

/// Settings of one agent host, or of all.
#[derive(Debug, Args)]
pub(crate) struct HostsArgs<const HOOKS: bool> {
    /// Agent host; all of them by default
    #[arg(value_parser = hosts(HOOKS))]
    pub(crate) host: Option<Host>,
    /// Use the settings of this project instead of yours
    #[arg(long)]
    pub(crate) project: bool,
}
