//! Three-way merge: of one entry, field by field, and of the records of a kind, as the union of both sides.
//!
//! In an entry, a change on one side wins. If both sides changed a field, the later of two times wins, and lists
//! become their union without removed items. Everything else is a conflict, as is an object that both changed: the
//! entry keeps our value, and theirs is returned for a user to decide.
//!
//! Works on text: numbers, strings and layout stay byte for byte unless they are merged.
//!
//! A record that only one side has changed is taken from that side. A tombstone of one side wins over a
//! change of the other: deletion is a decision. A record that one side lacks without a tombstone, and that
//! the other has changed, stays.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, FixedOffset};
use memctl_files::json::{compact, fields, items, with_fields, without_fields};
use serde_json::{Map, Value};

use super::side::{CONFLICT, Conflict, Record};
use crate::model::Kind;

/// Fields with the time of the last event.
const LATEST: [&str; 2] = ["updated_at", "last_seen"];

/// A merged entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// JSON text.
    pub(crate) text: String,
    /// Values of their side of fields that a person decides, by JSON pointer (`/rule`); null for one that they removed.
    pub(crate) open: Map<String, Value>,
}

/// Merges two versions of an object; `base` is the common ancestor, if known.
pub(crate) fn three_way(base: Option<&str>, ours: &str, theirs: &str) -> Decided {
    let o = base.map(parts);
    let (a, b) = (parts(ours), parts(theirs));
    let new = b.iter().filter(|(name, _)| find(&a, name).is_none());
    let mut changes: Vec<(&str, String)> = Vec::new();
    let mut removed: Vec<&str> = Vec::new();
    let mut open = Map::new();
    for (name, _) in a.iter().chain(new) {
        let before = o.as_ref().map(|parts| find(parts, name));
        let (own, other) = (find(&a, name), find(&b, name));
        match decide(name, before, own, other) {
            None => {
                let theirs = other.and_then(|text| serde_json::from_str(text).ok());
                open.insert(format!("/{name}"), theirs.unwrap_or_default());
            }
            Some(Some(text)) if own != Some(text.as_str()) => changes.push((name, text)),
            Some(None) if own.is_some() => removed.push(name),
            Some(_) => {}
        }
    }
    let text = without_fields(&with_fields(ours, &changes, 6), &removed);
    Decided { text, open }
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
        (Some(a), Some(b)) if LATEST.contains(&name) => {
            let time = |json: &str| time(&serde_json::from_str::<String>(json).ok()?);
            own(Some(if time(b)? > time(a)? { b } else { a }))
        }
        // Without an ancestor, a field that one side lacks counts as added by the other.
        (Some(_), None) | (None, Some(_)) if base.is_none() => own(ours.or(theirs)),
        _ => None,
    }
}

fn time(text: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text).ok()
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

/// Merged records of a kind.
#[derive(Default)]
pub(crate) struct Union {
    pub(crate) entries: Vec<String>,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) notes: Vec<String>,
}

/// Merges the records of a kind in the base, ours and theirs, under their final ids. `removed` are the tombstones of
/// ours and of theirs.
pub(crate) fn union(
    kind: Kind,
    sides: [&[Record]; 3],
    removed: [&HashSet<(Kind, String)>; 2],
) -> Union {
    let [base, ours, theirs] = sides.map(by_key);
    let mut union = Union::default();
    // What becomes of a record that the other side has not: `true` if it stays.
    let mut stays = |record: &Record, other: usize, place: &str| {
        let Some(before) = base.get(record.key()) else {
            return true;
        };
        if compact(&before.text) == compact(&record.text) {
            return false;
        }
        let is_removed = removed[other].contains(&(kind, record.id.clone()));
        if is_removed {
            let id = &record.id;
            union.notes.push(format!(
                "{kind} {id} was removed on purpose {place}, and stays removed though it was changed since"
            ));
        }
        !is_removed
    };
    let coming = sides[2]
        .iter()
        .filter(|record| !ours.contains_key(record.key()));
    let coming: Vec<&Record> = coming.filter(|record| stays(record, 0, "here")).collect();
    let own = sides[1].iter();
    let own = own.filter(|record| theirs.contains_key(record.key()) || stays(record, 1, "there"));
    let own: Vec<&Record> = own.collect();
    let mut coming = coming.into_iter().peekable();
    for record in own {
        let before = base.get(record.key());
        let Some(other) = theirs.get(record.key()) else {
            // Older records of theirs go before a new one.
            while before.is_none()
                && let Some(older) = coming.next_if(|other| is_older(other, record))
            {
                union.entries.push(older.text.clone());
            }
            union.entries.push(record.text.clone());
            continue;
        };
        let before = before.map(|before| before.text.as_str());
        let Decided { mut text, open } = three_way(before, &record.text, &other.text);
        union.conflicts.extend(open.keys().map(|field| Conflict {
            kind,
            id: record.id.clone(),
            field: field.clone(),
        }));
        if !open.is_empty() {
            text = with_fields(&text, &[(CONFLICT, Value::from(open).to_string())], 6);
        }
        union.entries.push(text);
    }
    union
        .entries
        .extend(coming.map(|record| record.text.clone()));
    union
}

fn by_key(records: &[Record]) -> HashMap<&str, &Record> {
    records
        .iter()
        .map(|record| (record.key(), record))
        .collect()
}

fn is_older(one: &Record, other: &Record) -> bool {
    let times = (time(&one.created), time(&other.created));
    matches!(times, (Some(one), Some(other)) if one < other)
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
            let pointers: Vec<&String> = decided.open.keys().collect();
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
            let same = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            for (ours, theirs) in [(&base, &other), (&other, &base), (&other, &other)] {
                let decided = three_way(Some(&base), ours, theirs);
                prop_assert_eq!(same(&decided.text), same(&other));
                prop_assert!(decided.open.is_empty());
            }
        }

        #[test]
        fn both_ways_round_the_same_is_open_and_what_comes_out_is_an_object(
            base in object(), a in object(), b in object(),
        ) {
            let pointers = |d: &Decided| {
                let mut p: Vec<String> = d.open.keys().cloned().collect();
                p.sort();
                p
            };
            let (one, other) = (three_way(Some(&base), &a, &b), three_way(Some(&base), &b, &a));
            prop_assert_eq!(pointers(&one), pointers(&other));
            let value: Value = serde_json::from_str(&one.text).unwrap();
            prop_assert!(value.is_object());
        }
    }
}
