//! Adds an entry to a settings file, and removes it again with every other byte as it was.
//!
//! A file outside of the settings records the text before the first entry and what has replaced it since. If that
//! is unchanged, the removal of the last entry restores the old text. Otherwise the entry is cut out.
//!
//! Also the text of a settings file as JSON with comments and trailing commas: its object, and members of it. Reading,
//! layout and removal are those of `jsonc-parser`; a text that it would not write as it read it is refused.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Entry, Error, Fault, InstallationStatus, LONGEST};
use crate::store;
use memctl_files::{SharedFile, hex, named};

/// Reads a settings file; `None` if it does not exist.
pub(super) fn read(file: &SharedFile) -> Result<Option<String>, Error> {
    let text = file.read_text(LONGEST);
    text.map_err(|source| Error::unreadable(file, source))
}

/// Reads from a settings file what `find` finds in its text.
pub(super) fn read_in<T>(
    file: &SharedFile,
    find: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, Error> {
    let text = read(file)?.unwrap_or_default();
    find(&text).map_err(|what| Error::Unsuitable {
        path: file.path().to_owned(),
        what,
    })
}

/// JSON with comments and trailing commas, without the other extensions of JSON5.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Settings: a text with one object.
pub(super) struct Document {
    /// Byte order mark, if the text has one.
    mark: &'static str,
    root: CstRootNode,
    /// The object.
    pub(super) object: CstObject,
}

impl Document {
    /// Reads a text. One without a value is an empty object.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(body) => ("\u{feff}", body),
            None => ("", text),
        };
        let body = if body.trim().is_empty() { "{}\n" } else { body };
        let root = CstRootNode::parse(body, &OPTIONS).map_err(|error| {
            let (line, kind) = (error.line_display(), error.kind());
            format!("is not JSON: line {line}: {kind}")
        })?;
        if root.to_string() != body {
            return Err("has a form that cannot be extended".to_owned());
        }
        match root.object_value() {
            Some(object) => Ok(Self { mark, root, object }),
            None => Err("has a value that is not an object".to_owned()),
        }
    }

    /// Removes an object that has become empty.
    pub(super) fn remove_empty(&self, name: &str) {
        let object = member(&self.object, name).filter(|member| {
            member
                .object_value()
                .is_some_and(|object| object.properties().is_empty())
        });
        object.into_iter().for_each(CstObjectProp::remove);
    }

    /// The text, as it was apart from the changes.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.mark, self.root)
    }
}

/// Member of this name; the last of duplicates, as JSON parsers take it.
pub(super) fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let named = |one: &CstObjectProp| one.decoded_name().as_deref() == Some(name);
    object.properties().into_iter().rev().find(named)
}

/// Member that has to be an object; `None` if there is none.
pub(super) fn object_in(object: &CstObject, name: &str) -> Result<Option<CstObject>, Fault> {
    let found = member(object, name).map(|found| {
        let object = found.object_value();
        object.ok_or_else(|| format!("has `{name}` that is not an object"))
    });
    found.transpose()
}

/// Member that has to be an object, which is added if there is none.
pub(super) fn object_for(object: &CstObject, name: &str) -> Result<CstObject, Fault> {
    if let Some(found) = object_in(object, name)? {
        return Ok(found);
    }
    let added = object.append(name, CstInputValue::Object(Vec::new()));
    let added = added.object_value();
    added.ok_or_else(|| "has a form that cannot be extended".to_owned())
}

/// String of a member.
pub(super) fn text_in(object: &CstObject, name: &str) -> Option<String> {
    let text = member(object, name)?.value()?.as_string_lit()?;
    text.decoded_value().ok()
}

/// Strings in the list of a member.
pub(super) fn texts_in(object: &CstObject, name: &str) -> Vec<String> {
    let list = member(object, name).and_then(|member| member.array_value());
    let items = list.map(|list| list.elements()).unwrap_or_default();
    let text = items.iter().filter_map(CstNode::as_string_lit);
    text.filter_map(|text| text.decoded_value().ok()).collect()
}

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
        let mut change = self.change().unwrap_or_default();
        change.set_entry(entry, false);
        let text = match found {
            InstallationStatus::Absent => now.clone(),
            _ => self.without(entry, &now, &change)?,
        };
        let with = self.fault(entry.add(&text))?;
        if entry.find(&with) != Ok(InstallationStatus::Installed) {
            return self.fault(Err("has a form that cannot be extended".to_owned()));
        }
        let before = match change.undone(&now) {
            // Others have changed the text among the entries: what was before them is lost.
            None if !change.entries.is_empty() => with.clone(),
            before => before.unwrap_or(text),
        };
        change.set_change(&before, &with);
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
            let text = self.without(entry, &now, &change)?;
            let is_ours = change.made_file || entry.is_whole_file();
            if is_ours && entry.is_empty(&text) {
                let removed = self.file.remove();
                removed.map_err(|source| Error::unreadable(self.file, source))?;
                // A directory with other files stays.
                self.file.remove_empty(&change.made);
            } else {
                self.replace(&text)?;
            }
            if let Some(before) = change.undone(&now) {
                change.set_change(&before, &text);
            }
        }
        self.save(change)?;
        Ok(is_there)
    }

    /// Returns a text without an entry: as it was before, if no other entry is left.
    fn without(self, entry: &dyn Entry, now: &str, change: &Change) -> Result<String, Error> {
        let is_gone = |text: &String| entry.find(text) == Ok(InstallationStatus::Absent);
        let is_last = change.entries.is_empty();
        match change.undone(now).filter(|text| is_last && is_gone(text)) {
            Some(before) => Ok(before),
            None => self.fault(entry.take_out(now)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_line() {
        let check = |text: &str, line: usize, reason: &str| {
            let fault = Document::read(text).err().unwrap();
            let expected = format!("line {line}: ");
            assert!(
                fault.contains(&expected) && fault.contains(reason),
                "{text}: {fault}"
            );
        };
        check("{", 1, "Unterminated object");
        check("{\n \"a\": nope}", 2, "Unexpected token");
        check("{} x", 1, "more than one JSON value");
        check("{ /* x", 1, "comment");
        check("{\"a\" 1}", 1, "colon");
        check("{\"a\\", 1, "Unterminated");
        check(&"[".repeat(1_000), 1, "nesting");
        check("{\n \"a\": 1\n \"b\": 2}", 2, "comma");
    }
}
