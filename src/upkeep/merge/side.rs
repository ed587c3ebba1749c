//! Files of one side of a merge, as git has them: split into records, and assembled again.
//!
//! A file with any damage is rejected, because a rewrite would hide the damage.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use memctl_files::json::{with_fields, with_other_strings};
use serde::Serialize;

use crate::model::Kind;
use crate::store::files::data::scan::scan;
use crate::store::files::tombstones;
use crate::store::renaming::{MERGED_FROM, NewIds, created, former_ids, with_new_ids};
use crate::store::{DIRECTORY, FORMAT, Frame, Tombstone, text_field};

/// Files by path relative to the workspace, separated by `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Parsed record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) created: String,
    /// Former ids of the record.
    pub(crate) before: Vec<String>,
}

impl Record {
    fn of(kind: Kind, text: String) -> Self {
        Self {
            id: text_field(text.as_bytes(), kind.id_field()).unwrap_or_default(),
            created: created(kind, &text),
            before: former_ids(text.as_bytes()),
            text,
        }
    }

    /// All ids of the record, the current one first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let own = std::iter::once(self.id.as_str());
        own.chain(self.before.iter().map(String::as_str))
    }

    /// Key of a record: its id, or its whole text without an id.
    pub(crate) fn key(&self) -> &str {
        if self.id.is_empty() {
            &self.text
        } else {
            &self.id
        }
    }
}

/// Data file, relative to the workspace.
pub(super) fn file_of(kind: Kind) -> String {
    format!("{DIRECTORY}/{}", kind.file())
}

/// File with the tombstones, relative to the workspace.
pub(super) fn tombstones_file() -> String {
    format!("{DIRECTORY}/{}", tombstones::FILE)
}

/// Memory of one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Side {
    /// Data files: the text around the records, and the records, oldest first.
    pub(super) files: HashMap<Kind, (Frame, Vec<Record>)>,
    /// Lines with tombstones; `None` without such a file.
    pub(super) lines: Option<Vec<String>>,
}

impl Side {
    /// Parses the files of a side. The error names the damaged file.
    pub(crate) fn of(files: &Files) -> Result<Self, String> {
        let refused = |path: &str, reason: &str| format!("`{path}` cannot be merged: {reason}");
        let text_of = |path: &str| {
            let text = files.get(path).map(|bytes| std::str::from_utf8(bytes));
            let text = text.transpose();
            text.map_err(|_| refused(path, "it is not UTF-8"))
        };
        let mut side = Self::default();
        for kind in Kind::ALL {
            let path = file_of(kind);
            if let Some(text) = text_of(&path)? {
                let (frame, entries) =
                    split(kind, text).map_err(|reason| refused(&path, &reason))?;
                let records = entries.into_iter().map(|text| Record::of(kind, text));
                side.files.insert(kind, (frame, records.collect()));
            }
        }
        let path = tombstones_file();
        if let Some(text) = text_of(&path)? {
            if !text.is_empty() && !text.ends_with('\n') {
                return Err(refused(&path, "its last line is torn"));
            }
            let lines = text.lines().filter(|line| !line.is_empty());
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            // Conflict markers of an unresolved merge are no tombstones either.
            let is_sound = |line: &String| serde_json::from_str::<Tombstone>(line).is_ok();
            if !lines.iter().all(is_sound) {
                return Err(refused(&path, "a line of it cannot be read"));
            }
            side.lines = Some(lines);
        }
        Ok(side)
    }

    pub(crate) fn records(&self, kind: Kind) -> &[Record] {
        let file = self.files.get(&kind);
        file.map_or(&[], |(_, records)| records.as_slice())
    }

    /// All records, with their kinds.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Kind, &Record)> {
        let of_kind = |kind| self.records(kind).iter().map(move |record| (kind, record));
        Kind::ALL.into_iter().flat_map(of_kind)
    }

    pub(crate) fn tombstones(&self) -> impl Iterator<Item = Tombstone> {
        let lines = self.lines.iter().flatten();
        lines.filter_map(|line| serde_json::from_str(line).ok())
    }

    /// Tombstones that have not been lifted.
    pub(crate) fn removed_ids(&self) -> HashSet<(Kind, String)> {
        let mut removed = HashSet::new();
        for tombstone in self.tombstones() {
            let key = (tombstone.kind, tombstone.id);
            if tombstone.lifted {
                removed.remove(&key);
            } else {
                removed.insert(key);
            }
        }
        removed
    }

    /// Replaces ids in all records and lines. A record with another id keeps its former one.
    pub(crate) fn with_ids(mut self, ids: &NewIds) -> Self {
        for (kind, (_, records)) in &mut self.files {
            for record in records {
                let Some(text) = with_new_ids(&record.text, ids) else {
                    continue;
                };
                let mut new = Record::of(*kind, text);
                if new.id != record.id && !new.before.contains(&record.id) {
                    new.before.push(record.id.clone());
                    let former = serde_json::Value::from(new.before.clone()).to_string();
                    new.text = with_fields(&new.text, &[(MERGED_FROM, former)], 6);
                }
                *record = new;
            }
        }
        for line in self.lines.iter_mut().flatten() {
            if let Some(new) = with_other_strings(line, ids) {
                *line = new;
            }
        }
        self
    }
}

/// Field with open conflicts of an entry: the values of theirs by JSON pointer.
pub(crate) const CONFLICT: &str = "merge_conflict";

/// Field that a person has to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Conflict {
    /// Kind of the record.
    pub kind: Kind,
    /// Id of the record.
    pub id: String,
    /// JSON pointer to the field.
    pub field: String,
}

/// Splits a data file into its entries, oldest first, and the text around them. The error describes
/// the damage.
fn split(kind: Kind, text: &str) -> Result<(Frame, Vec<String>), String> {
    if text.trim().is_empty() {
        return Ok((Frame::plain(kind), Vec::new()));
    }
    let (mut first, mut entries) = (None, Vec::new());
    let outline = scan(
        text.as_bytes(),
        Path::new(kind.file()),
        kind.root_key(),
        &mut |at, entry| {
            first.get_or_insert(at);
            entries.push(String::from_utf8_lossy(entry).into_owned());
        },
    );
    if let Some(problem) = outline.problems.first() {
        return Err(format!("line {}: {}", problem.line, problem.message));
    }
    if outline.format > FORMAT {
        return Err("it was written by a newer version of memctl".to_owned());
    }
    let until = |at: u64| {
        usize::try_from(at)
            .ok()
            .and_then(|at| text.split_at_checked(at))
    };
    let head = until(first.unwrap_or(outline.tail)).unwrap_or_default().0;
    let tail = until(outline.tail).unwrap_or_default().1;
    let [head, tail] = [head, tail].map(str::to_owned);
    Ok((Frame { head, tail }, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_file_comes_apart_and_together_again() {
        let check = |text: &str, entries: &[&str]| {
            let (frame, found) = split(Kind::Procedure, text).unwrap();
            assert_eq!(found, entries, "{text}");
            let again = frame.around(Kind::Procedure, &found);
            let again = String::from_utf8(again).unwrap();
            assert_eq!(split(Kind::Procedure, &again).unwrap().1, entries, "{text}");
            again
        };
        check("", &[]);
        check("{\"entries\": []}", &[]);
        check(
            "{\n  \"entries\": [\n    {\"a\": 1},\n    {\"b\": NaN}\n  ]\n}\n",
            &["{\"a\": 1}", "{\"b\": NaN}"],
        );
        check("\u{feff}{\"x\": [1], \"entries\":[{}]}", &["{}"]);
        let text = "{\n  \"entries\": [\n    {\"a\":  1},\n    {\"b\": NaN}\n  ],\n  \"x\": 1\n}\n";
        assert_eq!(check(text, &["{\"a\":  1}", "{\"b\": NaN}"]), text);
    }

    #[test]
    fn damaged_file_is_refused() {
        for text in [
            "{\"entries\": [{\"a\": 1}",
            "[]",
            "{\"entries\": {}}",
            "{\"entries\": []} x",
            "{\"entries\": [{} {}]}",
            "<<<<<<< HEAD",
            "{\"format\": 9, \"entries\": []}",
        ] {
            assert!(split(Kind::Procedure, text).is_err(), "{text}");
        }
    }
}
