//! Resolves the fields that a merge left open in a record: a person chooses ours or theirs.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CONFLICT, Conflict};
use crate::model::Kind;
use crate::store::workspace::records::locate;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{Scoped, Selection, raw_field};

/// Side whose value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Value that the record has now.
    Ours,
    /// Value of the incoming side.
    Theirs,
}

/// Outcome of [`resolve()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ResolveReport {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Fields resolved by this call, as JSON pointers.
    pub decided: Vec<String>,
    /// Fields that are still open, as JSON pointers.
    pub open: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Resolves fields of a record that two branches set to different values: the named field, or
/// all of them.
pub fn resolve(
    workspace: &Workspace,
    id: &str,
    side: Side,
    field: Option<&str>,
) -> Result<ResolveReport, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let mut writer = workspace.writer()?;
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
        let hint = match open.keys().next() {
            Some(field) => format!("an open field: --field {field}"),
            None => "memctl doctor lists open merge conflicts".to_owned(),
        };
        let message = format!("`{id}` has no such open merge conflict");
        return Err(Error::missing(message, hint));
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
            // One object may hold two open fields.
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
    let changes: Vec<(&str, &RawValue)> = changes.iter().map(|(n, v)| (n.as_str(), &**v)).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    writer.update_without(kind, &id, &changes, &gone)?;
    Ok(ResolveReport {
        id,
        kind,
        decided,
        open: open.keys().cloned().collect(),
        warnings: repair_warnings(writer.take_repairs()).collect(),
    })
}

/// Lists the fields that merges left open in the records.
pub(crate) fn open_conflicts(store: &Scoped) -> Result<Vec<Conflict>, Error> {
    let mut found = Vec::new();
    for kind in Kind::ALL {
        store.each_entry(kind, &Selection::default(), &mut |entry| {
            let needle = CONFLICT.as_bytes();
            // Most records do not contain the key and need no parsing.
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

/// Open fields of a record, with the values of the incoming side.
pub(crate) fn open_fields(text: &str) -> serde_json::Map<String, Value> {
    let open = raw_field(text, CONFLICT);
    open.and_then(|open| serde_json::from_str(&open).ok())
        .unwrap_or_default()
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// Sets a value below an object, or removes the field if the value is null.
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
