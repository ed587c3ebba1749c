//! Writes of the outcomes of hints: evidence of lessons, trials, the action log.
//!
//! They wait for the lock only for a moment. If another process holds it, what is owed stays in the session scratch, and a
//! later event of the session writes it.

use std::time::Duration;

use serde_json::json;

use super::service::{HintReport, HintService};
use crate::lessons::telling::evidence::is_demoted;
use crate::lessons::telling::hint::Outcome;
use crate::lessons::telling::session_state::{PendingOutcomes, SessionNotes};
use crate::lessons::telling::table::prepare;
use crate::model::{ActionType, ExecutionLog, Kind, Procedure, Trust};
use crate::store::workspace::Error;
use crate::store::workspace::records::{Scribe, data};
use crate::store::{self, Scoped};

/// Maximum wait for the lock while an agent waits for an answer.
const PATIENCE: Duration = Duration::from_millis(120);

impl HintService<'_> {
    /// Adds the shown hints to the action log. No agent waits for a sync to disk.
    pub(crate) fn note_shown(
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

    /// Store with a short lock timeout, for writes that an agent waits for.
    fn impatient(&self) -> Scoped {
        let limit = self.store.lock_limit().min(PATIENCE);
        self.store.clone().with_lock_limit(limit)
    }

    /// Writes outcomes into the evidence of lessons, and finished trials into the log of hints. A lesson
    /// that failed too often is retired: it stays in its file and is never shown again. An approved
    /// fix is not retired, because nobody has reviewed these sessions. Returns `false` if the lock
    /// is held for too long; the next event of the session writes instead.
    pub(crate) fn store_outcomes(
        &self,
        session: &str,
        owed: PendingOutcomes,
    ) -> Result<bool, Error> {
        let PendingOutcomes { credits, trials } = &owed;
        if owed.is_empty() {
            return Ok(true);
        }
        let mut random = || (self.random)();
        // If the lessons are in a database without a connection here, write only the log of hints.
        let only_logs = credits.is_empty() || self.store.is_apart()?;
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
        let trust_snapshot = writer.store().trust_snapshot();
        for credit in credits {
            let Some(entry) = writer.store().find(Kind::Procedure, &credit.id)? else {
                // The procedure was deleted in the meantime.
                continue;
            };
            let Ok(procedure) = entry.parse::<Procedure>() else {
                continue;
            };
            let mut evidence = procedure.evidence();
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
                changes.push(("needless", json!(procedure.needless_count() + 1)));
            }
            if is_demoted(evidence) && trust_snapshot.level(&procedure) == Trust::Observed {
                changes.push(("state", json!("retired")));
            }
            writer.update(Kind::Procedure, &credit.id, &changes)?;
        }
        // The table is rebuilt here, so that no later lookup has to.
        prepare(writer.store()).map(|()| true)
    }
}

/// Result of an operation that needs a lock; `None` if another process holds it.
pub(crate) fn unless_locked<T, E: Into<Error>>(done: Result<T, E>) -> Result<Option<T>, Error> {
    match done.map_err(Into::into) {
        Err(Error::Store(store::Error::Locked { .. })) => Ok(None),
        done => done.map(Some),
    }
}
