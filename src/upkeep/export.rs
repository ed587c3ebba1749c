//! Exports memories as JSON Lines, and defines this format. An import restores them.
//!
//! An export holds only records visible to the caller, and no secrets. A file is written completely or
//! not at all, and replaces nothing but an earlier export.
//!
//! ```text
//! {"format":"memctl-export","version":1,"workspace":…,"exported_at":…,"counts":{"reflexions":2,…}}
//! {"kind":"reflexion","id":"REFL-001","entry":{…}}
//! {"kind":"memory","id":"MEM-001","text":"{ … NaN … }"}
//! {"log":"tombstones.jsonl","entry":{…}}
//! ```
//!
//! `entry` is the record on one line; numbers, strings and key order are those of the file. An entry that
//! other programs cannot read as JSON (`NaN`, which Python writes) is the string `text` instead. So every
//! line is valid JSON. The counts show if the file is complete.
//!
//! Deliberately absent: the layout of an entry in its file, and text of other programs around the entries.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use memctl_files::json::{compact, pretty};
use memctl_files::named;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::{Kind, SkillPath};
use crate::store::workspace::redacting_writer::{self, redaction_warning};
use crate::store::workspace::{Error, Workspace};
use crate::store::{AuditAction, Entry, Role, Selection, logs, redact};

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
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
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
    if let Some(path) = &options.output
        && path.parent().is_some_and(|above| !named::is_dir(above))
    {
        return Err(Error::no_parent(path));
    }
    let mut lines = Lines::default();
    let kinds = match options.kinds.as_slice() {
        [] => &Kind::ALL[..],
        kinds => kinds,
    };
    let entries = lines.entries(workspace, kinds, options.skill.as_ref(), progress)?;
    lines.warnings.extend(remember_said(workspace, &entries));
    lines.records(entries);
    if options.skill.is_none() && options.kinds.is_empty() {
        for (name, _) in logs() {
            lines.log(name, workspace.store.lines(name)?);
        }
    }
    let text = lines.text(workspace)?;
    let mut report = ExportReport {
        output: options.output.clone(),
        counts: lines.counts,
        bytes: text.len() as u64,
        warnings: lines.warnings,
        text: None,
    };
    match &options.output {
        None => report.text = Some(text),
        Some(path) => {
            may_replace(path, options.force)?;
            redacting_writer::write_output(path, text.as_bytes())?;
        }
    }
    Ok(report)
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
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| kind.has_user())
        .collect();
    let mut lines = Lines::default();
    let entries = lines.entries(workspace, &kinds, None, &mut |_, _| {})?;
    lines.records(entries);
    for (name, role) in logs() {
        if role != Role::Account {
            lines.log(name, workspace.store.lines(name)?);
            continue;
        }
        let mut events = Vec::new();
        workspace
            .store
            .audited_by_all(&mut |line| events.push(serde_json::to_vec(&line)))?;
        let events = events.into_iter().collect::<Result<Vec<_>, _>>();
        lines.log(name, events?);
    }
    // Also an export of nothing is one.
    let touched = [("everything of a user", Some(user.as_str()))];
    workspace.store.audit(AuditAction::Exported, &touched)?;
    lines.text(workspace)
}

/// Lines of an export, redacted.
#[derive(Default)]
struct Lines {
    all: Vec<Line>,
    counts: BTreeMap<String, u64>,
    warnings: Vec<String>,
}

impl Lines {
    /// Returns the entries of some kinds, redacted.
    fn entries(
        &mut self,
        workspace: &Workspace,
        kinds: &[Kind],
        skill: Option<&SkillPath>,
        progress: OnRecords<'_>,
    ) -> Result<Vec<Entry>, Error> {
        let mut total = 0;
        for kind in kinds {
            total += workspace.store.count(*kind)?;
        }
        let selection = Selection::of(skill);
        let (mut entries, mut left_out) = (Vec::new(), Vec::new());
        for kind in kinds {
            let mut take = |mut entry: Entry| {
                if let Ok(text) = std::str::from_utf8(&entry.text) {
                    let filtered = redact(text);
                    left_out.extend(filtered.found);
                    entry.text = filtered.text.into_owned().into_bytes();
                    entries.push(entry);
                    progress(entries.len() as u64, total);
                } else {
                    let warning = format!("not exported: {kind} {} is not UTF-8", entry.id);
                    self.warnings.push(warning);
                }
            };
            let problems = workspace.store.each_entry(*kind, &selection, &mut take)?;
            let problems = problems.iter();
            self.warnings
                .extend(problems.map(|problem| format!("not exported: {problem}")));
        }
        self.warnings.extend(redaction_warning(left_out));
        self.warnings.extend(workspace.note_exported(&entries));
        Ok(entries)
    }

    /// Adds records.
    fn records(&mut self, entries: Vec<Entry>) {
        for Entry { kind, id, text, .. } in entries {
            let text = String::from_utf8(text).unwrap_or_default();
            self.add(Of::Record(kind, id), text, kind.plural());
        }
    }

    /// Adds the lines of a log.
    fn log(&mut self, name: &str, lines: Vec<Vec<u8>>) {
        for line in lines {
            let text = redact(&String::from_utf8_lossy(&line)).text.into_owned();
            self.add(Of::Log(name.to_owned()), text, name);
        }
    }

    fn add(&mut self, of: Of, text: String, counted_as: &str) {
        *self.counts.entry(counted_as.to_owned()).or_default() += 1;
        self.all.push(Line { of, text });
    }

    /// Returns the header and the lines as text.
    fn text(&self, workspace: &Workspace) -> Result<String, Error> {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            workspace: workspace.store.identity().map(|identity| identity.origin),
            exported_at: workspace.timestamp(),
            counts: self.counts.clone(),
        };
        let mut text = serde_json::to_string(&header)?;
        text.push('\n');
        for line in &self.all {
            text.push_str(&line.write()?);
            text.push('\n');
        }
        Ok(text)
    }
}

/// Records this user's approvals outside the export, so that they still count after a new
/// import. Returns a warning if that fails.
fn remember_said(workspace: &Workspace, entries: &[Entry]) -> Option<String> {
    let approvals = workspace.store.approvals();
    if !approvals.is_trusted() {
        return None;
    }
    let noted = approvals.approve(entries, &mut || (workspace.random)());
    let error = noted.err()?;
    Some(format!(
        "imported again, it will count as observed: {error}"
    ))
}

/// Fails if the target exists and was not written by this program.
fn may_replace(path: &Path, force: bool) -> Result<(), Error> {
    let Ok(metadata) = named::metadata(path) else {
        return Ok(());
    };
    if metadata.is_dir() {
        let file = path.join("memory.jsonl");
        let hint = format!("memctl memory export --output {}", file.display());
        return Err(Error::input(
            format!("`{}` is a directory", path.display()),
            hint,
        ));
    }
    // A device or a pipe would be replaced by a plain file.
    named::refuse_special(path).map_err(Error::io("write", path))?;
    if force || metadata.len() == 0 || is_export(path)? {
        return Ok(());
    }
    let path = path.display();
    Err(Error::input(
        format!("`{path}` exists, and is not an export of this program"),
        "choose another path, or replace the file with `--force`",
    ))
}

/// Returns `true` for a file whose first line is the header of an export.
fn is_export(path: &Path) -> Result<bool, Error> {
    let file = named::open_plain(path).map_err(Error::unreadable(path))?;
    let mut start = Vec::new();
    // A text that cannot be read is no export.
    drop(file.take(64 << 10).read_to_end(&mut start));
    let start = String::from_utf8_lossy(&start);
    Ok(start.lines().next().and_then(Header::of).is_some())
}

/// Value of `format` in the first line.
pub(crate) const FORMAT: &str = "memctl-export";
/// Newest version of the format, which is written and read.
pub(crate) const VERSION: u64 = 1;

/// First line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the format.
    pub version: u64,
    /// Name of the workspace.
    pub workspace: Option<String>,
    /// Time of the export: RFC 3339, UTC.
    pub exported_at: String,
    /// Number of records per kind (plural name), and of lines per log.
    pub counts: BTreeMap<String, u64>,
}

impl Header {
    /// Parses a header; `None` if the line is not one.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let header: Self = serde_json::from_str(line.trim_start_matches('\u{feff}')).ok()?;
        (header.format == FORMAT).then_some(header)
    }
}

/// Line after the header: a record, or a line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Form of the text.
    pub of: Of,
    /// JSON text, on any number of lines.
    pub text: String,
}

/// Content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Of {
    /// Record of a kind; its id is empty if it has none.
    Record(Kind, String),
    /// Line of the log with this file name.
    Log(String),
}

/// JSON form of a line.
#[derive(Default, Serialize, Deserialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    entry: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Line {
    /// Serialises the line, without the line break.
    pub(crate) fn write(&self) -> Result<String, serde_json::Error> {
        let mut written = Written::default();
        match &self.of {
            Of::Record(kind, id) => {
                written.kind = Some(*kind);
                written.id = Some(id.clone());
            }
            Of::Log(name) => written.log = Some(name.clone()),
        }
        let flat = compact(&self.text);
        // `RawValue` accepts lone surrogates, which make the line invalid for other programs.
        let is_sound = serde_json::from_str::<serde_json::Value>(&flat).is_ok();
        written.entry = is_sound.then(|| serde_json::from_str(&flat)).transpose()?;
        written.text = (!is_sound).then(|| self.text.clone());
        serde_json::to_string(&written)
    }

    /// Parses a line; a record gets the layout of this program's files. The error is the reason as text.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let written: Written<'_> = serde_json::from_str(line)
            .map_err(|error| format!("it is no line of an export: {error}"))?;
        let entry = written.entry.map(RawValue::get);
        let (of, entry) = match (written.kind, written.log) {
            (Some(kind), _) => {
                let of = Of::Record(kind, written.id.unwrap_or_default());
                (of, entry.map(|entry| pretty(entry, 2)))
            }
            (None, Some(name)) => (Of::Log(name), entry.map(str::to_owned)),
            (None, None) => return Err("it is neither a record nor a line of a log".to_owned()),
        };
        match entry.or(written.text) {
            Some(text) => Ok(Self { of, text }),
            None => Err("it holds nothing: `entry` and `text` are missing".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_on_one_line() {
        let check = |text: &str, has: &str| {
            let record = Line {
                of: Of::Record(Kind::Memory, "MEM-001".to_owned()),
                text: text.to_owned(),
            };
            let line = record.write().unwrap();
            assert!(!line.contains('\n'), "{line}");
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&line).unwrap();
            let names: Vec<&str> = object.keys().map(String::as_str).skip(2).collect();
            assert_eq!(names, [has], "{line}");
            let read = Line::read(&line).unwrap();
            assert_eq!(compact(&read.text), compact(text));
            assert_eq!(read.of, record.of);
        };
        check("{\n  \"a\":1062.0,\n\"b\":[]}", "entry");
        check("{\"a\":12345678901234567890123}", "entry");
        check("{\"\\ud83d\": \"\\udcff\"}", "text");
        check("{\"a\": NaN,\n \"b\": -Infinity}", "text");
        check("{\"é\": \"\u{2028}\u{85}\"}", "entry");
        check("", "text");
    }

    #[test]
    fn invalid_line_is_refused_with_a_reason() {
        for (line, message) in [
            ("", "no line of an export"),
            ("[]", "no line of an export"),
            ("{}", "neither a record nor"),
            ("{\"kind\":\"memory\"}", "it holds nothing"),
            ("{\"kind\":\"dream\",\"entry\":{}}", "no line of an export"),
        ] {
            let error = Line::read(line).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
        assert_eq!(Header::of("{\"format\":\"other\"}"), None);
    }
}
