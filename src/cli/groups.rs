//! Groups of commands in the help, and the commands that the first page shows.
//!
//! `memctl --help` shows the commands of a usual day. `memctl help --all` shows every command.

use clap::Command;
use clap::builder::StyledStr;

/// Commands of a group. The first page shows those of `first`.
struct Group {
    name: &'static str,
    first: &'static [&'static str],
    others: &'static [&'static str],
}

const GROUPS: [Group; 7] = [
    Group {
        name: "Start",
        first: &["setup", "init"],
        others: &[],
    },
    Group {
        name: "Skills",
        first: &["run", "correct", "accept", "reject", "test"],
        others: &[],
    },
    Group {
        name: "Learn",
        first: &["learn"],
        others: &["lesson", "hint", "record", "hooks", "hook"],
    },
    Group {
        name: "Review",
        first: &["review", "stats"],
        others: &["watch", "statusline"],
    },
    Group {
        name: "Memory",
        first: &["search", "list", "show", "undo", "memory"],
        others: &["why", "edit", "forget", "status", "session"],
    },
    Group {
        name: "Share",
        first: &[],
        others: &["sync", "remote", "serve", "mcp", "token"],
    },
    Group {
        name: "Admin",
        first: &[],
        others: &[
            "doctor", "config", "index", "eval", "trust", "schema", "completions", "man", "help",
        ],
    },
];

/// Adds the groups to the help of the program.
pub(super) fn grouped(command: Command, all: bool) -> Command {
    let list = list(&command, all);
    let more = if all {
        ""
    } else {
        "\nmemctl help --all  shows every command.\n"
    };
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{more}\n\
         {HEADING}Options:{PLAIN}\n{{options}}{{after-help}}"
    );
    super::related::named(command).help_template(StyledStr::from(template))
}

fn list(command: &Command, all: bool) -> String {
    let about = |name: &str| {
        let mut commands = command.get_subcommands();
        let found = commands.find(|sub| sub.get_name() == name);
        found.and_then(|sub| sub.get_about().map(ToString::to_string))
    };
    let mut text = String::new();
    for group in &GROUPS {
        let others = if all { group.others } else { &[] };
        let names: Vec<&str> = group.first.iter().chain(others).copied().collect();
        if names.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend([HEADING, group.name, ":", PLAIN, "\n"]);
        for name in names {
            let about = about(name).unwrap_or_default();
            text.push_str(&format_line(name, &about));
        }
    }
    text
}

/// Style of clap's own headings.
const HEADING: &str = "\u{1b}[1m\u{1b}[4m";
const STRONG: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

fn format_line(name: &str, about: &str) -> String {
    format!("  {STRONG}{name:<12}{PLAIN}  {about}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = crate::cli::Cli::command();
        let commands: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.first.iter().chain(group.others))
            .copied()
            .collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(listed.len(), commands.len());
        let first = GROUPS.iter().map(|group| group.first.len()).sum::<usize>();
        assert_eq!(first, 15);
    }
}
