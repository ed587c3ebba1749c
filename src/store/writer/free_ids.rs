//! Free ids of a kind, for records that come without one.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::model::{self, IdShape, Kind};
use crate::store::{Error, Snapshot};

/// Free ids of a kind.
pub(super) struct FreeIds<'a> {
    snapshot: &'a Snapshot,
    kind: Kind,
    highest: IdShape,
    /// Highest suffix of each time that an id was assigned for.
    assigned: HashMap<u64, u32>,
    /// Random word of the ids; `None` for ids that clones give, too.
    word: Option<&'a str>,
}

impl<'a> FreeIds<'a> {
    /// `beside` is the highest id in other files of the kind.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        kind: Kind,
        beside: IdShape,
        word: Option<&'a str>,
    ) -> Self {
        let highest = snapshot.table.header.highest.max(beside);
        Self {
            snapshot,
            kind,
            highest,
            assigned: HashMap::new(),
            word,
        }
    }

    /// Returns the next id, from the table's header; scans only if the clock went back.
    pub(super) fn next(&mut self, now: DateTime<Utc>) -> Result<String, Error> {
        let (kind, highest) = (self.kind, self.highest);
        if !kind.is_timestamped() {
            self.highest.number += 1;
            let number = self.highest.number;
            return Ok(match self.word {
                Some(word) => model::local(kind, number, word),
                None => model::numbered(kind, number),
            });
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
            self.taken(shape.number)?
        };
        let suffix = taken + 1;
        self.assigned.insert(shape.number, suffix);
        self.highest = highest.max(IdShape { suffix, ..shape });
        Ok(model::timestamped(kind, now, suffix))
    }

    /// Returns the highest suffix of a time; 0 if its id is free.
    fn taken(&self, number: u64) -> Result<u32, Error> {
        let mut taken = 0;
        self.snapshot.each(false, &mut |row| {
            let id = String::from_utf8_lossy(row.id());
            if let Some(other) = IdShape::of(self.kind, &id)
                && other.number == number
            {
                taken = taken.max(other.suffix);
            }
            true
        })?;
        Ok(taken)
    }
}
