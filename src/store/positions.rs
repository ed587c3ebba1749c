//! Where every entry of a kind lies, for whoever keeps something derived in step with it.
//!
//! Not held to what the caller may see: what is derived covers all records, and is asked within that
//! later. [`Positions::entry`] is how a record comes out again, and that is held to it.

use crate::model::Kind;

use super::error::{Error, Problem};
use super::json_file::Snapshot;
use super::scoped::{Entry, Scoped};
use super::sight::Sight;

/// The entries of a kind at one moment, by their places from 0.
#[derive(Debug)]
pub struct Positions {
    kind: Kind,
    sight: Sight,
    snapshot: Snapshot,
}

impl Scoped {
    /// Where every entry of a kind lies now.
    pub fn positions(&self, kind: Kind) -> Result<Positions, Error> {
        Ok(Positions {
            kind,
            sight: self.sight().clone(),
            snapshot: self.file(kind).snapshot()?,
        })
    }
}

impl Positions {
    /// Stays the same for as long as entries are only added behind the others: what was at a place
    /// is still there.
    pub fn generation(&self) -> u64 {
        self.snapshot.table.header.generation
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        usize::try_from(self.snapshot.table.header.count).unwrap_or(usize::MAX)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is wrong with the file, where it had to be read as a whole to find its entries.
    pub fn problems(&self) -> &[Problem] {
        &self.snapshot.problems
    }

    /// A hash of every entry's text, in the order of their places: it tells this version of an
    /// entry from every other.
    pub fn keys(&self) -> Result<Vec<u64>, Error> {
        let mut keys = Vec::with_capacity(self.len());
        self.snapshot.each(false, &mut |row| {
            keys.push(row.key);
            true
        })?;
        Ok(keys)
    }

    /// The key and the entry at a place, whoever it belongs to. Its id may be missing.
    pub fn any_entry(&self, place: usize) -> Result<Option<(u64, Entry)>, Error> {
        let row = self.snapshot.table.get(place);
        let Some(row) = row.map_err(Error::io("read", &self.snapshot.path))? else {
            return Ok(None);
        };
        let entry = Scoped::read(&self.snapshot, self.kind, &row)?;
        Ok(Some((row.key, entry)))
    }

    /// The key and the entry at a place, if the caller may see it.
    pub fn entry(&self, place: usize) -> Result<Option<(u64, Entry)>, Error> {
        let entry = self.any_entry(place)?;
        Ok(entry.filter(|(_, entry)| self.sight.sees(self.kind, &entry.text)))
    }
}
