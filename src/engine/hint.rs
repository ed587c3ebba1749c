//! Looks up what worked before when something fails, and watches what comes of it.
//!
//! The hot path of the program: a host calls it at every failing call of a tool. It reads a derived
//! table, the few entries that the table points at, and the notes of the session; no model, no
//! network, no runtime. What is written at a failing call are the notes; the fixes themselves, and
//! the log of hints, are written when an outcome is known, which is rare. Whoever keeps the lock of the
//! memory delays what is written, by some events of the session, and no answer.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::guard;
use crate::learn::hint::{Failure, Hint, is_sunk};
use crate::learn::pitfall::{self, MAX_RULES, Pitfall};
use crate::learn::session_notes::{Credit, Outcome, Owed, SessionNotes};
use crate::model::{ActionType, ExecutionLog, Fix, Kind, Trial, Trust};
use crate::store::{self, Scoped, Terms};

use super::fixes::{key_of, known, table};
use super::session::{Scribe, data};
use super::{Error, Share, door, milliseconds, shared};

/// How long a writer is waited for while an agent waits for an answer.
const PATIENCE: Duration = Duration::from_millis(120);

/// Looks things up in a store, and keeps watch.
#[derive(Debug)]
pub struct Adviser<'a> {
    /// The records.
    pub store: &'a Scoped,
    /// Now.
    pub now: DateTime<Utc>,
    /// Makes a random name.
    pub random: fn() -> String,
    /// The share of hints that is withheld at random.
    pub withhold: Share,
}

/// What failed.
#[derive(Debug, Clone, Default)]
pub struct HintOptions {
    /// What the failing call printed.
    pub error: String,
    /// The tool, as its host names it; `None` for code that an agent runs itself.
    pub tool: Option<String>,
    /// The command or code that failed.
    pub command: Option<String>,
    /// The session in which it happens. Without one nothing is noted, and nothing is watched for.
    pub session: Option<String>,
    /// How many hints at most.
    pub max_hints: usize,
}

/// What is known about it.
#[derive(Debug, Default, Serialize)]
pub struct HintReport {
    /// The key of the error; `None` where the text names none.
    pub error_key: Option<String>,
    /// What worked before, best first.
    pub hints: Vec<Hint>,
    /// The rules of the classes of errors that were met, at most eight.
    pub pitfalls: Vec<String>,
    /// The fixes that would have been hints and were withheld by the experiment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Milliseconds.
    pub took_ms: f64,
}

impl Adviser<'_> {
    /// What is known about a failure. With a session it is noted there, what it says of earlier
    /// hints is credited, and the same hint is not shown again.
    pub fn hint(&self, options: &HintOptions) -> Result<HintReport, Error> {
        let start = Instant::now();
        // Whole, before a line of it becomes a key or a note.
        let error = guard::redact(&options.error).text;
        let key = key_of(&error);
        let mut report = HintReport {
            error_key: key.clone(),
            ..HintReport::default()
        };
        let tool = options.tool.as_deref();
        let own = pitfall::of_error(&error, tool);
        let terms = key.is_some().then(|| table(self.store)).transpose()?;
        let key = key.zip(terms);
        let Some(session) = &options.session else {
            if let Some((key, terms)) = key {
                report.hints = self.look_up(&terms, &key, options, &[]);
            }
            report.pitfalls = rules(own.as_slice());
            report.took_ms = milliseconds(start.elapsed());
            return Ok(report);
        };
        // Whoever keeps the notes to himself keeps no hint back.
        let notes = unless_locked(self.store.notes(session))?;
        let mut known = SessionNotes::read(&self.store.read_notes(session));
        let code = guard::redact(options.command.as_deref().unwrap_or_default()).text;
        let mut owed = std::mem::take(&mut known.owed);
        if let Some((key, terms)) = key {
            let credits = known.failed(&key, &error, &code, tool);
            let mut trials = known.trials.failed(&key);
            let hints = self.look_up(&terms, &key, options, &known.withheld());
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
            owed = owed.and(Owed { credits, trials });
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
                // A log that takes nothing is no reason to keep a hint back.
                drop(self.note_shown(session, tool, &report));
            }
        }
        report.pitfalls = rules(&known.pitfalls);
        report.took_ms = milliseconds(start.elapsed());
        Ok(report)
    }

    /// Says in the log of what agents did that hints were shown. No agent waits for the disk.
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
        let mut writer = door::open_logs(&self.impatient(), &mut || (self.random)())?;
        Ok(writer.note_execution_logs(vec![line])?)
    }

    /// Takes in that something worked in a session, and credits the hints that said so.
    pub fn succeeded(
        &self,
        session: &str,
        tool: Option<&str>,
        code: &str,
    ) -> Result<Vec<Credit>, Error> {
        // Most successes are of no interest, and those must not even wait for the lock.
        if !SessionNotes::read(&self.store.read_notes(session)).is_watching() {
            return Ok(Vec::new());
        }
        // No secret goes into what is compared with the notes, which have none.
        let code = guard::redact(code).text;
        self.note(session, |known| {
            let credits = known.succeeded(&code);
            let helped: Vec<String> = credits.iter().map(|credit| credit.id.clone()).collect();
            (credits, known.trials.succeeded(tool, &code, &helped))
        })
    }

    /// Takes in that a session has ended.
    pub fn ended(&self, session: &str) -> Result<(), Error> {
        let known = SessionNotes::read(&self.store.read_notes(session));
        if known.shown.is_empty() && !known.trials.are_open() && known.owed.is_empty() {
            return Ok(());
        }
        let end = |known: &mut SessionNotes| (known.ended(), known.trials.ended());
        self.note(session, end).map(drop)
    }

    /// The pitfalls that a session has met so far.
    pub fn pitfalls(&self, session: &str) -> Vec<Pitfall> {
        SessionNotes::read(&self.store.read_notes(session)).pitfalls
    }

    /// The hints for an error key, of this memory and of what was pulled. Reads only.
    fn look_up(
        &self,
        terms: &Terms,
        key: &str,
        options: &HintOptions,
        withheld: &[String],
    ) -> Vec<Hint> {
        let failure = Failure {
            error_key: key,
            code: options.command.as_deref(),
        };
        let own = known(terms, &failure, withheld, options.max_hints);
        shared::hints(self.store, own, &failure, withheld, options.max_hints)
    }

    fn note(
        &self,
        session: &str,
        change: impl FnOnce(&mut SessionNotes) -> (Vec<Credit>, Vec<Trial>),
    ) -> Result<Vec<Credit>, Error> {
        let notes = self.store.notes(session)?;
        let mut known = SessionNotes::read(&notes.read());
        let owed = std::mem::take(&mut known.owed);
        let (credits, trials) = change(&mut known);
        notes.save(&serde_json::to_vec(&known).map_err(store::Error::from)?)?;
        drop(notes);
        let own = Owed {
            credits: credits.clone(),
            trials,
        };
        self.settle(session, owed.and(own))?;
        Ok(credits)
    }

    /// The store for a writer whom an agent waits for.
    fn impatient(&self) -> Scoped {
        let limit = self.store.lock_limit().min(PATIENCE);
        self.store.clone().with_lock_limit(limit)
    }

    /// Writes down what is known now: outcomes in the evidence of fixes, and trials that have ended in
    /// the log of hints. A fix that has failed too often is retired: it stays in its file, and is
    /// shown no more. One that a person has approved is not: nobody has looked at these sessions. Where
    /// somebody else is writing for long, the next event of the session does it: `false`.
    pub(super) fn settle(&self, session: &str, owed: Owed) -> Result<bool, Error> {
        let Owed { credits, trials } = &owed;
        if owed.is_empty() {
            return Ok(true);
        }
        let mut random = || (self.random)();
        // Where the fixes lie in a database, an agent that waits for an answer does not wait for that.
        let only_logs = credits.is_empty() || self.store.is_apart()?;
        let open = if only_logs {
            door::open_logs
        } else {
            door::open
        };
        let Some(mut writer) = unless_locked(open(&self.impatient(), &mut random))? else {
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
                // It was forgotten in the meantime.
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
                None => {}
            }
            let mut changes = vec![
                ("shown", json!(evidence.shown)),
                ("helped", json!(evidence.helped)),
                ("harmed", json!(evidence.harmed)),
            ];
            if is_sunk(evidence) && standing.level(&fix) == Trust::Observed {
                changes.push(("status", json!("retired")));
            }
            writer.update(Kind::Fix, &credit.id, &changes)?;
        }
        // The table is made anew now, while nobody waits for an answer.
        table(writer.store()).map(|_| true)
    }
}

/// What a lock was needed for; `None` where somebody else keeps it.
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

    fn adviser(store: &Scoped) -> Adviser<'_> {
        Adviser {
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
        // Without a session nothing is noted.
        for _ in 0..2 {
            assert_eq!(ids(&at(None)), ["FIX-001"]);
        }
        assert_eq!(ids(&at(Some("s"))), ["FIX-001"]);
        assert!(adviser.succeeded("s", None, "ls").unwrap().is_empty());
        assert_eq!(
            adviser
                .succeeded("s", None, "pip install --user y")
                .unwrap()
                .len(),
            1
        );
        assert_eq!(evidence(&store), (1, 1, 0));
        assert_eq!(ids(&at(Some("s"))), ["FIX-001"]);
        // The same error again: no second showing, and a mark against the fix.
        assert_eq!(ids(&at(Some("s"))), [""; 0]);
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
            assert_eq!((at(session), at(session)), (1, 0), "{session}");
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
