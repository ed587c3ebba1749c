//! Findings of a session, from its calls alone: reasons to ask its agent for a lesson.
//!
//! - A *recovery*: a command failed, and another form of it worked. The same command that works after an edit
//!   is a repair of the project, not knowledge for others.
//! - A *detour*: before a command first worked, the agent failed or looked at several things, and one of them
//!   showed an option or a variable of that command. One call can look at many things.
//!
//! The findings only decide whether to ask, and name the calls. The agent explains them.

use std::collections::HashSet;

use crate::lessons::call::{Run, commands};
use crate::lessons::recovery::episodes::analyse;
use crate::lessons::vocabulary::WORDS;
use crate::model::text::one_line;

use crate::lessons::session::calls::{SessionCall, SessionCalls, setting};

/// Number of things looked at and of failures that make a detour.
const DETOUR: usize = 3;
/// Number of calls that are looked back at.
const BACK: usize = 12;

/// A call that worked, and the failure or the search before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundOut {
    /// Index of the failing call; `None` for a detour without one.
    pub(crate) failed: Option<usize>,
    /// Index of the call that worked.
    pub(crate) worked: usize,
    /// Number of calls that it took.
    pub(crate) effort: usize,
}

/// Finds what a session found out, in the order of its calls.
pub(crate) fn found_out(session: &SessionCalls) -> Vec<FoundOut> {
    let mut all = recoveries(session);
    for found in detours(&session.calls) {
        let is_same = |existing: &FoundOut| {
            existing.worked == found.worked
                || existing.failed.is_some() && existing.failed == found.failed
        };
        if !all.iter().any(is_same) {
            all.push(found);
        }
    }
    all.sort_by_key(|found| found.worked);
    all
}

fn recoveries(session: &SessionCalls) -> Vec<FoundOut> {
    let calls = &session.calls;
    let analysis = analyse(&session.steps(), &[]);
    let found = analysis.episodes.into_iter().filter_map(|episode| {
        let failed = calls.get(episode.fail_step)?.command()?;
        let call = calls.get(episode.success_step)?;
        let worked = call.command()?;
        (one_line(failed) != one_line(worked) && Work::of(worked).is_some()).then(|| FoundOut {
            failed: Some(episode.fail_step),
            worked: episode.success_step,
            effort: 1 + episode.also_fail_steps.len(),
        })
    });
    found.collect()
}

/// Finds commands that first worked after several looks around.
fn detours(calls: &[SessionCall]) -> Vec<FoundOut> {
    let mut all = Vec::new();
    let mut worked: HashSet<String> = HashSet::new();
    // Calls of looking around and failing since something first worked: index, and what was looked at.
    let mut before: Vec<(usize, usize)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let work = call.command().and_then(Work::of);
        let Some(work) = work.filter(|_| !call.failed) else {
            let things = things_looked_at(call);
            if call.failed || things > 0 {
                before.push((at, things.max(1)));
            }
            continue;
        };
        if !worked.insert(work.name) {
            continue;
        }
        let recent = &before[before.len().saturating_sub(BACK)..];
        let effort = recent.iter().map(|(_, things)| things).sum();
        let is_shown = |(seen, _): &(usize, usize)| {
            let mut words = work.unguessed.iter();
            words.any(|word| calls[*seen].output.contains(word))
        };
        if effort >= DETOUR && recent.iter().any(is_shown) {
            let seen = recent.iter().map(|(seen, _)| *seen);
            all.push(FoundOut {
                // A look without a hit is no failure that the command cured.
                failed: seen
                    .into_iter()
                    .find(|seen| calls[*seen].failed && !looks(&calls[*seen])),
                worked: at,
                effort,
            });
            before.clear();
        }
    }
    all
}

/// A command that does something: neither looking around nor moving about.
struct Work {
    /// Programs with their subcommands.
    name: String,
    /// Words that nobody guesses: options and variables. A path is in each listing.
    unguessed: Vec<String>,
}

impl Work {
    fn of(command: &str) -> Option<Self> {
        let simples = commands(command);
        let runs = simples
            .iter()
            .map(Run::of)
            .filter(|run| !run.looks && !run.name.is_empty() && !WORDS.around.contains(&run.name));
        let names: Vec<String> = runs.map(|run| run.name).collect();
        let is_help = |word: &str| matches!(word, "--help" | "-h" | "help" | "--version" | "-V");
        if names.is_empty() || command.split_whitespace().any(is_help) {
            return None;
        }
        let words = command.split_whitespace();
        let words = words.map(|word| word.trim_matches(['"', '\'', '`', '(', ')', ';', ',']));
        Some(Self {
            name: names.join(" && "),
            unguessed: words.filter_map(setting).map(str::to_owned).collect(),
        })
    }
}

/// Returns `true` for a call that only reads: a look at files, a help page.
pub(crate) fn looks(call: &SessionCall) -> bool {
    things_looked_at(call) > 0
}

/// Number of files, searches and help pages that a call reads; 0 for a call that does something.
fn things_looked_at(call: &SessionCall) -> usize {
    if let Some(command) = call.command() {
        if Work::of(command).is_some() {
            return 0;
        }
        let simples = commands(command);
        let things = simples
            .iter()
            .map(|simple| Run::of(simple).operands.len().max(1));
        return things.sum::<usize>().max(1);
    }
    let tool = call.tool.to_lowercase();
    let reads = [
        "read", "grep", "glob", "search", "ls", "list", "fetch", "view",
    ];
    usize::from(reads.iter().any(|name| tool.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(calls: &[(&str, &str, bool)]) -> SessionCalls {
        let calls = calls.iter().map(|(command, output, failed)| {
            SessionCall::new(Some("Bash"), command, output, *failed)
        });
        SessionCalls {
            calls: calls.collect(),
            ..SessionCalls::default()
        }
    }

    #[test]
    fn a_recovery_is_found_out_and_a_repair_is_not() {
        let check = |worked: &str, expected: usize| {
            let calls = [
                (
                    "tools/build web",
                    "error: output would not be reproducible",
                    true,
                ),
                (worked, "ok", false),
            ];
            let found = found_out(&session(&calls));
            assert_eq!(found.len(), expected, "{worked}: {found:?}");
        };
        check("tools/build --epoch 0 web", 1);
        // An edit in between repaired the project.
        check("tools/build web", 0);
        check("ls", 0);
    }

    #[test]
    fn several_looks_before_a_telling_command_are_a_detour() {
        let look = [
            ("ls", "Makefile README.md bin src tests", false),
            (
                "cat README.md",
                "Tests run with `PYTHONPATH=src bin/py -m pytest`.",
                false,
            ),
            ("cat Makefile", "db-up:\n\t./gateway", false),
        ];
        let run = (
            "PYTHONPATH=src bin/py -m pytest tests/test_cart.py",
            "3 passed",
            false,
        );
        let found = found_out(&session(&[&look[..], &[run]].concat()));
        assert_eq!(
            found,
            [FoundOut {
                failed: None,
                worked: 3,
                effort: 3
            }]
        );
        // Nobody had to find this: nothing of it was shown.
        let plain = ("cargo test", "ok", false);
        assert_eq!(found_out(&session(&[&look[..], &[plain]].concat())), []);
        // One look is no detour, and neither is a second one.
        assert_eq!(found_out(&session(&[look[1], run])), []);
        // One call can look at all of it.
        let at_once = ("ls; cat README.md Makefile", look[1].1, false);
        assert_eq!(found_out(&session(&[at_once, run])).len(), 1);
        // A look that ends with a code of failure is a look.
        let missed = ("ls kites; cat README Makefile", look[1].1, true);
        let found = found_out(&session(&[missed, run]));
        assert_eq!(found.first().map(|one| one.failed), Some(None), "{found:?}");
        // A path is in each listing.
        let path = ("tools/pack src/shop", "ok", false);
        let listing = ("ls src bin tests", "src/shop", false);
        assert_eq!(found_out(&session(&[listing, path])), []);
        let again = [&look[..], &[run], &look[..], &[run]].concat();
        assert_eq!(found_out(&session(&again)).len(), 1);
    }
}
