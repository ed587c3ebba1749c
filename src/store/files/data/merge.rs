//! Changes from another place to the records of a file: of another workspace, or of the primary database.
//!
//! The last of several changes to one record wins. The order of the file stays: new records go to
//! the end, changed ones keep their position. After a crash, applying the same changes again
//! completes them.

use std::collections::{HashMap, HashSet};

use memctl_files::json;

use crate::model::Kind;
use crate::store::files::data::write::retried;
use crate::store::{Error, JsonFile, Lock, redact};

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
    changes: &[(&str, Option<&str>)],
) -> Result<PulledCount, Error> {
    let kind = file.kind();
    let mut refused = PulledCount::default();
    let mut last: HashMap<&str, Option<String>> = HashMap::with_capacity(changes.len());
    let mut order = Vec::with_capacity(changes.len());
    for (id, text) in changes {
        // Secrets that the other side let through are redacted here.
        let text = text.map(|text| redact(text).text.into_owned());
        if text.as_ref().is_some_and(|text| !is_record(kind, id, text)) {
            refused.refused += 1;
        } else if last.insert(*id, text).is_none() {
            order.push(*id);
        }
    }
    retried(|| {
        let (mut count, snapshot) = (refused, file.prepare(lock, &mut Vec::new())?);
        let (mut changes, mut there) = (Vec::new(), HashSet::new());
        for (row, entry) in snapshot.of_ids(&last.keys().copied().collect())? {
            let new = &last[entry.id.as_str()];
            if new.as_deref().map(str::as_bytes) != Some(&entry.text) {
                let counted = if new.is_some() {
                    &mut count.changed
                } else {
                    &mut count.removed
                };
                *counted += 1;
                changes.push((row, new.clone()));
            }
            there.insert(entry.id);
        }
        let new = order.iter().copied().filter(|id| !there.contains(*id));
        let new: Vec<(&str, &str)> = new
            .filter_map(|id| Some((id, last[id].as_deref()?)))
            .collect();
        count.added = new.len() as u64;
        file.change(&snapshot, &changes)?;
        if !new.is_empty() {
            // The change has moved the end of the file.
            let snapshot = file.prepare(lock, &mut Vec::new())?;
            file.append(&snapshot, &new)?;
        }
        Ok(count)
    })
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
