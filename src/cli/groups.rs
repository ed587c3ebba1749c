//! Groups of commands in the help.
//!
//! `memctl --help` shows the commands that people type, on one screen. `memctl help --all` shows every
//! command with its subcommands.

use clap::Command;
use clap::builder::StyledStr;

use super::output::end;

/// Maximum width of a description on the first page.
const ABOUT: usize = 63;

/// Commands of a group.
struct Group {
    name: &'static str,
    commands: &'static [&'static str],
    /// Commands for programs and for rare needs, which the first page leaves out.
    others: &'static [&'static str],
}

const GROUPS: [Group; 7] = [
    Group {
        name: "Start",
        commands: &["setup"],
        others: &["init", "hooks", "hook", "statusline"],
    },
    Group {
        name: "Skills",
        commands: &["run", "correct", "accept", "reject", "test"],
        others: &[],
    },
    Group {
        name: "Learn",
        commands: &["learn", "lesson"],
        others: &["hint", "record", "session"],
    },
    Group {
        name: "Review",
        commands: &["review", "approve", "why", "undo", "stats", "watch"],
        others: &[],
    },
    Group {
        name: "Memory",
        commands: &["search", "list", "show", "edit", "forget", "memory"],
        others: &["index"],
    },
    Group {
        name: "Share",
        commands: &["sync", "remote", "serve"],
        others: &["mcp", "token"],
    },
    Group {
        name: "Care",
        commands: &["doctor", "trust"],
        others: &["config", "eval", "schema", "completions", "man", "help"],
    },
];

/// Options that every command takes, as the first page names them.
const OPTIONS: &str = "--json --root DIR --scope DOMAINS --user ID --quiet --no-color --version";

const EXIT_CODES: &str = "Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad input, 3 the store, \
    4 the model,\n5 not permitted, 6 the shared store, 7 no test could run, 70 an internal error, \
    74 input or output,\n130 interrupted.";

/// Adds the groups to the help of the program.
pub(super) fn grouped(command: Command, all: bool) -> Command {
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
    for group in &GROUPS {
        for (place, name) in group.commands.iter().enumerate() {
            let heading = if place == 0 { group.name } else { "" };
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
    for group in &GROUPS {
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend([HEADING, group.name, ":", PLAIN, "\n"]);
        for name in group.commands.iter().chain(group.others) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = crate::cli::program();
        let commands: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.commands.iter().chain(group.others))
            .copied()
            .collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(listed.len(), commands.len());
    }

    #[test]
    fn the_first_page_fits_a_screen() {
        let mut program = grouped(crate::cli::program(), false);
        let text = program.render_help().to_string();
        assert!(text.lines().count() <= 40, "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
