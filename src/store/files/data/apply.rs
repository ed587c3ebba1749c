//! Applies changes from another place to the records of a file.
//!
//! The last of several changes to one record wins. The order of the file stays: new records go to
//! the end, changed ones keep their position. After a crash, applying the same changes again
//! completes them.

use std::collections::HashMap;

use memctl_files::json;

use crate::model::Kind;
use crate::store::files::data::write::{NewEntry, redone};
use crate::store::{Error, JsonFile, Lock, Row, Snapshot, redact};

/// State of a remote record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledChange {
    /// Id in its workspace.
    pub id: String,
    /// JSON text; `None` if the record is removed.
    pub text: Option<String>,
}

/// Effect of applied changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PulledCount {
    /// Number of new records.
    pub added: u64,
    /// Number of changed records.
    pub changed: u64,
    /// Number of removed records.
    pub removed: u64,
    /// Number of rejected texts: not a record with the given id.
    pub refused: u64,
}

impl std::ops::AddAssign for PulledCount {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.removed += other.removed;
        self.refused += other.refused;
    }
}

/// Applies the changes. `file` must belong to the writer that holds this lock. All changes are on
/// disk when this returns.
pub(crate) fn apply(
    file: JsonFile<'_>,
    lock: &Lock,
    changes: &[PulledChange],
) -> Result<PulledCount, Error> {
    redone(|| apply_once(file, lock, changes))
}

fn apply_once(
    file: JsonFile<'_>,
    lock: &Lock,
    changes: &[PulledChange],
) -> Result<PulledCount, Error> {
    let kind = file.kind();
    let mut count = PulledCount::default();
    let mut last: HashMap<&str, Option<String>> = HashMap::with_capacity(changes.len());
    let mut order = Vec::with_capacity(changes.len());
    for change in changes {
        // Secrets that the other side let through are redacted here.
        let text = change.text.as_deref();
        let text = text.map(|text| redact(text).text.into_owned());
        if text
            .as_ref()
            .is_some_and(|t| !is_record(kind, &change.id, t))
        {
            count.refused += 1;
            continue;
        }
        if last.insert(&change.id, text).is_none() {
            order.push(change.id.as_str());
        }
    }
    let prepare = || file.prepare(lock, &mut Vec::new());
    let snapshot = prepare()?;
    let held = places(&snapshot, kind, &order)?;

    let (mut gone, mut other) = (Vec::new(), Vec::new());
    for (id, rows) in &held {
        match last.get(id).and_then(Option::as_deref) {
            None => gone.extend(rows.iter().cloned()),
            Some(text) => {
                for row in rows {
                    if snapshot.read(row)? != text.as_bytes() {
                        other.push((row.clone(), text));
                    }
                }
            }
        }
    }
    other.sort_by_key(|(row, _)| row.at);
    gone.sort_by_key(|row| row.at);
    count.changed = other.len() as u64;
    count.removed = gone.len() as u64;
    if !other.is_empty() {
        let texts: Vec<_> = other.iter().map(|(row, text)| (row, *text)).collect();
        file.replace_all(&snapshot, &texts)?;
    }
    if !gone.is_empty() {
        // The replacements may have moved the entries behind them.
        let snapshot = prepare()?;
        let ids: Vec<&str> = order
            .iter()
            .copied()
            .filter(|id| last.get(id).is_some_and(Option::is_none))
            .collect();
        let mut rows: Vec<Row> = places(&snapshot, kind, &ids)?
            .into_values()
            .flatten()
            .collect();
        rows.sort_by_key(|row| row.at);
        file.remove_all(&snapshot, &rows)?;
    }
    let new: Vec<(&str, &str, String)> = order
        .iter()
        .filter(|id| !held.contains_key(*id))
        .filter_map(|id| Some((*id, last.get(id)?.as_deref()?)))
        .map(|(id, text)| {
            let skill = json::string_field(text.as_bytes(), "skill");
            (id, text, skill.unwrap_or_default().into_owned())
        })
        .collect();
    count.added = new.len() as u64;
    if !new.is_empty() {
        let entries: Vec<_> = new
            .iter()
            .map(|(id, text, skill)| NewEntry { text, id, skill })
            .collect();
        file.append(&prepare()?, &entries)?;
    }
    Ok(count)
}

/// Returns `true` if the text is one whole object with this id, so that it can be stored as an
/// entry.
pub(crate) fn is_record(kind: Kind, id: &str, text: &str) -> bool {
    let bytes = text.as_bytes();
    let start = json::skip_space(bytes, 0);
    let is_whole =
        json::skip_value(bytes, start).is_ok_and(|end| json::skip_space(bytes, end) == bytes.len());
    is_whole
        && bytes.get(start) == Some(&b'{')
        && u32::try_from(bytes.len()).is_ok()
        && !id.is_empty()
        && json::string_field(bytes, kind.id_field()).is_some_and(|own| own == id)
}

/// Returns the positions of the records with these ids. A file with duplicates has several for one
/// id.
pub(crate) fn places<'i>(
    snapshot: &Snapshot,
    kind: Kind,
    ids: &[&'i str],
) -> Result<HashMap<&'i str, Vec<Row>>, Error> {
    let wanted: HashMap<&[u8], &'i str> = ids.iter().map(|id| (id.as_bytes(), *id)).collect();
    let mut found: HashMap<&'i str, Vec<Row>> = HashMap::new();
    let mut cut = Vec::new();
    snapshot.each(false, &mut |row| {
        if row.id_is_cut() {
            cut.push(row.clone());
        } else if let Some(id) = wanted.get(row.id()) {
            found.entry(id).or_default().push(row.clone());
        }
        true
    })?;
    for row in cut {
        let entry = snapshot.entry(kind, &row)?;
        if let Some(id) = wanted.get(entry.id.as_bytes()) {
            found.entry(id).or_default().push(row);
        }
    }
    Ok(found)
}
