//! Detects failures to ignore: expected ones, and searches for something that was created later.
//!
//! Decides by the surrounding steps and remarks. `outcome` decides whether a step failed.

use crate::lessons::recovery::shell::commands;
use memctl_sessions::{Remark, Step};

use super::super::goal::Goal;
use super::super::outcome::Outcome;

/// Step with its goal and outcome.
pub(super) struct Known<'a> {
    pub(super) step: &'a Step,
    pub(super) goal: Goal,
    pub(super) outcome: Outcome,
}

/// Returns true if an error reports a missing thing.
pub(crate) fn says_missing(error: &str) -> bool {
    let lower: String = error
        .chars()
        .take(2_000)
        .collect::<String>()
        .to_ascii_lowercase();
    [
        "no such file", "does not exist", "not found", "no matches found", "cannot open",
        "cannot access",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// Returns true if a step creates what another was looking for.
pub(crate) fn makes(now: &Known<'_>, failed: &Known<'_>) -> bool {
    let wanted = failed.goal.looked_for();
    let written = now.goal.written();
    let made = now.step.command().map(|command| {
        commands(&command)
            .into_iter()
            .filter(|simple| {
                let program = simple.words.first().map_or("", String::as_str);
                matches!(program, "mkdir" | "touch" | "cp" | "mv" | "ln" | "git")
            })
            .flat_map(|simple| simple.words)
            .collect::<Vec<String>>()
    });
    let made = made.unwrap_or_default();
    wanted.iter().any(|wanted| {
        let wanted = wanted.trim_start_matches("./").trim_end_matches('/');
        wanted.len() > 2
            && written
                .iter()
                .copied()
                .chain(made.iter().map(String::as_str))
                .any(|path| path.trim_start_matches("./").contains(wanted))
    })
}

/// Returns true if a remark right before or after the step says that it should fail.
pub(crate) fn is_expected(failed: &Known<'_>, remarks: &[Remark]) -> bool {
    let index = failed.step.index;
    let about = remarks
        .iter()
        .filter(|remark| remark.before == index || remark.before == index + 1);
    let phrases = [
        "should fail", "expected to fail", "fails as expected", "failed as expected",
        "this is expected", "that's expected", "expected failure", "is expected to",
        "expected error", "confirm it fails", "confirm the failure", "verify it fails",
        "verify that it fails", "see it fail", "watch it fail", "expect this to fail",
        "expected, since", "pre-existing",
    ];
    about.into_iter().any(|remark| {
        let said = remark.text.to_ascii_lowercase();
        phrases.iter().any(|phrase| said.contains(phrase))
    })
}
