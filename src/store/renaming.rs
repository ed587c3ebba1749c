//! New ids for records, and the references that follow them.
//!
//! One place for three users: the approval of a local record (`writer::local_files`), an import, and a
//! merge of git. Each decides which records are the same. Here is what they have in common: the marks
//! of a record, a free id, and other ids in a text.
//!
//! Invariants:
//! - An id of an existing, removed or incoming record is not given to another one.
//! - A field that keeps a former id of its record never follows.
//! - Only a whole string is an id; one within a sentence stays.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use memctl_files::json::{self, compact, with_fields};
use serde::Serialize;

use crate::model::{IdShape, Kind, LOCAL_ID, local, numbered, timestamped};
use crate::store::{raw_field, text_field};

/// Field with the former ids of a record that a merge has renamed.
pub(crate) const MERGED_FROM: &str = "merged_from";
/// Field with the origin of a record that an import has renamed.
pub(crate) const IMPORTED_FROM: &str = "imported_from";

/// Record that could not keep its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NewId {
    /// Kind of the record.
    pub kind: Kind,
    /// Id on its own side, or at its source.
    pub from: String,
    /// Id after the merge or the import.
    pub to: String,
}

/// New ids by the former ones.
pub(crate) type NewIds = HashMap<String, String>;

/// Returns the ids that a record had before merges.
pub(crate) fn former_ids(text: &[u8]) -> Vec<String> {
    // Most records have no such field and need no parsing.
    let field = memchr::memmem::find(text, MERGED_FROM.as_bytes());
    let ids = field.and_then(|_| json::field(text, MERGED_FROM));
    ids.and_then(|ids| serde_json::from_slice(ids).ok())
        .unwrap_or_default()
}

/// Gives a record a new id, unless it has one already, and another name to the test of a correction.
pub(crate) fn rename(ids: &mut NewIds, kind: Kind, from: &str, to: &str) {
    if !ids.contains_key(from) {
        ids.extend(tests(kind, from, to));
        ids.insert(from.to_owned(), to.to_owned());
    }
}

/// Replaces ids in a record; `None` if nothing changes.
pub(crate) fn with_new_ids(text: &str, ids: &NewIds) -> Option<String> {
    let new = json::with_other_strings(text, ids)?;
    let former = [LOCAL_ID, MERGED_FROM, IMPORTED_FROM].into_iter();
    let former = former.filter(|name| text.contains(name));
    let former = former.filter_map(|name| Some((name, raw_field(text, name)?)));
    let new = with_fields(&new, &former.collect::<Vec<_>>(), 6);
    (new != text).then_some(new)
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

/// Returns `true` for a creation time that no two records share: no two are created in one microsecond,
/// while whole seconds can coincide.
pub(crate) fn is_exact(created: &str) -> bool {
    created.contains('.')
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
    fn references_follow_and_former_ids_stay() {
        let mut ids = NewIds::new();
        rename(&mut ids, Kind::Correction, "CORR-001", "CORR-009");
        rename(&mut ids, Kind::Correction, "CORR-001", "CORR-010");
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(with_new_ids(text, &ids).as_deref(), expected, "{text}");
        };
        check(
            r#"{"id": "CORR-001", "test": "test_correction_1", "rule": "see CORR-001"}"#,
            Some(r#"{"id": "CORR-009", "test": "test_correction_9", "rule": "see CORR-001"}"#),
        );
        check(
            r#"{"of": "CORR-001", "merged_from": ["CORR-001"], "imported_from": {"id": "CORR-001"}}"#,
            Some(
                r#"{"of": "CORR-009", "merged_from": ["CORR-001"], "imported_from": {"id": "CORR-001"}}"#,
            ),
        );
        check(r#"{"local_id": "CORR-001"}"#, None);
        check(r#"{"id": "CORR-002"}"#, None);
    }

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
