//! Suggestions for a misspelt or misplaced command, across all levels.

use std::collections::HashSet;

use clap::Command;

/// Minimum similarity of a name, from 0 to 1 (Jaro–Winkler).
const SIMILAR: f64 = 0.8;
/// Maximum number of suggestions.
const MAX: usize = 3;

/// Returns the commands, with their path, that a person may have meant by `typed`: those of exactly
/// this name, or else the most similar ones.
pub(super) fn meant(program: &Command, typed: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(program, "", typed, &mut found);
    let exact: Vec<(f64, String)> = found
        .iter()
        .filter(|(score, _)| *score >= 1.0)
        .cloned()
        .collect();
    let mut found = if exact.is_empty() { found } else { exact };
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.len().cmp(&b.1.len())));
    // A command that also stands at the top is named once.
    let paths: HashSet<String> = found.iter().map(|(_, path)| path.clone()).collect();
    found.retain(|(_, path)| {
        let at_top = path.replace("memctl memory ", "memctl ");
        at_top == *path || !paths.contains(&at_top)
    });
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_of_any_level_is_found_by_its_name_or_a_similar_one() {
        let check = |typed: &str, expected: &str| {
            let found = meant(&crate::cli::Cli::command(), typed);
            assert_eq!(found.first().map(String::as_str), Some(expected), "{typed}");
        };
        check("serch", "memctl search");
        check("approve", "memctl memory approve");
        check("ststus", "memctl status");
        let found = meant(&crate::cli::Cli::command(), "uninstall");
        assert_eq!(found, ["memctl mcp uninstall", "memctl hooks uninstall"]);
        check("conflcts", "memctl memory conflicts");
        assert!(meant(&crate::cli::Cli::command(), "zzz").is_empty());
    }
}
