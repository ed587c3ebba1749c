//! Brings the records of a file to what they are in another place.
//!
//! Of several changes of one record the last one counts. The order of the file stays: what is new comes
//! behind, what has changed keeps its place. After a crash some of it is done, and the same changes again
//! make it whole.

use std::collections::HashMap;

use crate::model::Kind;

use super::directory::Lock;
use super::error::Error;
use super::json_file::Snapshot;
use super::json_text;
use super::json_write::{NewEntry, redone};
use super::offsets::Row;
use super::pulled::{PulledChange, PulledCount};
use super::scoped::Scoped;

/// Brings records to what they are now. `store` is that of a writer who has this lock. All of it is on the
/// disk when this returns.
pub(super) fn apply(
    store: &Scoped,
    lock: &Lock,
    kind: Kind,
    changes: &[PulledChange],
) -> Result<PulledCount, Error> {
    redone(|| apply_once(store, lock, kind, changes))
}

fn apply_once(
    store: &Scoped,
    lock: &Lock,
    kind: Kind,
    changes: &[PulledChange],
) -> Result<PulledCount, Error> {
    let mut count = PulledCount::default();
    let mut last: HashMap<&str, Option<String>> = HashMap::with_capacity(changes.len());
    let mut order = Vec::with_capacity(changes.len());
    for change in changes {
        // What others have let through is no reason to keep a secret here.
        let text = change.text.as_deref();
        let text = text.map(|text| store.redacted(text).into_owned());
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
    let file = store.file(kind);
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
        // The other texts have moved what stands behind them.
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
            let skill = json_text::string_field(text.as_bytes(), "skill");
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

/// Whether a text is an object with this id, so that it can stand in a file among others.
pub(super) fn is_record(kind: Kind, id: &str, text: &str) -> bool {
    let bytes = text.as_bytes();
    let start = json_text::skip_space(bytes, 0);
    let is_whole = json_text::skip_value(bytes, start)
        .is_ok_and(|end| json_text::skip_space(bytes, end) == bytes.len());
    is_whole
        && bytes.get(start) == Some(&b'{')
        && u32::try_from(bytes.len()).is_ok()
        && !id.is_empty()
        && json_text::string_field(bytes, kind.id_field()).is_some_and(|own| own == id)
}

/// Where records with these ids lie; one may lie in several places, in a file of somebody's making.
pub(super) fn places<'i>(
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
        let entry = Scoped::read(snapshot, kind, &row)?;
        if let Some(id) = wanted.get(entry.id.as_bytes()) {
            found.entry(id).or_default().push(row);
        }
    }
    Ok(found)
}
