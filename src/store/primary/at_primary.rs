//! A writer's turn at the database: what it writes is there before it is in a file.

use std::time::Duration;

use crate::model::Kind;

use super::super::directory::Lock;
use super::super::error::Error;
use super::super::scoped::Scoped;
use super::super::writer::Writer;
use super::follow::{fetch, keep, reached};
use super::{PrimaryRow, Reached, Turn};

/// A writer's turn at the database.
#[derive(Debug)]
pub(in super::super) struct AtPrimary {
    turn: Box<dyn Turn>,
    /// How far the database is.
    there: Reached,
    /// Whether a file has failed to follow: then what is there has to be fetched.
    is_behind: bool,
}

impl AtPrimary {
    /// Takes the turn, and fetches what others have written before it; `None` where the memory lies in its
    /// files.
    pub(in super::super) fn begin(
        store: &Scoped,
        lock: &Lock,
        limit: Duration,
    ) -> Result<Option<Self>, Error> {
        let Some(primary) = store.primary() else {
            if store.primary_name()?.is_some() {
                let path = store.directory().to_path_buf();
                return Err(Error::NoPrimary { path });
            }
            return Ok(None);
        };
        let turn = primary.turn(limit).map_err(Error::Primary)?;
        let there = fetch(store, lock, primary.as_ref())?;
        Ok(Some(Self {
            turn,
            there,
            is_behind: false,
        }))
    }
}

impl AtPrimary {
    /// Adds records, or changes them.
    pub(in super::super) fn put(&mut self, kind: Kind, rows: &[(&str, &str)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<PrimaryRow> = rows
            .iter()
            .map(|(id, text)| PrimaryRow::new(id, text))
            .collect();
        let done = self.turn.put(self.there.seq, kind, &rows);
        self.there = done.map_err(Error::Primary)?;
        Ok(())
    }

    /// Removes records, each with the line that is left of it.
    fn bury(&mut self, kind: Kind, gone: &[(String, String)]) -> Result<(), Error> {
        if gone.is_empty() {
            return Ok(());
        }
        let done = self.turn.bury(self.there.seq, kind, gone);
        self.there = done.map_err(Error::Primary)?;
        Ok(())
    }
}

impl Writer {
    /// Records on their way to a file: they go to the database before, where there is one.
    pub(in super::super) fn send(
        &mut self,
        kind: Kind,
        rows: &[(&str, &str)],
    ) -> Result<(), Error> {
        match self.at_primary() {
            Some(at) => at.put(kind, rows),
            None => self.must_lie_here(),
        }
    }

    /// Removals on their way to a file: each with the line that is left of it.
    pub(in super::super) fn send_removals(
        &mut self,
        kind: Kind,
        gone: &[(String, String)],
    ) -> Result<(), Error> {
        match self.at_primary() {
            Some(at) => at.bury(kind, gone),
            None => self.must_lie_here(),
        }
    }

    /// Fails where this writer is for logs alone, and records lie in a database.
    fn must_lie_here(&self) -> Result<(), Error> {
        if self.is_for_logs() && self.store().primary_name()?.is_some() {
            let path = self.store().directory().to_path_buf();
            return Err(Error::NoPrimary { path });
        }
        Ok(())
    }

    /// What came of writing to a file what the database has already.
    pub(in super::super) fn followed<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        if done.is_err()
            && let Some(at) = self.at_primary()
        {
            at.is_behind = true;
        }
        done
    }

    /// Remembers how far the files are, at the end.
    pub(in super::super) fn keep_reached(&mut self) {
        let directory = self.lock().directory().clone();
        let known = reached(&directory).unwrap_or_default();
        if let Some(at) = self.at_primary()
            && !at.is_behind
            && at.there != known
        {
            keep(&directory, at.there);
        }
    }
}
