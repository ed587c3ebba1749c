//! Notes on what a running session was told: hints with their outcomes, pitfalls, and failures that came again.
//!
//! After a hint, the next steps decide. Success in the hinted way counts for the lesson, the same error again
//! counts against it, and anything else does not count. The first of the two decides.
//!
//! A session counts at most once for and once against a lesson, however often a loop repeats.

use std::collections::HashSet;

use super::hint::{Pitfall, pitfall_of};
use crate::lessons::recovery::difference::Change;
use crate::lessons::storage::advice::is_followed;
use crate::lessons::storage::new_lesson::is_demoted;
use crate::lessons::storage::words::code_spans;
use crate::lessons::telling::hint::{Hint, HintOutcome, Shown};
use crate::model::text::{of_commands, one_line};
use crate::model::{Pattern, Procedure, Record as _, Trust};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of equal failures, watched lessons and unstored outcomes: the newest.
const NEWEST: usize = 32;
/// Maximum number of lessons that one session can count for or against. Further ones are ignored.
const WITNESSED: usize = 512;
/// Maximum length of stored code, in bytes. Cut code still distinguishes lessons.
const LONGEST: usize = 4_000;
/// Maximum length of the stored call that failed, in bytes.
const LONGEST_CALL: usize = 600;

/// State of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LessonScratch {
    /// Lessons and patterns that were shown.
    pub shown: Vec<Shown>,
    /// Classes of errors that occurred, in order of first occurrence.
    pub pitfalls: Vec<Pitfall>,
    /// Lessons that the session has counted for or against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnessed: Vec<(String, HintOutcome)>,
    /// Evidence not stored yet because another process held the lock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Credit>,
    /// Failures that came more than once, by the hash of error and call, with their number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<(u64, u64)>,
    /// Number of rules that the agent got at the start of the session.
    pub rules_at_start: usize,
    /// Lessons that it got there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons_at_start: Vec<String>,
}

/// Addition to a lesson's evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Credit {
    /// Id of the lesson.
    pub id: String,
    /// True if the use is to be counted, false if it was counted before.
    pub shown: bool,
    /// Outcome, if known.
    pub outcome: Option<HintOutcome>,
}

impl LessonScratch {
    /// Records a failure. Returns the evidence about lessons shown before.
    pub(crate) fn failed(
        &mut self,
        error_key: &str,
        error: &str,
        code: &str,
        tool: Option<&str>,
    ) -> Vec<Credit> {
        // A call that does not follow the hint says nothing about it.
        let credits = self.judge(HintOutcome::Harmed, |shown| {
            shown.error_key == error_key && adopts(code, shown)
        });
        if let Some(found) = pitfall_of(error, tool)
            && !self.pitfalls.contains(&found)
        {
            self.pitfalls.push(found);
        }
        credits
    }

    /// Counts a failure of a call. Returns how often it has come in the same way.
    pub(crate) fn times(&mut self, error_key: &str, code: &str) -> u64 {
        let hash = xxh3_64(format!("{}\0{error_key}", one_line(code)).as_bytes());
        if let Some((_, times)) = self.repeated.iter_mut().find(|(own, _)| *own == hash) {
            *times += 1;
            return *times;
        }
        self.repeated.push((hash, 1));
        self.repeated
            .drain(..self.repeated.len().saturating_sub(NEWEST));
        1
    }

    /// Records a success. Returns the evidence about lessons shown before.
    pub(crate) fn succeeded(&mut self, code: &str) -> Vec<Credit> {
        let mut credits = self.judge(HintOutcome::Needless, |shown| {
            shown.before && shown.call.trim() == code.trim()
        });
        credits.extend(self.judge(HintOutcome::Helped, |shown| adopts(code, shown)));
        credits
    }

    /// Ids of everything that was shown.
    pub(crate) fn shown_ids(&self) -> Vec<String> {
        self.shown.iter().map(|shown| shown.id.clone()).collect()
    }

    /// Number of lessons that the session was told, at its start or at a call, and of those that helped it.
    pub(crate) fn lessons_told(&self) -> (usize, usize) {
        let shown = self.shown.iter().map(|shown| &shown.id);
        let witnessed = self.witnessed.iter().map(|(id, _)| id);
        let told: HashSet<&String> = self
            .lessons_at_start
            .iter()
            .chain(shown)
            .chain(witnessed)
            .collect();
        let helped = self.witnessed.iter();
        let helped = helped.filter(|(_, outcome)| *outcome == HintOutcome::Helped);
        (told.len(), helped.count())
    }

    /// Records the hints shown for an error, or before a call.
    pub(crate) fn showed(&mut self, error_key: &str, hints: &[Hint], call: &str, before: bool) {
        let call = &call[..call.floor_char_boundary(LONGEST_CALL)];
        for hint in hints {
            self.shown.retain(|shown| shown.id != hint.id);
            self.shown.push(Shown {
                id: hint.id.clone(),
                is_lesson: !hint.lesson.is_empty(),
                advice: hint.advice.clone(),
                error_key: error_key.to_owned(),
                failing_code: cut(&hint.failing_code),
                working_code: cut(&hint.working_code),
                call: call.to_owned(),
                outcome: None,
                counted: false,
                before,
            });
        }
        self.shown.drain(..self.shown.len().saturating_sub(NEWEST));
    }

    /// Ids of lessons not to show again: shown before, and not adopted with success.
    pub(crate) fn not_again(&self) -> Vec<String> {
        let again = |shown: &&Shown| shown.outcome != Some(HintOutcome::Helped);
        let ids = self.shown.iter().filter(again);
        ids.map(|shown| shown.id.clone()).collect()
    }

    /// Returns true if a later step can decide about a hint.
    pub(crate) fn is_watching(&self) -> bool {
        self.shown.iter().any(|shown| shown.outcome.is_none())
    }

    /// Records the end of the session. Returns the uses without an outcome. If the session
    /// continues, later outcomes still count.
    pub(crate) fn ended(&mut self) -> Vec<Credit> {
        let open = self.shown.iter_mut().filter(|shown| !shown.counted);
        open.map(|shown| {
            shown.counted = true;
            Credit {
                id: shown.id.clone(),
                shown: true,
                outcome: None,
            }
        })
        .collect()
    }

    /// Retains evidence that could not be stored, before what has come since: the newest.
    pub(crate) fn postpone(&mut self, credits: Vec<Credit>) {
        self.pending.splice(..0, credits);
        self.pending
            .drain(..self.pending.len().saturating_sub(NEWEST));
    }

    fn judge(&mut self, outcome: HintOutcome, concerns: impl Fn(&Shown) -> bool) -> Vec<Credit> {
        let mut credits = Vec::new();
        for shown in &mut self.shown {
            if shown.outcome.is_none() && concerns(shown) {
                shown.outcome = Some(outcome);
                let verdict = (shown.id.clone(), outcome);
                let is_new = self.witnessed.len() < WITNESSED && !self.witnessed.contains(&verdict);
                if is_new {
                    self.witnessed.push(verdict);
                }
                credits.push(Credit {
                    id: shown.id.clone(),
                    shown: !shown.counted,
                    outcome: is_new.then_some(outcome),
                });
                shown.counted = true;
            }
        }
        credits
    }
}

fn cut(code: &str) -> String {
    code[..code.floor_char_boundary(LONGEST)].to_owned()
}

/// Minimum likeness of a call to a recorded piece of code that it follows.
const LIKE: f64 = 0.5;

/// Returns `true` if a call does what was told, and the call that failed did not: it runs one of the commands in the
/// backticks of a lesson, or has the change of a pattern. A lesson without a command has no outcome.
pub(crate) fn adopts(code: &str, shown: &Shown) -> bool {
    if shown.is_lesson {
        return is_followed(code, &shown.advice) && !is_followed(&shown.call, &shown.advice);
    }
    if shown.failing_code.is_empty() {
        let advice: Vec<String> = code_spans(&shown.working_code)
            .map(|(_, code)| code.to_owned())
            .collect();
        return is_followed(code, &advice);
    }
    let pattern = Pattern {
        error_line: shown.error_key.clone(),
        failing_code: shown.failing_code.clone(),
        working_code: shown.working_code.clone(),
        ..Pattern::default()
    };
    match Change::of(&pattern) {
        Some(change) if !change.added.is_empty() || !change.dropped.is_empty() => {
            !change.is_in(&shown.call) && change.is_in(code) || change.is_made(&shown.call, code)
        }
        // It is like the working code, and more so than the failing call.
        _ => {
            let likeness = |code: &str| of_commands(code, &shown.working_code);
            likeness(code) >= LIKE && likeness(code) > likeness(&shown.call)
        }
    }
}

/// Describes the evidence against an approved lesson; `None` if there is none. Sessions do not retire such a lesson, so
/// a person has to decide.
pub(crate) fn doubt(procedure: &Procedure) -> Option<String> {
    let (id, evidence) = (&procedure.procedure_id, procedure.evidence());
    let outcomes = evidence.helped.saturating_add(evidence.harmed);
    let state = if procedure.trust() == Trust::Observed || procedure.is_episode() {
        return None;
    } else if !procedure.is_active() {
        "retired, and is not told any more".to_owned()
    } else if is_demoted(evidence) {
        let of = if outcomes == 1 { "session" } else { "sessions" };
        format!("harmful in {} of {outcomes} {of}", evidence.harmed)
    } else {
        return None;
    };
    Some(format!("`{id}` is approved and was {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(id: &str) -> Hint {
        Hint::of_calls(id, "pip install x", "pip install --user x")
    }

    fn shown() -> LessonScratch {
        let mut scratch = LessonScratch::default();
        assert_eq!(scratch.failed("E", "E", "pip install x", Some("Bash")), []);
        scratch.showed("E", &[hint("PROC-001")], "pip install x", false);
        scratch
    }

    fn credit(outcome: HintOutcome) -> [Credit; 1] {
        [Credit {
            id: "PROC-001".to_owned(),
            shown: true,
            outcome: Some(outcome),
        }]
    }

    #[test]
    fn the_hinted_way_speaks_for_the_fix_once() {
        let mut scratch = shown();
        assert!(scratch.is_watching());
        assert_eq!(scratch.succeeded("ls"), []);
        assert_eq!(scratch.not_again(), ["PROC-001"]);
        assert_eq!(
            scratch.succeeded("pip install --user x"),
            credit(HintOutcome::Helped)
        );
        assert_eq!(scratch.succeeded("pip install --user x"), []);
        // A lesson that helped can be shown again.
        assert_eq!(scratch.not_again(), [""; 0]);
        assert!(!scratch.is_watching());
    }

    #[test]
    fn the_same_error_again_speaks_against_it_once() {
        let mut scratch = shown();
        assert_eq!(scratch.failed("F", "F", "ls", None), []);
        // Ignoring the hint says nothing.
        assert_eq!(scratch.failed("E", "E", "pip install x", None), []);
        let follows = "pip install --user x";
        assert_eq!(
            scratch.failed("E", "E", follows, None),
            credit(HintOutcome::Harmed)
        );
        assert_eq!(scratch.failed("E", "E", follows, None), []);
        assert_eq!(scratch.succeeded("pip install --user x"), []);
        assert_eq!(scratch.not_again(), ["PROC-001"]);
    }

    #[test]
    fn loop_of_one_session_speaks_once() {
        let mut scratch = LessonScratch::default();
        let (mut helped, mut harmed, mut showings) = (0, 0, 0);
        for turn in 0..20 {
            let mut credits = scratch.failed("E", "E", "pip install x", Some("Bash"));
            scratch.showed("E", &[hint("PROC-001")], "pip install x", false);
            let follows = "pip install --user x";
            if turn % 2 == 0 {
                credits.extend(scratch.succeeded(follows));
            } else {
                credits.extend(scratch.failed("E", "E", follows, Some("Bash")));
            }
            for credit in credits {
                helped += usize::from(credit.outcome == Some(HintOutcome::Helped));
                harmed += usize::from(credit.outcome == Some(HintOutcome::Harmed));
                showings += usize::from(credit.shown);
            }
        }
        assert_eq!((helped, harmed, showings), (1, 1, 20));
        scratch.failed("E", "E", "pip install x", Some("Bash"));
        for other in 0..2 * WITNESSED {
            scratch.showed("E", &[hint(&other.to_string())], "pip install x", false);
            scratch.succeeded("pip install --user x");
        }
        assert_eq!(scratch.witnessed.len(), WITNESSED);
    }

    #[test]
    fn a_showing_is_counted_once_though_the_session_goes_on() {
        let mut scratch = shown();
        let [ended] = &scratch.ended()[..] else {
            panic!("one showing was open");
        };
        assert_eq!((ended.shown, ended.outcome), (true, None));
        assert_eq!(scratch.ended(), []);
        let credits = scratch.succeeded("pip install --user x");
        assert_eq!(
            (credits[0].shown, credits[0].outcome),
            (false, Some(HintOutcome::Helped))
        );
    }

    #[test]
    fn notes_survive_the_session_and_stay_small() {
        let mut scratch = shown();
        scratch.failed("K", "KeyError: 'a'", &"é".repeat(9_000), None);
        scratch.failed("K", "KeyError: 'b'", "y", None);
        assert_eq!(scratch.pitfalls.len(), 1);
        let text = serde_json::to_vec(&scratch).unwrap();
        assert_eq!(
            serde_json::from_slice::<LessonScratch>(&text).unwrap(),
            scratch
        );
        for i in 0..200 {
            scratch.failed(&i.to_string(), "", &"z".repeat(9_000), None);
            scratch.showed("E", &[hint(&i.to_string())], "z", false);
        }
        assert!(serde_json::to_vec(&scratch).unwrap().len() < 200_000);
    }
}

#[cfg(test)]
mod tests_of_evidence {
    use super::*;

    #[test]
    fn recorded_code_is_followed_in_other_words() {
        let shown = Shown {
            failing_code: "print(drugs['mechanism'])".to_owned(),
            working_code: "for row in await drugs.search('kinase'): print(row['mechanism'])"
                .to_owned(),
            call: "print(drugs['target'])".to_owned(),
            ..Shown::default()
        };
        assert!(adopts(
            "for row in await drugs.search('x'): print(row['target'])",
            &shown
        ));
        assert!(!adopts("print(drugs.get('target'))", &shown));
    }
}
