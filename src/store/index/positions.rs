//! Positions of all entries of a kind, for derived data that follows the file.
//!
//! Not limited by the access filter, because derived data covers all records and is filtered on
//! use. Only [`Positions::entry`], which returns a record, applies the filter.

use crate::model::Kind;
use crate::store::access::access_filter::AccessFilter;
use crate::store::access::scoped::Scoped;
use crate::store::entry::Entry;
use crate::store::error::{Error, Problem};
use crate::store::files::data::json_file::Snapshot;

/// Entries of a kind at one moment, by index from 0.
#[derive(Debug)]
pub struct Positions {
    kind: Kind,
    access: AccessFilter,
    snapshot: Snapshot,
}

impl Scoped {
    /// Returns the current positions of all entries of a kind.
    pub fn positions(&self, kind: Kind) -> Result<Positions, Error> {
        Ok(Positions {
            kind,
            access: self.access().clone(),
            snapshot: self.file(kind).snapshot()?,
        })
    }
}

impl Positions {
    /// Returns a number that is constant while entries are only appended, so that indexes stay
    /// valid.
    pub fn generation(&self) -> u64 {
        self.snapshot.table.header.generation
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        usize::try_from(self.snapshot.table.header.count).unwrap_or(usize::MAX)
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the problems of the file; empty if no scan was needed.
    pub fn problems(&self) -> &[Problem] {
        &self.snapshot.problems
    }

    /// Returns a hash of every entry's text, in index order. The hash identifies the version of an
    /// entry.
    pub fn keys(&self) -> Result<Vec<u64>, Error> {
        let mut keys = Vec::with_capacity(self.len());
        self.snapshot.each(false, &mut |row| {
            keys.push(row.key);
            true
        })?;
        Ok(keys)
    }

    /// Returns the key and the entry at an index, without the access filter. The id may be empty.
    pub fn any_entry(&self, place: usize) -> Result<Option<(u64, Entry)>, Error> {
        let row = self.snapshot.table.get(place);
        let Some(row) = row.map_err(Error::io("read", &self.snapshot.path))? else {
            return Ok(None);
        };
        let entry = self.snapshot.entry(self.kind, &row)?;
        Ok(Some((row.key, entry)))
    }

    /// Returns the key and the entry at an index, if the caller may see it.
    pub fn entry(&self, place: usize) -> Result<Option<(u64, Entry)>, Error> {
        let entry = self.any_entry(place)?;
        Ok(entry.filter(|(_, entry)| self.access.sees(self.kind, &entry.text)))
    }
}
