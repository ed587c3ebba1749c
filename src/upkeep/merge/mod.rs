//! Merges two branches of the same memory. And resolves a field that a merge left in conflict: a person chooses
//! ours or theirs.
//!
//! Git merges one file at a time, but records refer to each other across files. So every file merge
//! reads all versions of all files, and the result is a pure function of them: each file gets the
//! same new ids, in any order of the files.
//!
//! Git takes a file that only one branch has changed as it is, without calling this program. So the records of
//! such a file keep their ids. `Joined::outdated` lists those that name records by former ids.
//!
//! Deliberately absent: git itself. The caller reads the three versions.

pub(crate) mod git;
mod ids;
mod side;
mod skills;
mod three_way;

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, FixedOffset};
use memctl_files::Directory;
use memctl_files::json::with_other_strings;
use serde::Serialize;
use serde_json::Value;

use crate::model::Kind;
use crate::store::renaming::{NewId, NewIds, tests};
use crate::store::workspace::{Error, Workspace, entry, locate, redacting_writer, repair_warnings};
use crate::store::{DIRECTORY, Entry, Frame, IDENTITY, Identity, raw_field, text_field};
use ids::Ids;
use side::{Record, Side, file_of, tombstones_file};
use three_way::{Union, union};

pub(crate) use side::CONFLICT;
pub use side::{Conflict, Files};
pub use skills::is_of_corrections;

/// Three versions of all files of a workspace.
#[derive(Debug, Default)]
pub struct Versions {
    /// Common ancestor of both sides.
    pub base: Files,
    /// Side to merge into.
    pub ours: Files,
    /// Side to merge.
    pub theirs: Files,
}

/// Result of a merge.
#[derive(Debug, Default)]
pub struct Joined {
    /// Merged files.
    pub files: Files,
    /// Files that only a person can merge, with the reason.
    pub refused: BTreeMap<String, String>,
    /// Records of theirs with new ids.
    pub new_ids: Vec<NewId>,
    /// Records of ours with other ids.
    pub given_up: Vec<NewId>,
    /// Files that git takes from one side as they are, and that name records by former ids.
    pub outdated: Vec<String>,
    /// Fields that a person has to decide.
    pub conflicts: Vec<Conflict>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Merges the two sides.
///
/// # Errors
///
/// Names a damaged file: ids cannot be assigned without all records.
pub fn join(versions: &Versions) -> Result<Joined, String> {
    let files = [&versions.base, &versions.ours, &versions.theirs];
    let [base, ours, theirs] = files.map(Side::of);
    let (base, ours, theirs) = (base?, ours?, theirs?);
    let ids = Ids::decide([&base, &ours, &theirs], &versions.as_is());
    let [of_base, of_ours, of_theirs] = &ids.of;
    let ours = ours.with_ids(of_ours);
    let (base, theirs) = (base.with_ids(of_base), theirs.with_ids(of_theirs));
    let mut joined = Joined::default();
    let removed = [ours.removed_ids(), theirs.removed_ids()];
    for kind in Kind::ALL {
        let records = [&base, &ours, &theirs].map(|side| side.records(kind));
        joined.put(
            kind,
            [&ours, &theirs],
            union(kind, records, removed.each_ref()),
        );
    }
    if ours.lines.is_some() || theirs.lines.is_some() {
        let lines = [&base, &ours, &theirs].map(|side| side.lines.as_deref().unwrap_or_default());
        let lines = joined_tombstones(lines[0], lines[1], lines[2]).into_iter();
        let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
        joined.files.insert(tombstones_file(), text.into_bytes());
    }
    joined.files.extend(identity(versions)?);
    let [base, ours, theirs] =
        [0, 1, 2].map(|side| skills::with_ids(files[side], &ids.of[side], &versions.base, of_base));
    let (files, refused) = skills::union(&base, &ours, &theirs);
    joined.files.extend(files);
    let why = "both sides have changed it by hand, or one has removed it";
    let refused = refused.into_iter();
    joined.refused = refused.map(|path| (path, why.to_owned())).collect();
    joined.outdated = joined.outdated(versions, [of_ours, of_theirs]);
    joined.new_ids = ids.new;
    joined.given_up = ids.given_up;
    Ok(joined)
}

impl Versions {
    /// Files that git takes from ours, and from theirs, because that side alone has changed them.
    fn one_sided(&self) -> [Vec<(&String, &Vec<u8>)>; 2] {
        let sides = [(&self.ours, &self.theirs), (&self.theirs, &self.ours)];
        sides.map(|(side, other)| {
            let files = side.iter().filter(|(path, bytes)| {
                let before = self.base.get(*path);
                before != Some(bytes) && other.get(*path) == before
            });
            files.collect()
        })
    }

    /// Kinds whose file their side alone has changed.
    fn as_is(&self) -> HashSet<Kind> {
        let [_, theirs] = self.one_sided();
        let is_theirs = |kind: &Kind| {
            let file = file_of(*kind);
            theirs.iter().any(|(path, _)| **path == file)
        };
        Kind::ALL.into_iter().filter(is_theirs).collect()
    }
}

/// Returns the identity of both sides, with the path of its file; `None` if neither has one.
fn identity(versions: &Versions) -> Result<Option<(String, Vec<u8>)>, String> {
    let path = format!("{DIRECTORY}/{IDENTITY}");
    let read = |side: &Files| {
        let identity = side
            .get(&path)
            .map(|bytes| serde_json::from_slice::<Identity>(bytes));
        let unreadable =
            |_| format!("`{path}` cannot be merged: it holds no name and key of a memory");
        identity.transpose().map_err(unreadable)
    };
    let (ours, theirs) = (read(&versions.ours)?, read(&versions.theirs)?);
    let joined = match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(ours.joined(theirs)),
        (ours, theirs) => ours.or(theirs),
    };
    let text = joined.and_then(|joined| serde_json::to_string_pretty(&joined).ok());
    Ok(text.map(|text| (path, (text + "\n").into_bytes())))
}

/// Returns our tombstones and the new ones of theirs, sorted by time. A base line that one side removed is dropped.
fn joined_tombstones(base: &[String], ours: &[String], theirs: &[String]) -> Vec<String> {
    let [of_base, of_ours, of_theirs] = [base, ours, theirs].map(HashSet::<_>::from_iter);
    let is_dropped =
        |line: &&String, other: &HashSet<&String>| of_base.contains(line) && !other.contains(line);
    let retained = ours.iter().filter(|line| !is_dropped(line, &of_theirs));
    let new = theirs.iter().filter(|line| !of_ours.contains(line));
    let new = new.filter(|line| !of_base.contains(line));
    let mut lines: Vec<String> = retained.chain(new).cloned().collect();
    // The sort is stable: lines without a time stay behind, in their order.
    lines.sort_by_cached_key(|line| (time(line).is_none(), time(line)));
    lines
}

fn time(line: &str) -> Option<DateTime<FixedOffset>> {
    let at = text_field(line.as_bytes(), "at")?;
    DateTime::parse_from_rfc3339(&at).ok()
}

/// Writes the regression case of their side that has a new name, unless the name is taken. `root` is
/// the directory of the workspace.
pub fn write_renamed(root: &Directory, path: &str, content: &[u8]) -> Result<(), Error> {
    if is_of_corrections(path) && matches!(root.kind(path), Ok(None)) {
        let text = String::from_utf8_lossy(content);
        redacting_writer::replace(root, &root.join(path), &text)?;
    }
    Ok(())
}

impl Joined {
    /// A side's version of a file that is named after a record with a new id: whose it is, its new
    /// path and its content.
    pub fn renamed(&self, path: &str) -> Option<(&'static str, String, &[u8])> {
        let sides = [("their", &self.new_ids), ("our", &self.given_up)];
        sides.into_iter().find_map(|(whose, ids)| {
            let ids = ids.iter();
            let ids = ids.filter_map(|id| tests(id.kind, &id.from, &id.to));
            let path = skills::moved(path, &ids.collect())?;
            let content = self.files.get(&path)?;
            Some((whose, path, content.as_slice()))
        })
    }

    /// Files that git takes as they are although they name records by former ids. `ids` are the
    /// new ids of ours and of theirs.
    fn outdated(&self, versions: &Versions, ids: [&NewIds; 2]) -> Vec<String> {
        let mut found = Vec::new();
        for (files, ids) in versions.one_sided().into_iter().zip(ids) {
            let is_outdated = |(path, bytes): &(&String, &Vec<u8>)| {
                if is_of_corrections(path) {
                    return self.files.get(*path) != Some(*bytes);
                }
                with_other_strings(&String::from_utf8_lossy(bytes), ids).is_some()
            };
            let outdated = files.into_iter().filter(is_outdated);
            found.extend(outdated.map(|(path, _)| path.clone()));
        }
        found
    }

    /// Writes the merged records of a kind into their file.
    fn put(&mut self, kind: Kind, sides: [&Side; 2], union: Union) {
        self.conflicts.extend(union.conflicts);
        self.notes.extend(union.notes);
        // Data of other programs around the entries stays as it is on our side.
        let files = sides.map(|side| side.files.get(&kind));
        let filled = |(_, records): &&(Frame, Vec<Record>)| !records.is_empty();
        let mut there = files.into_iter().flatten();
        if let Some((frame, _)) = there.clone().find(filled).or_else(|| there.next()) {
            let text = frame.around(kind, &union.entries);
            self.files.insert(file_of(kind), text);
        }
    }
}

/// Side whose value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolveSide {
    /// Value that the record has now.
    Ours,
    /// Value of the incoming side.
    Theirs,
}

/// Outcome of [`resolve()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ResolveReport {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Resolved fields, as JSON pointers.
    pub decided: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Resolves the fields of a record that two branches set to different values.
pub fn resolve(workspace: &Workspace, id: &str, side: ResolveSide) -> Result<ResolveReport, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    let mut writer = workspace.writer()?;
    let entry = entry(writer.store(), kind, &id)?;
    let text = String::from_utf8_lossy(&entry.text);
    let Some(open) = open_fields(&text) else {
        let message = format!("`{id}` has no open merge conflict");
        let hint = "memctl doctor lists open merge conflicts";
        return Err(Error::missing(message, hint));
    };
    let decided: Vec<String> = open.keys().cloned().collect();
    let theirs = open.iter().filter(|_| side == ResolveSide::Theirs);
    let theirs = theirs.map(|(pointer, value)| (pointer.trim_start_matches('/'), value));
    let (removed, changes): (Vec<_>, Vec<_>) = theirs.partition(|(_, value)| value.is_null());
    let names = removed.into_iter().map(|(name, _)| name);
    let removed: Vec<&str> = names.chain([CONFLICT]).collect();
    writer.update_without(kind, &id, &changes, &removed)?;
    Ok(ResolveReport {
        id,
        kind,
        decided,
        warnings: repair_warnings(writer.take_repairs()).collect(),
    })
}

/// Returns the fields that a merge left open in a record.
pub(crate) fn conflicts_in(entry: &Entry) -> Vec<Conflict> {
    let (kind, id) = (entry.kind, &entry.id);
    let open = open_fields(&String::from_utf8_lossy(&entry.text));
    let fields = open.into_iter().flatten().map(|(field, _)| field);
    let conflict = |field| Conflict {
        kind,
        id: id.clone(),
        field,
    };
    fields.map(conflict).collect()
}

/// Open fields of a record, with the values of the incoming side; `None` without any.
fn open_fields(text: &str) -> Option<serde_json::Map<String, Value>> {
    // Most records do not contain the key and need no parsing.
    memchr::memmem::find(text.as_bytes(), CONFLICT.as_bytes())?;
    let open: serde_json::Map<_, _> = serde_json::from_str(&raw_field(text, CONFLICT)?).ok()?;
    (!open.is_empty()).then_some(open)
}

#[cfg(test)]
mod tests;
