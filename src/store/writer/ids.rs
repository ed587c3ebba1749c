//! Free ids of a kind, for records that come without one.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::model::{self, IdShape};
use crate::store::{DataFile, Error, Row, Snapshot, Writer};

impl Writer {
    /// Returns the free ids for records that are added to a file.
    pub(super) fn free_ids<'a>(&'a self, snapshot: &'a Snapshot) -> Result<FreeIds<'a>, Error> {
        let file = snapshot.of;
        let highest = snapshot.table.header.highest;
        // A counter is enough in a shared file, and at a primary database, which sees every id.
        let is_alone = file.is_local && self.at_primary.is_none();
        Ok(FreeIds {
            snapshot,
            highest: highest.max(self.highest_beside(file)?),
            assigned: HashMap::new(),
            word: is_alone.then_some(self.word.as_str()),
        })
    }

    /// Returns the highest id in the other files of a kind, whose counter it shares.
    pub(super) fn highest_beside(&self, file: DataFile) -> Result<IdShape, Error> {
        let mut highest = IdShape::default();
        for other in DataFile::of(file.kind).filter(|other| *other != file) {
            let snapshot = self.store.file(other).snapshot()?;
            highest = highest.max(snapshot.table.header.highest);
        }
        Ok(highest)
    }
}

/// Free ids of a kind.
pub(super) struct FreeIds<'a> {
    snapshot: &'a Snapshot,
    highest: IdShape,
    /// Highest suffix of each time that an id was assigned for.
    assigned: HashMap<u64, u32>,
    /// Random word of the ids; `None` for ids that clones give, too.
    word: Option<&'a str>,
}

impl FreeIds<'_> {
    /// Returns the next id, from the table's header; scans only if the clock went back.
    pub(super) fn next(&mut self, now: DateTime<Utc>) -> String {
        let (kind, highest) = (self.snapshot.of.kind, self.highest);
        if !kind.is_timestamped() {
            self.highest.number += 1;
            let number = self.highest.number;
            return match self.word {
                Some(word) => model::local(kind, number, word),
                None => model::numbered(kind, number),
            };
        }
        let plain = model::timestamped(kind, now, 1);
        let shape = IdShape::of(kind, &plain).unwrap_or_default();
        let taken = if shape > highest {
            0
        } else if shape.number == highest.number {
            highest.suffix
        } else if let Some(assigned) = self.assigned.get(&shape.number) {
            *assigned
        } else {
            self.taken(shape.number)
        };
        let suffix = taken + 1;
        self.assigned.insert(shape.number, suffix);
        self.highest = highest.max(IdShape { suffix, ..shape });
        model::timestamped(kind, now, suffix)
    }

    /// Returns the highest suffix of a time; 0 if its id is free.
    fn taken(&self, number: u64) -> u32 {
        let shape =
            |row: Row| IdShape::of(self.snapshot.of.kind, &String::from_utf8_lossy(row.id()));
        let shapes = self.snapshot.rows().filter_map(shape);
        let same = shapes.filter(|shape| shape.number == number);
        same.map(|shape| shape.suffix).max().unwrap_or(0)
    }
}
