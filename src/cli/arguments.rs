//! Options of every command, and values of options that name a kind, a type, a trust level, a host, a text or a
//! document.
//!
//! An option is parsed into the type of the records. This file adds the plurals and the
//! descriptions that only the command line has.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use memctl_files::named;
use memctl_files::text::decoded;
use serde_json::value::{RawValue, to_raw_value};

use crate::cli::context::Context;
use crate::host::Host;
use crate::model::error::UserError;
use crate::model::{CallAction, Kind, MemoryType, Trust};
use crate::remote::Direction;
use crate::store::workspace::Error;

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

/// Maximum size of a text from standard input or a file: 16 MiB.
const MAX_GIVEN: u64 = 16 << 20;

impl Context {
    /// Returns the given text, or standard input for `-`.
    pub(crate) fn text(&self, given: &str) -> Result<String, UserError> {
        if given == "-" {
            self.read(Path::new("-"))
        } else {
            Ok(given.to_owned())
        }
    }

    /// Fails if two options read standard input, which can be read only once.
    pub(crate) fn one_from_input(given: [(&str, Option<&str>); 2]) -> Result<(), UserError> {
        let [(a, _), (b, _)] = given;
        if given.iter().any(|(_, given)| *given != Some("-")) {
            return Ok(());
        }
        Err(UserError::usage(
            format!("only one of `{a}` and `{b}` can read standard input"),
            "pass the other as an argument",
        ))
    }

    /// Reads JSON given as text, as `@FILE`, or as `-` for standard input.
    pub(crate) fn json_of(
        &self,
        flag: &str,
        given: Option<&str>,
    ) -> Result<Option<Box<RawValue>>, UserError> {
        let Some(given) = given else {
            return Ok(None);
        };
        let file = given.strip_prefix('@').or((given == "-").then_some(given));
        if let Some(file) = file {
            return self.json(Path::new(file)).map(Some);
        }
        let json = serde_json::from_str(given.trim()).map_err(|error| {
            UserError::input(
                format!("`{flag}` is not JSON: {error}"),
                format!("put it in single quotes: {flag} '{{\"name\": \"…\"}}'"),
            )
        });
        json.map(Some)
    }

    /// Reads a JSON document from a file, or from standard input for `-`.
    pub(crate) fn json(&self, path: &Path) -> Result<Box<RawValue>, UserError> {
        parsed(path, self.read(path)?.trim())
    }

    /// Reads the input of a skill, if a file is given. Text that does not begin like a JSON document becomes
    /// `{"input": "…"}`, except in a file whose name says that it is JSON.
    pub(crate) fn input(&self, path: Option<&Path>) -> Result<Option<Box<RawValue>>, UserError> {
        let Some(path) = path else {
            return Ok(None);
        };
        let text = self.read(path)?;
        let text = text.trim();
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        match parsed(path, text) {
            Err(_) if !is_json && !text.is_empty() && !text.starts_with(['{', '[', '"']) => {
                Ok(Some(to_raw_value(&serde_json::json!({ "input": text }))?))
            }
            read => read.map(Some),
        }
    }

    /// Reads the text of a file, or of standard input for `-`.
    pub(crate) fn read(&self, path: &Path) -> Result<String, UserError> {
        let unreadable = |source| {
            let path = path.to_owned();
            let error = UserError::from(Error::Unreadable { path, source });
            error.with_hint("name a file that can be read, or `-` for standard input")
        };
        let mut bytes = Vec::new();
        let mut input: Box<dyn Read> = if path == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(named::open(&self.environment.absolute(path)).map_err(unreadable)?)
        };
        let read = input.by_ref().take(MAX_GIVEN + 1).read_to_end(&mut bytes);
        read.map_err(unreadable)?;
        if bytes.len() as u64 > MAX_GIVEN {
            return Err(unreadable(invalid("larger than 16 MiB")));
        }
        decoded(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            unreadable(invalid(&format!("not valid UTF-8 at byte {at}")))
        })
    }
}

fn parsed(path: &Path, text: &str) -> Result<Box<RawValue>, UserError> {
    if text.is_empty() {
        let message = format!("`{}` is empty", path.display());
        return Err(UserError::input(
            message,
            "give JSON, such as {\"text\": \"…\"}, or a text",
        ));
    }
    serde_json::from_str(text).map_err(|error| Error::not_json(path, &error).into())
}

/// Error about the content of a file that the user named.
fn invalid(reason: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}
