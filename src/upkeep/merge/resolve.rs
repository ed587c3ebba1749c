//! Resolves the fields that a merge left open in a record: a person chooses ours or theirs.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{CONFLICT, Conflict};
use crate::model::Kind;
use crate::store::workspace::{Error, Workspace, entry, locate, repair_warnings};
use crate::store::{Entry, raw_field};

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
    /// Resolved fields, as JSON pointers.
    pub decided: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Resolves the fields of a record that two branches set to different values.
pub fn resolve(workspace: &Workspace, id: &str, side: Side) -> Result<ResolveReport, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let mut writer = workspace.writer()?;
    let entry = entry(writer.store(), kind, &id)?;
    let text = String::from_utf8_lossy(&entry.text);
    let Some(open) = open_fields(&text) else {
        let message = format!("`{id}` has no open merge conflict");
        let hint = "memctl doctor lists open merge conflicts";
        return Err(Error::missing(message, hint));
    };
    let decided: Vec<String> = open.keys().cloned().collect();
    // One object may hold two open fields.
    let mut changes: BTreeMap<String, Value> = BTreeMap::new();
    for (pointer, theirs) in open.into_iter().filter(|_| side == Side::Theirs) {
        let path = pointer.trim_start_matches('/');
        let (top, below) = path.split_at(path.find('/').unwrap_or(path.len()));
        let top = unescaped(top);
        let stored = raw_field(&text, &top).and_then(|raw| serde_json::from_str(&raw).ok());
        let value = changes
            .entry(top)
            .or_insert_with(|| stored.unwrap_or_default());
        put(value, below, theirs);
    }
    let (gone, changes): (Vec<_>, Vec<_>) = changes.iter().partition(|(_, value)| value.is_null());
    let names = gone.into_iter().map(|(name, _)| name.as_str());
    let gone: Vec<&str> = names.chain([CONFLICT]).collect();
    let changes: Vec<(&str, &Value)> = changes.into_iter().map(|(n, v)| (n.as_str(), v)).collect();
    writer.update_without(kind, &id, &changes, &gone)?;
    Ok(ResolveReport {
        id,
        kind,
        decided,
        warnings: repair_warnings(writer.take_repairs()).collect(),
    })
}

/// Returns the fields that a merge left open in a record.
pub(crate) fn conflicts_in(entry: &Entry) -> Vec<Conflict> {
    let (kind, id) = (entry.kind, &entry.id);
    let open = open_fields(&String::from_utf8_lossy(&entry.text));
    let fields = open.into_iter().flatten().map(|(field, _)| field);
    let conflict = |field| Conflict {
        kind,
        id: id.clone(),
        field,
    };
    fields.map(conflict).collect()
}

/// Open fields of a record, with the values of the incoming side; `None` without any.
fn open_fields(text: &str) -> Option<serde_json::Map<String, Value>> {
    // Most records do not contain the key and need no parsing.
    memchr::memmem::find(text.as_bytes(), CONFLICT.as_bytes())?;
    let open: serde_json::Map<_, _> = serde_json::from_str(&raw_field(text, CONFLICT)?).ok()?;
    (!open.is_empty()).then_some(open)
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// Sets the value at a JSON pointer, or removes the field if the value is null.
fn put(value: &mut Value, pointer: &str, new: Value) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *value = new;
        return;
    };
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
    match (parent, new) {
        (Some(object), Value::Null) => drop(object.shift_remove(&unescaped(name))),
        (Some(object), new) => drop(object.insert(unescaped(name), new)),
        (None, _) => {}
    }
}
