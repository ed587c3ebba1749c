//! A writer's turn at the primary database: a write reaches the database before a file.

use std::time::Duration;

use crate::model::Kind;
use crate::store::access::scoped::Scoped;
use crate::store::database::{PrimaryRow, Reached, Turn};
use crate::store::error::Error;
use crate::store::files::directory::Lock;
use memctl_files::Directory;

use super::follow::{fetch, keep, reached};

/// A writer's turn at the database.
#[derive(Debug)]
pub(crate) struct AtPrimary {
    turn: Box<dyn Turn>,
    /// Progress of the database.
    there: Reached,
    /// `true` if a file write has failed, so that the change must be fetched again.
    is_behind: bool,
    /// `true` while the database has a change that is not in a file yet.
    is_ahead: bool,
}

impl AtPrimary {
    /// Takes the turn, and fetches earlier changes of other writers. Returns `None` if the files
    /// are the primary store.
    pub(crate) fn begin(
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
            is_ahead: false,
        }))
    }
}

impl AtPrimary {
    /// Adds or changes records.
    pub(crate) fn put(&mut self, kind: Kind, rows: &[(&str, &str)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<PrimaryRow> = rows
            .iter()
            .map(|(id, text)| PrimaryRow::new(id, text))
            .collect();
        let done = self.turn.put(self.there.seq, kind, &rows);
        self.there = done.map_err(Error::Primary)?;
        self.is_ahead = true;
        Ok(())
    }

    /// Removes records, each with its tombstone line.
    pub(crate) fn bury(&mut self, kind: Kind, gone: &[(String, String)]) -> Result<(), Error> {
        if gone.is_empty() {
            return Ok(());
        }
        let done = self.turn.bury(self.there.seq, kind, gone);
        self.there = done.map_err(Error::Primary)?;
        self.is_ahead = true;
        Ok(())
    }

    /// Records that a file has what was sent last, or has failed to take it.
    pub(crate) fn followed(&mut self, is_written: bool) {
        self.is_behind |= !is_written;
        self.is_ahead = false;
    }

    /// Saves the progress of the files.
    pub(crate) fn keep_reached(&self, directory: &Directory) {
        let known = reached(directory).unwrap_or_default();
        if !self.is_behind && !self.is_ahead && self.there != known {
            keep(directory, self.there);
        }
    }
}
