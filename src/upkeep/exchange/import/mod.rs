//! Imports an export of this program, or the memories of another program.
//!
//! Every record read is counted as imported, known already, or skipped with a reason. Existing
//! records do not change.
//!
//! Records in this program's own format are imported byte for byte (`exact`). The notes of other
//! programs are screened and become memories that a person has yet to approve (`candidates`).

mod candidates;
mod detect;
mod exact;
pub(crate) mod existing;

pub(crate) use existing::{FROM, Taken, created, digest, tests};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::upkeep::exchange::Skipped;

use crate::store::workspace::{Error, Workspace};

/// Source of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImportSource {
    /// Export of this program, or one of its memory directories.
    Memctl,
    /// Memory directory of the Agentura SDK.
    Agentura,
    /// Response of mem0, or lines of that form.
    Mem0,
    /// `CLAUDE.md`, `AGENTS.md`, `MEMORY.md` and similar files.
    ClaudeMd,
}

impl ImportSource {
    /// All sources.
    pub const ALL: [Self; 4] = [Self::Memctl, Self::Agentura, Self::Mem0, Self::ClaudeMd];

    /// Name of the source.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memctl => "memctl",
            Self::Agentura => "agentura",
            Self::Mem0 => "mem0",
            Self::ClaudeMd => "claude-md",
        }
    }
}

/// Options of an import.
#[derive(Debug)]
pub struct ImportOptions {
    /// File or directory to import.
    pub path: PathBuf,
    /// Source; `None` detects it from the content.
    pub from: Option<ImportSource>,
    /// Stops before anything is written.
    pub dry_run: bool,
    /// Also imports records that were deleted here.
    pub restore: bool,
    /// Accepts the approvals that the file claims.
    pub trust: bool,
}

/// Record that could not keep its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Renamed {
    /// Id in the source.
    pub from: String,
    /// Id here.
    pub to: String,
}

/// Result of an import: `read` is the sum of `imported`, `duplicates` and the counts of `skipped`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ImportReport {
    /// Source of the records.
    pub source: ImportSource,
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
    /// Records that got a new id because theirs was taken; references follow.
    pub renamed: Vec<Renamed>,
    /// True if nothing was written.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

impl ImportReport {
    fn new(source: ImportSource, options: &ImportOptions) -> Self {
        Self {
            source,
            path: options.path.clone(),
            read: 0,
            imported: 0,
            duplicates: 0,
            skipped: Vec::new(),
            by_kind: BTreeMap::new(),
            observed: 0,
            renamed: Vec::new(),
            dry_run: options.dry_run,
            warnings: Vec::new(),
        }
    }

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

    fn known(&mut self) {
        self.read += 1;
        self.duplicates += 1;
    }

    fn take(&mut self, what: &str) {
        self.read += 1;
        self.imported += 1;
        *self.by_kind.entry(what.to_owned()).or_default() += 1;
    }
}

/// Imports a file or a directory.
pub fn import(workspace: &Workspace, options: &ImportOptions) -> Result<ImportReport, Error> {
    let found = detect::open(&options.path, options.from)?;
    let mut report = ImportReport::new(found.source, options);
    report.warnings.extend(found.warnings);
    match found.content {
        detect::Content::Own(carried) => exact::import(workspace, options, &carried, &mut report)?,
        detect::Content::Foreign(found) => {
            candidates::import(workspace, options, found, &mut report)?;
        }
    }
    Ok(report)
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Unreadable { path, source }
}
