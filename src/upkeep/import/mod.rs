//! Imports an export of this program, or a memory directory.
//!
//! - Here: a file or a directory is recognised, and read; nothing is written next to it.
//! - `records`: which of its records are new, and under which ids; they keep their text.
//!
//! Every record read is counted as imported, existing already, or skipped with a reason. Existing
//! records do not change.

mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memctl_files::named;
use memctl_files::text::decoded;
use serde::Serialize;
use serde_json::Value;

use crate::model::Kind;
use crate::store::files::directory::identity;
use crate::store::files::log;
use crate::store::renaming::NewId;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{DIRECTORY, DataFile, RawEntry, foreign_entries, logs};
use crate::upkeep::export::{Header, Line, Of, VERSION};

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
    records: BTreeMap<Kind, Vec<RawEntry>>,
    lines: Vec<(&'static str, Vec<String>)>,
}

/// Imports a file or a directory.
pub fn import(workspace: &Workspace, options: &ImportOptions) -> Result<ImportReport, Error> {
    let mut report = ImportReport {
        path: options.path.clone(),
        dry_run: options.dry_run,
        ..ImportReport::default()
    };
    let opened = open(&options.path, &mut report)?;
    // The lock is held from here on, so decisions stay valid until they are written.
    let mut writer = (!options.dry_run).then(|| workspace.writer()).transpose()?;
    let ready = records::ready(workspace, options, opened, &mut report)?;
    if let Some(writer) = &mut writer {
        for (kind, entries) in &ready.records {
            writer.restore(*kind, entries, None)?;
        }
        for (name, lines) in &ready.lines {
            writer.restore_lines(name, lines)?;
        }
        let repairs = writer.take_repairs();
        report.warnings.extend(repair_warnings(repairs));
    }
    Ok(report)
}

/// Maximum size of a file to read: 4 GiB.
const LARGEST: u64 = 4 << 30;

/// Lines of an export, or of a memory directory.
struct Opened {
    /// Workspace of the lines; `None` if it has no name.
    workspace: Option<String>,
    lines: Vec<Line>,
}

impl Opened {
    fn add(&mut self, of: Of, text: Vec<u8>, report: &mut ImportReport) {
        if let Ok(text) = String::from_utf8(text) {
            self.lines.push(Line { of, text });
            return;
        }
        let what = match of {
            Of::Record(kind, id) => format!("{kind} {id}"),
            Of::Log(name) => format!("a line of `{name}`"),
        };
        report.skip(Skipped::one(what, "it is not UTF-8"));
    }
}

/// Opens a file or directory; fails if it is neither.
fn open(path: &Path, report: &mut ImportReport) -> Result<Opened, Error> {
    let metadata = named::metadata(path).map_err(Error::unreadable(path))?;
    if metadata.is_dir() {
        return directory(path, report);
    }
    if metadata.len() > LARGEST {
        return Err(no_import(path, "it is larger than 4 GiB"));
    }
    file(path, report)
}

fn no_import(path: &Path, reason: impl Into<String>) -> Error {
    let hint = "notes of other programs: tools/notes.py of the sources turns them into an export";
    let message = format!("`{}` cannot be imported: {}", path.display(), reason.into());
    Error::input(message, hint)
}

fn directory(path: &Path, report: &mut ImportReport) -> Result<Opened, Error> {
    let inner = path.join(DIRECTORY);
    let memory = if named::is_dir(&inner) {
        inner
    } else {
        path.to_owned()
    };
    let has_records = DataFile::ALL
        .iter()
        .any(|file| named::is_file(&memory.join(file.name())));
    if has_records {
        return own_directory(&memory, report);
    }
    let reason = "nothing in it is a memory that is known here";
    Err(no_import(path, reason))
}

/// Reads the memory directory of another workspace, or of the reference implementation.
fn own_directory(memory: &Path, report: &mut ImportReport) -> Result<Opened, Error> {
    let directory = named::directory(memory);
    let workspace = identity(&directory).map(|identity| identity.origin);
    report.source = workspace.as_ref().map_or("agentura", |_| "memctl");
    let lines = Vec::new();
    let mut opened = Opened { workspace, lines };
    for kind in Kind::ALL {
        let (entries, problems) = foreign_entries(memory, kind)?;
        let problems = problems.iter().map(ToString::to_string);
        report.warnings.extend(problems);
        for entry in entries {
            opened.add(Of::Record(kind, entry.id), entry.text, report);
        }
    }
    for (name, _) in logs() {
        for text in log::lines(&directory, name)? {
            opened.add(Of::Log(name.to_owned()), text, report);
        }
    }
    // The reference implementation keeps failures in a separate file.
    let cases = directory.read("failure_cases.json", LARGEST);
    let cases = cases.ok().flatten().unwrap_or_default();
    let cases: Value = serde_json::from_slice(&cases).unwrap_or_default();
    let cases = cases["cases"].as_array().map_or(0, Vec::len) as u64;
    if cases > 0 {
        let reason = "memctl has no such record; the execution that failed is imported";
        report.skip(Skipped::some(cases, "failure cases", reason));
    }
    Ok(opened)
}

fn file(path: &Path, report: &mut ImportReport) -> Result<Opened, Error> {
    let bytes = named::read(path, LARGEST).map_err(Error::unreadable(path))?;
    let text = decoded(bytes).map_err(|_| no_import(path, "it is not text"))?;
    if let Some(header) = text.lines().next().and_then(Header::of) {
        return own_lines(header, &text, report);
    }
    let file_name = path.file_name().and_then(|name| name.to_str());
    if file_name.is_some_and(|name| DataFile::named(name).is_some()) {
        return Err(no_import(
            path,
            "it is one file of a memory directory; name the directory",
        ));
    }
    if path.extension().is_some_and(|end| end == "md") {
        let reason = "agents read such a file themselves; a rule of it: memctl correct \"…\"";
        return Err(no_import(path, reason));
    }
    Err(no_import(path, "it is no export of memctl"))
}

/// Parses the lines of an export. An unreadable line is skipped with its number, and records that
/// the header counts but the file lacks are reported as missing.
fn own_lines(header: Header, text: &str, report: &mut ImportReport) -> Result<Opened, Error> {
    if header.version > VERSION {
        let reason = format!(
            "it has version {}, and this program reads {VERSION}",
            header.version
        );
        return Err(no_import(&report.path, reason));
    }
    report.source = "memctl";
    let mut lines = Vec::new();
    let mut counts = header.counts;
    for (i, line) in text.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        match Line::read(line) {
            Ok(line) => {
                let counted = match &line.of {
                    Of::Record(kind, _) => kind.plural(),
                    Of::Log(name) => name,
                };
                if let Some(count) = counts.get_mut(counted) {
                    *count = count.saturating_sub(1);
                }
                lines.push(line);
            }
            Err(reason) => report.skip(Skipped::one(format!("line {}", i + 1), reason)),
        }
    }
    let missing = counts.into_iter().filter(|(_, count)| *count > 0);
    let cut = missing.map(|(name, count)| {
        format!("the export says {count} more of `{name}` than it holds: it was cut off, or edited")
    });
    report.warnings.extend(cut);
    Ok(Opened {
        workspace: header.workspace,
        lines,
    })
}
