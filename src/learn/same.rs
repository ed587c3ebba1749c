//! Whether two steps are for the same thing.
//!
//! Agents retry with another flag, another path to the same file, a part of the same line, or the
//! same line inside a longer one: all of that is the same goal. The same program on another thing
//! is not.

use std::collections::HashSet;

use super::goal::{Goal, Kind};
use super::run::Run;
use super::shell::basename;

/// How sure it is that two steps have the same goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// No sign of it.
    No,
    /// Believable only close by.
    Near,
    /// A part of it, or more than it.
    Part,
    /// The same thing in another way.
    Similar,
    /// The same.
    Same,
}

/// Whether `later` is for what `failed` was for. `error` is what the failing step said.
pub(super) fn same_goal(failed: &Goal, later: &Goal, error: &str) -> Match {
    if failed.tool == later.tool && failed.whole == later.whole {
        return Match::Same;
    }
    match (&failed.kind, &later.kind) {
        (Kind::Shell(old), Kind::Shell(new)) => {
            let found = shells(old, new, error);
            let phrases = (failed.phrases(), later.phrases());
            let asked = phrases.0.iter().any(|phrase| phrases.1.contains(phrase));
            let instead = old.last().is_some_and(|run| run.looks) && asked_otherwise(old, new);
            match found {
                found if asked => found.max(Match::Similar),
                found if instead => found.max(Match::Near),
                found => found,
            }
        }
        (Kind::Read(failed), Kind::Read(later)) => paths(failed, later),
        (Kind::Read(path), Kind::Shell(runs)) => reads(path, runs),
        (Kind::Shell(runs), Kind::Read(path)) => match runs.split_last() {
            Some((last, _)) => reads(path, std::slice::from_ref(last)),
            None => Match::No,
        },
        // A file that cannot be read whole can be searched.
        (Kind::Read(path), Kind::Tool(values)) if values.iter().any(|(_, value)| value == path) => {
            Match::Similar
        }
        // One address, by another program.
        (Kind::Tool(values), Kind::Shell(runs)) => {
            let mut urls = values.iter().filter(|(_, value)| value.contains("://"));
            let asked = |url: &String| runs.iter().any(|run| run.operands.contains(url));
            if urls.any(|(_, url)| asked(url)) {
                Match::Similar
            } else {
                Match::No
            }
        }
        (Kind::Edit(failed, old), Kind::Edit(later, new)) => edits(failed, old, later, new),
        (Kind::Edit(paths, _), Kind::Shell(runs)) => {
            let writes = runs.iter().filter(|run| run.writes);
            let names: Vec<&str> = paths.iter().map(|path| basename(path)).collect();
            let hits = writes.filter(|run| {
                let mut operands = run.operands.iter();
                operands.any(|o| names.contains(&basename(o)))
                    || names.iter().any(|name| run.code.contains(*name))
            });
            if hits.count() > 0 {
                Match::Near
            } else {
                Match::No
            }
        }
        (Kind::Tool(old), Kind::Tool(new)) => tools(&failed.tool, old, &later.tool, new),
        _ => Match::No,
    }
}

/// Whether one of these programs looks at a file.
fn reads(path: &str, runs: &[Run]) -> Match {
    let operands = runs
        .iter()
        .filter(|run| run.looks)
        .flat_map(|run| &run.operands);
    operands
        .map(|operand| paths(path, operand).min(Match::Similar))
        .filter(|found| *found == Match::Similar)
        .max()
        .unwrap_or(Match::No)
}

fn shells(failed: &[Run], later: &[Run], error: &str) -> Match {
    let Some((last, before)) = failed.split_last() else {
        return Match::No;
    };
    let best = |run: &Run| {
        later
            .iter()
            .map(|l| runs(run, l))
            .max()
            .unwrap_or(Match::No)
    };
    let whole = best(last);
    if whole > Match::No {
        // A line that does less than the one that failed may have left out what failed.
        let all = before.iter().all(|run| run.looks || best(run) > Match::No);
        return if all {
            whole
        } else {
            whole.min(Match::Similar)
        };
    }
    // The part of the line that failed may be named by the error.
    let named = before.iter().filter(|run| {
        let word = run.name.rsplit(' ').next().unwrap_or_default();
        word.len() > 2 && error.contains(word)
    });
    named.map(best).max().unwrap_or(Match::No).min(Match::Part)
}

/// Whether another program is asked for the same things: each of them stands in the old question.
fn asked_otherwise(failed: &[Run], later: &[Run]) -> bool {
    let question: Vec<&String> = failed.iter().flat_map(|run| &run.operands).collect();
    later.iter().any(|run| {
        let long = run.operands.iter().all(|operand| operand.len() > 3);
        let known = |operand: &String| question.iter().any(|q| q.contains(operand.as_str()));
        run.operands.len() > 1 && long && run.operands.iter().all(known)
    })
}

/// Subcommands that do all that another does, and more.
const INCLUDES: &[(&str, &[&str])] = &[
    (
        "cargo check",
        &[
            "cargo build", "cargo test", "cargo run", "cargo clippy", "cargo nextest",
        ],
    ),
    ("cargo build", &["cargo test", "cargo run", "cargo nextest"]),
    ("go build", &["go test", "go run"]),
    ("go vet", &["go test"]),
];

fn runs(failed: &Run, later: &Run) -> Match {
    if failed.name != later.name {
        let includes = INCLUDES
            .iter()
            .any(|(less, more)| *less == failed.name && more.contains(&later.name.as_str()));
        return if includes { Match::Part } else { Match::No };
    }
    if !failed.code.is_empty() || !later.code.is_empty() {
        return match overlap(&failed.code, &later.code) {
            share if share >= 0.5 => Match::Similar,
            share if share >= 0.3 => Match::Near,
            _ => Match::No,
        };
    }
    let (old, new) = (&failed.operands, &later.operands);
    let (said, says) = (&failed.prose, &later.prose);
    if !said.is_empty() && !says.is_empty() && overlap(said, says) < 0.5 {
        // Another message is for another thing, unless it follows at once.
        return Match::Near;
    }
    if old == new {
        return Match::Same;
    }
    if failed.looks {
        return old
            .iter()
            .flat_map(|a| new.iter().map(move |b| looked_at(a, b)))
            .max()
            .unwrap_or(Match::No);
    }
    if old.is_empty() || new.is_empty() {
        // With and without a selection: the whole, or a part of it.
        return if old.is_empty() {
            Match::Part
        } else {
            Match::Similar
        };
    }
    let near = |a: &String, b: &String| {
        a == b
            || basename(a) == basename(b)
            || a.contains(b.as_str())
            || b.contains(a.as_str())
            || strsim::normalized_levenshtein(a, b) >= 0.6
    };
    let shared = old
        .iter()
        .filter(|a| new.iter().any(|b| near(a, b)))
        .count();
    if shared * 2 >= old.len() {
        Match::Similar
    } else if shared > 0 {
        Match::Part
    } else {
        Match::No
    }
}

/// Whether a program that looks, looks for the same: at the same file, or for the same pattern.
fn looked_at(failed: &str, later: &str) -> Match {
    if failed == later {
        // A directory or a pattern of one letter is no thing to look for.
        return if failed.len() > 3 {
            Match::Similar
        } else {
            Match::No
        };
    }
    let pattern = |text: &str| text.contains('*') || text.contains('?');
    if pattern(failed) && pattern(later) {
        return if basename(failed) == basename(later) {
            Match::Near
        } else {
            Match::No
        };
    }
    let phrase = failed.len() > 12 && later.len() > 12 && failed.contains(' ');
    if phrase && strsim::normalized_levenshtein(failed, later) >= 0.7 {
        return Match::Similar;
    }
    if failed.contains('/') || later.contains('/') || failed.contains('.') {
        return match paths(failed, later) {
            // Another file of the same directory is another thing to look at.
            Match::Near => Match::No,
            found => found,
        };
    }
    Match::No
}

/// Whether two paths mean the same file: the same, the same name elsewhere, or a name that was
/// guessed in the right directory.
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
    if later.starts_with(failed) && later[failed.len()..].starts_with('/') {
        return Match::Near;
    }
    let ending = |name: &str| name.rsplit_once('.').map(|(_, e)| e.to_owned());
    let same_place = directory(failed).is_some() && directory(failed) == directory(later);
    if same_place && ending(a) == ending(b) {
        return Match::Near;
    }
    let stem = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let (a, b) = (stem(a), stem(b));
    let alike = a.len() > 3 && b.len() > 3 && strsim::normalized_levenshtein(&a, &b) >= 0.75;
    if alike || (same_place && (a.contains(&b) || b.contains(&a))) {
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
    let same = failed.iter().any(|a| later.iter().any(|b| a == b));
    let named = failed
        .iter()
        .any(|a| later.iter().any(|b| basename(a) == basename(b)));
    let share = overlap(old, new);
    if same && share >= 0.5 {
        Match::Similar
    } else if (same && share >= 0.15) || (named && share >= 0.5) {
        Match::Part
    } else if same {
        Match::Near
    } else {
        Match::No
    }
}

fn tools(failed: &str, old: &[(String, String)], later: &str, new: &[(String, String)]) -> Match {
    if failed != later {
        // `find_user_by_email` and `find_user_by_name` find the same user.
        let by = |name: &str| name.split_once("_by_").map(|(what, _)| what.to_owned());
        let same = by(failed).is_some() && by(failed) == by(later);
        return if same { Match::Near } else { Match::No };
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
        let hits = from
            .iter()
            .filter(|(name, value)| to.iter().any(|(n, v)| n == name && near(value, v)));
        let hits = hits.count();
        f64::from(u32::try_from(hits).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(from.len().max(1)).unwrap_or(u32::MAX))
    };
    match shared(old, new).max(shared(new, old)) {
        share if share >= 0.5 => Match::Similar,
        share if share > 0.0 => Match::Near,
        _ => Match::No,
    }
}

fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The share of the smaller set that is in the other.
fn overlap(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let smaller = a.len().min(b.len());
    if smaller == 0 {
        return 0.0;
    }
    let common = u32::try_from(a.intersection(b).count()).unwrap_or(u32::MAX);
    f64::from(common) / f64::from(u32::try_from(smaller).unwrap_or(u32::MAX))
}
