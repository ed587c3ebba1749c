//! New ids for records whose own id is taken.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::{IdShape, Kind, local, numbered, timestamped};

/// Ids that must not be assigned: those of existing, deleted and incoming records.
#[derive(Default)]
pub(crate) struct Taken {
    ids: HashSet<String>,
    highest: HashMap<Kind, u64>,
}

impl Taken {
    /// Marks an id as taken; returns true if it was free.
    pub(crate) fn take(&mut self, kind: Kind, id: &str) -> bool {
        if let Some(shape) = IdShape::of(kind, id).filter(|_| !kind.is_timestamped()) {
            let highest = self.highest.entry(kind).or_default();
            *highest = (*highest).max(shape.number);
        }
        self.ids.insert(id.to_owned())
    }

    /// Returns true if an id is taken.
    pub(crate) fn holds(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// A free id for a record that only this machine has, taken from now on. It keeps the number of
    /// its old id if it can.
    pub(crate) fn free_local(&mut self, kind: Kind, old: &str, word: &str) -> String {
        let highest = self.highest.get(&kind).copied().unwrap_or_default();
        let own = IdShape::of(kind, old).map(|shape| shape.number);
        let mut numbers = own.into_iter().chain(highest.saturating_add(1)..);
        loop {
            let id = local(kind, numbers.next().unwrap_or(u64::MAX), word);
            if self.take(kind, &id) {
                return id;
            }
        }
    }

    /// A free id, taken from now on. One with a time has that of the record's birth.
    pub(crate) fn free(&mut self, kind: Kind, created: &str, now: DateTime<Utc>) -> String {
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

/// Names of a correction's regression test before and after, which contain its number.
pub(crate) fn tests(kind: Kind, from: &str, to: &str) -> Option<(String, String)> {
    let name = |id: &str| Some(format!("test_correction_{}", IdShape::of(kind, id)?.number));
    (kind == Kind::Correction).then(|| name(from).zip(name(to)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_id_was_never_another() {
        let now = DateTime::UNIX_EPOCH;
        let mut taken = Taken::default();
        assert!(
            taken.take(Kind::Procedure, "PROC-007") && !taken.take(Kind::Procedure, "PROC-007")
        );
        taken.take(Kind::Procedure, "weird");
        assert_eq!(taken.free(Kind::Procedure, "", now), "PROC-008");
        assert_eq!(taken.free(Kind::Procedure, "", now), "PROC-009");
        assert_eq!(taken.free(Kind::Memory, "", now), "MEM-001");
        let check = |taken: &mut Taken, old: &str, expected: &str| {
            assert_eq!(taken.free_local(Kind::Procedure, old, "k3v9q2"), expected);
        };
        check(&mut taken, "PROC-007", "PROC-007-k3v9q2");
        check(&mut taken, "PROC-007", "PROC-010-k3v9q2");
        check(&mut taken, "weird", "PROC-011-k3v9q2");
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
