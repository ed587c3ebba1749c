//! New ids for records whose own is taken, beside everything that is or was here.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::{IdShape, Kind, numbered, timestamped};

/// The ids that may not be given: those of the living, of the forgotten, and of what is coming in.
#[derive(Default)]
pub(in crate::engine) struct Taken {
    ids: HashSet<String>,
    highest: HashMap<Kind, u64>,
}

impl Taken {
    /// Remembers that an id is taken; whether it was free.
    pub(in crate::engine) fn take(&mut self, kind: Kind, id: &str) -> bool {
        if let Some(shape) = IdShape::of(kind, id).filter(|_| !kind.is_timestamped()) {
            let highest = self.highest.entry(kind).or_default();
            *highest = (*highest).max(shape.number);
        }
        self.ids.insert(id.to_owned())
    }

    /// Whether an id is taken.
    pub(in crate::engine) fn holds(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// A free id, taken from now on. One with a time has that of the record's birth.
    pub(in crate::engine) fn free(
        &mut self,
        kind: Kind,
        created: &str,
        now: DateTime<Utc>,
    ) -> String {
        let born = DateTime::parse_from_rfc3339(created).map_or(now, |at| at.to_utc());
        let mut n: u64 = 1;
        loop {
            let id = if kind.is_timestamped() {
                timestamped(kind, born, u32::try_from(n).unwrap_or(u32::MAX))
            } else {
                let highest = self.highest.get(&kind).copied().unwrap_or_default();
                numbered(kind, highest.saturating_add(n))
            };
            if self.take(kind, &id) {
                return id;
            }
            n += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_id_was_never_another() {
        let now = DateTime::UNIX_EPOCH;
        let mut taken = Taken::default();
        assert!(taken.take(Kind::Fix, "FIX-007") && !taken.take(Kind::Fix, "FIX-007"));
        taken.take(Kind::Fix, "weird");
        assert_eq!(taken.free(Kind::Fix, "", now), "FIX-008");
        assert_eq!(taken.free(Kind::Fix, "", now), "FIX-009");
        assert_eq!(taken.free(Kind::Memory, "", now), "MEM-001");
        let created = "2026-02-20T12:43:41.681444+00:00";
        assert_eq!(
            taken.free(Kind::Execution, created, now),
            "EXEC-20260220124341"
        );
        assert_eq!(
            taken.free(Kind::Execution, created, now),
            "EXEC-20260220124341-2"
        );
        assert_eq!(taken.free(Kind::Execution, "?", now), "EXEC-19700101000000");
    }
}
