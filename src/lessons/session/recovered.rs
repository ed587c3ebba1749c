//! Failures of a running session that a call has recovered.
//!
//! A session is searched for recoveries by one analysis, [`analyse`], at three moments that need three readings:
//! - here, at the call that worked, while an agent waits: the newest calls alone;
//! - at a stop, to ask about it (`asking::found_out`): the whole log, and the detours in it;
//! - at the end (`past::learn`): the session file, which has whole outputs, the messages of the person and the
//!   calls that no hook has seen.

use memctl_sessions::Step;

use super::calls::{NewestCalls, SessionCall};
use super::clean;
use crate::lessons::recovery::episodes::{Episode, NEAR_WITHIN, analyse};
use crate::lessons::recovery::pattern;
use crate::model::Pattern;
use crate::store::Scoped;

/// Number of calls; a failure that is older is given up.
const MOST: usize = 16;

/// Returns the patterns of the failures that a call of the log has recovered. A message of the person since then may be what helped.
pub(crate) fn recovered(store: &Scoped, session: &str, call: &SessionCall) -> Vec<Pattern> {
    let NewestCalls {
        mut calls,
        before_message,
    } = NewestCalls::of_session(store, session, MOST);
    // Calls that ran at the same time may be behind it.
    let place = calls.iter().rposition(|one| one == call);
    calls.truncate(place.map_or(0, |place| place + 1));
    recovered_by_last(calls.get(before_message..).unwrap_or_default())
}

/// Returns the patterns of the failures that the last of these calls has recovered.
fn recovered_by_last(calls: &[SessionCall]) -> Vec<Pattern> {
    let Some(first) = calls.iter().position(|call| call.failed) else {
        return Vec::new();
    };
    let steps = calls[first..].iter().enumerate();
    let steps: Vec<Step> = steps.map(|(at, call)| call.step(at)).collect();
    let last = steps.len() - 1;
    // A look at the failed object may come between a failure and its recovery.
    let is_over = |episode: &&Episode| {
        let wait = if episode.is_near { NEAR_WITHIN } else { 0 };
        episode.success_step + wait == last
    };
    let episodes = analyse(&steps, &[]).episodes;
    let over = episodes.iter().filter(is_over);
    over.filter_map(|episode| pattern::of_episode(episode, &steps, &clean).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Working calls of the patterns at each call that worked.
    fn check(calls: &[(&str, &str, bool)], expected: &[&[&str]]) {
        let made = calls
            .iter()
            .map(|(call, output, failed)| SessionCall::new(Some("Bash"), call, output, *failed));
        let made: Vec<SessionCall> = made.collect();
        let worked = (0..made.len()).filter(|at| !made[*at].failed);
        let found = worked.map(|at| {
            let patterns = recovered_by_last(&made[..=at]).into_iter();
            patterns.map(|one| one.working_code).collect::<Vec<_>>()
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_recovery_is_seen_once_at_its_success() {
        check(
            &[
                ("ls", "", false),
                ("rtk bun run test", "rtk: unknown command bun", true),
                ("ls -l", "go.sh", false),
                ("bun run test", "ok", false),
                ("ls", "", false),
            ],
            &[&[], &[], &["bun run test"], &[]],
        );
    }

    #[test]
    fn a_look_between_failure_and_cure_is_no_success() {
        let cure = "psql -d app -c 'ALTER TABLE users ADD COLUMN age INTEGER;'";
        check(
            &[
                (
                    "psql -d app -c 'ALTER TABLE users ADD COLUMN age;'",
                    "ERROR:  syntax error at or near \";\"",
                    true,
                ),
                (r"psql -d app -c '\d users'", "age | text", false),
                ("psql -d app -c 'select 1'", "1", false),
                (cure, "ALTER TABLE", false),
            ],
            &[&[], &[], &[cure]],
        );
    }

    #[test]
    fn a_change_in_between_is_no_pattern() {
        check(
            &[
                ("./go.sh", "bash: ./go.sh: Permission denied", true),
                ("chmod +x go.sh", "", false),
                ("./go.sh", "hi", false),
            ],
            &[&[], &[]],
        );
    }
}
