//! Imports an export of this program, or a memory directory.
//!
//! - Here: existing records, with their origins and tombstones.
//! - `sources`: recognises a file or directory, and reads it.
//! - `records`: which of its records are new, and under which ids; they keep their text.
//!
//! Every record read is counted as imported, existing already, or skipped with a reason. Existing
//! records do not change.

mod records;
mod sources;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use memctl_files::json::with_fields;
use serde::Serialize;
use serde_json::Value;

use crate::model::{CANDIDATE, Kind, Memory, OBSERVED, Procedure, Record, Reflexion, Trust};
use crate::store::renaming::{IMPORTED_FROM, NewId, Taken, created, digest};
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{Entry, ForgottenRecords, RawEntry, TrustSnapshot, foreign_entries};

/// Options of an import.
#[derive(Debug)]
pub struct ImportOptions {
    /// File or directory to import.
    pub path: PathBuf,
    /// Stops before anything is written.
    pub dry_run: bool,
    /// Also imports records that were deleted here.
    pub restore: bool,
    /// Accepts the approvals that the file claims.
    pub trust: bool,
}

/// Result of an import: `read` is the sum of `imported`, `duplicates` and the counts of `skipped`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct ImportReport {
    /// `memctl`: an export, or a memory directory; `agentura`: a memory directory of the Agentura SDK.
    pub source: &'static str,
    /// Path of the source.
    pub path: PathBuf,
    /// Number of records and lines read.
    pub read: u64,
    /// Number of records and lines added.
    pub imported: u64,
    /// Number of records and lines that exist here already.
    pub duplicates: u64,
    /// Skipped records and lines, with the reason.
    pub skipped: Vec<Skipped>,
    /// Imported records by the plural of their kind, and lines by log.
    pub by_kind: BTreeMap<String, u64>,
    /// Number of imported rules, procedures and memories that this user has not approved.
    pub observed: u64,
    /// Ids of the records here already that `trust` approves.
    pub approved: Vec<String>,
    /// Records that got a new id because theirs was taken; references follow.
    pub renamed: Vec<NewId>,
    /// True if nothing was written.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Input that does not become a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Skipped {
    /// Name of one item, or a plural for several.
    pub what: String,
    /// Reason as text.
    pub reason: String,
    /// Number of items.
    pub count: u64,
}

impl Skipped {
    /// One skipped item.
    pub fn one(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::some(1, what, reason)
    }

    /// Several skipped items of one type, with the same reason.
    pub fn some(count: u64, what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            reason: reason.into(),
            count,
        }
    }
}

impl ImportReport {
    fn skip(&mut self, skipped: Skipped) {
        self.read += skipped.count;
        // Equal items with equal reasons share a line.
        let same = self
            .skipped
            .iter_mut()
            .find(|other| other.reason == skipped.reason && other.what == skipped.what);
        match same {
            Some(other) => other.count += skipped.count,
            None => self.skipped.push(skipped),
        }
    }

    fn count_duplicate(&mut self) {
        self.read += 1;
        self.duplicates += 1;
    }

    fn take(&mut self, what: &str) {
        self.read += 1;
        self.imported += 1;
        *self.by_kind.entry(what.to_owned()).or_default() += 1;
    }
}

/// Additions of an import: records under their final ids, and lines of logs.
#[derive(Default)]
struct Ready {
    records: Vec<(Kind, RawEntry)>,
    lines: Vec<(&'static str, Vec<String>)>,
}

/// Imports a file or a directory.
pub fn import(workspace: &Workspace, options: &ImportOptions) -> Result<ImportReport, Error> {
    let mut opened = sources::open(&options.path)?;
    let mut report = ImportReport {
        source: opened.source,
        path: options.path.clone(),
        dry_run: options.dry_run,
        warnings: std::mem::take(&mut opened.warnings),
        ..ImportReport::default()
    };
    for skipped in opened.skipped.drain(..) {
        report.skip(skipped);
    }
    // The lock is held from here on, so decisions stay valid until they are written.
    let mut writer = (!options.dry_run).then(|| workspace.writer()).transpose()?;
    let ready = records::ready(workspace, options, opened, &mut report)?;
    if let Some(writer) = &mut writer {
        for kind in Kind::ALL {
            let of_kind = ready.records.iter().filter(|(of, _)| *of == kind);
            let entries: Vec<RawEntry> = of_kind.map(|(_, entry)| entry.clone()).collect();
            writer.restore(kind, &entries, None)?;
        }
        for (name, lines) in &ready.lines {
            writer.restore_lines(name, lines)?;
        }
        let repairs = writer.take_repairs();
        report.warnings.extend(repair_warnings(repairs));
    }
    Ok(report)
}

/// Existing record.
struct Version {
    digest: u128,
    created: String,
}

/// Origin of a record: workspace, id and creation time there.
type Origin = (String, String, String);

/// Existing records that the caller may see, and tombstones.
#[derive(Default)]
struct Existing {
    records: HashMap<(Kind, String), Version>,
    /// Records without an id.
    bare: HashSet<(Kind, u128)>,
    /// Current ids of renamed records, by origin.
    origins: HashMap<(Kind, Origin), String>,
    taken: Taken,
    forgotten: ForgottenRecords,
}

impl Existing {
    fn read(workspace: &Workspace) -> Result<Self, Error> {
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
fn observed(own: &TrustSnapshot, kind: Kind, text: &str) -> Option<String> {
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
