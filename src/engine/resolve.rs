//! Decides what a merge has left open in a record: on a person's word, ours or theirs.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::Kind;
use crate::store::{Selection, raw_field};

use super::git_merge::{CONFLICT, Conflict};
use super::{Engine, Error, mended};

/// Whose value is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that stands in the record now.
    Ours,
    /// The one of the side that came.
    Theirs,
}

/// A record in which something is decided.
#[derive(Debug, Serialize)]
pub struct ResolveReport {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The fields that are decided now, as JSON pointers.
    pub decided: Vec<String>,
    /// The fields that are still open.
    pub open: Vec<String>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Decides fields of a record that two branches have set to different values: the one of this name,
    /// or all of them.
    pub fn resolve(
        &self,
        id: &str,
        side: Side,
        field: Option<&str>,
    ) -> Result<ResolveReport, Error> {
        let (kind, id) = self.locate(id)?;
        let mut writer = self.writer()?;
        let entry = writer.store().find(kind, &id)?;
        let text = entry.map(|entry| String::from_utf8_lossy(&entry.text).into_owned());
        let text = text.unwrap_or_default();
        let mut open = open_fields(&text);
        let wanted = field.map(|field| format!("/{}", field.trim_start_matches('/')));
        let decided: Vec<String> = open
            .keys()
            .filter(|pointer| wanted.as_ref().is_none_or(|wanted| wanted == *pointer))
            .cloned()
            .collect();
        if decided.is_empty() {
            return Err(Error::NothingOpen {
                id,
                open: open.keys().cloned().collect(),
            });
        }
        let mut changes: Vec<(String, Box<RawValue>)> = Vec::new();
        let mut gone: BTreeSet<String> = BTreeSet::new();
        for pointer in &decided {
            let theirs = open.shift_remove(pointer).unwrap_or_default();
            if side == Side::Ours {
                continue;
            }
            let path: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
            let Some((top, rest)) = path.split_first() else {
                continue;
            };
            if rest.is_empty() && theirs.is_null() {
                gone.insert(top.clone());
                continue;
            }
            let value = if rest.is_empty() {
                theirs
            } else {
                // Two open fields may stand in one object.
                let known = changes.iter().find(|(name, _)| name == top);
                let stored = known.map(|(_, raw)| raw.get().to_owned());
                let stored = stored.or_else(|| raw_field(&text, top)).unwrap_or_default();
                let mut value: Value =
                    serde_json::from_str(&stored).map_err(crate::store::Error::from)?;
                put(&mut value, rest, theirs);
                value
            };
            let raw = serde_json::value::to_raw_value(&value).map_err(crate::store::Error::from)?;
            changes.retain(|(name, _)| name != top);
            changes.push((top.clone(), raw));
        }
        if open.is_empty() {
            gone.insert(CONFLICT.to_owned());
        } else {
            let raw = serde_json::value::to_raw_value(&open).map_err(crate::store::Error::from)?;
            changes.push((CONFLICT.to_owned(), raw));
        }
        let changes: Vec<(&str, &RawValue)> =
            changes.iter().map(|(n, v)| (n.as_str(), &**v)).collect();
        let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
        writer.update_without(kind, &id, &changes, &gone)?;
        Ok(ResolveReport {
            id,
            kind,
            decided,
            open: open.keys().cloned().collect(),
            warnings: mended(writer.take_mended()).collect(),
        })
    }

    /// What merges have left open in the records.
    pub(super) fn open_conflicts(&self) -> Result<Vec<Conflict>, Error> {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            self.store
                .each_entry(kind, &Selection::default(), &mut |entry| {
                    let needle = CONFLICT.as_bytes();
                    // Most records hold no such word, and need no parser.
                    if entry.text.windows(needle.len()).any(|part| part == needle) {
                        let text = String::from_utf8_lossy(&entry.text);
                        for field in open_fields(&text).keys() {
                            found.push(Conflict {
                                kind,
                                id: entry.id.clone(),
                                field: field.clone(),
                            });
                        }
                    }
                })?;
        }
        Ok(found)
    }
}

/// The open fields of a record, with their values.
fn open_fields(text: &str) -> serde_json::Map<String, Value> {
    let open = raw_field(text, CONFLICT);
    open.and_then(|open| serde_json::from_str(&open).ok())
        .unwrap_or_default()
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// Puts a value to its place below an object, or takes it out where it is null.
fn put(value: &mut Value, path: &[String], new: Value) {
    let Some((name, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    let Some(object) = value.as_object_mut() else {
        return;
    };
    if rest.is_empty() && new.is_null() {
        object.shift_remove(name);
    } else {
        put(object.entry(name.clone()).or_insert(Value::Null), rest, new);
    }
}
