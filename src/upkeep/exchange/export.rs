//! Exports memories as JSON Lines, which an import restores without loss.
//!
//! An export holds only what the caller may see, and no secrets. A file is written completely or
//! not at all, and replaces nothing but an earlier export.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::model::{Kind, SkillPath};
use crate::store::{
    self, AuditAction, AuditLine, Entry, Frame, Role, Scoped, Selection, logs, redact,
};
use crate::upkeep::exchange::lines::{FORMAT, Header, Line, VERSION};
use memctl_files::named;

use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, redacting_writer};

/// Content and target of an export.
#[derive(Debug)]
pub struct ExportOptions {
    /// File; `None` returns the text instead.
    pub output: Option<PathBuf>,
    /// Kinds to export; empty for all kinds and the logs.
    pub kinds: Vec<Kind>,
    /// Only records of this skill, and no logs; `None` for all.
    pub skill: Option<SkillPath>,
    /// Overwrites a file that is not an export.
    pub force: bool,
}

/// Result of an export.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ExportReport {
    /// Path of the export; `None` if the text is in [`Self::text`].
    pub output: Option<PathBuf>,
    /// Number of records by the plural of their kind, and of lines by log.
    pub counts: BTreeMap<String, u64>,
    /// Number of bytes written.
    pub bytes: u64,
    /// Omitted records with the reason, and other non-fatal problems.
    pub warnings: Vec<String>,
    /// Text of the export, if no output path was given.
    #[serde(skip)]
    pub text: Option<String>,
}

impl ExportReport {
    fn new(options: &ExportOptions) -> Self {
        Self {
            output: options.output.clone(),
            counts: BTreeMap::new(),
            bytes: 0,
            warnings: Vec::new(),
            text: None,
        }
    }
}

/// Progress callback: number of records done, and the total.
pub type OnRecords<'a> = &'a mut dyn FnMut(u64, u64);

/// Exports what the caller may see.
pub fn export(
    workspace: &Workspace,
    options: &ExportOptions,
    progress: OnRecords<'_>,
) -> Result<ExportReport, Error> {
    if let Some(skill) = &options.skill {
        workspace.permit(skill)?;
    }
    let parent = options.output.as_deref().and_then(Path::parent);
    if let Some((path, parent)) = options.output.as_ref().zip(parent)
        && !named::is_dir(parent)
    {
        return Err(Error::no_parent(path));
    }
    let mut report = ExportReport::new(options);
    let text = lines(workspace, options, &mut report, progress)?;
    report.bytes = text.len() as u64;
    match &options.output {
        None => report.text = Some(text),
        Some(path) => {
            may_replace(path, options.force)?;
            redacting_writer::write_output(path, text.as_bytes())?;
        }
    }
    Ok(report)
}

/// Returns the redacted entries to export, sorted by kind.
fn entries(
    workspace: &Workspace,
    options: &ExportOptions,
    report: &mut ExportReport,
    progress: OnRecords<'_>,
) -> Result<Vec<Entry>, Error> {
    let kinds = Kind::ALL.into_iter();
    let kinds: Vec<Kind> = kinds
        .filter(|kind| options.kinds.is_empty() || options.kinds.contains(kind))
        .collect();
    let mut total = 0;
    for kind in &kinds {
        total += workspace.store.count(*kind)?;
    }
    let selection = Selection::of(options.skill.as_ref());
    let mut entries = Vec::new();
    let mut left_out = Vec::new();
    for kind in kinds {
        let before = entries.len();
        let problems = workspace
            .store
            .each_entry(kind, &selection, &mut |mut entry| {
                if let Ok(text) = std::str::from_utf8(&entry.text) {
                    let filtered = redact(text);
                    if !filtered.found.is_empty() {
                        left_out.extend(filtered.found);
                        entry.text = filtered.text.into_owned().into_bytes();
                    }
                }
                entries.push(entry);
                progress(entries.len() as u64, total);
            })?;
        let problems = problems
            .iter()
            .map(|problem| format!("not exported: {problem}"));
        report.warnings.extend(problems);
        let count = (entries.len() - before) as u64;
        if count > 0 {
            report.counts.insert(kind.plural().to_owned(), count);
        }
    }
    report.warnings.extend(redaction_warning(left_out));
    report.warnings.extend(workspace.note_exported(&entries));
    Ok(entries)
}

/// Records this user's approvals outside the export, so that they still count after a new
/// import.
fn remember_said(workspace: &Workspace, entries: &[Entry], report: &mut ExportReport) {
    let approvals = workspace.store.approvals();
    if approvals.stands()
        && let Err(error) = approvals.approve(entries, &mut || (workspace.random)())
    {
        let warning = format!("imported again, it will count as observed: {error}");
        report.warnings.push(warning);
    }
}

/// Builds the JSON Lines text of the records, the text around them, and the logs.
fn lines(
    workspace: &Workspace,
    options: &ExportOptions,
    report: &mut ExportReport,
    progress: OnRecords<'_>,
) -> Result<String, Error> {
    let entries = entries(workspace, options, report, progress)?;
    remember_said(workspace, &entries, report);
    let mut lines: Vec<Line> = entries.into_iter().map(Line::from).collect();
    if options.skill.is_none() {
        for kind in Kind::ALL {
            let is_wanted = options.kinds.is_empty() || options.kinds.contains(&kind);
            let frame = workspace.store.frame(kind)?.filter(|_| is_wanted);
            if let Some(frame) = frame.filter(|frame| *frame != Frame::plain(kind)) {
                let clean = |text: String| redact(&text).text.into_owned();
                let (head, tail) = (clean(frame.head), clean(frame.tail));
                let frame = Frame { head, tail };
                lines.push(Line::Frame { kind, frame });
            }
        }
    }
    if options.skill.is_none() && options.kinds.is_empty() {
        for (name, _) in logs() {
            push_log(&workspace.store, name, &mut lines, &mut report.counts)?;
        }
    }
    text_of(workspace, &report.counts, &lines)
}

/// Adds the redacted lines of a log.
fn push_log(
    store: &Scoped,
    name: &str,
    lines: &mut Vec<Line>,
    counts: &mut BTreeMap<String, u64>,
) -> Result<(), Error> {
    for text in store.lines(name)? {
        let text = match std::str::from_utf8(&text) {
            Ok(line) => redact(line).text.into_owned().into_bytes(),
            Err(_) => text,
        };
        *counts.entry(name.to_owned()).or_default() += 1;
        let name = name.to_owned();
        lines.push(Line::Log { name, text });
    }
    Ok(())
}

/// Returns the header and the lines as text.
fn text_of(
    workspace: &Workspace,
    counts: &BTreeMap<String, u64>,
    lines: &[Line],
) -> Result<String, Error> {
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        workspace: workspace.store.identity().map(|identity| identity.origin),
        exported_at: workspace.timestamp(),
        counts: counts.clone(),
    };
    let mut text = serde_json::to_string(&header).map_err(store::Error::from)?;
    text.push('\n');
    for line in lines {
        text.push_str(&line.write().map_err(store::Error::from)?);
        text.push('\n');
    }
    Ok(text)
}

/// Returns the JSON Lines with everything that the user who asks has in a memory, and audits the
/// export: their records, the log lines that name them, and the audit events of them and on their
/// records. An event of somebody else names only the user and their records. Rules, lessons and
/// executions have no user and are not in it, and neither are records that have expired.
///
/// # Errors
///
/// Fails unless the caller is a user with access to all domains: a part of the data must not be taken
/// for all of it.
pub fn export_user(workspace: &Workspace) -> Result<String, Error> {
    let user = workspace.whole_user()?;
    let of_user = Kind::ALL.into_iter().filter(|kind| kind.has_user());
    let options = ExportOptions {
        output: None,
        kinds: of_user.collect(),
        skill: None,
        force: false,
    };
    let mut report = ExportReport::new(&options);
    let entries = entries(workspace, &options, &mut report, &mut |_, _| {})?;
    let mut lines: Vec<Line> = entries.into_iter().map(Line::from).collect();
    for (name, role) in logs() {
        if role != Role::Account {
            push_log(&workspace.store, name, &mut lines, &mut report.counts)?;
            continue;
        }
        let mut failed = None;
        let mut events = Vec::new();
        let mut take = |line: AuditLine| match serde_json::to_vec(&line) {
            Ok(text) => events.push(text),
            Err(error) => failed = Some(error),
        };
        workspace.store.audited_by_all(&mut take)?;
        if let Some(error) = failed {
            return Err(store::Error::from(error).into());
        }
        for text in events {
            *report.counts.entry(name.to_owned()).or_default() += 1;
            let name = name.to_owned();
            lines.push(Line::Log { name, text });
        }
    }
    // Also an export of nothing is one.
    let touched = [("everything of a user", Some(user.as_str()))];
    workspace.store.audit(AuditAction::Exported, &touched)?;
    text_of(workspace, &report.counts, &lines)
}

fn occupied(path: &Path) -> Error {
    let path = path.display();
    let message = format!("`{path}` exists, and is not an export of this program");
    Error::input(
        message,
        "choose another path, or replace the file with `--force`",
    )
}

/// Fails if the target exists and was not written by this program.
fn may_replace(path: &Path, force: bool) -> Result<(), Error> {
    let Ok(metadata) = named::metadata(path) else {
        return Ok(());
    };
    if metadata.is_dir() {
        return Err(occupied(path));
    }
    // A device or a pipe would be replaced by a plain file.
    named::refuse_special(path).map_err(store::Error::io("write", path))?;
    if force || metadata.len() == 0 {
        return Ok(());
    }
    // The first bytes identify an export.
    let mut start = Vec::new();
    let file = named::open_plain(path).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    drop(std::io::Read::read_to_end(
        &mut std::io::Read::take(file, 64 << 10),
        &mut start,
    ));
    let start = String::from_utf8_lossy(&start);
    if start.lines().next().and_then(Header::of).is_some() {
        Ok(())
    } else {
        Err(occupied(path))
    }
}
