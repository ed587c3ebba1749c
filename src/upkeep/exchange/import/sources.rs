//! Recognises the format of a file or directory, and reads it. Writes nothing next to it.

use std::path::Path;

use serde_json::Value;

use crate::model::Kind;
use crate::store::{DIRECTORY, DataFile, foreign_entries, foreign_lines, foreign_origin, logs};
use crate::upkeep::exchange::export::{Header, Line, Of, VERSION};
use crate::upkeep::exchange::{Foreign, Skipped, foreign, unreadable};
use memctl_files::{decoded, named};

use super::ImportSource;
use crate::store::workspace::Error;

/// Maximum size of a file to read: 4 GiB.
const LARGEST: u64 = 4 << 30;

/// First bytes of a database of `SQLite`.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Detected source with its content: lines in this program's own format, or notes of another program.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) source: ImportSource,
    /// Workspace of the lines; `None` if it has no name.
    pub(super) workspace: Option<String>,
    pub(super) lines: Vec<Line>,
    pub(super) notes: Vec<Foreign>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) warnings: Vec<String>,
}

impl Opened {
    fn add(&mut self, of: Of, text: Vec<u8>) {
        if let Ok(text) = String::from_utf8(text) {
            self.lines.push(Line { of, text });
            return;
        }
        let what = match of {
            Of::Record(kind, id) => format!("{kind} {id}"),
            Of::Log(name) => format!("a line of `{name}`"),
        };
        self.skipped.push(Skipped::one(what, "it is not UTF-8"));
    }
}

/// Opens a file or directory; fails if it does not look like the expected source.
pub(super) fn open(path: &Path, from: Option<ImportSource>) -> Result<Opened, Error> {
    let metadata = named::metadata(path).map_err(unreadable(path))?;
    let opened = if metadata.is_dir() {
        directory(path)?
    } else {
        file(path, from)?
    };
    match from {
        Some(wanted) if wanted != opened.source && !is_own(wanted, opened.source) => {
            let reason = format!(
                "it looks like `{}`, not like `{}`",
                opened.source.name(),
                wanted.name()
            );
            Err(no_import(path, reason))
        }
        _ => Ok(opened),
    }
}

/// A memory directory counts as own, whether memctl or the reference implementation wrote it last.
fn is_own(a: ImportSource, b: ImportSource) -> bool {
    let own = [ImportSource::Memctl, ImportSource::Agentura];
    own.contains(&a) && own.contains(&b)
}

fn no_import(path: &Path, reason: impl Into<String>) -> Error {
    let hint = "memctl memory import FILE --from SOURCE; docs/import.md describes the sources";
    let message = format!("`{}` cannot be imported: {}", path.display(), reason.into());
    Error::input(message, hint)
}

fn directory(path: &Path) -> Result<Opened, Error> {
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
        return own_directory(&memory);
    }
    let reason = "nothing in it is a memory that is known here";
    Err(no_import(path, reason))
}

/// Reads the memory directory of another workspace, or of the reference implementation.
fn own_directory(memory: &Path) -> Result<Opened, Error> {
    let mut opened = Opened {
        workspace: foreign_origin(memory),
        ..Opened::default()
    };
    if opened.workspace.is_none() {
        opened.source = ImportSource::Agentura;
    }
    for kind in Kind::ALL {
        let (entries, problems) = foreign_entries(memory, kind)?;
        let problems = problems.iter().map(ToString::to_string);
        opened.warnings.extend(problems);
        for entry in entries {
            opened.add(Of::Record(kind, entry.id), entry.text);
        }
    }
    for (name, _) in logs() {
        for text in foreign_lines(memory, name)? {
            opened.add(Of::Log(name.to_owned()), text);
        }
    }
    // The reference implementation keeps failures in a separate file.
    let cases = named::directory(memory).read("failure_cases.json", LARGEST);
    let cases = cases.ok().flatten().unwrap_or_default();
    let cases: Value = serde_json::from_slice(&cases).unwrap_or_default();
    let cases = cases["cases"].as_array().map_or(0, Vec::len) as u64;
    if cases > 0 {
        let reason = "memctl has no such record; the execution that failed is imported";
        let skipped = Skipped::some(cases, "failure cases", reason);
        opened.skipped.push(skipped);
    }
    Ok(opened)
}

fn file(path: &Path, from: Option<ImportSource>) -> Result<Opened, Error> {
    let bytes = read(path)?;
    if bytes.starts_with(SQLITE) {
        return Err(no_import(
            path,
            "it is a database; tools/notes_of_sqlite.py of the sources turns it into lines to import",
        ));
    }
    let text = decoded::text(bytes).map_err(|_| no_import(path, "it is not text"))?;
    if let Some(header) = text.lines().next().and_then(Header::of) {
        return own_lines(path, &header, &text);
    }
    if let Some(documents) = documents(&text)
        && (from == Some(ImportSource::Mem0) || documents.iter().all(foreign::is_answer))
    {
        let found = foreign::answers(documents);
        return Ok(Opened {
            source: ImportSource::Mem0,
            notes: found.records,
            skipped: found.skipped,
            ..Opened::default()
        });
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
    Err(no_import(path, "its form is not known; say what it is"))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let size = named::metadata(path).map_err(unreadable(path))?.len();
    if size > LARGEST {
        return Err(no_import(path, "it is larger than 4 GiB"));
    }
    named::read(path, LARGEST).map_err(unreadable(path))
}

/// Parses one JSON document, or one per line.
fn documents(text: &str) -> Option<Vec<Value>> {
    if let Ok(document) = serde_json::from_str(text) {
        return Some(vec![document]);
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let documents: Option<Vec<Value>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
    documents.filter(|documents| !documents.is_empty())
}

/// Parses the lines of an export. An unreadable line is skipped with its number, and records that
/// the header counts but the file lacks are reported as missing.
fn own_lines(path: &Path, header: &Header, text: &str) -> Result<Opened, Error> {
    if header.version > VERSION {
        let reason = format!(
            "it has version {}, and this program reads {VERSION}",
            header.version
        );
        return Err(no_import(path, reason));
    }
    let mut opened = Opened {
        workspace: header.workspace.clone(),
        ..Opened::default()
    };
    let mut counts = header.counts.clone();
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
                opened.lines.push(line);
            }
            Err(reason) => {
                let what = format!("line {}", i + 1);
                opened.skipped.push(Skipped::one(what, reason));
            }
        }
    }
    let missing = counts.into_iter().filter(|(_, count)| *count > 0);
    let cut = missing.map(|(name, count)| {
        format!("the export says {count} more of `{name}` than it holds: it was cut off, or edited")
    });
    opened.warnings.extend(cut);
    Ok(opened)
}
