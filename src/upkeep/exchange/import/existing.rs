//! Existing records, their origins and tombstones, as an import needs them.

use std::collections::{HashMap, HashSet};

use crate::model::{CANDIDATE, Kind, Memory, OBSERVED, Procedure, Record, Reflexion, Trust};
use crate::store::renaming::{IMPORTED_FROM, Taken, created, digest};
use crate::store::workspace::{Error, Workspace};
use crate::store::{Entry, ForgottenRecords, TrustSnapshot, foreign_entries};
use memctl_files::json::with_fields;
use serde_json::Value;

/// Existing record.
pub(super) struct Version {
    pub(super) digest: u128,
    pub(super) created: String,
}

/// Origin of a record: workspace, id and creation time there.
pub(super) type Origin = (String, String, String);

/// Existing records that the caller may see, and tombstones.
#[derive(Default)]
pub(super) struct Existing {
    pub(super) records: HashMap<(Kind, String), Version>,
    /// Records without an id.
    pub(super) bare: HashSet<(Kind, u128)>,
    /// Current ids of renamed records, by origin.
    pub(super) origins: HashMap<(Kind, Origin), String>,
    pub(super) taken: Taken,
    pub(super) forgotten: ForgottenRecords,
}

impl Existing {
    pub(super) fn read(workspace: &Workspace) -> Result<Self, Error> {
        let store = &workspace.store;
        let mut existing = Self {
            forgotten: store.all_forgotten()?,
            ..Self::default()
        };
        for kind in Kind::ALL {
            for entry in foreign_entries(store.directory(), kind)?.0 {
                // An id is taken even if the caller may not see its record.
                existing.taken.take(kind, &entry.id);
                if store.covers(kind, &entry.text) {
                    existing.add(kind, &entry);
                }
            }
            for id in existing.forgotten.ids(kind) {
                existing.taken.take(kind, id);
            }
        }
        Ok(existing)
    }

    fn add(&mut self, kind: Kind, entry: &Entry) {
        let text = String::from_utf8_lossy(&entry.text);
        let digest = digest(&text);
        if entry.id.is_empty() {
            self.bare.insert((kind, digest));
            return;
        }
        if let Some(origin) = origin_of(&text) {
            self.origins.insert((kind, origin), entry.id.clone());
        }
        let created = created(kind, &text);
        let version = Version { digest, created };
        self.records.insert((kind, entry.id.clone()), version);
    }
}

/// Reads the origin of a renamed record.
fn origin_of(text: &str) -> Option<Origin> {
    // Most records have no such field and need no parsing.
    if !text.contains(IMPORTED_FROM) {
        return None;
    }
    let entry: Value = serde_json::from_str(text).ok()?;
    let part = |name: &str| Some(entry.get(IMPORTED_FROM)?.get(name)?.as_str()?.to_owned());
    Some((part("workspace")?, part("id")?, part("created")?))
}

/// Returns the text without its claimed approval; `None` if it claims none that needs this user.
pub(crate) fn observed(own: &TrustSnapshot, kind: Kind, text: &str) -> Option<String> {
    let trust = ("trust", OBSERVED);
    let (field, value) = match kind {
        Kind::Procedure => lacks::<Procedure>(own, text).map(|_| trust),
        Kind::Memory => lacks::<Memory>(own, text).map(|_| trust),
        Kind::Reflexion => lacks::<Reflexion>(own, text)
            .filter(Reflexion::is_in_use)
            .map(|_| ("status", CANDIDATE)),
        // These are only ever shown as data.
        Kind::Execution | Kind::Correction | Kind::Session => None,
    }?;
    Some(with_fields(text, &[(field, format!("\"{value}\""))], 6))
}

/// Returns the record if its file claims an approval that this user has not given.
fn lacks<R: Record>(own: &TrustSnapshot, text: &str) -> Option<R> {
    let record: R = serde_json::from_str(text).ok()?;
    let is_claimed = record.trust() != Trust::Observed;
    (is_claimed && own.level(&record) == Trust::Observed).then_some(record)
}
