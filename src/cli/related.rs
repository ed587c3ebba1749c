//! Related commands at the end of each help page.
//!
//! One table, so that a renamed command cannot leave a dead name behind: a test looks up every name.

use clap::Command;

/// Commands and the commands to read next, without the name of the program.
const RELATED: &[(&str, &[&str])] = &[
    ("accept", &["reject", "correct", "run"]),
    ("completions", &["man", "help"]),
    ("config", &["trust", "schema"]),
    ("config show", &["trust", "memory status"]),
    (
        "correct",
        &["memory prompt", "memory undo", "test", "memory conflicts"],
    ),
    (
        "doctor",
        &["memory status", "memory audit verify", "memory resolve"],
    ),
    ("eval", &["memory search", "stats"]),
    ("eval retrieval", &["memory search", "index"]),
    ("help", &["man", "completions"]),
    ("hint", &["record failure", "memory list", "hooks install"]),
    ("hook", &["hooks install", "hooks status"]),
    ("hooks", &["setup", "mcp install", "learn"]),
    (
        "hooks install",
        &["hooks status", "hooks uninstall", "setup"],
    ),
    ("hooks status", &["hooks install", "mcp status"]),
    ("hooks uninstall", &["hooks status", "memory disable"]),
    ("index", &["memory search", "config show"]),
    ("init", &["setup", "run", "doctor"]),
    ("learn", &["review", "memory list", "memory undo"]),
    ("lesson", &["learn", "review", "hooks install"]),
    ("lesson add", &["lesson list", "memory undo", "review"]),
    ("lesson list", &["review", "memory show", "memory forget"]),
    ("man", &["help", "completions"]),
    ("mcp", &["mcp install", "serve", "hooks"]),
    ("mcp install", &["mcp status", "mcp uninstall", "setup"]),
    ("mcp status", &["mcp install", "hooks status"]),
    ("mcp uninstall", &["mcp status", "memory disable"]),
    ("memory", &["review", "doctor", "help"]),
    (
        "memory add",
        &["memory list", "memory edit", "memory prune"],
    ),
    ("memory approve", &["review", "reject", "memory undo"]),
    (
        "memory audit",
        &["memory audit verify", "memory why", "memory undo"],
    ),
    ("memory audit verify", &["memory audit", "doctor"]),
    (
        "memory conflicts",
        &["correct", "memory pin", "memory undo"],
    ),
    (
        "memory disable",
        &["memory enable", "hooks uninstall", "memory purge"],
    ),
    (
        "memory edit",
        &["memory show", "memory undo", "memory forget"],
    ),
    ("memory enable", &["memory disable", "memory status"]),
    ("memory export", &["memory import", "memory purge", "sync"]),
    (
        "memory forget",
        &["memory undo", "memory why", "memory purge"],
    ),
    (
        "memory import",
        &["memory export", "memory approve", "memory undo"],
    ),
    (
        "memory list",
        &["memory show", "memory search", "memory why"],
    ),
    (
        "memory pin",
        &["memory conflicts", "stats", "memory forget"],
    ),
    ("memory promote", &["memory list", "memory approve"]),
    ("memory prompt", &["run", "memory list", "correct"]),
    ("memory prune", &["memory add", "memory purge"]),
    (
        "memory purge",
        &["memory export", "memory disable", "memory forget"],
    ),
    ("memory resolve", &["doctor", "init", "memory edit"]),
    (
        "memory search",
        &["memory list", "memory show", "index", "eval retrieval"],
    ),
    ("memory show", &["memory why", "memory edit", "memory list"]),
    ("memory status", &["doctor", "config show", "stats"]),
    (
        "memory undo",
        &["memory why", "memory audit", "memory forget"],
    ),
    (
        "memory why",
        &["memory show", "memory audit", "memory undo"],
    ),
    ("record", &["hint", "hooks install"]),
    ("record failure", &["record success", "hint"]),
    ("record success", &["record failure", "memory list"]),
    ("reject", &["accept", "correct", "memory undo"]),
    ("remote", &["sync", "serve"]),
    ("remote check", &["remote status", "remote init"]),
    ("remote embed", &["sync", "memory search", "remote status"]),
    ("remote init", &["remote user add", "remote check"]),
    ("remote join", &["remote leave", "serve", "sync"]),
    ("remote leave", &["remote join", "memory status"]),
    ("remote status", &["remote check", "sync"]),
    ("remote user", &["remote init", "remote check"]),
    ("remote user add", &["remote init", "remote check", "sync"]),
    (
        "review",
        &["memory approve", "reject", "memory conflicts", "learn"],
    ),
    ("run", &["correct", "accept", "memory prompt"]),
    ("schema", &["help", "config show"]),
    ("serve", &["token", "mcp", "remote join"]),
    ("session", &["watch", "memory audit"]),
    ("session end", &["session start", "session show"]),
    ("session list", &["session show", "watch"]),
    ("session log", &["session show", "session progress"]),
    ("session progress", &["session end", "session show"]),
    ("session show", &["session list", "session log"]),
    (
        "session start",
        &["session progress", "session log", "session end"],
    ),
    ("setup", &["hooks status", "mcp status", "learn", "review"]),
    ("statusline", &["setup", "review", "stats"]),
    ("stats", &["memory list", "watch"]),
    ("sync", &["remote check", "remote status", "memory status"]),
    ("test", &["correct", "run", "memory prompt"]),
    ("token", &["serve", "mcp"]),
    ("trust", &["memory approve", "memory import", "config show"]),
    ("watch", &["stats", "session list"]),
];

/// Adds the related commands to each help page.
pub(super) fn named(program: Command) -> Command {
    below(program, "")
}

fn below(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for name in names {
        // A command of `memory` that is also at the top has one page.
        let in_memory = format!("memory {name}");
        let full = match path {
            "" if found(&in_memory).is_some() && found(&name).is_none() => in_memory,
            "" => name.clone(),
            path => format!("{path} {name}"),
        };
        command = command.mut_subcommand(name, |sub| below(with_related(sub, &full), &full));
    }
    command
}

fn found(path: &str) -> Option<&'static [&'static str]> {
    let entry = RELATED.iter().find(|(command, _)| *command == path);
    entry.map(|(_, related)| *related)
}

fn with_related(command: Command, path: &str) -> Command {
    let Some(related) = found(path) else {
        return command;
    };
    let names: Vec<String> = related
        .iter()
        .map(|name| format!("memctl {name}"))
        .collect();
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    command.after_help(format!("{help}\n\nSee also: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn exists(path: &str) -> bool {
        let program = crate::cli::Cli::command();
        let mut command = &program;
        for word in path.split(' ') {
            let Some(sub) = command.find_subcommand(word) else {
                return false;
            };
            command = sub;
        }
        true
    }

    #[test]
    fn every_name_is_a_command() {
        for (command, related) in RELATED {
            assert!(exists(command), "{command}");
            for name in *related {
                assert!(exists(name), "{command}: {name}");
                assert_ne!(name, command);
            }
        }
    }
}
