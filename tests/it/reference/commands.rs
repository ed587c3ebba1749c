//! Page of all commands, from their help.

use std::collections::BTreeSet;

use super::assert_kept;
use crate::workspace::Workspace;

/// Help page in parts.
struct Help {
    /// What the command does: one line, then paragraphs.
    about: String,
    /// Usage, arguments and options, as printed.
    usage: String,
    examples: Vec<String>,
    /// What follows the examples.
    rest: String,
}

fn parts(help: &str) -> Help {
    let (about, rest) = help.split_once("\nUsage: ").unwrap();
    // Options that every command has are listed once.
    let (usage, after) = rest.split_once("\nEverywhere:\n").unwrap();
    let after = after.find("\nExamples:\n").map_or("", |at| &after[at..]);
    let mut lines = Vec::new();
    let mut skips = false;
    for line in usage.lines() {
        let is_option = line.starts_with("  -") || line.starts_with("      --");
        let is_of_all = line.contains("-h, --help") || line.contains("-V, --version");
        if is_option || !line.starts_with(' ') && !line.is_empty() {
            // Subcommands have sections of their own.
            skips = is_of_all || line == "Commands:";
        }
        if !skips {
            lines.push(line.trim_end());
        }
    }
    let mut usage = lines.join("\n").trim_end().to_owned();
    if let Some(without) = usage.strip_suffix("\n\nOptions:") {
        usage = without.to_owned();
    }
    let mut examples: Vec<String> = Vec::new();
    let mut rest = Vec::new();
    let mut is_example = false;
    let mut goes_on = false;
    for line in after.lines() {
        if line == "Example:" || line == "Examples:" {
            is_example = true;
        } else if is_example && !line.is_empty() {
            let line = line.trim();
            match examples.last_mut() {
                Some(last) if goes_on => last.push_str(&format!("\n    {line}")),
                _ => examples.push(line.to_owned()),
            }
            goes_on = line.ends_with('\\');
        } else {
            is_example = false;
            rest.push(line);
        }
    }
    Help {
        about: about.trim().to_owned(),
        usage: format!("Usage: {usage}"),
        examples,
        rest: rest.join("\n").trim().to_owned(),
    }
}

/// Heads of lists of values, as `--help` prints them.
const VALUES: &str = "          Possible values:\n";

/// Text in which a list of values that stands in `seen` is only named.
fn without_repeated_values(text: &str, seen: &mut BTreeSet<String>) -> String {
    let mut pieces = text.split(VALUES);
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find("\n\n").unwrap_or(piece.len());
        let (list, rest) = piece.split_at(end);
        if seen.insert(list.to_owned()) {
            shown.push_str(VALUES);
            shown.push_str(list);
        } else {
            shown.push_str("          Possible values: as above");
        }
        shown.push_str(rest);
    }
    shown
}

fn section(level: &str, name: &str, help: &str, seen: &mut BTreeSet<String>) -> String {
    let help = parts(help);
    let (line, more) = help.about.split_once("\n\n").unwrap_or((&help.about, ""));
    let mut text = format!("{level} {name}\n\n{line}.\n\n");
    if !more.is_empty() {
        text.push_str(&format!("{more}\n\n"));
    }
    let usage = without_repeated_values(&help.usage, seen);
    text.push_str(&format!("```text\n{usage}\n```\n\n"));
    let examples: Vec<String> = help.examples.iter().map(|e| format!("$ {e}")).collect();
    text.push_str(&format!("```console\n{}\n```\n", examples.join("\n")));
    if !help.rest.is_empty() {
        text.push_str(&format!("\n```text\n{}\n```\n", help.rest));
    }
    text
}

#[test]
fn page_of_commands_is_the_help_of_the_program() {
    let workspace = Workspace::empty();
    let pages = crate::help::pages(&workspace);
    let all = workspace.run(&["help", "--all"]).succeeds().stdout.clone();
    let (groups, options) = all.split_once("\nOptions:\n").unwrap();
    let (options, _) = options.split_once("\nExit codes:").unwrap();
    let mut page = format!(
        "# Commands\n\n\
         `memctl --help` shows the commands of a usual day, `memctl help --all` every one, and\n\
         `memctl COMMAND --help` the page of a command.\n\n\
         ## Options of every command\n\n```text\n{}\n```\n",
        options.trim_end()
    );
    let mut shown = 0;
    let mut seen = BTreeSet::new();
    for line in groups.lines().skip_while(|line| !line.ends_with(':')) {
        if let Some(group) = line.strip_suffix(':')
            && !line.starts_with(' ')
        {
            page.push_str(&format!("\n## {group}\n"));
            continue;
        }
        // Subcommands are indented more, and come with their command.
        let Some(name) = line
            .strip_prefix("  ")
            .filter(|line| !line.starts_with(' '))
            .and_then(|line| line.split_whitespace().next())
        else {
            continue;
        };
        for (command, help) in &pages {
            let is_here = command == name || command.starts_with(&format!("{name} "));
            if is_here {
                shown += 1;
                page.push('\n');
                let name = format!("memctl {command}");
                page.push_str(&section("###", &name, help, &mut seen));
            }
        }
    }
    // The program itself is no section.
    assert_eq!(shown, pages.len() - 1);
    assert_kept("cli.md", &page);
}
