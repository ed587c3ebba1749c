//! Three-way merge: of one entry, field by field, and of the records of a kind, as the union of both sides.
//!
//! In an entry, a change on one side wins. If both sides changed a field, the larger of two counts and the
//! later of two times win, and lists become their union without removed items. Everything else is a conflict,
//! as is an object that both changed: the entry keeps our value, and theirs is returned for a user to decide.
//!
//! Works on text: numbers, strings and layout stay byte for byte unless they are merged.
//!
//! A record that only one side has changed is taken from that side. A tombstone of one side wins over a
//! change of the other: deletion is a decision. A record that one side lacks without a tombstone, and that
//! the other has changed, stays.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset};
use memctl_files::json::{compact, fields, items, with_fields, without_fields};

use super::side::{CONFLICT, Conflict, Record};
use crate::model::Kind;
use crate::store::counter_fields;
use crate::store::renaming::MERGED_FROM;

/// Fields with the time of the last event.
const LATEST: [&str; 2] = ["updated_at", "last_seen"];

/// A merged entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// JSON text.
    pub text: String,
    /// Fields with conflicting values.
    pub conflicts: Vec<Undecided>,
}

/// A field with different values on the two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undecided {
    /// Location as a JSON pointer: `/rule`.
    pub pointer: String,
    /// JSON text on their side; `None` if they removed the field.
    pub theirs: Option<String>,
}

/// Merges two versions of an object; `base` is the common ancestor, if known.
pub(crate) fn three_way(base: Option<&str>, ours: &str, theirs: &str) -> Decided {
    let o = base.map(parts);
    let (a, b) = (parts(ours), parts(theirs));
    let new = b.iter().filter(|(name, _)| find(&a, name).is_none());
    let mut changes: Vec<(&str, String)> = Vec::new();
    let mut removed: Vec<&str> = Vec::new();
    let mut conflicts = Vec::new();
    for (name, _) in a.iter().chain(new) {
        let before = o.as_ref().map(|parts| find(parts, name));
        let (own, other) = (find(&a, name), find(&b, name));
        match decide(name, before, own, other) {
            None => conflicts.push(Undecided {
                pointer: format!("/{name}"),
                theirs: other.map(str::to_owned),
            }),
            Some(Some(text)) if own != Some(text.as_str()) => changes.push((name, text)),
            Some(None) if own.is_some() => removed.push(name),
            Some(_) => {}
        }
    }
    let text = with_fields(ours, &changes, 6);
    let text = if removed.is_empty() {
        text
    } else {
        without_fields(&text, &removed)
    };
    Decided { text, conflicts }
}

/// Returns the value of a field, `None` without it; `None` if a person has to decide. `base` is `None` without a
/// common ancestor.
#[expect(clippy::option_option, reason = "a missing field is a decision, too")]
fn decide(
    name: &str,
    base: Option<Option<&str>>,
    ours: Option<&str>,
    theirs: Option<&str>,
) -> Option<Option<String>> {
    let is_same = |a: Option<&str>, b: Option<&str>| a.map(compact) == b.map(compact);
    let own = |value: Option<&str>| Some(value.map(str::to_owned));
    if is_same(ours, theirs) || base.is_some_and(|base| is_same(base, theirs)) {
        return own(ours);
    }
    if base.is_some_and(|base| is_same(base, ours)) {
        return own(theirs);
    }
    match (ours, theirs) {
        (Some(a), Some(b)) if a.starts_with('[') && b.starts_with('[') => {
            Some(Some(lists(base.flatten(), a, b)))
        }
        (Some(a), Some(b)) => counts(name, a, b).or_else(|| times(name, a, b)).map(Some),
        // Without an ancestor, a field that one side lacks counts as added by the other.
        (one, other) if base.is_none() => own(one.or(other)),
        _ => None,
    }
}

/// Each machine counts for itself, so a count that both sides hold is from before.
fn counts(name: &str, ours: &str, theirs: &str) -> Option<String> {
    let is_count = |kind: Kind| counter_fields(kind).contains(&name);
    let (a, b): (f64, f64) = (ours.parse().ok()?, theirs.parse().ok()?);
    let larger = if b > a { theirs } else { ours };
    (Kind::ALL.into_iter().any(is_count)).then(|| larger.to_owned())
}

fn times(name: &str, ours: &str, theirs: &str) -> Option<String> {
    if !LATEST.contains(&name) {
        return None;
    }
    let time = |text: &str| {
        let text: String = serde_json::from_str(text).ok()?;
        DateTime::parse_from_rfc3339(&text).ok()
    };
    let later = if time(theirs)? > time(ours)? {
        theirs
    } else {
        ours
    };
    Some(later.to_owned())
}

/// Returns the union of both lists, without items that one side has removed.
fn lists(base: Option<&str>, ours: &str, theirs: &str) -> String {
    let with_keys = |list| -> Vec<(&str, String)> {
        let items = items(list).into_iter();
        items.map(|item| (item, compact(item))).collect()
    };
    let before = base.map(with_keys).unwrap_or_default();
    let (ours, theirs) = (with_keys(ours), with_keys(theirs));
    let holds = |list: &[(&str, String)], key: &String| list.iter().any(|(_, other)| other == key);
    let stays = ours
        .iter()
        .filter(|(_, key)| !holds(&before, key) || holds(&theirs, key));
    let new = theirs
        .iter()
        .filter(|(_, key)| !holds(&before, key) && !holds(&ours, key));
    let items: Vec<&str> = stays.chain(new).map(|(item, _)| *item).collect();
    format!("[{}]", items.join(", "))
}

/// Fields of an object; of one name the last one counts.
fn parts(object: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, span) in fields(object.as_bytes()) {
        let value = object[span].to_owned();
        match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, before)) => *before = value,
            None => found.push((name.into_owned(), value)),
        }
    }
    found
}

fn find<'a>(parts: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let (_, value) = parts.iter().find(|(other, _)| other == name)?;
    Some(value)
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_decided_one_by_one() {
        let check = |base: &str, ours: &str, theirs: &str, expected: &str, open: &[&str]| {
            let base = (!base.is_empty()).then_some(base);
            let decided = three_way(base, ours, theirs);
            assert_eq!(compact(&decided.text), expected, "{ours} {theirs}");
            let pointers: Vec<&str> = decided
                .conflicts
                .iter()
                .map(|c| c.pointer.as_str())
                .collect();
            assert_eq!(pointers, open, "{ours} {theirs}");
        };
        let o = r#"{"a":1,"b":"x","n":1062.0}"#;
        check(
            o,
            r#"{"a":2,"b":"x","n":1062.0}"#,
            r#"{"a":1,"b":"y","n":1062.0}"#,
            r#"{"a":2,"b":"y","n":1062.0}"#,
            &[],
        );
        check(
            o,
            r#"{"a":2,"b":"x"}"#,
            r#"{"a":3,"b":"x","n":1062.0}"#,
            r#"{"a":2,"b":"x"}"#,
            &["/a"],
        );
        check(o, r#"{"b":"x"}"#, r#"{"a":1,"b":"z"}"#, r#"{"b":"z"}"#, &[]);
        check(
            o,
            r#"{"a":1,"b":"x","c":NaN}"#,
            r#"{"b":"x","n":1}"#,
            r#"{"b":"x","c":NaN}"#,
            &["/n"],
        );
        check(
            r#"{"times_helped":2}"#,
            r#"{"times_helped":5}"#,
            r#"{"times_helped":3}"#,
            r#"{"times_helped":5}"#,
            &[],
        );
        check(
            "",
            r#"{"shown":3}"#,
            r#"{"shown":5.0}"#,
            r#"{"shown":5.0}"#,
            &[],
        );
        let at = |at: &str| format!(r#"{{"updated_at":"{at}"}}"#);
        check(
            &at("2026-01-01T00:00:00Z"),
            &at("2026-01-03T00:00:00Z"),
            &at("2026-01-02T00:00:00Z"),
            &at("2026-01-03T00:00:00Z"),
            &[],
        );
        check(&at("x"), &at("y"), &at("z"), &at("y"), &["/updated_at"]);
        check(
            r#"{"l":[1,2,3]}"#,
            r#"{"l":[1,3,4]}"#,
            r#"{"l":[1,2,3,5]}"#,
            r#"{"l":[1,3,4,5]}"#,
            &[],
        );
        check(
            r#"{"m":{"x":1,"y":1}}"#,
            r#"{"m":{"x":2,"y":1}}"#,
            r#"{"m":{"x":1,"y":2}}"#,
            r#"{"m":{"x":2,"y":1}}"#,
            &["/m"],
        );
        check("", r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#, &[]);
        check("", r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":1}"#, &["/a"]);
    }

    #[test]
    fn unchanged_fields_keep_their_bytes() {
        let ours = "{\n  \"a\":   1062.0,\n  \"b\": [ 1,2 ]\n}";
        let decided = three_way(Some(ours), ours, "{\"a\": 1062.0, \"b\": [1, 2], \"c\": 1}");
        assert_eq!(
            decided.text,
            "{\n  \"a\":   1062.0,\n  \"b\": [ 1,2 ],\n      \"c\": 1\n}"
        );
    }

    fn object() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            (0..4_u8).prop_map(|n| n.to_string()),
            proptest::collection::vec(0..4_u8, 0..3).prop_map(|l| format!("{l:?}")),
            (0..3_u8).prop_map(|n| format!("{{\"in\": {n}}}")),
        ];
        proptest::collection::btree_map(prop_oneof!["a", "b", "shown", "helped"], value, 0..4)
            .prop_map(|fields| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(k, v)| format!("\"{k}\": {v}"))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            })
    }

    proptest! {
        #[test]
        fn a_side_that_changed_nothing_leaves_the_other_one(base in object(), other in object()) {
            let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            for (ours, theirs) in [(&base, &other), (&other, &base), (&other, &other)] {
                let decided = three_way(Some(&base), ours, theirs);
                prop_assert_eq!(same(&decided.text), same(&other));
                prop_assert_eq!(decided.conflicts, vec![]);
            }
        }

        #[test]
        fn both_ways_round_the_same_is_open_and_what_comes_out_is_an_object(
            base in object(), a in object(), b in object(),
        ) {
            let pointers = |d: &Decided| {
                let mut p: Vec<String> = d.conflicts.iter().map(|c| c.pointer.clone()).collect();
                p.sort();
                p
            };
            let (one, other) = (three_way(Some(&base), &a, &b), three_way(Some(&base), &b, &a));
            prop_assert_eq!(pointers(&one), pointers(&other));
            let value: serde_json::Value = serde_json::from_str(&one.text).unwrap();
            prop_assert!(value.is_object());
        }
    }
}
