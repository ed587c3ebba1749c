//! Looks up fixes when a call fails, and tracks the outcome of hints.
//!
//! This is the hot path: an agent host calls it at every failing tool call. It reads a derived
//! table, the few entries that the table names, and the session scratch; no model, no network, no
//! runtime. A failing call writes only the session scratch. Fixes and the log of hints are written
//! once an outcome is known, which is rare. If another process holds the lock, these writes wait
//! for a later event of the session; answers do not.

use std::time::Instant;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::guard;
use crate::hints::failure::Failure;
use crate::hints::hint::Hint;
use crate::hints::pitfall::{self, MAX_RULES, Pitfall};
use crate::hints::session_state::{Credit, PendingOutcomes, SessionNotes};
use crate::hints::shown::Outcome;
use crate::learn::distil::Lesson;
use crate::model::{Kind, Trial};
use crate::store::{self, Notes, Scoped, Terms};

use super::fixes::{known, table};
use super::settlement::unless_locked;
use super::{procedure_hints, remote};
use crate::workspace::milliseconds;
use crate::workspace::{Error, Share};

/// Looks up hints in a store, and tracks their outcome.
#[derive(Debug)]
pub struct HintService<'a> {
    /// Store with the fixes.
    pub store: &'a Scoped,
    /// Current time.
    pub now: DateTime<Utc>,
    /// Source of random names.
    pub random: fn() -> String,
    /// Share of hints that is withheld at random.
    pub withhold: Share,
}

/// Failing call.
#[derive(Debug, Clone, Default)]
pub struct HintOptions {
    /// Output of the call.
    pub error: String,
    /// Tool name of the agent host; `None` for code that an agent runs itself.
    pub tool: Option<String>,
    /// Command or code that failed.
    pub command: Option<String>,
    /// Name of the directory that the call was made in; `None` if unknown.
    pub project: Option<String>,
    /// Session of the call; `None` records nothing and tracks no outcome.
    pub session: Option<String>,
    /// Maximum number of hints.
    pub max_hints: usize,
}

/// Hints for a failing call.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct HintReport {
    /// Error key; `None` if the text contains no error.
    pub error_key: Option<String>,
    /// Fixes that worked before, best first, then procedures that have no fix.
    pub hints: Vec<Hint>,
    /// Rules for the error classes met so far, at most eight.
    pub pitfalls: Vec<String>,
    /// Ids of the fixes withheld by the experiment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Duration in milliseconds.
    pub took_ms: f64,
}

/// Outcome of a successful call.
#[derive(Debug, Default)]
pub struct Succeeded {
    /// Evidence for hints that it followed.
    pub credits: Vec<Credit>,
    /// Lessons of the failures that it recovered.
    pub lessons: Vec<Lesson>,
}

impl HintService<'_> {
    /// Looks up hints for a failure. With a session, the failure is recorded there, earlier hints
    /// get credit or blame, and no hint is shown twice.
    pub fn hint(&self, options: &HintOptions) -> Result<HintReport, Error> {
        let start = Instant::now();
        // The whole text is redacted before a line of it becomes a key or a note.
        let error = guard::redact(&options.error).text;
        let failure = Failure::of_redacted(
            &error,
            options.command.as_deref(),
            options.project.as_deref(),
        );
        let key = failure.as_ref().map(|failure| failure.key().to_owned());
        let mut report = HintReport {
            error_key: key.clone(),
            ..HintReport::default()
        };
        let tool = options.tool.as_deref();
        let own = pitfall::of_error(&error, tool);
        let terms = key.is_some().then(|| table(self.store)).transpose()?;
        let key = failure.zip(terms);
        let Some(session) = &options.session else {
            if let Some((failure, terms)) = key {
                report.hints = self.look_up(&terms, &failure, options, &[]);
            }
            self.count_retrieved(&report.hints);
            report.pitfalls = rules(own.as_slice());
            report.took_ms = milliseconds(start.elapsed());
            return Ok(report);
        };
        // A locked session scratch does not hold back a hint.
        let notes = self.notes(session)?;
        let mut known = SessionNotes::read(&self.store.read_notes(session));
        let code = guard::redact(options.command.as_deref().unwrap_or_default()).text;
        let mut owed = std::mem::take(&mut known.owed);
        owed.checks.extend(known.ran(tool, &code, false));
        if let Some((failure, terms)) = key {
            let key = failure.key().to_owned();
            let credits = known.failed(&key, &error, &code, tool);
            known.trace.failed(tool, &code, &error);
            let mut trials = known.trials.failed(&key);
            let hints = self.look_up(&terms, &failure, options, &known.withheld());
            let ids: Vec<String> = hints.iter().map(|hint| hint.id.clone()).collect();
            let withheld = self.withhold.withholds(self.store, &key, session);
            if !ids.is_empty() {
                let trial = Trial {
                    at: self.now.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string(),
                    session: guard::redact(session).text.into_owned(),
                    error_key: key.clone(),
                    hints: ids.clone(),
                    withheld,
                    share: self.withhold.get(),
                    ..Trial::default()
                };
                trials.extend(known.trials.begin(trial, tool, &code));
            }
            owed = owed.and(PendingOutcomes {
                credits,
                trials,
                ..PendingOutcomes::default()
            });
            if withheld {
                report.withheld = ids;
            } else {
                known.showed(&key, &hints);
                report.hints = hints;
            }
        }
        if let Some(notes) = notes {
            notes.save(&serde_json::to_vec(&known).map_err(store::Error::from)?)?;
            drop(notes);
            let is_free = self.store_outcomes(session, owed)?;
            if is_free && !report.hints.is_empty() {
                // A failed log write does not hold back a hint.
                drop(self.note_shown(session, tool, &report));
            }
        }
        self.count_retrieved(&report.hints);
        report.pitfalls = rules(&known.pitfalls);
        report.took_ms = milliseconds(start.elapsed());
        Ok(report)
    }

    /// Records a successful call in a session, and credits the hints that it followed. Returns
    /// what it teaches, if it recovered a failure.
    pub fn succeeded(
        &self,
        session: &str,
        tool: Option<&str>,
        code: &str,
        output: &str,
    ) -> Result<Succeeded, Error> {
        // Most successes follow no hint, and must not wait for the lock.
        if self.store.directory().is_read_only()
            || !SessionNotes::read(&self.store.read_notes(session)).is_watching()
        {
            return Ok(Succeeded::default());
        }
        // The session scratch is redacted, so the code to compare is redacted too.
        let code = guard::redact(code).text;
        let output = guard::redact(output).text;
        let mut lessons = Vec::new();
        let credits = self.note(session, |known| {
            let credits = known.succeeded(&code);
            let followed = credits
                .iter()
                .filter(|c| c.outcome != Some(Outcome::Needless));
            let helped: Vec<String> = followed.map(|credit| credit.id.clone()).collect();
            lessons = known.trace.succeeded(tool, &code, &output);
            PendingOutcomes {
                trials: known.trials.succeeded(tool, &code, &helped),
                credits,
                checks: known.ran(tool, &code, true),
            }
        })?;
        Ok(Succeeded { credits, lessons })
    }

    /// Records the end of a session.
    pub fn ended(&self, session: &str) -> Result<(), Error> {
        let known = SessionNotes::read(&self.store.read_notes(session));
        let is_idle = known.shown.is_empty()
            && !known.trials.are_open()
            && known.owed.is_empty()
            && known.fired.is_empty();
        if is_idle || self.store.directory().is_read_only() {
            return Ok(());
        }
        let mut fired = Vec::new();
        self.note(session, |known| {
            fired = known.unlogged();
            PendingOutcomes {
                credits: known.ended(),
                trials: known.trials.ended(),
                ..PendingOutcomes::default()
            }
        })?;
        if !fired.is_empty() {
            // A failed log write is no reason not to learn from the session.
            drop(self.note_fired(session, &fired));
        }
        Ok(())
    }

    /// Pitfalls that a session has met so far.
    pub fn pitfalls(&self, session: &str) -> Vec<Pitfall> {
        SessionNotes::read(&self.store.read_notes(session)).pitfalls
    }

    /// Counts a retrieval of each procedure among the hints.
    fn count_retrieved(&self, hints: &[Hint]) {
        let procedures = hints.iter().filter(|hint| hint.kind == Kind::Procedure);
        let ids = procedures.map(|hint| hint.id.as_str());
        self.store.count_retrievals(ids);
    }

    /// Returns the hints for an error key: local and remote fixes, then procedures that have no fix.
    /// Reads only.
    fn look_up(
        &self,
        terms: &Terms,
        failure: &Failure<'_>,
        options: &HintOptions,
        withheld: &[String],
    ) -> Vec<Hint> {
        let own = known(terms, failure, withheld, options.max_hints);
        let mut hints = remote::hints(self.store, own, failure, withheld, options.max_hints);
        let room = options.max_hints.saturating_sub(hints.len());
        if room > 0 {
            // Procedures that cannot be read are no reason to keep the fixes back.
            let procedures = procedure_hints::known(self.store, failure, withheld, room);
            hints.extend(procedures.unwrap_or_default());
        }
        hints
    }

    fn note(
        &self,
        session: &str,
        change: impl FnOnce(&mut SessionNotes) -> PendingOutcomes,
    ) -> Result<Vec<Credit>, Error> {
        let notes = self.store.notes(session)?;
        let mut known = SessionNotes::read(&notes.read());
        let owed = std::mem::take(&mut known.owed);
        let own = change(&mut known);
        notes.save(&serde_json::to_vec(&known).map_err(store::Error::from)?)?;
        drop(notes);
        let credits = own.credits.clone();
        self.store_outcomes(session, owed.and(own))?;
        Ok(credits)
    }

    /// Changes the session scratch, and stores no outcome: an agent waits. If another process holds
    /// the lock, the change is not recorded, and its answer is given all the same.
    pub(super) fn record(
        &self,
        session: &str,
        change: impl FnOnce(&mut SessionNotes),
    ) -> Result<(), Error> {
        let notes = self.notes(session)?;
        let mut known = SessionNotes::read(&self.store.read_notes(session));
        let before = known.clone();
        change(&mut known);
        if let Some(notes) = notes.filter(|_| known != before) {
            notes.save(&serde_json::to_vec(&known).map_err(store::Error::from)?)?;
        }
        Ok(())
    }

    /// Opens the session scratch for changes; `None` if another process holds the lock, or nothing can
    /// be written.
    pub(super) fn notes(&self, session: &str) -> Result<Option<Notes>, Error> {
        if self.store.directory().is_read_only() {
            return Ok(None);
        }
        match unless_locked(self.store.notes(session)) {
            // Without notes a hint may be shown twice, and nothing else is lost.
            Err(Error::Store(store::Error::Io { .. })) => Ok(None),
            notes => notes,
        }
    }
}

fn rules(pitfalls: &[Pitfall]) -> Vec<String> {
    let rules = pitfalls.iter().map(|pitfall| pitfall.rule.clone());
    rules.take(MAX_RULES).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixes::tests::{fix, store};
    use super::*;
    use crate::learn::error_key::error_key;
    use crate::model::{Evidence, Fix};

    fn adviser(store: &Scoped) -> HintService<'_> {
        HintService {
            store,
            now: DateTime::UNIX_EPOCH,
            random: || "r".to_owned(),
            withhold: Share::NONE,
        }
    }

    fn failure(error: &str, command: &str, session: Option<&str>) -> HintOptions {
        HintOptions {
            error: error.to_owned(),
            tool: Some("Bash".to_owned()),
            command: Some(command.to_owned()),
            project: None,
            session: session.map(str::to_owned),
            max_hints: 3,
        }
    }

    const ERROR: &str = "error: externally-managed-environment";

    fn evidence(store: &Scoped) -> (u64, u64, u64) {
        let Evidence {
            shown,
            helped,
            harmed,
        } = store.get::<Fix>("FIX-001").unwrap().evidence();
        (shown, helped, harmed)
    }

    #[test]
    fn a_hint_is_found_shown_once_and_credited() {
        let key = error_key(ERROR).unwrap();
        let known = fix(1, &key, "pip install x", "pip install --user x");
        let (_dir, store) = store(&[known, fix(2, "other", "a", "b")]);
        let adviser = adviser(&store);
        let at = |session| {
            adviser
                .hint(&failure(ERROR, "pip install y", session))
                .unwrap()
        };
        let ids = |report: &HintReport| -> Vec<String> {
            report.hints.iter().map(|hint| hint.id.clone()).collect()
        };
        // Without a session nothing is recorded.
        for _ in 0..2 {
            assert_eq!(ids(&at(None)), ["FIX-001"]);
        }
        assert_eq!(ids(&at(Some("s"))), ["FIX-001"]);
        assert!(
            adviser
                .succeeded("s", None, "ls", "")
                .unwrap()
                .credits
                .is_empty()
        );
        assert_eq!(
            adviser
                .succeeded("s", None, "pip install --user y", "")
                .unwrap()
                .credits
                .len(),
            1
        );
        assert_eq!(evidence(&store), (1, 1, 0));
        assert_eq!(ids(&at(Some("s"))), ["FIX-001"]);
        // Ignoring a hint says nothing about it, and it is not shown again.
        assert_eq!(ids(&at(Some("s"))), [""; 0]);
        assert_eq!(evidence(&store), (1, 1, 0));
        // A call that follows the hint and fails with the same error is evidence against the fix.
        let again = failure(ERROR, "pip install --user y", Some("s"));
        assert_eq!(ids(&adviser.hint(&again).unwrap()), [""; 0]);
        assert_eq!(evidence(&store), (2, 1, 1));
        assert_eq!(ids(&at(Some("t"))), ["FIX-001"]);
        adviser.ended("t").unwrap();
        adviser.ended("t").unwrap();
        assert_eq!(evidence(&store), (3, 1, 1));
    }

    #[test]
    fn a_fix_that_stops_working_retires() {
        let key = error_key(ERROR).unwrap();
        let (_dir, store) = store(&[fix(1, &key, "pip install x", "pip install --user x")]);
        let adviser = adviser(&store);
        let at = |session: &str| {
            let options = failure(ERROR, "pip install x", Some(session));
            adviser.hint(&options).unwrap().hints.len()
        };
        for session in ["a", "b", "c"] {
            assert_eq!(at(session), 1, "{session}");
            let follows = failure(ERROR, "pip install --user x", Some(session));
            assert!(adviser.hint(&follows).unwrap().hints.is_empty());
        }
        assert_eq!(at("d"), 0);
        assert!(!store.get::<Fix>("FIX-001").unwrap().is_active());
    }

    #[test]
    fn pitfalls_accumulate_over_a_session() {
        let (_dir, store) = store(&[]);
        let adviser = adviser(&store);
        for error in [
            "KeyError: 'a'",
            "bash: foo: command not found",
            "KeyError: 'b'",
        ] {
            adviser.hint(&failure(error, "x", Some("s"))).unwrap();
        }
        assert_eq!(adviser.pitfalls("s").len(), 2);
        assert_eq!(adviser.pitfalls("t").len(), 0);
    }
}
