//! The records of a kind: the union of both sides.
//!
//! What only one side has changed is as that side has it. What one side removed on purpose is gone, whatever
//! the other made of it: to forget is a decision. What one side lacks without having said so, and the
//! other has changed, stays.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset};

use crate::model::{Kind, Reflexion};
use crate::store::{compact, three_way, with_fields};

use super::side::{MERGED_FROM, Record};
use super::{CONFLICT, Conflict};

/// What both sides have of one kind, under the ids of here.
pub(super) struct Versions<'a> {
    pub(super) kind: Kind,
    pub(super) base: &'a [Record],
    pub(super) ours: &'a [Record],
    pub(super) theirs: &'a [Record],
    /// The new ids of theirs, and those that they had.
    pub(super) new: &'a HashMap<String, String>,
    /// What each side has removed on purpose.
    pub(super) removed: [&'a HashSet<(Kind, String)>; 2],
}

/// What comes out of it.
#[derive(Default)]
pub(super) struct Union {
    pub(super) entries: Vec<String>,
    pub(super) conflicts: Vec<Conflict>,
    /// How many records have come from their side.
    pub(super) came: u64,
    pub(super) notes: Vec<String>,
}

impl Versions<'_> {
    pub(super) fn union(&self) -> Union {
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
            } else {
                union.came += 1;
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
                    // It is new here; what came in between there stands before it.
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
        if self.kind == Kind::Reflexion
            && [ours, theirs]
                .iter()
                .all(|side| compact(&side.text) != compact(&text))
            && let Ok(mut rule) = serde_json::from_str::<Reflexion>(&text)
            && rule.times_harmed.is_some()
            && rule.utility_score.is_some()
        {
            // It is that of the counts, which have been added up.
            rule.weigh();
            let utility = rule.utility_score.unwrap_or(0.5);
            text = with_fields(&text, &[("utility_score", format!("{utility:?}"))], 6);
        }
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
    /// What it is known by: its id, or all of it where it has none.
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
