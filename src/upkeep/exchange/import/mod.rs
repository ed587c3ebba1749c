//! Imports an export of this program, or a memory directory.
//!
//! - `sources`: recognises a file or directory, and reads it.
//! - `records`: which of its records are new, and under which ids; they keep their text.
//! - `existing`: existing records, with their origins and tombstones.
//!
//! Every record read is counted as imported, existing already, or skipped with a reason. Existing
//! records do not change.

pub(crate) mod existing;
mod records;
mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::model::Kind;
use crate::store::RawEntry;
use crate::store::renaming::NewId;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::upkeep::exchange::Skipped;

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
            writer.restore(kind, &entries)?;
        }
        for (name, lines) in &ready.lines {
            writer.restore_lines(name, lines)?;
        }
        let repairs = writer.take_repairs();
        report.warnings.extend(repair_warnings(repairs));
    }
    Ok(report)
}
