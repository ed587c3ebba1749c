//! Union of the records of a kind on both sides.
//!
//! A record that only one side has changed is taken from that side. A tombstone of one side wins over a
//! change of the other: deletion is a decision. A record that one side lacks without a tombstone, and that
//! the other has changed, stays.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset};
use memctl_files::json::{compact, with_fields};

use super::side::{CONFLICT, Conflict, MERGED_FROM, Record};
use super::three_way::three_way;
use crate::model::Kind;

/// Records of one kind on both sides, under their final ids.
pub(crate) struct Versions<'a> {
    pub(crate) kind: Kind,
    pub(crate) base: &'a [Record],
    pub(crate) ours: &'a [Record],
    pub(crate) theirs: &'a [Record],
    /// New ids of theirs, mapped to their former ids.
    pub(crate) new: &'a HashMap<String, String>,
    /// Tombstones of each side.
    pub(crate) removed: [&'a HashSet<(Kind, String)>; 2],
}

/// Merged records of a kind.
#[derive(Default)]
pub(crate) struct Union {
    pub(crate) entries: Vec<String>,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) notes: Vec<String>,
}

impl Versions<'_> {
    pub(crate) fn union(&self) -> Union {
        let base = by_id(self.base);
        let ours = by_id(self.ours);
        let theirs = by_id(self.theirs);
        let mut union = Union::default();
        let mut coming: Vec<(&Record, String)> = Vec::new();
        for record in self.theirs {
            if ours.contains_key(record.key()) {
                continue;
            }
            if let Some(before) = base.get(record.key()) {
                if compact(&before.text) == compact(&record.text) {
                    continue;
                }
                if self.is_removed(0, record) {
                    union.notes.push(self.stays_away(record, "here"));
                    continue;
                }
            }
            let mut text = record.text.clone();
            if let Some(from) = self.new.get(&record.id) {
                let mut before = record.before.clone();
                before.push(from.clone());
                let before = serde_json::Value::from(before).to_string();
                text = with_fields(&text, &[(MERGED_FROM, before)], 6);
            }
            coming.push((record, text));
        }
        let mut coming = coming.into_iter().peekable();
        for record in self.ours {
            let before = base.get(record.key()).copied();
            let Some(other) = theirs.get(record.key()) else {
                let Some(before) = before else {
                    // The record is new; older records of theirs go before it.
                    while let Some((_, text)) = coming.next_if(|(r, _)| is_older(r, record)) {
                        union.entries.push(text);
                    }
                    union.entries.push(record.text.clone());
                    continue;
                };
                let is_changed = compact(&before.text) != compact(&record.text);
                if is_changed && !self.is_removed(1, record) {
                    union.entries.push(record.text.clone());
                } else if is_changed {
                    union.notes.push(self.stays_away(record, "there"));
                }
                continue;
            };
            union
                .entries
                .push(self.both(before, record, other, &mut union.conflicts));
        }
        union.entries.extend(coming.map(|(_, text)| text));
        union
    }

    fn both(
        &self,
        base: Option<&Record>,
        ours: &Record,
        theirs: &Record,
        conflicts: &mut Vec<Conflict>,
    ) -> String {
        let decided = three_way(base.map(|b| b.text.as_str()), &ours.text, &theirs.text);
        let mut text = decided.text;
        if !decided.conflicts.is_empty() {
            let mut open: serde_json::Map<String, serde_json::Value> = serde_json::Map::new();
            for field in decided.conflicts {
                let theirs = field
                    .theirs
                    .and_then(|text| serde_json::from_str(&text).ok());
                open.insert(field.pointer.clone(), theirs.unwrap_or_default());
                conflicts.push(Conflict {
                    kind: self.kind,
                    id: ours.id.clone(),
                    field: field.pointer,
                });
            }
            let open = serde_json::Value::Object(open).to_string();
            text = with_fields(&text, &[(CONFLICT, open)], 6);
        }
        text
    }

    fn is_removed(&self, side: usize, record: &Record) -> bool {
        self.removed[side].contains(&(self.kind, record.id.clone()))
    }

    fn stays_away(&self, record: &Record, place: &str) -> String {
        let (kind, id) = (self.kind, &record.id);
        format!(
            "{kind} {id} was removed on purpose {place}, and stays removed though it was changed since"
        )
    }
}

impl Record {
    /// Key of a record: its id, or its whole text without an id.
    fn key(&self) -> &str {
        if self.id.is_empty() {
            &self.text
        } else {
            &self.id
        }
    }
}

fn by_id(records: &[Record]) -> HashMap<&str, &Record> {
    records
        .iter()
        .map(|record| (record.key(), record))
        .collect()
}

fn is_older(a: &Record, b: &Record) -> bool {
    let time = |record: &Record| -> Option<DateTime<FixedOffset>> {
        DateTime::parse_from_rfc3339(&record.created).ok()
    };
    matches!((time(a), time(b)), (Some(a), Some(b)) if a < b)
}
