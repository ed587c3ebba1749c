//! Failures and recoveries of one session, without its other steps.
//!
//! A step without a time takes the time of the step before it. A session without any time sorts
//! before all others, in the order of the files, so each session keeps the order of its steps.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;

use crate::hints::failure::{ErrorLine, Failure, project_of};
use crate::learn::distil::Lesson;
use crate::learning::learn::redacted;
use crate::learning::session_files::{SessionTrace, microseconds};
use crate::model::Step;

/// Session after it was read.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) id: String,
    /// Path of the session file.
    pub(crate) path: String,
    pub(crate) failures: Vec<Failed>,
    pub(crate) episodes: Vec<Overcome>,
    /// Time of the last step, in microseconds since 1970.
    end: Option<i64>,
}

/// Failed step.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) step: usize,
    /// Lines that may say the error; empty if the output has no text to make a key from.
    pub(crate) lines: Vec<ErrorLine>,
    pub(crate) code: String,
    /// Name of the directory of the call.
    pub(crate) project: Option<String>,
    /// Number of the episode that it belongs to.
    pub(crate) episode: Option<usize>,
    time: Option<i64>,
    /// Hash that identifies the call; `None` if the agent host gives no id or no time.
    native: Option<u64>,
}

impl Failed {
    /// Error key; `None` if the output has no error.
    pub(crate) fn key(&self) -> Option<&str> {
        self.lines.first().map(|line| line.key.as_str())
    }
}

/// Recovery from a failure.
#[derive(Debug)]
pub(crate) struct Overcome {
    pub(crate) fail_step: usize,
    success_step: usize,
    changes: Vec<usize>,
    pub(crate) error_key: String,
    pub(crate) success_code: String,
    pub(crate) workspace: String,
    pub(crate) lesson: Option<Lesson>,
    time: Option<i64>,
}

impl Overcome {
    /// Number of steps from the failure to the success.
    pub(crate) fn wasted(&self) -> usize {
        self.success_step - self.fail_step
    }

    /// Number of steps after `step` and before the success that changed nothing.
    pub(crate) fn needless_after(&self, step: usize) -> usize {
        let between = self.success_step.saturating_sub(step + 1);
        let changes = self.changes.iter().filter(|change| **change > step);
        between.saturating_sub(changes.count())
    }
}

/// Collects the steps of a session.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Time of each step in microseconds since 1970; it never decreases.
    times: Vec<Option<i64>>,
    failures: Vec<Failed>,
}

impl Reader {
    pub(crate) fn step(&mut self, step: &Step, failed: bool) {
        let before = self.times.last().copied().flatten();
        let time = before.max(step.time.as_deref().and_then(microseconds));
        // Steps arrive in order and without gaps.
        self.times.push(time);
        if failed {
            let native = step.native_id.as_ref().zip(step.time.as_ref());
            self.failures.push(Failed {
                step: step.index,
                lines: Failure::of(&step.output, None, None).map_or(Vec::new(), |f| f.lines),
                code: step.call_text(),
                project: step
                    .cwd
                    .as_deref()
                    .and_then(|cwd| project_of(Path::new(cwd))),
                episode: None,
                time,
                native: native.map(|native| hash(&(native, &step.tool))),
            });
        }
    }

    /// Finishes the session. A failure that another file has shown already is dropped, together
    /// with its recovery: a resumed session begins with a copy of the one before.
    pub(crate) fn end(self, session: SessionTrace, path: &str, seen: &mut HashSet<u64>) -> History {
        let mut failures = self.failures;
        let id = session.id.clone();
        failures.retain(|failed| {
            let named = || {
                let id = id.as_ref()?;
                Some(hash(&(id, failed.step, failed.key(), &failed.code)))
            };
            let identity = failed.native.or_else(named);
            identity.is_none_or(|identity| seen.insert(identity))
        });
        let mut episodes = Vec::new();
        for found in session.found {
            let episode = found.episode;
            let own = |failed: &Failed| failed.step == episode.fail_step;
            if !failures.iter().any(own) {
                continue;
            }
            for failed in &mut failures {
                if own(failed) || episode.also_fail_steps.contains(&failed.step) {
                    failed.episode = Some(episodes.len());
                }
            }
            let time = self.times.get(episode.success_step).copied().flatten();
            episodes.push(Overcome {
                fail_step: episode.fail_step,
                success_step: episode.success_step,
                error_key: redacted(&episode.error_key),
                changes: episode.changes,
                success_code: found.success_code,
                workspace: found.workspace,
                lesson: found.lesson.ok(),
                time,
            });
        }
        History {
            id: id.unwrap_or_else(|| path.to_owned()),
            path: path.to_owned(),
            failures,
            episodes,
            end: self.times.last().copied().flatten(),
        }
    }
}

/// Event of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// Failure with this number.
    Failed(usize),
    /// Success of the episode with this number.
    Overcome(usize),
    /// End of the session.
    Ended,
}

/// All events with the number of their session, sorted by time.
pub(crate) fn in_time(histories: &[History]) -> impl Iterator<Item = (usize, What)> {
    let mut events = Vec::new();
    for (session, history) in histories.iter().enumerate() {
        for (n, failed) in history.failures.iter().enumerate() {
            events.push((failed.time, session, failed.step, What::Failed(n)));
        }
        for (n, episode) in history.episodes.iter().enumerate() {
            let at = (episode.time, session, episode.success_step);
            events.push((at.0, at.1, at.2, What::Overcome(n)));
        }
        events.push((history.end, session, usize::MAX, What::Ended));
    }
    events.sort_unstable();
    events
        .into_iter()
        .map(|(_, session, _, what)| (session, what))
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_right_hint_saves_is_neither_an_end_nor_a_change() {
        let overcome = |changes: &[usize]| Overcome {
            fail_step: 2,
            success_step: 8,
            changes: changes.to_vec(),
            error_key: String::new(),
            success_code: String::new(),
            workspace: String::new(),
            lesson: None,
            time: None,
        };
        assert_eq!(overcome(&[]).wasted(), 6);
        assert_eq!(overcome(&[]).needless_after(2), 5);
        assert_eq!(overcome(&[3, 7]).needless_after(2), 3);
        assert_eq!(overcome(&[3, 7]).needless_after(6), 0);
        assert_eq!(overcome(&[]).needless_after(9), 0);
    }

    #[test]
    fn sessions_that_ran_side_by_side_are_told_in_the_order_of_time() {
        let history = |times: &[Option<i64>]| History {
            path: String::new(),
            id: String::new(),
            failures: (0..)
                .zip(times)
                .map(|(step, time)| Failed {
                    step,
                    lines: Vec::new(),
                    code: String::new(),
                    project: None,
                    episode: None,
                    time: *time,
                    native: None,
                })
                .collect(),
            episodes: Vec::new(),
            end: times.last().copied().flatten(),
        };
        let told = |histories: &[History]| -> Vec<(usize, What)> { in_time(histories).collect() };
        let (a, b) = (history(&[Some(1), Some(5)]), history(&[Some(2), Some(3)]));
        let failed = What::Failed;
        assert_eq!(
            told(&[a, b, history(&[None])]),
            [
                (2, failed(0)),
                (2, What::Ended),
                (0, failed(0)),
                (1, failed(0)),
                (1, failed(1)),
                (1, What::Ended),
                (0, failed(1)),
                (0, What::Ended),
            ]
        );
    }
}
