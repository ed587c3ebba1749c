//! Lessons that a rule in force forbids: they are never told, and `review` names the rule.
//!
//! A rule is a person's word, and stronger than what was learnt from calls. `rules` and `lessons` know
//! nothing of each other; they meet here.

use crate::model::Reflexion;
use crate::rules::forbids;
use crate::store::Scoped;

use crate::lessons::telling::hint::Hint;

/// Returns the rule in force that forbids what a lesson advises: its working call, or a command
/// between backticks in its words.
pub(crate) fn rule_against(store: &Scoped, working: &str, lesson: &str) -> Option<Reflexion> {
    let lines: Vec<&str> = advised(working, lesson).collect();
    // Rules that cannot be read forbid nothing here; at the call they are read again.
    forbids(store, &lines).ok().flatten()
}

/// Returns the hints that no rule in force forbids.
pub(crate) fn without_forbidden(store: &Scoped, hints: Vec<Hint>) -> Vec<Hint> {
    let is_free = |hint: &Hint| rule_against(store, &hint.working_code, &hint.lesson).is_none();
    hints.into_iter().filter(is_free).collect()
}

/// Command lines that a lesson advises.
fn advised<'t>(working: &'t str, lesson: &'t str) -> impl Iterator<Item = &'t str> {
    let quoted = [lesson, working]
        .into_iter()
        .flat_map(|text| text.split('`').skip(1).step_by(2));
    std::iter::once(working)
        .chain(quoted)
        .filter(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_calls_and_quoted_commands_are_advice() {
        let check = |working: &str, lesson: &str, expected: &[&str]| {
            assert_eq!(advised(working, lesson).collect::<Vec<_>>(), expected);
        };
        check("npm ci", "", &["npm ci"]);
        check(
            "",
            "Run `npm ci` before `make test`.",
            &["npm ci", "make test"],
        );
        check("1. `npm ci`", "", &["1. `npm ci`", "npm ci"]);
        check("", "Run it.", &[]);
    }
}
