//! Adds an entry to a settings file, and removes it again with every other byte as it was.
//!
//! A file outside of the settings records the replaced text and the new text. If the new text is unchanged, the
//! removal restores the old one. Otherwise the entry is cut out, and the records of entries added later are
//! changed so that they lead back to the text before both.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::document::read;
use super::{Entry, Error, Fault, InstallationStatus, LONGEST, NAMES};
use crate::store;
use memctl_files::{SharedFile, hex, named};

/// Facts kept about a changed file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Change {
    path: PathBuf,
    /// Text that was replaced; mostly empty.
    was: String,
    /// Text that is there since.
    is: String,
    /// `true` if the file was created.
    made_file: bool,
    /// Directories created for the file, innermost first.
    made: Vec<PathBuf>,
}

impl Change {
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
        let (at, _) = places.next().filter(|_| places.next().is_none())?;
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
        let mut text = now.clone().unwrap_or_default();
        let found = entry.find(&text).map_err(|fault| self.fault(fault))?;
        if found == InstallationStatus::Installed {
            return Ok(false);
        }
        let mut change = Change::default();
        if found != InstallationStatus::Absent {
            change = self.change(entry.name()).unwrap_or_default();
            text = self.without(entry, &text, Some(&change))?;
        }
        let with = entry.add(&text).map_err(|fault| self.fault(fault))?;
        if entry.find(&with) != Ok(InstallationStatus::Installed) {
            return Err(self.fault("has a form that cannot be extended".to_owned()));
        }
        self.file.path().clone_into(&mut change.path);
        change.set_change(&text, &with);
        change.made_file |= now.is_none();
        let made = self.file.missing_parents();
        change.made.splice(0..0, made);
        if let Some(state) = self.state(entry.name()) {
            save(&state, &change)?;
        }
        self.replace(&with)?;
        Ok(true)
    }

    /// Returns `true` if the file has an entry that [`Settings::remove`] takes out.
    pub(super) fn has(self, entry: &dyn Entry) -> Result<bool, Error> {
        let now = read(self.file)?.unwrap_or_default();
        self.is_in(entry, &now, self.change(entry.name()).is_some())
    }

    fn is_in(self, entry: &dyn Entry, now: &str, is_kept: bool) -> Result<bool, Error> {
        if !entry.is_ours(now, is_kept) {
            return Ok(false);
        }
        let found = entry.find(now).map_err(|fault| self.fault(fault))?;
        Ok(found != InstallationStatus::Absent)
    }

    /// Takes an entry out. Returns `false` if it is not there.
    pub(super) fn remove(self, entry: &dyn Entry) -> Result<bool, Error> {
        let change = self.change(entry.name());
        let now = read(self.file)?.unwrap_or_default();
        let is_there = self.is_in(entry, &now, change.is_some())?;
        if is_there {
            let text = self.without(entry, &now, change.as_ref())?;
            let change = change.unwrap_or_default();
            self.rebase_later(entry, &now, &change)?;
            let is_ours = change.made_file || entry.is_whole_file();
            if is_ours && entry.is_empty(&text) {
                let removed = self.file.remove();
                removed.map_err(|source| Error::unreadable(self.file, source))?;
                // A directory with other files stays.
                self.file.remove_empty(&change.made);
            } else {
                self.replace(&text)?;
            }
        }
        if let Some(state) = self.state(entry.name()) {
            drop(named::remove(&state));
        }
        Ok(is_there)
    }

    /// Makes what is kept about entries that were added after this one lead to the text before all of
    /// them. Does nothing if this one is the last, or if the text before it cannot be restored.
    fn rebase_later(self, entry: &dyn Entry, now: &str, change: &Change) -> Result<(), Error> {
        let is_gone = |text: &String| entry.find(text) == Ok(InstallationStatus::Absent);
        let mut others: Vec<(&str, Change)> = NAMES
            .into_iter()
            .filter(|name| *name != entry.name())
            .filter_map(|name| Some((name, self.change(name)?)))
            .collect();
        // The later entries with the text that has them, the newest first.
        let mut later: Vec<(&str, Change, String)> = Vec::new();
        let mut text = now.to_owned();
        let mut before = loop {
            if let Some(before) = change.undone(&text).filter(is_gone) {
                break before;
            }
            let undone = others.iter().enumerate();
            let mut undone = undone.filter_map(|(at, (_, other))| Some((at, other.undone(&text)?)));
            let Some((at, without)) = undone.find(|(_, text)| !is_gone(text)) else {
                return Ok(());
            };
            let (name, other) = others.remove(at);
            later.push((name, other, std::mem::replace(&mut text, without)));
        };
        let last = later.len().saturating_sub(1);
        for (at, (name, mut other, with)) in later.into_iter().enumerate().rev() {
            let after = entry.take_out(&with).map_err(|fault| self.fault(fault))?;
            other.set_change(&before, &after);
            if at == last {
                other.made_file |= change.made_file;
                other.made.extend(change.made.iter().cloned());
            }
            if let Some(state) = self.state(name) {
                save(&state, &other)?;
            }
            before = after;
        }
        Ok(())
    }

    fn without(
        self,
        entry: &dyn Entry,
        now: &str,
        change: Option<&Change>,
    ) -> Result<String, Error> {
        let is_gone = |text: &String| entry.find(text) == Ok(InstallationStatus::Absent);
        match change.and_then(|change| change.undone(now)).filter(is_gone) {
            Some(text) => Ok(text),
            None => entry.take_out(now).map_err(|fault| self.fault(fault)),
        }
    }

    fn replace(self, text: &str) -> Result<(), store::Error> {
        let replaced = self.file.replace(text.as_bytes());
        replaced.map_err(store::Error::io("write", self.file.path()))
    }

    fn fault(self, what: Fault) -> Error {
        let path = self.file.path().to_owned();
        Error::Unsuitable { path, what }
    }

    /// Path of what is kept about the file.
    fn state(self, of: &str) -> Option<PathBuf> {
        let path = self.file.path().to_string_lossy();
        let name = hex(&Sha256::digest(path.as_bytes()));
        let directory = self.state_dir?.join(of);
        Some(directory.join(format!("{}.json", &name[..24])))
    }

    fn change(self, of: &str) -> Option<Change> {
        let text = named::read(&self.state(of)?, LONGEST).ok()?;
        let change: Change = serde_json::from_slice(&text).ok()?;
        (change.path == self.file.path()).then_some(change)
    }
}

/// Writes what is kept about a file.
fn save(state: &Path, change: &Change) -> Result<(), store::Error> {
    let json = serde_json::to_vec_pretty(change)?;
    if let Some(above) = state.parent() {
        named::create_dir(above).map_err(store::Error::io("create", above))?;
    }
    named::replace(state, &json).map_err(store::Error::io("write", state))
}
