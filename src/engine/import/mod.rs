//! Takes in what was given out here, or what another memory has kept.
//!
//! Everything that is read is counted: it is imported, known already, or skipped with a reason, and the
//! three make up what was read. Nothing that is here is changed.
//!
//! Two ways in. Records of this program's own form come as they are, byte for byte (`exact`); what other
//! memories say is screened and becomes notes that a person has yet to approve (`candidates`).

mod candidates;
mod claimed;
mod detect;
mod exact;
mod here;
mod ids;
mod mend;

pub(in crate::engine) use here::{FROM, created, digest};
pub(in crate::engine) use ids::Taken;
pub(in crate::engine) use mend::{mend, tests};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::exchange::Skipped;

use super::{Engine, Error};

pub(super) use candidates::OBSERVED;

/// Whose memory is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportSource {
    /// An export of this program, or a memory directory of it.
    Memctl,
    /// A memory directory of the Agentura SDK.
    Agentura,
    /// claude-mem's database.
    ClaudeMem,
    /// What mem0 answers, or its history.
    Mem0,
    /// `CLAUDE.md`, `AGENTS.md`, `MEMORY.md` and the like.
    ClaudeMd,
}

impl ImportSource {
    /// Every source.
    pub const ALL: [Self; 5] = [
        Self::Memctl,
        Self::Agentura,
        Self::ClaudeMem,
        Self::Mem0,
        Self::ClaudeMd,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memctl => "memctl",
            Self::Agentura => "agentura",
            Self::ClaudeMem => "claude-mem",
            Self::Mem0 => "mem0",
            Self::ClaudeMd => "claude-md",
        }
    }
}

/// How it is imported.
#[derive(Debug)]
pub struct ImportOptions {
    /// The file or directory.
    pub path: PathBuf,
    /// What it is; `None` looks at it.
    pub from: Option<ImportSource>,
    /// Stops before anything is written.
    pub dry_run: bool,
    /// Takes in what was forgotten here, too.
    pub restore: bool,
    /// Lets the approvals count that the file claims.
    pub trust: bool,
}

/// A record that could not keep its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Renamed {
    /// Its id there.
    pub from: String,
    /// Its id here.
    pub to: String,
}

/// What came of it: `read` is `imported`, `duplicates` and the counts of `skipped` together.
#[derive(Debug, Serialize)]
pub struct ImportReport {
    /// Whose memory it was.
    pub source: ImportSource,
    /// Where it lay.
    pub path: PathBuf,
    /// How many records and lines were met.
    pub read: u64,
    /// How many of them are here now and were not before.
    pub imported: u64,
    /// How many were here already.
    pub duplicates: u64,
    /// What is not here, and why.
    pub skipped: Vec<Skipped>,
    /// What was imported: records by the plural of their kind, lines by their log.
    pub by_kind: BTreeMap<String, u64>,
    /// How many rules, fixes, procedures and notes are observed here, since this user has not approved them.
    pub observed: u64,
    /// Records that got another id, since theirs was taken; what refers to them says the new one.
    pub renamed: Vec<Renamed>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// What went wrong and did not stop it.
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
        // Many things of one kind, skipped for one reason, are one line.
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

impl Engine {
    /// Imports a file or a directory.
    pub fn import(&self, options: &ImportOptions) -> Result<ImportReport, Error> {
        let found = detect::open(&options.path, options.from)?;
        let mut report = ImportReport::new(found.source, options);
        report.warnings.extend(found.warnings);
        match found.content {
            detect::Content::Own(carried) => exact::import(self, options, &carried, &mut report)?,
            detect::Content::Foreign(found) => {
                candidates::import(self, options, found, &mut report)?;
            }
        }
        Ok(report)
    }
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Unreadable { path, source }
}
