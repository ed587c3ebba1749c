//! Adds an entry to a settings file, and removes it again with every other byte as it was.
//!
//! A file outside of the settings records the text before the first entry and what has replaced it since. If that
//! is unchanged, the removal of the last entry restores the old text. Otherwise the entry is cut out.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::document::read;
use super::{Entry, Error, Fault, InstallationStatus, LONGEST};
use crate::store;
use memctl_files::{SharedFile, hex, named};

/// Directory of what is kept about changed files.
const DIRECTORY: &str = "settings";

/// Facts kept about a changed file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Change {
    path: PathBuf,
    /// Names of the entries that were added and not removed.
    entries: Vec<String>,
    /// Text that was replaced by all of them; mostly empty.
    was: String,
    /// Text that is there since.
    is: String,
    /// `true` if the file was created.
    made_file: bool,
    /// Directories created for the file, innermost first.
    made: Vec<PathBuf>,
}

impl Change {
    fn set_entry(&mut self, entry: &dyn Entry, is_there: bool) {
        self.entries.retain(|name| name != entry.name());
        if is_there {
            self.entries.push(entry.name().to_owned());
        }
    }

    /// Sets the text that differs between two.
    fn set_change(&mut self, before: &str, after: &str) {
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            let same = pairs.take_while(|(a, b)| a == b);
            same.map(|(a, _)| a.len_utf8()).sum()
        };
        let start = same(&mut before.chars().zip(after.chars()));
        let (before, after) = (&before[start..], &after[start..]);
        let end = same(&mut before.chars().rev().zip(after.chars().rev()));
        before[..before.len() - end].clone_into(&mut self.was);
        after[..after.len() - end].clone_into(&mut self.is);
    }

    /// Returns a text as it was before the change; `None` unless it contains the new text exactly once.
    fn undone(&self, text: &str) -> Option<String> {
        let mut places = text.match_indices(&self.is);
        let (at, _) = places.next().filter(|_| !self.is.is_empty())?;
        if places.next().is_some() {
            return None;
        }
        let mut text = text.to_owned();
        text.replace_range(at..at + self.is.len(), &self.was);
        Some(text)
    }
}

/// A settings file, and the directory with what is kept about it; `None` keeps nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) file: &'a SharedFile,
    pub(super) state_dir: Option<&'a Path>,
}

impl Settings<'_> {
    /// Adds an entry, or replaces an outdated one. Returns `false` if it is there.
    pub(super) fn add(self, entry: &dyn Entry) -> Result<bool, Error> {
        let now = read(self.file)?;
        let is_new = now.is_none();
        let now = now.unwrap_or_default();
        let found = self.fault(entry.find(&now))?;
        if found == InstallationStatus::Installed {
            return Ok(false);
        }
        let text = match found {
            InstallationStatus::Absent => now.clone(),
            _ => self.fault(entry.take_out(&now))?,
        };
        let with = self.fault(entry.add(&text))?;
        if entry.find(&with) != Ok(InstallationStatus::Installed) {
            return self.fault(Err("has a form that cannot be extended".to_owned()));
        }
        let mut change = self.change().unwrap_or_default();
        change.set_change(&change.undone(&now).unwrap_or(text), &with);
        change.set_entry(entry, true);
        change.made_file |= is_new;
        change.made.splice(0..0, self.file.missing_parents());
        self.save(change)?;
        self.replace(&with)?;
        Ok(true)
    }

    /// Returns `true` if the file has an entry that [`Settings::remove`] takes out.
    pub(super) fn has(self, entry: &dyn Entry) -> Result<bool, Error> {
        let now = read(self.file)?.unwrap_or_default();
        self.is_in(entry, &now, &self.change().unwrap_or_default())
    }

    fn is_in(self, entry: &dyn Entry, now: &str, change: &Change) -> Result<bool, Error> {
        let is_kept = change.entries.iter().any(|name| name == entry.name());
        if !entry.is_ours(now, is_kept) {
            return Ok(false);
        }
        Ok(self.fault(entry.find(now))? != InstallationStatus::Absent)
    }

    /// Takes an entry out. Returns `false` if it is not there.
    pub(super) fn remove(self, entry: &dyn Entry) -> Result<bool, Error> {
        let mut change = self.change().unwrap_or_default();
        let now = read(self.file)?.unwrap_or_default();
        let is_there = self.is_in(entry, &now, &change)?;
        change.set_entry(entry, false);
        if is_there {
            let is_gone = |text: &String| entry.find(text) == Ok(InstallationStatus::Absent);
            let before = change.undone(&now).filter(is_gone);
            let text = match &before {
                Some(before) if change.entries.is_empty() => before.clone(),
                _ => self.fault(entry.take_out(&now))?,
            };
            let is_ours = change.made_file || entry.is_whole_file();
            if is_ours && entry.is_empty(&text) {
                let removed = self.file.remove();
                removed.map_err(|source| Error::unreadable(self.file, source))?;
                // A directory with other files stays.
                self.file.remove_empty(&change.made);
            } else {
                self.replace(&text)?;
            }
            change.set_change(&before.unwrap_or_else(|| text.clone()), &text);
        }
        self.save(change)?;
        Ok(is_there)
    }

    fn replace(self, text: &str) -> Result<(), store::Error> {
        let replaced = self.file.replace(text.as_bytes());
        replaced.map_err(store::Error::io("write", self.file.path()))
    }

    /// Names the file of a fault.
    fn fault<T>(self, found: Result<T, Fault>) -> Result<T, Error> {
        found.map_err(|what| Error::Unsuitable {
            path: self.file.path().to_owned(),
            what,
        })
    }

    /// Path of what is kept about the file.
    fn state(self) -> Option<PathBuf> {
        let path = self.file.path().to_string_lossy();
        let name = hex(&Sha256::digest(path.as_bytes()));
        let directory = self.state_dir?.join(DIRECTORY);
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    fn change(self) -> Option<Change> {
        let text = named::read(&self.state()?, LONGEST).ok()?;
        let change: Change = serde_json::from_slice(&text).ok()?;
        (change.path == self.file.path()).then_some(change)
    }

    /// Writes what is kept about the file; removes it with the last entry.
    fn save(self, mut change: Change) -> Result<(), store::Error> {
        let Some(state) = self.state() else {
            return Ok(());
        };
        if change.entries.is_empty() {
            drop(named::remove(&state));
            return Ok(());
        }
        self.file.path().clone_into(&mut change.path);
        let json = serde_json::to_vec_pretty(&change)?;
        if let Some(above) = state.parent() {
            named::create_dir(above).map_err(store::Error::io("create", above))?;
        }
        named::replace(&state, &json).map_err(store::Error::io("write", &state))
    }
}
