//! Suggestions for a misspelt or misplaced command, across all levels.

use clap::Command;

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
    ("rules", "list rules"),
    ("lessons", "lesson list"),
    ("notes", "list memories"),
    ("on", "memory enable"),
    ("off", "memory disable"),
];

/// Returns the commands, with their path, that a person may have meant by `typed`: those of exactly
/// this name, or else the most similar ones.
pub(super) fn meant(program: &Command, typed: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_of_any_level_is_found_by_its_name_or_a_similar_one() {
        let check = |typed: &str, expected: &str| {
            let found = meant(&crate::cli::program(), typed);
            assert_eq!(found.first().map(String::as_str), Some(expected), "{typed}");
        };
        check("serch", "memctl search");
        check("aprove", "memctl approve");
        check("uninstall", "memctl setup --undo");
        check("conflcts", "memctl memory conflicts");
        assert!(meant(&crate::cli::program(), "zzz").is_empty());
    }
}
