//! Existing records, their origins and tombstones, as an import needs them; and free ids for records whose own
//! id is taken.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::model::{
    CANDIDATE, IdShape, Kind, Memory, OBSERVED, Procedure, Record, Reflexion, Trust, local,
    numbered, timestamped,
};
use crate::store::workspace::{Error, Workspace};
use crate::store::{Entry, ForgottenRecords, TrustSnapshot, foreign_entries, text_field};
use memctl_files::json::{compact, with_fields};
use serde_json::Value;

/// Field with the origin of a renamed record.
pub(crate) const FROM: &str = "imported_from";

/// Existing record.
pub(super) struct Version {
    pub(super) digest: u128,
    pub(super) created: String,
}

/// Origin of a record: workspace, id and creation time there.
pub(super) type Origin = (String, String, String);

/// Existing records that the caller may see, and tombstones.
#[derive(Default)]
pub(super) struct Existing {
    pub(super) records: HashMap<(Kind, String), Version>,
    /// Records without an id.
    pub(super) bare: HashSet<(Kind, u128)>,
    /// Current ids of renamed records, by origin.
    pub(super) origins: HashMap<(Kind, Origin), String>,
    /// Id and text of imported notes, by source and id there.
    pub(super) notes: HashMap<(String, String), (String, String)>,
    /// User and text of each memory.
    pub(super) contents: HashSet<(Option<String>, String)>,
    pub(super) taken: Taken,
    pub(super) forgotten: ForgottenRecords,
}

impl Existing {
    /// Reads the records of some kinds.
    pub(super) fn read(workspace: &Workspace, kinds: &[Kind]) -> Result<Self, Error> {
        let store = &workspace.store;
        let mut existing = Self {
            forgotten: store.all_forgotten()?,
            ..Self::default()
        };
        for kind in kinds {
            for entry in foreign_entries(store.directory(), *kind)?.0 {
                // An id is taken even if the caller may not see its record.
                existing.taken.take(*kind, &entry.id);
                if store.covers(*kind, &entry.text) {
                    existing.add(*kind, &entry);
                }
            }
            for id in existing.forgotten.ids(*kind) {
                existing.taken.take(*kind, id);
            }
        }
        Ok(existing)
    }

    fn add(&mut self, kind: Kind, entry: &Entry) {
        let text = String::from_utf8_lossy(&entry.text);
        let digest = digest(&text);
        if kind == Kind::Memory
            && let Ok(memory) = entry.parse::<Memory>()
        {
            if let Some(origin) = note_origin(&memory) {
                let note = (entry.id.clone(), memory.content.clone());
                self.notes.insert(origin, note);
            }
            self.contents.insert((memory.user_id, memory.content));
        }
        if entry.id.is_empty() {
            self.bare.insert((kind, digest));
            return;
        }
        if let Some(origin) = origin_of(&text) {
            self.origins.insert((kind, origin), entry.id.clone());
        }
        let created = created(kind, &text);
        let version = Version { digest, created };
        self.records.insert((kind, entry.id.clone()), version);
    }
}

/// Reads the origin of a renamed record.
fn origin_of(text: &str) -> Option<Origin> {
    // Most records have no such field and need no parsing.
    if !text.contains(FROM) {
        return None;
    }
    let entry: Value = serde_json::from_str(text).ok()?;
    let part = |name: &str| Some(entry.get(FROM)?.get(name)?.as_str()?.to_owned());
    Some((part("workspace")?, part("id")?, part("created")?))
}

/// Source and source id of an imported note; `None` for other memories.
fn note_origin(memory: &Memory) -> Option<(String, String)> {
    if memory.trust() == Trust::User {
        return None;
    }
    let metadata: Value = serde_json::from_str(memory.metadata.get()).ok()?;
    let part = |name: &str| Some(metadata.get("origin")?.get(name)?.as_str()?.to_owned());
    Some((part("source")?, part("id")?))
}

/// Creation time of a record, as its file states it.
pub(crate) fn created(kind: Kind, text: &str) -> String {
    let field = match kind {
        Kind::Execution | Kind::Correction => "timestamp",
        _ => "created_at",
    };
    text_field(text.as_bytes(), field).unwrap_or_default()
}

/// Hash of a text; whitespace between JSON tokens does not matter.
pub(crate) fn digest(text: &str) -> u128 {
    xxhash_rust::xxh3::xxh3_128(compact(text).as_bytes())
}

/// Returns the text without its claimed approval; `None` if it claims none that needs this user.
pub(crate) fn observed(own: &TrustSnapshot, kind: Kind, text: &str) -> Option<String> {
    let trust = ("trust", OBSERVED);
    let (field, value) = match kind {
        Kind::Procedure => lacks::<Procedure>(own, text).map(|_| trust),
        Kind::Memory => lacks::<Memory>(own, text).map(|_| trust),
        Kind::Reflexion => lacks::<Reflexion>(own, text)
            .filter(Reflexion::is_in_use)
            .map(|_| ("status", CANDIDATE)),
        // These are only ever shown as data.
        Kind::Execution | Kind::Correction | Kind::Session => None,
    }?;
    Some(with_fields(text, &[(field, format!("\"{value}\""))], 6))
}

/// Returns the record if its file claims an approval that this user has not given.
fn lacks<R: Record>(own: &TrustSnapshot, text: &str) -> Option<R> {
    let record: R = serde_json::from_str(text).ok()?;
    let is_claimed = record.trust() != Trust::Observed;
    (is_claimed && own.level(&record) == Trust::Observed).then_some(record)
}

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
