//! Pitfalls: what a class of errors says about how to work here, whatever the single error was.
//!
//! The first four rules are the source document's, word for word; they speak of an agent whose code
//! runs piece by piece in a sandbox (`execute_code`), and hold for that tool only. The others are
//! worded as facts about any shell, because hosts and models distrust orders from memory.

use serde::{Deserialize, Serialize};

/// The most rules that are shown at once.
pub const MAX_RULES: usize = 8;

/// A class of errors that was met, and its rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pitfall {
    /// The class, as in `NameError`.
    pub error: String,
    /// What it says about how to work here.
    pub rule: String,
}

/// Whether the rule is one for code in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Sandbox,
    Shell,
}

/// One class: its name, what all of an error's text must hold, and its rule.
type Class = (Where, &'static str, &'static [&'static str], &'static str);

const CLASSES: &[Class] = &[
    (
        Where::Sandbox,
        "NameError",
        &["NameError", "not defined"],
        "Variables do NOT persist between execute_code calls. Always re-query data you need.",
    ),
    (
        Where::Sandbox,
        "globals()/locals()/eval() not available",
        &["()", "not available"],
        "Use collection methods (.filter, .search, .key_values, .fields) instead.",
    ),
    (
        Where::Sandbox,
        "Code rejected: import",
        &["Code rejected", "import"],
        "json, defaultdict, Counter, OrderedDict, and math are pre-loaded -- do not import.",
    ),
    (
        Where::Sandbox,
        "KeyError",
        &["KeyError"],
        "Check field names with aggregate() to verify exact names before accessing.",
    ),
    (
        Where::Shell,
        "ModuleNotFoundError",
        &["ModuleNotFoundError"],
        "A Python package was missing: the interpreter in use is not the one that has the project's packages.",
    ),
    (
        Where::Shell,
        "command not found",
        &["command not found"],
        "A program was not installed here, or not on the PATH of this shell.",
    ),
    (
        Where::Shell,
        "No such file or directory",
        &["No such file or directory"],
        "A path did not exist: each command starts in the session's own directory, whatever an earlier `cd` was.",
    ),
    (
        Where::Shell,
        "Permission denied",
        &["ermission denied"],
        "A file or directory could not be changed with the rights of this user.",
    ),
    (
        Where::Shell,
        "NameError",
        &["NameError", "not defined"],
        "A Python name was not defined: nothing persists from one `python3 -c` or script to the next.",
    ),
    (
        Where::Shell,
        "KeyError",
        &["KeyError"],
        "A key was missing: the data did not have the field that the code took for granted.",
    ),
    (
        Where::Shell,
        "address already in use",
        &["ddress already in use"],
        "A port was taken by a process that was still running from before.",
    ),
    (
        Where::Shell,
        "timed out",
        &["timed out"],
        "A command ran into its time limit: it waits for input, or needs longer than one call has.",
    ),
];

/// The class of an error's text, if it is of one. `tool` is what ran the code; without one it is
/// the sandbox of an agent that records its failures itself.
pub fn of_error(text: &str, tool: Option<&str>) -> Option<Pitfall> {
    let place = match tool {
        None | Some("execute_code") => Where::Sandbox,
        Some(_) => Where::Shell,
    };
    let fits = |class: &&Class| class.2.iter().all(|part| text.contains(part));
    let own = CLASSES.iter().filter(|class| class.0 == place).find(fits);
    // What goes wrong in a shell can go wrong in a sandbox too, but not the other way round.
    let found = own.or_else(|| {
        CLASSES
            .iter()
            .filter(|class| class.0 == Where::Shell)
            .find(fits)
    })?;
    Some(Pitfall {
        error: found.1.to_owned(),
        rule: found.3.to_owned(),
    })
}

/// The accumulated rules as text, at most `max_rules`; empty where there are none.
pub fn render_pitfalls(pitfalls: &[Pitfall], max_rules: usize) -> String {
    if pitfalls.is_empty() {
        return String::new();
    }
    let mut text = "PITFALLS (learned from errors in this session):\n".to_owned();
    for pitfall in pitfalls.iter().take(max_rules) {
        text.extend(["\n  - ", &pitfall.error, ": ", &pitfall.rule]);
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_rule_in_its_place() {
        let check = |text: &str, tool: Option<&str>, expected: Option<&str>| {
            let found = of_error(text, tool).map(|pitfall| pitfall.rule);
            let fits = match (&found, expected) {
                (Some(rule), Some(beginning)) => rule.starts_with(beginning),
                (None, None) => true,
                _ => false,
            };
            assert!(fits, "{text}: {found:?}");
        };
        let name = "NameError: name 'x' is not defined";
        check(
            name,
            None,
            Some("Variables do NOT persist between execute_code calls."),
        );
        check(name, Some("execute_code"), Some("Variables do NOT persist"));
        check(name, Some("Bash"), Some("A Python name was not defined"));
        check(
            "globals() not available",
            None,
            Some("Use collection methods"),
        );
        check("globals() not available", Some("Bash"), None);
        check(
            "Code rejected: forbidden import json",
            None,
            Some("json, defaultdict"),
        );
        check(
            "KeyError: 'mechanism'",
            None,
            Some("Check field names with aggregate()"),
        );
        check(
            "bash: foo: command not found",
            None,
            Some("A program was not installed"),
        );
        check("all is well", None, None);
    }

    #[test]
    fn at_most_so_many_rules_are_shown() {
        assert_eq!(render_pitfalls(&[], MAX_RULES), "");
        let pitfall = of_error("KeyError: 'a'", None).unwrap();
        let text = render_pitfalls(&vec![pitfall; 20], MAX_RULES);
        assert_eq!(text.matches("aggregate()").count(), MAX_RULES);
    }
}
