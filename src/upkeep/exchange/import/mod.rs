//! Imports an export of this program, or the memories of another program.
//!
//! - `sources`: recognises a file or directory, and reads it.
//! - `records`: records in this program's own format, which keep their text.
//! - `existing`: existing records, with their origins and tombstones.
//! - Here too: notes of other programs, which become observed memories that a person has yet to approve.
//!
//! Every record read is counted as imported, existing already, or skipped with a reason. Existing
//! records do not change.
//!
//! The text of such a note is screened like tool output: a prompt injection or hidden text is skipped.
//! `metadata.origin` names the source of each note, and no note is imported twice. The metadata
//! holds only what the source provides, so fields that a memory type requires may be missing.

pub(crate) mod existing;
mod records;
mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::model::words::names;
use crate::model::{Kind, Memory, OBSERVED};
use crate::store::renaming::NewId;
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{RawEntry, laid_out, redact};
use crate::upkeep::exchange::import::existing::Existing;
use crate::upkeep::exchange::{Foreign, Skipped};

names! {
    /// Source of an import.
    #[derive(Default, schemars::JsonSchema)]
    ImportSource {
        /// Export of this program, or one of its memory directories.
        #[default]
        Memctl = "memctl",
        /// Memory directory of the Agentura SDK.
        Agentura = "agentura",
        /// Response of mem0, or lines of that form.
        Mem0 = "mem0",
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

/// Result of an import: `read` is the sum of `imported`, `duplicates` and the counts of `skipped`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
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
    /// Ids of the records that `trust` approves: here already, or the notes of another program.
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

const FORGOTTEN: &str = "it was forgotten here on purpose; `--restore` takes it in";

/// Imports a file or a directory.
pub fn import(workspace: &Workspace, options: &ImportOptions) -> Result<ImportReport, Error> {
    let mut opened = sources::open(&options.path, options.from)?;
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
    let ready = match opened.source {
        ImportSource::Memctl | ImportSource::Agentura => {
            records::ready(workspace, options, opened, &mut report)?
        }
        ImportSource::Mem0 => ready(workspace, options, opened.notes, &mut report)?,
    };
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

/// Returns the notes that are new here.
fn ready(
    workspace: &Workspace,
    options: &ImportOptions,
    notes: Vec<Foreign>,
    report: &mut ImportReport,
) -> Result<Ready, Error> {
    let mut existing = Existing::read(workspace, &[Kind::Memory])?;
    let source = report.source.name();
    let mut ready = Ready::default();
    let mut left_out = Vec::new();
    for mut note in notes {
        let user = match (workspace.store.viewer().user_id(), note.user.take()) {
            (Some(own), Some(user)) if user != own => {
                let reason = format!("it is `{user}`'s, and `{own}` imports");
                report.skip(Skipped::one(note.what, reason));
                continue;
            }
            (own, user) => own.map(str::to_owned).or(user),
        };
        let admitted = memctl_redact::admit(&note.text);
        left_out.extend(admitted.redacted);
        let text = memctl_redact::visible(&admitted.text).trim().to_owned();
        let origin = (source.to_owned(), note.id.clone());
        let earlier = existing.notes.get(&origin);
        let refused = if let Some(reason) = admitted.quarantine {
            format!("{reason}; nobody but a person may say that: memctl memory add")
        } else if memctl_redact::says_nothing(&text) {
            "nothing is left of it without its secrets".to_owned()
        } else if earlier.is_some_and(|(_, earlier)| *earlier != text) {
            "it was imported before, and one of the two has changed since; what is here stays"
                .to_owned()
        } else if earlier.is_some() || !existing.contents.insert((user.clone(), text.clone())) {
            report.count_duplicate();
            let id = earlier.map(|(id, _)| id.clone());
            report.approved.extend(id.filter(|_| options.trust));
            continue;
        } else if existing.forgotten.has_content(Kind::Memory, &text) && !options.restore {
            FORGOTTEN.to_owned()
        } else {
            let id = existing.taken.free(Kind::Memory, "", workspace.now);
            let earlier = (id.clone(), text.clone());
            existing.notes.insert(origin, earlier);
            let memory = memory(workspace, source, note, text, user, &id)?;
            let json = serde_json::to_string(&memory)?;
            let filtered = redact(&json);
            left_out.extend(filtered.found);
            let text = laid_out(&filtered.text);
            let id_here = id.clone();
            ready.records.push((Kind::Memory, RawEntry { id, text }));
            report.take(Kind::Memory.plural());
            if options.trust {
                report.approved.push(id_here);
            } else {
                report.observed += 1;
            }
            continue;
        };
        report.skip(Skipped::one(note.what, refused));
    }
    report.warnings.extend(redaction_warning(left_out));
    Ok(ready)
}

fn memory(
    workspace: &Workspace,
    source: &str,
    note: Foreign,
    content: String,
    user_id: Option<String>,
    id: &str,
) -> Result<Memory, Error> {
    let mut metadata = note.metadata;
    let origin = json!({"source": source, "id": note.id, "created": note.created});
    metadata.insert("origin".to_owned(), origin);
    Ok(Memory {
        id: id.to_owned(),
        memory_type: note.memory_type,
        content,
        metadata: to_raw_value(&Value::Object(metadata))?,
        user_id,
        created_at: note.created.unwrap_or_else(|| workspace.timestamp()),
        updated_at: workspace.timestamp(),
        // A note from another program has no expiry here; its age is no reason to drop it.
        expires_at: None,
        trust: OBSERVED.to_owned(),
    })
}
