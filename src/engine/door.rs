//! The one door through which the verbs write.
//!
//! Whatever goes through it loses its secrets on the way: records field by field, files as text. So
//! no verb has to remember to, and none can forget. A test reads the source and keeps other doors
//! shut.

use std::io;
use std::path::{Path, PathBuf};

use crate::guard;
use crate::platform::{Directory, named};
use crate::skill::Skills;
use crate::store::{self, Scoped, Writer, atomic};

use super::{Engine, Error};

/// What the store applies to the JSON text of everything that is written.
pub(super) fn redact(json: &str) -> store::Redacted<'_> {
    let guard::Redacted { text, found } = guard::redact_json(json);
    store::Redacted { text, found }
}

/// Opens a store for writing.
pub(super) fn open(store: &Scoped, random: &mut dyn FnMut() -> String) -> Result<Writer, Error> {
    Ok(store.clone().with_redaction(redact).write(random)?)
}

/// Opens a store for writing logs, and nothing else.
pub(super) fn open_logs(
    store: &Scoped,
    random: &mut dyn FnMut() -> String,
) -> Result<Writer, Error> {
    Ok(store.clone().with_redaction(redact).write_logs(random)?)
}

/// Replaces a text file below a directory of the workspace, and makes the directories above it;
/// answers the kinds of secrets that were kept out of it.
pub(super) fn replace(
    directory: &Directory,
    path: &Path,
    text: &str,
) -> Result<Vec<&'static str>, Error> {
    if let Some(above) = path.parent() {
        atomic::create_dir(&directory.below(above))?;
    }
    let redacted = guard::redact(text);
    atomic::replace(directory, path, redacted.text.as_bytes())?;
    Ok(redacted.found)
}

/// Writes a file of a skill, in the journal first, so that it can be taken back. The writer also keeps
/// two of them from writing one file at once. Answers the kinds of secrets that were kept out of it.
pub(super) fn write_of_skill(
    writer: &mut Writer,
    skills: &Skills,
    path: &Path,
    before: Option<&str>,
    text: &str,
) -> Result<Vec<&'static str>, Error> {
    let redacted = guard::redact(text);
    let named = path.strip_prefix(skills.directory()).ok();
    let named = named.map(|named| named.to_string_lossy());
    if let Some(named) = &named {
        writer.note_file(named, before, Some(&redacted.text));
    }
    let directory = skills.directory();
    let written = path
        .parent()
        .map_or(Ok(()), |above| atomic::create_dir(&directory.below(above)))
        .and_then(|()| atomic::replace(directory, path, redacted.text.as_bytes()));
    if let (Err(_), Some(named)) = (&written, &named) {
        // What was noted has not happened, and must not stand in the way of taking the rest back.
        writer.note_file(named, Some(&redacted.text), before);
    }
    written?;
    Ok(redacted.found)
}

/// Replaces a file below a directory of the workspace by what needs no redaction.
pub(super) fn keep(directory: &Directory, path: &Path, text: &str) -> Result<(), Error> {
    Ok(atomic::replace(directory, path, text.as_bytes())?)
}

/// Removes a file below a directory of the workspace.
pub(super) fn remove(directory: &Directory, path: &Path) -> Result<(), Error> {
    Ok(atomic::remove(directory, path)?)
}

/// Writes what goes out to the caller. It has been through [`redact`] record by record: as a whole it
/// would take as long again.
pub(super) fn hand_over(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, named::replace(path, bytes))
}

/// Adds a line of JSON to a file outside of the memory; answers the kinds of secrets that were kept out.
pub(super) fn append_line(path: &Path, json: &str) -> Result<Vec<&'static str>, Error> {
    create_above(path)?;
    let redacted = guard::redact_json(json);
    let line = format!("{}\n", redacted.text);
    written(path, named::append(path, line.as_bytes()))?;
    Ok(redacted.found)
}

/// Writes a text file that the caller has named, and makes the directories above it; answers the
/// kinds of secrets that were kept out of it.
pub(super) fn create(path: &Path, text: &str) -> Result<Vec<&'static str>, Error> {
    create_above(path)?;
    let redacted = guard::redact(text);
    written(path, named::replace(path, redacted.text.as_bytes()))?;
    Ok(redacted.found)
}

fn create_above(path: &Path) -> Result<(), Error> {
    let above = path.parent().unwrap_or(Path::new(""));
    Ok(named::create_dir(above).map_err(store::Error::io("create", above))?)
}

fn written(path: &Path, result: io::Result<()>) -> Result<(), Error> {
    Ok(result.map_err(store::Error::io("write", path))?)
}

impl Engine {
    /// Begins a memory where there is none, for those who are about to follow what is written to it.
    pub fn begin(&self) -> Result<(), Error> {
        if !self.store.directory().is_there() {
            drop(self.writer()?);
        }
        Ok(())
    }

    pub(super) fn writer(&self) -> Result<Writer, Error> {
        open(&self.store, &mut || (self.random)())
    }

    /// Keeps a text file as it was, secrets and all, before they are taken out of it. Answers where.
    pub(super) fn copy_aside(&self, path: &Path, text: &str) -> Result<PathBuf, Error> {
        let aside = self.store.directory().below("recovered");
        atomic::create_dir(&aside)?;
        // The last names of the path tell the files of two skills apart.
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

    /// Keeps something that was paid for, and has no other place, in a file of its own: beside the
    /// data files, or where temporary files go. Answers where.
    pub(super) fn set_aside(&self, name: &str, text: &str) -> Option<PathBuf> {
        let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let redacted = if json {
            guard::redact_json(text)
        } else {
            guard::redact(text)
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

/// Says what was kept out of the files.
pub(super) fn kept_out(mut found: Vec<&'static str>) -> Option<String> {
    found.sort_unstable();
    found.dedup();
    let private = found.contains(&"private");
    found.retain(|kind| *kind != "private");
    let secrets = (!found.is_empty()).then(|| {
        format!(
            "secrets were left out of what is stored and shown: {}",
            found.join(", ")
        )
    });
    match (secrets, private) {
        (Some(secrets), true) => Some(format!("{secrets}; private passages too")),
        (None, true) => Some("private passages were left out of what is stored and shown".into()),
        (secrets, false) => secrets,
    }
}
