//! Help: groups of commands, messages of the parser, suggestions for misspelt commands.
//!
//! `memctl --help` shows the commands that people type, on one screen. `memctl help --all` shows every
//! command with its subcommands.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory as _};

use crate::cli::arguments::without_memory;
use crate::cli::output::{Done, Printer, Verbatim, end};
use crate::cli::{Cli, written};
use crate::model::error::{Kind, UserError};

/// Maximum width of a description on the first page.
const ABOUT: usize = 63;

/// Groups of commands: those of the first page, and behind the bar those for programs and for rare
/// needs.
const GROUPS: [(&str, &str); 7] = [
    ("Start", "setup | init hooks hook statusline"),
    ("Skills", "run correct accept reject test |"),
    ("Learn", "learn lesson | hint record session"),
    ("Review", "review approve why undo stats watch |"),
    ("Memory", "search list show edit forget memory | index"),
    ("Share", "sync remote serve | mcp token"),
    (
        "Care",
        "doctor trust | config eval schema completions man help",
    ),
];

/// Options that every command takes, as the first page names them.
const OPTIONS: &str = "--json --root DIR --scope DOMAINS --user ID --quiet --no-color --version";

const EXIT_CODES: &str = "Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad input, 3 the store, \
    4 the model,\n5 not permitted, 6 the shared store, 7 no test could run, 70 an internal error, \
    74 input or output,\n130 interrupted.";

/// Adds the groups to the help of the program.
pub(crate) fn grouped(command: Command, all: bool) -> Command {
    let template = if all {
        let list = tree(&command);
        format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\n\
             {HEADING}Options:{PLAIN}\n{{options}}\n\n{EXIT_CODES}{{after-help}}"
        )
    } else {
        let list = page(&command);
        let about = command.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        format!(
            "{about}\n\n{{usage-heading}} {{usage}}\n\n{list}\n\
             {STRONG}Options{PLAIN} {OPTIONS}\n\
             {STRONG}All{PLAIN}     memctl help --all, memctl COMMAND --help{{after-help}}"
        )
    };
    command.help_template(StyledStr::from(template))
}

fn about(command: &Command, name: &str) -> String {
    let found = command.find_subcommand(name);
    let about = found.and_then(|sub| sub.get_about().map(ToString::to_string));
    about.unwrap_or_default()
}

/// Commands of the first page: the name of a group stands before its first command.
fn page(command: &Command) -> String {
    let mut text = String::new();
    for (group, commands) in GROUPS {
        let commands = commands.split('|').next().unwrap_or_default();
        for (place, name) in commands.split_whitespace().enumerate() {
            let heading = if place == 0 { group } else { "" };
            let about = end(&about(command, name), ABOUT);
            let line = format!(
                "{HEADING}{heading}{PLAIN}{:<width$}{STRONG}{name:<8}{PLAIN} {about}\n",
                "",
                width = 8 - heading.len(),
            );
            text.push_str(&line);
        }
    }
    text
}

/// All commands, each with its subcommands.
fn tree(command: &Command) -> String {
    let mut text = String::new();
    for (group, commands) in GROUPS {
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend([HEADING, group, ":", PLAIN, "\n"]);
        for name in commands.split_whitespace().filter(|name| *name != "|") {
            let about = about(command, name);
            let line = format!("  {STRONG}{name:<14}{PLAIN}  {about}\n");
            text.push_str(&line);
            if let Some(sub) = command.find_subcommand(name) {
                push_below(sub, name, &mut text);
            }
        }
    }
    text
}

fn push_below(command: &Command, path: &str, text: &mut String) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let path = format!("{path} {}", sub.get_name());
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let line = format!("    {path:<20}  {about}\n");
        text.push_str(&line);
        push_below(sub, &path, text);
    }
}

/// Style of clap's own headings.
const HEADING: &str = "\u{1b}[1m\u{1b}[4m";
const STRONG: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

/// Show the help of a command, or all commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl help --all\n  memctl help memory export")]
pub(crate) struct HelpArgs {
    /// Command, as words
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// List every command with its subcommands
    #[arg(long)]
    all: bool,
}

pub(crate) fn help(args: &HelpArgs, program: Command) -> Done {
    let mut program = grouped(program, args.all);
    program.build();
    let mut command = &mut program;
    for word in without_memory(&args.command) {
        if command.find_subcommand(word).is_none() {
            let similar = meant(command, word);
            let hint = similar.first().map_or("help --all", |path| path.as_str());
            let hint = format!("memctl {}", hint.trim_start_matches("memctl "));
            return Err(UserError::usage(format!("no command `{word}`"), hint));
        }
        command = command
            .find_subcommand_mut(word)
            .ok_or_else(|| UserError::usage(format!("no command `{word}`"), "memctl help --all"))?;
    }
    let text = command.render_long_help().to_string();
    Ok(Box::new(Verbatim::new(text)))
}

/// Minimum similarity of a name, from 0 to 1 (Jaro–Winkler).
const SIMILAR: f64 = 0.8;
/// Maximum number of suggestions.
const MAX: usize = 3;

/// Words of other programs, with the command that does it here.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("uninstall", "setup --undo"),
    ("install", "setup"),
    ("delete", "forget ID"),
    ("remove", "forget ID"),
    ("rm", "forget ID"),
    ("remember", "correct \"…\""),
    ("rules", "list rules"),
    ("lessons", "list lessons"),
    ("notes", "list notes"),
    ("version", "--version"),
    ("on", "memory enable"),
    ("off", "memory disable"),
];

/// Returns the commands, with their path, that a person may have meant by `typed`: those of exactly
/// this name, or else the most similar ones.
pub(crate) fn meant(program: &Command, typed: &str) -> Vec<String> {
    if let Some((_, command)) = OTHER_WORDS.iter().find(|(word, _)| *word == typed) {
        return vec![format!("memctl {command}")];
    }
    let mut found = Vec::new();
    collect(program, "", typed, &mut found);
    let exact: Vec<(f64, String)> = found
        .iter()
        .filter(|(score, _)| *score >= 1.0)
        .cloned()
        .collect();
    let mut found = if exact.is_empty() { found } else { exact };
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.len().cmp(&b.1.len())));
    found.truncate(MAX);
    found.into_iter().map(|(_, path)| path).collect()
}

fn collect(command: &Command, above: &str, typed: &str, found: &mut Vec<(f64, String)>) {
    let path = format!("{above}{}", command.get_name());
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let score = strsim::jaro_winkler(sub.get_name(), typed);
        if score >= SIMILAR && sub.get_name() != "help" {
            found.push((score, format!("{path} {}", sub.get_name())));
        }
        collect(sub, &format!("{path} "), typed, found);
    }
}

/// Prints help and versions as results, and every other message of clap as wrong usage.
pub(crate) fn refuse(error: &clap::Error, arguments: &[OsString], plain: bool) -> ExitCode {
    let printer = Printer::new(arguments.iter().any(|a| a == "--json"), false, plain);
    if !error.use_stderr() {
        let text = error.render();
        printer.write(&if plain {
            text.to_string()
        } else {
            styled(&text)
        });
        return ExitCode::from(written(&printer).unwrap_or(0));
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        if !printer.is_json() {
            printer.note(&text);
        }
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
        let hint = usage.map_or("memctl --help".to_owned(), |usage| {
            format!("usage: {usage}")
        });
        printer.error(&UserError::usage("a command is required", hint));
        return ExitCode::from(Kind::Usage.code());
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        printer.error(&unknown_command(typed));
        return ExitCode::from(Kind::Usage.code());
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim();
    let (message, usage) = text.split_once("\n\nUsage:").unwrap_or((text, ""));
    let message = message.split("\n\nFor more").next().unwrap_or_default();
    let usage = usage.split("\n\n").next().unwrap_or_default().trim();
    let (message, hint) = match similar(error) {
        // The hint says it instead of clap's tip.
        Some(similar) => (
            message.split("\n\n  tip:").next().unwrap_or_default(),
            format!("did you mean `{similar}`?"),
        ),
        None if usage.is_empty() => (message, "memctl --help".to_owned()),
        None => (message, format!("usage: {usage}")),
    };
    printer.error(&UserError::usage(message.trim(), hint));
    ExitCode::from(Kind::Usage.code())
}

/// The option or value that clap takes for the one that was meant.
fn similar(error: &clap::Error) -> Option<&String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(similar)) => Some(similar),
        _ => None,
    })
}

/// Error for a command that does not exist, with those that may be meant.
fn unknown_command(typed: &str) -> UserError {
    let meant = meant(&Cli::command(), typed);
    let hint = if meant.is_empty() {
        "memctl help --all".to_owned()
    } else {
        format!(
            "did you mean {}?",
            meant
                .iter()
                .map(|path| format!("`{path}`"))
                .collect::<Vec<_>>()
                .join(" or ")
        )
    };
    UserError::usage(format!("no command `{}`", typed.escape_debug()), hint)
}

fn styled(text: &StyledStr) -> String {
    use std::io::IsTerminal as _;
    if std::io::stdout().is_terminal() {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let commands: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        let listed = GROUPS.iter().flat_map(|(_, all)| all.split_whitespace());
        let listed: Vec<&str> = listed.filter(|name| *name != "|").collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(listed.len(), commands.len());
    }

    #[test]
    fn the_first_page_fits_a_screen() {
        let mut program = grouped(Cli::command(), false);
        let text = program.render_help().to_string();
        assert!(text.lines().count() <= 40, "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn command_of_any_level_is_found_by_its_name_or_a_similar_one() {
        let check = |typed: &str, expected: &str| {
            let found = meant(&Cli::command(), typed);
            assert_eq!(found.first().map(String::as_str), Some(expected), "{typed}");
        };
        check("serch", "memctl search");
        check("aprove", "memctl approve");
        check("uninstall", "memctl setup --undo");
        check("conflcts", "memctl memory conflicts");
        assert!(meant(&Cli::command(), "zzz").is_empty());
    }
}
