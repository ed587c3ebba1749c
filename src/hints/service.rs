//! Looks up fixes when a call fails, and tracks the outcome of hints.
//!
//! This is the hot path: an agent host calls it at every failing tool call. It reads a derived
//! table, the few entries that the table names, and the session scratch; no model, no network, no
//! runtime. A failing call writes only the session scratch. Fixes and the log of hints are written
//! once an outcome is known, which is rare. If another process holds the lock, these writes wait
//! for a later event of the session; answers do not.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::guard;
use crate::hints::failure::Failure;
use crate::hints::pitfall::{self, MAX_RULES, Pitfall};
use crate::hints::ranking::{Hint, is_sunk};
use crate::hints::session_state::{Credit, Owed, SessionNotes};
use crate::hints::shown::Outcome;
use crate::learn::distil::Lesson;
use crate::model::{ActionType, ExecutionLog, Fix, Kind, Reflexion, Trial, Trust};
use crate::store::{self, Notes, Scoped, Terms, Writer};

use super::checks;
use super::fired::CheckCredit;
use super::fixes::{known, table};
use super::{procedure_hints, remote};
use crate::workspace::execution_log_lines::{Scribe, data};
use crate::workspace::milliseconds;
use crate::workspace::{Error, Share};

/// Maximum wait for the lock while an agent waits for an answer.
const PATIENCE: Duration = Duration::from_millis(120);

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
            owed = owed.and(Owed {
                credits,
                trials,
                ..Owed::default()
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
            let is_free = self.settle(session, owed)?;
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

    /// Adds the shown hints to the action log. No agent waits for a sync to disk.
    fn note_shown(
        &self,
        session: &str,
        tool: Option<&str>,
        report: &HintReport,
    ) -> Result<(), Error> {
        let ids: Vec<&str> = report.hints.iter().map(|hint| hint.id.as_str()).collect();
        let scribe = Scribe::new(self.now, self.random, Some(session));
        let line = ExecutionLog {
            tool_name: tool.map(str::to_owned),
            input_data: data(&json!({ "error_key": report.error_key })),
            output_data: data(&json!({ "hints": ids })),
            ..scribe.line("hint", ActionType::MemoryRead)
        };
        let mut writer = self.impatient().write_logs(&mut || (self.random)())?;
        Ok(writer.note_execution_logs(vec![line])?)
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
            Owed {
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
            Owed {
                credits: known.ended(),
                trials: known.trials.ended(),
                ..Owed::default()
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
        change: impl FnOnce(&mut SessionNotes) -> Owed,
    ) -> Result<Vec<Credit>, Error> {
        let notes = self.store.notes(session)?;
        let mut known = SessionNotes::read(&notes.read());
        let owed = std::mem::take(&mut known.owed);
        let own = change(&mut known);
        notes.save(&serde_json::to_vec(&known).map_err(store::Error::from)?)?;
        drop(notes);
        let credits = own.credits.clone();
        self.settle(session, owed.and(own))?;
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

    /// Opens the session scratch for changes; `None` if another process holds the lock, or the store
    /// is read-only.
    pub(super) fn notes(&self, session: &str) -> Result<Option<Notes>, Error> {
        if self.store.directory().is_read_only() {
            return Ok(None);
        }
        unless_locked(self.store.notes(session))
    }

    /// Store with a short lock timeout, for writes that an agent waits for.
    fn impatient(&self) -> Scoped {
        let limit = self.store.lock_limit().min(PATIENCE);
        self.store.clone().with_lock_limit(limit)
    }

    /// Writes outcomes into the evidence of fixes, and finished trials into the log of hints. A fix
    /// that failed too often is retired: it stays in its file and is never shown again. An approved
    /// fix is not retired, because nobody has reviewed these sessions. Returns `false` if the lock
    /// is held for too long; the next event of the session writes instead.
    pub(crate) fn settle(&self, session: &str, owed: Owed) -> Result<bool, Error> {
        let Owed {
            credits,
            trials,
            checks,
        } = &owed;
        if owed.is_empty() {
            return Ok(true);
        }
        let mut random = || (self.random)();
        // If the fixes are in a database without a connection here, write only the log of hints.
        let only_logs = credits.is_empty() && checks.is_empty() || self.store.is_apart()?;
        let store = self.impatient();
        let opened = if only_logs {
            store.write_logs(&mut random)
        } else {
            store.write(&mut random)
        };
        let Some(mut writer) = unless_locked(opened.map_err(Error::from))? else {
            let notes = self.store.notes(session)?;
            let mut known = SessionNotes::read(&notes.read());
            known.owed = owed.and(std::mem::take(&mut known.owed));
            notes.save(&serde_json::to_vec(&known).map_err(store::Error::from)?)?;
            return Ok(false);
        };
        for trial in trials {
            writer.append_trial(trial)?;
        }
        if only_logs {
            return Ok(true);
        }
        let standing = writer.store().standing();
        for credit in credits {
            let Some(entry) = writer.store().find(Kind::Fix, &credit.id)? else {
                // The fix was deleted in the meantime.
                continue;
            };
            let Ok(fix) = entry.parse::<Fix>() else {
                continue;
            };
            let mut evidence = fix.evidence();
            evidence.shown += u64::from(credit.shown);
            match credit.outcome {
                Some(Outcome::Helped) => evidence.helped += 1,
                Some(Outcome::Harmed) => evidence.harmed += 1,
                Some(Outcome::Needless) | None => {}
            }
            let mut changes = vec![
                ("shown", json!(evidence.shown)),
                ("helped", json!(evidence.helped)),
                ("harmed", json!(evidence.harmed)),
            ];
            if credit.outcome == Some(Outcome::Needless) {
                changes.push(("needless", json!(fix.evidence_of_needless() + 1)));
            }
            if is_sunk(evidence) && standing.level(&fix) == Trust::Observed {
                changes.push(("status", json!("retired")));
            }
            writer.update(Kind::Fix, &credit.id, &changes)?;
        }
        if !checks.is_empty() {
            Self::count_checks(&mut writer, checks)?;
        }
        // The table is rebuilt here, so that no later lookup has to.
        table(writer.store()).map(|_| true)
    }
}

impl HintService<'_> {
    /// Adds the rules that acted in a session to the action log, at its end: only then the hook
    /// knows the user.
    fn note_fired(&self, session: &str, rules: &[String]) -> Result<(), Error> {
        let scribe = Scribe::new(self.now, self.random, Some(session));
        let line = ExecutionLog {
            output_data: data(&json!({ "rules": rules })),
            ..scribe.line("check", ActionType::MemoryRead)
        };
        let mut writer = self.impatient().write_logs(&mut || (self.random)())?;
        Ok(writer.note_execution_logs(vec![line])?)
    }

    /// Adds firings and overrides to the counts of rules.
    fn count_checks(writer: &mut Writer, checks: &[CheckCredit]) -> Result<(), Error> {
        for credit in checks {
            let Some(entry) = writer.store().find(Kind::Reflexion, &credit.id)? else {
                continue;
            };
            let rule = entry.parse::<Reflexion>();
            let Some(rule) = rule.ok().filter(|rule| rule.check.is_some()) else {
                // The check was removed in the meantime.
                continue;
            };
            let used = rule.check_use();
            let counts = [
                ("check_fired", used.fired, credit.fired),
                ("check_overridden", used.overridden, credit.overridden),
                ("check_needless", used.needless, credit.needless),
            ];
            let moved = counts.into_iter().filter(|(.., counts)| *counts);
            let changes: Vec<_> = moved.map(|(name, n, _)| (name, json!(n + 1))).collect();
            writer.update(Kind::Reflexion, &credit.id, &changes)?;
        }
        checks::prepare(writer.store())
    }
}

/// Result of an operation that needs a lock; `None` if another process holds it.
fn unless_locked<T, E: Into<Error>>(done: Result<T, E>) -> Result<Option<T>, Error> {
    match done.map_err(Into::into) {
        Err(Error::Store(store::Error::Locked { .. })) => Ok(None),
        done => done.map(Some),
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
    use crate::model::Evidence;

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
