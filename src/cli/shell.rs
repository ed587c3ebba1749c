//! For shells: completion of commands, skills and record ids, and manual pages.
//!
//! The script of `memctl completions` calls the program with the words typed so far after `--`, and
//! the shell's name in [`VARIABLE`]. Commands, options and their fixed values come from the parser;
//! this module adds what the workspace holds.
//!
//! A completion never fails and never writes records. Ids of memories and sessions are left out,
//! because reading those is an audited access. Text of records is stripped of control characters:
//! shells would obey them, and they separate the candidates.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use memctl_files::named;

use crate::cli::arguments::Global;
use crate::cli::config::Environment;
use crate::cli::context::Context;
use crate::cli::output::printer::Printer;
use crate::cli::output::text::{clean, end};
use crate::cli::output::{Done, Verbatim};
use crate::model::Kind;
use crate::model::error::UserError;
use crate::notes;
use crate::store::skill::Skills;

/// Variable with the name of the shell that asks.
pub(crate) const VARIABLE: &str = "MEMCTL_COMPLETE";

/// Newest records of a kind that are candidates.
const NEWEST: usize = 50;
/// Width of the text beside a candidate.
const WIDTH: usize = 60;
/// Kinds whose ids are candidates.
const KINDS: [Kind; 4] = [
    Kind::Reflexion,
    Kind::Procedure,
    Kind::Correction,
    Kind::Execution,
];

/// Returns the script that makes a shell ask; `None` for a shell that is not supported.
pub(crate) fn script(shell: &str) -> Option<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(shell)?;
    shell
        .write_registration(VARIABLE, "memctl", "memctl", "memctl", &mut script)
        .ok()?;
    String::from_utf8(script).ok()
}

/// Returns the candidates for the last word, in the form of the shell that asks; `None` if no shell
/// asks.
pub(crate) fn answer(
    arguments: &[OsString],
    environment: &Environment,
    command: fn() -> Command,
) -> Option<String> {
    let shell = environment.var(VARIABLE)?.clone();
    let words = match arguments {
        [_, dashes, words @ ..] if dashes == "--" => words.to_vec(),
        _ => return None,
    };
    let shells = Shells::builtins();
    // A message would appear in the command line of the user.
    let Some(shell) = shells.completer(&shell) else {
        return Some(String::new());
    };
    let source = Arc::new(Source {
        environment: environment.clone(),
        root: root(&words),
    });
    let mut command = with_candidates(command(), &source);
    command.build();
    let mut answer = Vec::new();
    let directory = Some(environment.current_dir.as_path());
    let written = shell.write_complete(&mut command, words, directory, &mut answer);
    // An incomplete line may be no command at all.
    Some(match written {
        Ok(()) => String::from_utf8_lossy(&answer).into_owned(),
        Err(_) => String::new(),
    })
}

/// Directory of `--root` among the words.
fn root(words: &[OsString]) -> Option<PathBuf> {
    let at = words.iter().position(|word| word == "--root")?;
    words.get(at + 1).map(PathBuf::from)
}

/// Adds candidates to the arguments that name skills and records.
fn with_candidates(command: Command, source: &Arc<Source>) -> Command {
    let name = command.get_name().to_owned();
    // Ids of sessions, users and agent hosts are none of records.
    if matches!(name.as_str(), "session" | "remote" | "hook" | "mcp") {
        return command;
    }
    command
        .mut_args(|arg| candidates_of(arg, &name, source))
        .mut_subcommands(|below| with_candidates(below, source))
}

fn candidates_of(arg: Arg, command: &str, source: &Arc<Source>) -> Arg {
    let source = Arc::clone(source);
    match (arg.get_id().as_str(), command) {
        ("skill", _) => arg.add(ArgValueCandidates::new(move || source.skills())),
        ("id", "accept") | ("execution_id", _) => arg.add(ArgValueCandidates::new(move || {
            source.records(&[Kind::Execution])
        })),
        ("id", "reject") => arg.add(ArgValueCandidates::new(move || {
            source.records(&[Kind::Execution, Kind::Reflexion, Kind::Procedure])
        })),
        ("rules", "reject") | ("merge" | "keep_both", _) => {
            arg.add(ArgValueCandidates::new(move || {
                source.records(&[Kind::Reflexion])
            }))
        }
        ("id" | "ids" | "record", _) => {
            arg.add(ArgValueCandidates::new(move || source.records(&KINDS)))
        }
        _ => arg,
    }
}

/// Workspace that candidates come from. It is opened when a word needs it.
struct Source {
    environment: Environment,
    root: Option<PathBuf>,
}

impl Source {
    fn context(&self) -> Context {
        let global = Global {
            json: false,
            root: self.root.clone(),
            scope: None,
            store: Some("json".to_owned()),
            user: None,
            quiet: true,
            no_color: true,
            verbose: false,
        };
        let printer = Printer::new(false, true, true);
        Context::new(
            self.environment.clone(),
            &global,
            printer,
            "complete".to_owned(),
        )
    }

    fn skills(&self) -> Vec<CompletionCandidate> {
        let context = self.context();
        let listed = Skills::open(&context.places.skills).and_then(|skills| skills.list());
        let skills = listed.map(|listed| listed.skills).unwrap_or_default();
        let names = skills.iter().map(ToString::to_string);
        names.filter_map(|name| candidate(&name, "")).collect()
    }

    /// Newest records of these kinds. A kind that cannot be read has none.
    fn records(&self, kinds: &[Kind]) -> Vec<CompletionCandidate> {
        let context = self.context();
        if context.off.is_some() {
            return Vec::new();
        }
        let Ok(workspace) = context.workspace_of_user(None) else {
            return Vec::new();
        };
        let lists = kinds
            .iter()
            .filter_map(|kind| notes::list(&workspace, *kind, None, None, NEWEST).ok());
        lists
            .flat_map(|list| list.records)
            .filter_map(|record| candidate(&record.id, &record.summary))
            .collect()
    }
}

/// Candidate with its text; `None` for a name that a shell would take apart.
fn candidate(name: &str, text: &str) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.+/@".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return None;
    }
    let words: Vec<String> = clean(text)
        .split(|c: char| c.is_whitespace() || c.is_control())
        .map(str::to_owned)
        .filter(|word| !word.is_empty())
        .collect();
    let text = end(&words.join(" "), WIDTH);
    let help = (!text.is_empty()).then(|| StyledStr::from(text));
    Some(CompletionCandidate::new(name).help(help))
}

/// Print a completion script for a shell
///
/// The script asks this program: it completes commands, options and their values, skills, and ids of
/// rules, lessons, corrections and executions. Start a new shell after installing it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl completions bash > ~/.local/share/bash-completion/completions/memctl\n  \
    memctl completions zsh > \"${fpath[1]}/_memctl\"\n  \
    memctl completions fish > ~/.config/fish/completions/memctl.fish"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Done {
    let shell = args.shell.to_string();
    match script(&shell) {
        Some(script) => Ok(Box::new(Verbatim::new(script))),
        None => Err(UserError::usage(
            format!("no completion for `{shell}`"),
            "memctl completions bash",
        )),
    }
}

/// Print the manual page, or write one for each command
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl man | man -l -\n  memctl man --dir ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this existing directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, command: &Command) -> Done {
    if let Some(dir) = &args.dir {
        if !named::is_dir(dir) {
            return Err(UserError::usage(
                format!("`{}` is not a directory", dir.display()),
                format!("mkdir -p {}", dir.display()),
            ));
        }
        clap_mangen::generate_to(command.clone(), dir)?;
        return Ok(Box::new(Verbatim::new(format!(
            "written to {}",
            dir.display()
        ))));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(Box::new(Verbatim::new(
        String::from_utf8_lossy(&page).into_owned(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidate_holds_nothing_that_a_shell_obeys() {
        let check = |name: &str, text: &str, expected: Option<&str>| {
            let made = candidate(name, text);
            let help = made.map(|c| c.get_help().map(ToString::to_string).unwrap_or_default());
            assert_eq!(help.as_deref(), expected, "{name:?}");
        };
        check("REFL-001", "Be  calm.\nAlways.", Some("Be calm. Always."));
        check("REFL-001", "a\tb\u{b}c\u{1b}[31md\u{7}", Some("a bcd"));
        check("REFL-001", "", Some(""));
        for name in [
            "", "-x", "a b", "$(id)", "a\nb", "a;b", "`id`", "a\u{1b}b", "a\u{202e}b",
        ] {
            check(name, "x", None);
        }
    }
}
