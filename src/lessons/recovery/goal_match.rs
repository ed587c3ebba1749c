//! Compares the goals of two steps.
//!
//! Agents retry with another flag, another path to the same file, a part of the same line, or the
//! same line inside a longer one. All of these have the same goal. The same program with another
//! operand does not.

use std::collections::HashSet;

use super::goal::{Goal, GoalKind};
use crate::lessons::call::{Run, commands};
use crate::lessons::vocabulary::WORDS;
use memctl_shell::basename;

/// Certainty that two steps have the same goal, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// No sign of a common goal.
    No,
    /// Plausible only for close steps.
    Near,
    /// Part of the goal, or more than it.
    Part,
    /// Same goal in another way.
    Similar,
    /// Same goal.
    Same,
}

/// Compares the goal of `later` with that of `failed`. `error` is the output of the failed step.
pub(crate) fn same_goal(failed: &Goal, later: &Goal, error: &str) -> Match {
    if failed.tool == later.tool && failed.whole == later.whole {
        return Match::Same;
    }
    match (&failed.kind, &later.kind) {
        (GoalKind::Shell(old), GoalKind::Shell(new)) => {
            let looks = old.last().is_some_and(|run| run.looks);
            let found = shells(old, new);
            if is_prefixed(&failed.whole, &later.whole) || replaces_missing(old, new, error) {
                found.max(Match::Similar)
            } else if looks && asked_otherwise(old, new) {
                found.max(Match::Near)
            } else {
                found
            }
        }
        (GoalKind::Read(failed), GoalKind::Read(later)) => paths(failed, later),
        (GoalKind::Edit(failed, old), GoalKind::Edit(later, new)) => edits(failed, old, later, new),
        (GoalKind::Tool(old), GoalKind::Tool(new)) => tools(&failed.tool, old, &later.tool, new),
        _ => Match::No,
    }
}

fn shells(failed: &[Run], later: &[Run]) -> Match {
    let Some((last, before)) = failed.split_last() else {
        return Match::No;
    };
    let best = |run: &Run| {
        let found = later.iter().map(|later| runs(run, later)).max();
        found.unwrap_or(Match::No)
    };
    // A line with fewer programs than the failed one may omit the failing part.
    if before.iter().all(|run| run.looks || best(run) > Match::No) {
        best(last)
    } else {
        best(last).min(Match::Similar)
    }
}

/// Maximum number of words of a wrapper.
const WRAPPER: usize = 4;

/// Returns true if the last commands of two lines differ only by a wrapper before one of them:
/// `rtk bun test` and `bun test`.
fn is_prefixed(failed: &str, later: &str) -> bool {
    let last = |line: &str| {
        let mut all = commands(line);
        all.retain(|simple| !simple.piped && !simple.fallback);
        all.pop().map(|simple| simple.words).unwrap_or_default()
    };
    let (old, new) = (last(failed), last(later));
    let before = old.strip_suffix(&*new).or_else(|| new.strip_suffix(&*old));
    let is_around = |word: &String| WORDS.around.contains(word);
    before.is_some_and(|before| {
        let words = old.len().min(new.len());
        (1..=WRAPPER).contains(&before.len()) && words > 0 && !before.iter().any(is_around)
    })
}

/// Returns true if the error names the program or the subcommand that failed, and another one
/// takes its place with the same operands: `grep` for a missing `rg`, `status` for `staus`.
fn replaces_missing(failed: &[Run], later: &[Run], error: &str) -> bool {
    let (Some(old), Some(new)) = (failed.last(), later.last()) else {
        return false;
    };
    let (program, verb) = old.name.rsplit_once(' ').unwrap_or((&old.name, ""));
    let lower = error.to_ascii_lowercase();
    let named = if verb.is_empty() { program } else { verb };
    if old.name == new.name || !WORDS.missing_programs.occur_in(&lower) || !names(error, named) {
        return false;
    }
    let mut operands = old.operands.iter();
    let operands = operands.all(|operand| new.operands.contains(operand));
    let same_program = new.name.split(' ').next() == program.split(' ').next();
    if verb.is_empty() {
        operands && !old.operands.is_empty()
    } else {
        same_program && new.name.split(' ').count() == old.name.split(' ').count() && operands
    }
}

/// Returns true if another program is given the same operands: the failed step contains each of
/// them.
fn asked_otherwise(failed: &[Run], later: &[Run]) -> bool {
    let question: Vec<&String> = failed.iter().flat_map(|run| &run.operands).collect();
    later.iter().any(|run| {
        let long = run.operands.iter().all(|operand| operand.len() > 3);
        let is_in_question =
            |operand: &String| question.iter().any(|q| q.contains(operand.as_str()));
        run.operands.len() > 1 && long && run.operands.iter().all(is_in_question)
    })
}

fn runs(failed: &Run, later: &Run) -> Match {
    // `docker-compose up` and `docker compose up`.
    let as_words = |run: &Run| run.name.replacen('-', " ", 1);
    if failed.name != later.name && as_words(failed) != as_words(later) {
        return Match::No;
    }
    if !failed.code.is_empty() || !later.code.is_empty() {
        return match overlap(&failed.code, &later.code) {
            share if share >= 0.5 => Match::Similar,
            share if share >= 0.3 => Match::Near,
            _ => Match::No,
        };
    }
    // An added option leaves the goal; another value of it may not.
    let both_have_values = !failed.values.is_empty() && !later.values.is_empty();
    let [old, new] = [failed, later].map(|run| {
        let values = run.values.iter().filter(|_| both_have_values);
        run.operands.iter().chain(values).collect::<Vec<_>>()
    });
    let (old_prose, new_prose) = (&failed.prose, &later.prose);
    if !old_prose.is_empty() && overlap(old_prose, new_prose) < 0.5 {
        // Another message or statement means another goal, unless it follows directly.
        return Match::Near;
    }
    if old == new {
        return Match::Same;
    }
    if failed.looks {
        return old
            .iter()
            .flat_map(|a| new.iter().map(|b| looked_at(a, b)))
            .max()
            .unwrap_or(Match::No);
    }
    if old.is_empty() || new.is_empty() {
        // With and without operands: the whole, or a part of it.
        return if old.is_empty() {
            Match::Part
        } else {
            Match::Similar
        };
    }
    let near = |a: &str, b: &str| {
        a == b
            || basename(a) == basename(b)
            || a.contains(b)
            || b.contains(a)
            || strsim::normalized_levenshtein(a, b) >= 0.6
    };
    let shared = old.iter().filter(|a| new.iter().any(|b| near(a, b)));
    match shared.count() {
        0 => Match::No,
        shared if shared * 2 >= old.len() => Match::Similar,
        _ => Match::Part,
    }
}

/// Compares what two searches look for: the same file or the same pattern.
fn looked_at(failed: &str, later: &str) -> Match {
    let is_pattern = |text: &str| text.contains(['*', '?']);
    let is_path = failed.contains(['/', '.']) || later.contains('/');
    match paths(failed, later) {
        // A directory or a short pattern is too unspecific.
        _ if failed == later && failed.len() > 3 => Match::Similar,
        _ if is_pattern(failed) && is_pattern(later) && basename(failed) == basename(later) => {
            Match::Near
        }
        _ if !is_path || failed == later || is_pattern(failed) && is_pattern(later) => Match::No,
        // Another file in the same directory is another goal.
        Match::Near => Match::No,
        found => found,
    }
}

/// Compares two paths: equal, same name elsewhere, or a wrong guess in the right directory.
fn paths(failed: &str, later: &str) -> Match {
    let (failed, later) = (failed.trim_end_matches('/'), later.trim_end_matches('/'));
    if failed == later {
        return Match::Same;
    }
    let (a, b) = (basename(failed), basename(later));
    if a == b && a.len() > 1 && !a.contains('*') {
        return Match::Similar;
    }
    let directory = |path: &str| path.rsplit_once('/').map(|(dir, _)| dir.to_owned());
    let ending = |name: &str| name.rsplit_once('.').map(|(_, e)| e.to_owned());
    let same_place = directory(failed).is_some() && directory(failed) == directory(later);
    if same_place && ending(a) == ending(b) {
        return Match::Near;
    }
    Match::No
}

fn edits(
    failed: &[String],
    old: &HashSet<String>,
    later: &[String],
    new: &HashSet<String>,
) -> Match {
    let same = failed.iter().any(|a| later.contains(a));
    match overlap(old, new) {
        _ if !same => Match::No,
        share if share >= 0.5 => Match::Similar,
        share if share >= 0.15 => Match::Part,
        _ => Match::Near,
    }
}

fn tools(failed: &str, old: &[(String, String)], later: &str, new: &[(String, String)]) -> Match {
    if failed != later {
        return Match::No;
    }
    if old.is_empty() && new.is_empty() {
        return Match::Same;
    }
    let near = |a: &str, b: &str| {
        a == b
            || (a.len() > 2 && b.len() > 2 && (a.contains(b) || b.contains(a)))
            || strsim::normalized_levenshtein(&clip(a), &clip(b)) >= 0.6
    };
    let shared = |from: &[(String, String)], to: &[(String, String)]| {
        let is_in =
            |(name, value): &&(String, String)| to.iter().any(|(n, v)| n == name && near(value, v));
        from.iter().filter(is_in).count()
    };
    let (a, b) = (shared(old, new), shared(new, old));
    match (a, b) {
        (0, 0) => Match::No,
        _ if a * 2 >= old.len() && a > 0 || b * 2 >= new.len() && b > 0 => Match::Similar,
        _ => Match::Near,
    }
}

fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Share of the smaller set that the larger one contains.
fn overlap(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let smaller = a.len().min(b.len());
    if smaller == 0 {
        return 0.0;
    }
    let common = u32::try_from(a.intersection(b).count()).unwrap_or(u32::MAX);
    f64::from(common) / f64::from(u32::try_from(smaller).unwrap_or(u32::MAX))
}

/// Returns `true` if a text has a name as a whole word, in any case. Names inside a path or a
/// longer name do not count, but the last part of a path does.
fn names(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut words = text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c));
    words.any(|word| basename(word.trim_end_matches('.')) == name)
}
