//! Help: groups of commands, messages of the parser, suggestions for misspelt commands.
//!
//! `memctl --help` shows the commands that people type, on one screen. `memctl help --all` shows every
//! command with its subcommands.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::builder::{Resettable, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command};

use crate::cli::output::{Done, Printer, Verbatim, end};
use crate::model::SkillPath;
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
    ("Care", "doctor trust | config schema completions man help"),
];

/// Options that every command takes, as the first page names them.
const OPTIONS: &str = "--json --root DIR --scope DOMAINS --user ID --quiet --no-color --version";

const EXIT_CODES: &str = "Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad input, 3 the store, \
    4 the model,\n5 not permitted, 6 the shared store, 7 no test could run, 70 an internal error, \
    74 input or output,\n130 interrupted.";

/// Adds the groups and the examples to the help of the program.
pub(crate) fn grouped(command: Command, all: bool) -> Command {
    let command = with_examples(command);
    let list = list(&command, all);
    let template = if all {
        format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\n\
             {HEADING}Options:{PLAIN}\n{{options}}\n\n{EXIT_CODES}{{after-help}}"
        )
    } else {
        format!(
            "{}\n\n{{usage-heading}} {{usage}}\n\n{list}\n\
             {STRONG}Options{PLAIN} {OPTIONS}\n\
             {STRONG}All{PLAIN}     memctl help --all, memctl COMMAND --help{{after-help}}",
            about(&command)
        )
    };
    command.help_template(StyledStr::from(template))
}

/// Moves the examples of each command, a block of code in its documentation, to the end of its help.
fn with_examples(command: Command) -> Command {
    let command = command.mut_subcommands(with_examples);
    let long = command.get_long_about().map(ToString::to_string);
    let Some((text, examples)) = long.as_deref().and_then(|long| long.split_once(CODE)) else {
        return command;
    };
    // The parser joins the lines of a paragraph.
    let examples = examples.trim_end_matches('`').trim_end();
    let examples = examples.replace(" $ ", "\n  ").replace(" \\ ", " \\\n    ");
    let end = format!("Examples:{examples}");
    let text = (text != about(&command)).then(|| StyledStr::from(text.to_owned()));
    command.long_about(Resettable::from(text)).after_help(end)
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

/// Commands by their groups: those of the first page, with the name of a group before its first command, or all,
/// each with its subcommands.
fn list(command: &Command, all: bool) -> String {
    let mut lines = Vec::new();
    for (group, names) in GROUPS {
        let (first, more) = names.split_once('|').unwrap_or((names, ""));
        if all {
            lines.push(format!("{HEADING}{group}:{PLAIN}"));
        }
        let more = if all { more } else { "" };
        let names = first.split_whitespace().chain(more.split_whitespace());
        let subs = names.filter_map(|name| command.find_subcommand(name));
        for (place, sub) in subs.enumerate() {
            let (name, about) = (sub.get_name(), about(sub));
            if all {
                lines.push(format!("  {STRONG}{name:<14}{PLAIN}  {about}"));
                lines.extend(below(sub, name));
            } else {
                let group = if place == 0 { group } else { "" };
                let space = " ".repeat(8 - group.len());
                let about = end(&about, ABOUT);
                let heading = format!("{HEADING}{group}{PLAIN}{space}");
                lines.push(format!("{heading}{STRONG}{name:<8}{PLAIN} {about}"));
            }
        }
        if all {
            lines.push(String::new());
        }
    }
    lines.join("\n") + if all { "" } else { "\n" }
}

fn below(command: &Command, path: &str) -> Vec<String> {
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let lines = subs.flat_map(|sub| {
        let path = format!("{path} {}", sub.get_name());
        let line = format!("    {path:<20}  {}", about(sub));
        [vec![line], below(sub, &path)].concat()
    });
    lines.collect()
}

/// Beginning of the examples in the documentation of a command.
const CODE: &str = "\n\n```console";

/// Style of clap's own headings.
const HEADING: &str = "\u{1b}[1m\u{1b}[4m";
const STRONG: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

/// Show the help of a command, or all commands
///
/// `memctl help COMMAND` is `memctl COMMAND --help`.
///
/// ```console
/// $ memctl help --all
/// $ memctl help memory export
/// ```
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// List every command with its subcommands
    #[arg(long)]
    all: bool,
}

/// Returns all commands. The page of a command is that of its `--help`.
#[expect(clippy::unnecessary_wraps, reason = "a command like any other")]
pub(crate) fn help(args: &HelpArgs, program: Command) -> Done<Verbatim> {
    let mut program = grouped(program, args.all);
    let text = program.render_long_help().to_string();
    Ok(Verbatim { text })
}

/// Minimum similarity of the name of a command, from 0 to 1 (Jaro–Winkler).
const SIMILAR: f64 = 0.8;
/// Likeness for a command below another: there are many, and any word is like one of them.
const SIMILAR_BELOW: f64 = 0.92;
/// Maximum number of suggestions.
const MAX: usize = 3;

/// Commands with a text, whose quotes are easily forgotten.
const WITH_TEXT: [&str; 4] = ["correct", "search", "edit", "lesson add"];

/// Returns the commands, with their path, that a person may have meant by `typed`: those of exactly
/// this name, or else the most similar ones.
fn meant(program: &Command, typed: &str) -> Vec<String> {
    let mut found = similar_below(program, "memctl", typed);
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.len().cmp(&b.1.len())));
    if found.first().is_some_and(|(score, _)| *score >= 1.0) {
        found.retain(|(score, _)| *score >= 1.0);
    }
    found.into_iter().map(|(_, path)| path).take(MAX).collect()
}

fn similar_below(command: &Command, path: &str, typed: &str) -> Vec<(f64, String)> {
    let least = if path == "memctl" {
        SIMILAR
    } else {
        SIMILAR_BELOW
    };
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let found = subs.flat_map(|sub| {
        let path = format!("{path} {}", sub.get_name());
        let mut found = similar_below(sub, &path, typed);
        let score = strsim::jaro_winkler(sub.get_name(), typed);
        if score >= least && sub.get_name() != "help" {
            found.push((score, path));
        }
        found
    });
    found.collect()
}

/// Prints help and versions as results, and every other message of clap as wrong usage.
pub(crate) fn refuse(
    error: &clap::Error,
    arguments: &[OsString],
    plain: bool,
    program: fn() -> Command,
) -> ExitCode {
    let printer = Printer::new(arguments.iter().any(|a| a == "--json"), false, plain);
    let rendered = error.render();
    let text = rendered.to_string();
    if !error.use_stderr() {
        let has_style = !plain && std::io::stdout().is_terminal();
        printer.write(&if has_style {
            rendered.ansi().to_string()
        } else {
            text
        });
        return ExitCode::from(printer.written().unwrap_or(0));
    }
    let refusal = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        if !printer.is_json() {
            printer.note(&text);
        }
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
        let hint = usage.map_or("memctl --help".to_owned(), |usage| {
            format!("usage: {usage}")
        });
        UserError::usage("a command is required", hint)
    } else if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        unknown_command(typed, &program())
    } else {
        wrong_usage(error, &text, arguments, &program())
    };
    printer.error(&refusal);
    ExitCode::from(Kind::Usage.code())
}

/// The typed command, and its names behind each other.
fn typed_command<'a>(program: &'a Command, arguments: &[OsString]) -> (&'a Command, String) {
    let (mut command, mut path) = (program, Vec::new());
    for word in arguments.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(sub) = command.find_subcommand(word) {
            path.push(sub.get_name());
            command = sub;
        }
    }
    (command, path.join(" "))
}

/// Takes the message out of a message of clap, and says the way out in the words of this program.
fn wrong_usage(
    error: &clap::Error,
    text: &str,
    arguments: &[OsString],
    program: &Command,
) -> UserError {
    let text = text.strip_prefix("error: ").unwrap_or(text).trim();
    let (message, usage) = text.split_once("\n\nUsage:").unwrap_or((text, ""));
    let until = |text: &str, end| text.split(end).next().unwrap_or_default().trim().to_owned();
    let (message, usage) = (until(message, "\n\nFor more"), until(usage, "\n\n"));
    // The hint says it instead of clap's tip.
    let message = until(&message, "\n\n  tip:");
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(given)) => Some(given.as_str()),
        _ => None,
    };
    let (command, path) = typed_command(program, arguments);
    let typed =
        given(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    let has = |name: &str| {
        command
            .get_arguments()
            .any(|one| one.get_long() == Some(name))
    };
    // The option or value that clap takes for the one that was meant.
    let similar = given(ContextKind::SuggestedArg).or(given(ContextKind::SuggestedValue));
    let skill = typed.filter(|typed| typed.parse::<SkillPath>().is_ok() && has("skill"));
    let hint = if let Some(skill) = skill {
        format!("did you mean `--skill {skill}`?")
    } else if let Some(similar) = similar {
        format!("did you mean `{similar}`?")
    } else if typed.is_some_and(|typed| !typed.starts_with('-')) && WITH_TEXT.contains(&&*path) {
        format!("put the text between quotes: memctl {path} \"…\"")
    } else if usage.is_empty() {
        format!("{} --help", ["memctl", &path].join(" ").trim_end())
    } else {
        format!("usage: {usage}")
    };
    UserError::usage(message, hint)
}

/// Way to change a setting.
pub(crate) const SET: &str =
    "a setting is a line of `.agentura/config.toml`, such as learning.ask = \"off\"";

/// Error for a command that does not exist, with those that may be meant.
fn unknown_command(typed: &str, program: &Command) -> UserError {
    let hint = match meant(program, typed).join("` or `") {
        _ if typed == "set" => SET.to_owned(),
        none if none.is_empty() => "memctl help --all".to_owned(),
        meant => format!("did you mean `{meant}`?"),
    };
    UserError::usage(format!("no command `{}`", typed.escape_debug()), hint)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;
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
        check("lear", "memctl learn");
        check("conflcts", "memctl memory conflicts");
        for unlike in ["zzz", "login"] {
            assert!(meant(&Cli::command(), unlike).is_empty(), "{unlike}");
        }
        let check = |line: &str, expected: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(typed_command(&Cli::command(), &words).1, expected);
        };
        check("memctl --limit 0", "");
        check("memctl --json list --limit 0 rules", "list");
        check("memctl memory add x --type y", "memory add");
    }
}
