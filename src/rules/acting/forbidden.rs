//! Advice that a rule in force forbids: it is never given, and `review` names the rule.
//!
//! A rule is a person's word, and stronger than what was learnt from calls. Nothing here knows where
//! advice comes from: it is two texts.

use super::forbids;
use crate::model::Reflexion;
use crate::store::Scoped;

/// Returns the rule in force that forbids what a lesson advises: its working call, or a command
/// between backticks in its words.
pub(crate) fn rule_against(store: &Scoped, working: &str, lesson: &str) -> Option<Reflexion> {
    let lines: Vec<&str> = advised(working, lesson).collect();
    // Rules that cannot be read forbid nothing here; at the call they are read again.
    forbids(store, &lines).ok().flatten()
}

/// Returns `true` if a rule in force forbids what a lesson advises.
pub fn forbids_advice(store: &Scoped, working: &str, lesson: &str) -> bool {
    rule_against(store, working, lesson).is_some()
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
