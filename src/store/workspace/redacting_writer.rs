//! Writes of files that are no records: guardrails, tests, exports, answers set aside.
//!
//! Every text is redacted here, as the store redacts its records, so no operation can skip it. A test reads the
//! source and rejects other ways to write a file.

use std::path::Path;

use memctl_files::{Directory, SharedFile, named};

use crate::store::skill::Skills;
use crate::store::{Error, Writer, atomic};

/// Replaces a text file below a workspace directory, and creates its parent directories.
pub(crate) fn replace(directory: &Directory, path: &Path, text: &str) -> Result<(), Error> {
    place(directory, path, &memctl_redact::redact(text).text)
}

fn place(directory: &Directory, path: &Path, text: &str) -> Result<(), Error> {
    if let Some(above) = path.parent() {
        atomic::create_dir(&directory.below(above))?;
    }
    atomic::replace(directory, path, text.as_bytes())
}

/// Writes a file of a skill, or removes it without a text, after adding that to the undo journal of a
/// writer, if one is given. The writer also serializes concurrent writes. Returns the kinds of secrets
/// redacted.
pub(crate) fn change_of_skill(
    writer: Option<&mut Writer>,
    skills: &Skills,
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<Vec<&'static str>, Error> {
    let redacted = after.map(memctl_redact::redact);
    let after = redacted.as_ref().map(|redacted| &*redacted.text);
    let mut journal = writer.zip(journaled(skills, path));
    if let Some((writer, named)) = &mut journal {
        writer.note_file(named, before, after);
    }
    let done = match after {
        Some(text) => place(skills.directory(), path, text),
        None => atomic::remove(skills.directory(), path),
    };
    if let (Err(_), Some((writer, named))) = (&done, &mut journal) {
        // The journaled change did not happen, and must not block reverting the other changes.
        writer.note_file(named, after, before);
    }
    done?;
    Ok(redacted.map(|redacted| redacted.found).unwrap_or_default())
}

/// Returns the path of a file of a skill as the undo journal has it; `None` for a file elsewhere.
fn journaled(skills: &Skills, path: &Path) -> Option<String> {
    let directory: &Path = skills.directory().as_ref();
    let is_below = path.starts_with(directory);
    is_below.then(|| {
        let below = named::relative(path, directory);
        below.to_string_lossy().into_owned()
    })
}

/// Writes output to a path that the caller named. Each record has been through `store::redact` already;
/// redacting the whole again would double the time.
pub(crate) fn write_output(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    named::replace(path, bytes).map_err(Error::io("write", path))
}

/// Replaces a file of the project, or creates it with its directories. The text is redacted already.
pub(crate) fn replace_in_project(file: &SharedFile, text: &str) -> Result<(), Error> {
    let replaced = file.replace(text.as_bytes());
    replaced.map_err(Error::io("write", file.path()))
}

/// Writes a text file that the caller named, and creates its parent directories.
pub(crate) fn create(path: &Path, text: &str) -> Result<(), Error> {
    let above = path.parent().unwrap_or(Path::new(""));
    named::create_dir(above).map_err(Error::io("create", above))?;
    write_output(path, memctl_redact::redact(text).text.as_bytes())
}

/// Describes the kinds of secrets that were redacted.
pub(crate) fn redaction_warning(mut found: Vec<&'static str>) -> Option<String> {
    found.sort_unstable();
    found.dedup();
    let private = found.contains(&"private");
    found.retain(|kind| *kind != "private");
    let secrets =
        (!found.is_empty()).then(|| format!("secrets were redacted: {}", found.join(", ")));
    match (secrets, private) {
        (Some(secrets), true) => Some(format!("{secrets}; private passages were removed")),
        (None, true) => Some("private passages were removed".into()),
        (secrets, false) => secrets,
    }
}
