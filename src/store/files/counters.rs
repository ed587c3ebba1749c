//! Counters of shared records, which each machine keeps for itself.
//!
//! A session changes counts: how often a record was shown, helped or acted. In a file that git tracks, each
//! session would be a change to commit, and git would refuse a pull of the code. So `evidence.local.json` holds
//! these fields, and readers see them in the text of the record.
//!
//! - [`fields`] says which fields of a kind are counters. Writers separate them from the other fields of a
//!   change; no caller asks where a field is stored.
//! - The validation of a rule is no counter: `test` is a command of a person, and its result is shared with
//!   clones and teams.
//! - The time of creation belongs to the key: another record that a pull brings under the same id
//!   inherits nothing. A record that a merge renumbered keeps its counters, and so does one that a checkout
//!   took away for a time: they are set aside under its id and time.
//! - Records in a local file, and records at a primary database, hold their counters themselves.
//!
//! Deliberately absent: a merge. Each copy of a record has its own counters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memctl_files::{Directory, json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::Kind;
use crate::store::files::directory::EVIDENCE as FILE;
use crate::store::renaming::former_ids;
use crate::store::{Entry, Error, Lock, atomic};

/// Returns the names of the fields of a kind that each machine counts for itself.
pub const fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Reflexion => &[
            "times_injected", "times_helped", "times_harmed", "utility_score", "confidence",
            "times_told", "times_heeded", "times_recurred", "times_overridden",
        ],
        Kind::Procedure => &[
            "shown", "helped", "harmed", "needless", "occurrences", "last_seen", "origins",
        ],
        _ => &[],
    }
}

/// The counters of one record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counted {
    /// Time of creation of the record.
    created_at: String,
    /// JSON text of each field.
    fields: BTreeMap<String, Box<RawValue>>,
}

/// The counters of this machine, by record id.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counters {
    records: BTreeMap<String, Counted>,
}

impl Counters {
    /// Reads the file. Without it, or with one that cannot be read, nothing is counted yet.
    pub(crate) fn read(directory: &Directory) -> Self {
        atomic::read_json(directory, FILE).unwrap_or_default()
    }

    /// Replaces the file.
    pub(crate) fn write(&self, lock: &Lock) -> Result<(), Error> {
        atomic::replace_json(lock.directory(), FILE, self)
    }

    /// Returns the text of an entry with its counters in place of the fields of its file.
    pub(crate) fn shown<'t>(&self, entry: &'t Entry) -> Cow<'t, str> {
        let text = String::from_utf8_lossy(&entry.text);
        match self.of(entry) {
            None => text,
            Some(counted) => {
                let fields = counted.fields.iter();
                let fields: Vec<_> = fields
                    .map(|(name, value)| (name.as_str(), json::pretty(value.get(), 3)))
                    .collect();
                Cow::Owned(json::with_fields(&text, &fields, 6))
            }
        }
    }

    /// Puts the counters of an entry into its text.
    pub(crate) fn apply(&self, entry: &mut Entry) {
        if self.of(entry).is_some() {
            let text = self.shown(entry).into_owned();
            entry.text = text.into_bytes();
        }
    }

    fn of(&self, entry: &Entry) -> Option<&Counted> {
        self.records.get(&self.key(entry)?)
    }

    /// Returns the key of the counters of an entry: its id, the one that it had before a merge, or either with its
    /// time, where they were set aside.
    fn key(&self, entry: &Entry) -> Option<String> {
        if self.records.is_empty() {
            return None;
        }
        let created = created(entry);
        let is_of_it = |key: &String| {
            let counted = self.records.get(key);
            counted.is_some_and(|counted| counted.created_at == created)
        };
        let ids = std::iter::once(entry.id.clone()).chain(former_ids(&entry.text));
        let mut keys = ids.flat_map(|id| [set_aside(&id, &created), id]);
        keys.find(is_of_it)
    }

    /// Sets a counter of an entry to a JSON text; `None` takes it away.
    pub(crate) fn set(&mut self, entry: &Entry, name: &str, value: Option<&str>) {
        let own = self.key(entry).and_then(|key| self.records.remove(&key));
        let own = own.unwrap_or_else(|| Counted {
            created_at: created(entry),
            ..Counted::default()
        });
        if let Some(other) = self.records.remove(&entry.id) {
            let key = set_aside(&entry.id, &other.created_at);
            self.records.insert(key, other);
        }
        let counted = self.records.entry(entry.id.clone()).or_insert(own);
        let value = value.map(str::to_owned).map(RawValue::from_string);
        match value {
            Some(Ok(value)) => drop(counted.fields.insert(name.to_owned(), value)),
            _ => drop(counted.fields.remove(name)),
        }
    }

    /// Forgets the counters of a record. Returns `false` if there are none.
    pub(crate) fn forget(&mut self, id: &str) -> bool {
        self.records.remove(id).is_some()
    }
}

/// Key of the counters of a record whose id another record has now.
fn set_aside(id: &str, created: &str) -> String {
    format!("{id} {created}")
}

fn created(entry: &Entry) -> String {
    let created = json::string_field(&entry.text, "created_at");
    created.unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        Entry {
            kind: Kind::Reflexion,
            id: "REFL-001".to_owned(),
            text: text.as_bytes().to_vec(),
            is_local: false,
            offset: 0,
        }
    }

    #[test]
    fn counters_are_in_the_text_of_their_record_only() {
        let rule = entry(r#"{"created_at": "a", "times_injected": 1, "mine":  1062.0}"#);
        let mut counters = Counters::default();
        assert_eq!(counters.shown(&rule), String::from_utf8_lossy(&rule.text));
        counters.set(&rule, "times_injected", Some("4"));
        counters.set(&rule, "times_told", Some("2"));
        counters.set(&rule, "times_recurred", Some("2"));
        counters.set(&rule, "times_recurred", None);
        let expected = "{\"created_at\": \"a\", \"times_injected\": 4, \"mine\":  1062.0,\n      \"times_told\": 2}";
        assert_eq!(counters.shown(&rule), expected);
        // Another record with this id, from a pull of git.
        let other = entry(r#"{"created_at": "b", "times_injected": 1}"#);
        assert_eq!(counters.shown(&other), String::from_utf8_lossy(&other.text));
        counters.set(&other, "times_told", Some("1"));
        // The branch of the first one is checked out again; then a merge gives it another id.
        assert_eq!(counters.shown(&rule), expected);
        let mut moved = entry(r#"{"created_at": "a", "merged_from": ["REFL-001"]}"#);
        moved.id = "REFL-002".to_owned();
        assert!(counters.shown(&moved).contains("\"times_told\": 2"));
        counters.set(&moved, "times_told", Some("3"));
        assert!(counters.shown(&moved).contains("\"times_told\": 3"));
        assert!(counters.shown(&other).contains("\"times_told\": 1"));
        assert!(counters.forget("REFL-001") && !counters.forget("REFL-001"));
    }
}
