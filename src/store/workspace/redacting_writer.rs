//! Writes of files that are no records: guardrails, tests, exports, answers set aside.
//!
//! Every text is redacted here, as the store redacts its records. So no operation has to do it, and
//! none can skip it. A test reads the source and rejects other ways to write a file.

use std::io;
use std::path::{Path, PathBuf};

use memctl_files::{Directory, SharedFile, named};

use crate::model::Record;
use crate::store::skill::Skills;
use crate::store::workspace::{Error, Workspace};
use crate::store::{Added, SkipCondition, Writer, atomic};

/// Replaces a text file below a workspace directory, and creates its parent directories. Returns
/// the kinds of secrets redacted.
pub(crate) fn replace(
    directory: &Directory,
    path: &Path,
    text: &str,
) -> Result<Vec<&'static str>, Error> {
    let redacted = memctl_redact::redact(text);
    place(directory, path, &redacted.text)?;
    Ok(redacted.found)
}

fn place(directory: &Directory, path: &Path, text: &str) -> Result<(), Error> {
    if let Some(above) = path.parent() {
        atomic::create_dir(&directory.below(above))?;
    }
    Ok(atomic::replace(directory, path, text.as_bytes())?)
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
        None => atomic::remove(skills.directory(), path).map_err(Error::from),
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

/// Writes output to a path that the caller named. Each record has been through [`store::redact`] already;
/// redacting the whole again would double the time.
pub(crate) fn write_output(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, named::replace(path, bytes))
}

/// Replaces a file of the project, or creates it with its directories. The text is redacted already.
pub(crate) fn replace_in_project(file: &SharedFile, text: &str) -> Result<(), Error> {
    written(file.path(), file.replace(text.as_bytes()))
}

/// Writes a text file that the caller named, and creates its parent directories. Returns the kinds
/// of secrets redacted.
pub(crate) fn create(path: &Path, text: &str) -> Result<Vec<&'static str>, Error> {
    let above = path.parent().unwrap_or(Path::new(""));
    named::create_dir(above).map_err(Error::io("create", above))?;
    let redacted = memctl_redact::redact(text);
    written(path, named::replace(path, redacted.text.as_bytes()))?;
    Ok(redacted.found)
}

fn written(path: &Path, result: io::Result<()>) -> Result<(), Error> {
    Ok(result.map_err(Error::io("write", path))?)
}

impl Workspace {
    /// Creates the memory if it does not exist, so that its changes can be followed.
    pub fn begin(&self) -> Result<(), Error> {
        if !self.store.directory().is_there() {
            drop(self.writer()?);
        }
        Ok(())
    }

    pub(crate) fn writer(&self) -> Result<Writer, Error> {
        self.records().writer()
    }

    /// Adds a record, in one write with the records of other requests of this process.
    pub(crate) fn add<R: Record + Send + 'static>(
        &self,
        record: R,
        unless: Option<SkipCondition>,
    ) -> Result<Added<R>, Error> {
        let group = &self.group_commit;
        Ok(group.add(&self.store, record, unless, self.now, self.random)?)
    }

    /// Copies a text file unredacted before its secrets are removed. Returns the path of the copy.
    pub(crate) fn copy_aside(&self, path: &Path, text: &str) -> Result<PathBuf, Error> {
        let aside = self.store.directory().below("recovered");
        atomic::create_dir(&aside)?;
        // The last path components tell the files of two skills apart.
        let mut names: Vec<String> = path
            .components()
            .rev()
            .take(3)
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        names.reverse();
        let stamp = self.now.format("%Y%m%d%H%M%S%6f");
        let copy = format!("{}.{stamp}.txt", names.join("-"));
        atomic::replace(&aside, &copy, text.as_bytes())?;
        Ok(aside.join(copy))
    }

    /// Stores a paid result that has no other place in its own file, next to the data files or in
    /// the temporary directory. Returns its path.
    pub(crate) fn set_aside(&self, name: &str, text: &str) -> Option<PathBuf> {
        let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let redacted = if json {
            memctl_redact::redact_json(text)
        } else {
            memctl_redact::redact(text)
        };
        let beside = self.store.directory().below("recovered");
        let spare = named::directory(&self.spare_dir);
        [beside, spare].into_iter().find_map(|directory| {
            directory.create().ok()?;
            directory
                .replace_file(name, redacted.text.as_bytes())
                .ok()?;
            Some(directory.join(name))
        })
    }
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
