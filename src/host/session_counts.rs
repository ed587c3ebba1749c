//! Numbers of a running session, for the status line of an agent host.
//!
//! They are asked for after every message, so they come from the notes of the session and from the newest
//! rules alone. Nothing is written.

use crate::model::{Kind, Reflexion};
use crate::rules::session_receipts;
use crate::store::Selection;
use crate::store::workspace::Error;

use crate::lessons::telling::service::HintService;
use crate::lessons::telling::session_state::SessionNotes;
use crate::rules::briefing::{LOOKED_AT, waits};

/// Numbers of a running session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Rules that the agent got at the start.
    pub told: usize,
    /// Rules that it was told at calls.
    pub told_at_calls: usize,
    /// Of these, rules that no later call has broken.
    pub heeded: usize,
    /// Hints that helped: lessons with a success after they were shown.
    pub helped: usize,
    /// Candidate rules among the newest rules that wait for a decision.
    pub waiting: usize,
}

impl HintService<'_> {
    /// Returns the numbers of a session. Without a session, only the candidates are counted.
    pub fn session_counts(&self, session: Option<&str>) -> Result<SessionCounts, Error> {
        let notes = session.map(|session| SessionNotes::read(&self.store.read_notes(session)));
        let notes = notes.unwrap_or_default();
        let newest = Selection {
            skill: None,
            newest: Some(LOOKED_AT),
        };
        let mut waiting = 0;
        self.store
            .each_entry(Kind::Reflexion, &newest, &mut |entry| {
                // Only candidates are parsed.
                let may_wait = memchr::memmem::find(&entry.text, b"candidate").is_some();
                if may_wait && entry.parse::<Reflexion>().is_ok_and(|rule| waits(&rule)) {
                    waiting += 1;
                }
            })?;
        let at_calls = session.map(|session| session_receipts(self.store, session));
        let (told_at_calls, heeded) = at_calls.unwrap_or_default();
        Ok(SessionCounts {
            told: notes.told,
            told_at_calls,
            heeded,
            helped: notes.witnessed.iter().filter(|one| one.helped).count(),
            waiting,
        })
    }

    /// Notes the number of rules that a session was told.
    pub(crate) fn note_told(&self, session: &str, told: usize) -> Result<(), Error> {
        if SessionNotes::read(&self.store.read_notes(session)).told == told {
            return Ok(());
        }
        self.record(session, |known| known.told = told)
    }
}
