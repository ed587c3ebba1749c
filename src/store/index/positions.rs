//! Positions of all entries of a kind, for derived data that follows the files.
//!
//! Not limited by the access filter, because derived data covers all records and is filtered on
//! use. Only [`Positions::entry`], which returns a record, applies the filter.

use crate::model::Kind;
use crate::store::{AccessFilter, Entry, Error, Problem, Scoped, Snapshot};

/// Flag in the place of an entry of the local file. The largest place is kept free for the caller.
const LOCAL: u32 = 1 << 31;

/// Entries of a kind at one moment. Each has a place, which stays while the files only grow.
#[derive(Debug)]
pub struct Positions {
    kind: Kind,
    access: AccessFilter,
    /// The files of the kind, the shared one first.
    files: Vec<Snapshot>,
}

impl Scoped {
    /// Returns the current positions of all entries of a kind.
    pub fn positions(&self, kind: Kind) -> Result<Positions, Error> {
        Ok(Positions {
            kind,
            access: self.access().clone(),
            files: self.snapshots(kind)?,
        })
    }
}

impl Positions {
    /// Returns a number and the number of entries for each file. The first is constant while entries
    /// are only appended to that file, so that indexes stay valid.
    pub fn generations(&self) -> impl Iterator<Item = (u64, usize)> {
        self.files
            .iter()
            .map(|file| (file.table.header.generation, count(file)))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.files.iter().map(count).sum()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the places of all entries, each file oldest first.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.places_behind(&[0, 0])
    }

    /// Returns the places of the entries of each file behind its first `known` ones.
    pub fn places_behind(&self, known: &[usize]) -> impl Iterator<Item = u32> {
        let known = known.iter().copied().chain(std::iter::repeat(0));
        let files = self.files.iter().zip(known);
        files.flat_map(|(file, known)| {
            let flag = if file.of.is_local { LOCAL } else { 0 };
            let rows = (known..count(file)).map_while(|row| u32::try_from(row).ok());
            rows.take_while(|row| *row < LOCAL - 1)
                .map(move |row| row | flag)
        })
    }

    /// Returns the problems of the files; empty if no scan was needed.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.files.iter().flat_map(|file| &file.problems)
    }

    /// Returns the place of every entry and a hash of its text, which identifies its version. In the
    /// order of [`Self::places`].
    pub fn keys(&self) -> Result<Vec<(u32, u64)>, Error> {
        let mut keys = Vec::with_capacity(self.len());
        for file in &self.files {
            file.each(false, &mut |row| {
                keys.push(row.key);
                true
            })?;
        }
        Ok(self.places().zip(keys).collect())
    }

    /// Returns the key and the entry at a place, without the access filter. The id may be empty.
    pub fn any_entry(&self, place: u32) -> Result<Option<(u64, Entry)>, Error> {
        let is_local = place & LOCAL != 0;
        let file = self.files.iter().find(|file| file.of.is_local == is_local);
        let Some(file) = file else {
            return Ok(None);
        };
        let row = file.table.get((place & !LOCAL) as usize);
        let Some(row) = row.map_err(Error::io("read", &file.path))? else {
            return Ok(None);
        };
        let entry = file.entry(self.kind, &row)?;
        Ok(Some((row.key, entry)))
    }

    /// Returns the key and the entry at a place, if the caller may see it.
    pub fn entry(&self, place: u32) -> Result<Option<(u64, Entry)>, Error> {
        let entry = self.any_entry(place)?;
        Ok(entry.filter(|(_, entry)| self.access.sees(self.kind, &entry.text)))
    }
}

fn count(file: &Snapshot) -> usize {
    usize::try_from(file.table.header.count).unwrap_or(usize::MAX)
}
