//! Files of one side of a merge, as git has them: split into records, and assembled again.
//!
//! A file with any damage is rejected, because a rewrite would hide the damage.
//!
//! [`Ids`] matches the records of the three versions, and decides the id that each has after the merge.
//!
//! Two records are the same if they share an id, present or former, and the creation time: no two
//! records are created in one microsecond. If the time has whole seconds only, the base must hold
//! the record too, or both texts must be equal. A record has our id after the merge, except:
//!
//! - Git takes a file that only theirs has changed as it is, so its records keep their ids.
//! - An id that an earlier merge on their side gave a record stays, if it is free.
//! - A record whose id another record has or had gets a new one: one of theirs, and in the first case one of ours.
//!
//! The result depends only on the three versions of all files, so the ids are the same for every
//! file that is merged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use chrono::DateTime;
use memctl_files::json::{with_fields, with_other_strings};
use serde::Serialize;

use crate::model::Kind;
use crate::store::files::data::scan::scan;
use crate::store::files::directory::TOMBSTONES;
use crate::store::renaming::{
    MERGED_FROM, NewId, NewIds, Taken, created, digest, former_ids, is_exact, rename, with_new_ids,
};
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
    format!("{DIRECTORY}/{TOMBSTONES}")
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

const BASE: usize = 0;
const OURS: usize = 1;
const THEIRS: usize = 2;

/// New ids of the records.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// New ids of the base, of ours and of theirs, by the former ones.
    pub(crate) of: [NewIds; 3],
    /// Records of theirs that get a new id in this merge.
    pub(crate) new: Vec<NewId>,
    /// Records of ours that get another id.
    pub(crate) given_up: Vec<NewId>,
}

/// One record, as the base, ours and theirs have it.
struct Matched<'a> {
    kind: Kind,
    of: [Option<&'a Record>; 3],
}

impl Matched<'_> {
    /// Returns `true` if a record of a side with the same id and creation time is this one.
    fn is(&self, side: usize, record: &Record) -> bool {
        let is_same = |other: &&Record| digest(&other.text) == digest(&record.text);
        self.of[side].is_none()
            && (is_exact(&record.created)
                || self.of[BASE].is_some()
                || self.of.iter().flatten().all(is_same))
    }
}

fn matched<'a>(sides: [&'a Side; 3]) -> Vec<Matched<'a>> {
    let mut found: Vec<Matched<'a>> = Vec::new();
    let mut births: HashMap<(Kind, &str, &str), usize> = HashMap::new();
    for (side, records) in sides.into_iter().enumerate() {
        for (kind, record) in records.all().filter(|(_, record)| !record.id.is_empty()) {
            let birth = |id: &'a str| (kind, id, record.created.as_str());
            let same = record.ids().find_map(|id| births.get(&birth(id)).copied());
            let same = same.filter(|at| found[*at].is(side, record));
            let at = same.unwrap_or(found.len());
            if same.is_none() {
                let of = [None; 3];
                found.push(Matched { kind, of });
            }
            found[at].of[side] = Some(record);
            for id in record.ids().filter(|id| !id.is_empty()) {
                births.entry(birth(id)).or_insert(at);
            }
        }
    }
    found
}

/// Records by side and by their id there, with their id after the merge.
type Places<'a> = HashMap<(usize, Kind, &'a str), (&'a Matched<'a>, &'a String)>;

/// All ids of the three versions.
fn taken(sides: [&Side; 3]) -> Taken {
    let mut taken = Taken::default();
    for side in sides {
        for (kind, record) in side.all() {
            taken.take(kind, &record.id);
        }
        for tombstone in side.tombstones() {
            taken.take(tombstone.kind, &tombstone.id);
        }
    }
    taken
}

impl Ids {
    /// Decides the ids. `as_is` are the kinds whose file git takes from theirs as it is.
    pub(crate) fn decide(sides: [&Side; 3], as_is: &HashSet<Kind>) -> Self {
        let mut taken = taken(sides);
        let matched = matched(sides);
        let of_ours: HashSet<&str> = sides[OURS].all().map(|(_, r)| r.id.as_str()).collect();
        let removed = sides[OURS].removed_ids();
        let mut ids = Self::default();
        let mut used: HashSet<String> = HashSet::new();
        let mut decided: Vec<Option<String>> = vec![None; matched.len()];
        // Ids of theirs that stay, then ours, the others of theirs, and those of the base alone.
        for (step, side) in [THEIRS, OURS, THEIRS, BASE].into_iter().enumerate() {
            for (one, decided) in matched.iter().zip(&mut decided) {
                let Some(record) = one.of[side].filter(|_| decided.is_none()) else {
                    continue;
                };
                let (kind, id) = (one.kind, &record.id);
                let is_renamed = |ours: &Record| record.before.contains(&ours.id);
                let stays = as_is.contains(&kind)
                    || one.of[OURS].is_some_and(is_renamed) && !of_ours.contains(id.as_str());
                if step == 0 && !stays {
                    continue;
                }
                let is_new = step == 2 && one.of[BASE].is_none();
                let was_removed = is_new && removed.contains(&(kind, id.clone()));
                let is_taken = used.contains(id) || was_removed;
                let to = if is_taken {
                    taken.free(kind, &record.created, DateTime::UNIX_EPOCH)
                } else {
                    id.clone()
                };
                if is_new && is_taken {
                    ids.new.push(new_id(kind, id, &to));
                }
                used.insert(to.clone());
                *decided = Some(to);
            }
        }
        let mut places: Places<'_> = HashMap::new();
        for (one, to) in matched.iter().zip(decided.iter().flatten()) {
            for (side, record) in one.of.iter().enumerate() {
                let Some(record) = record else { continue };
                places.insert((side, one.kind, &record.id), (one, to));
                if record.id != *to {
                    rename(&mut ids.of[side], one.kind, &record.id, to);
                    if side == OURS {
                        ids.given_up.push(new_id(one.kind, &record.id, to));
                    }
                }
            }
        }
        ids.of_tombstones(sides, &places, &mut taken, &used);
        ids
    }

    /// Ids of tombstones: those of their records, and new ones for records that were created and deleted on one
    /// side, where another record has the id. Other entries still name them.
    fn of_tombstones(
        &mut self,
        sides: [&Side; 3],
        places: &Places<'_>,
        taken: &mut Taken,
        used: &HashSet<String>,
    ) {
        let [known, removed] = [BASE, OURS].map(|side| sides[side].removed_ids());
        let of_ours = sides[OURS].tombstones();
        let of_ours: HashSet<(String, String)> = of_ours.map(|one| (one.id, one.at)).collect();
        for side in [OURS, THEIRS] {
            for one in sides[side].tombstones() {
                let key = (one.kind, one.id.clone());
                let place = |side| places.get(&(side, one.kind, one.id.as_str()));
                let to = if place(side).is_some() || known.contains(&key) {
                    continue;
                } else if let Some((_, to)) = place(BASE).filter(|(one, _)| one.of[side].is_none())
                {
                    (*to).clone()
                } else if side == THEIRS && of_ours.contains(&(one.id.clone(), one.at.clone())) {
                    self.of[OURS].get(&one.id).unwrap_or(&one.id).clone()
                } else if used.contains(&one.id) || side == THEIRS && removed.contains(&key) {
                    taken.free(one.kind, &one.at, DateTime::UNIX_EPOCH)
                } else {
                    continue;
                };
                if to != one.id {
                    rename(&mut self.of[side], one.kind, &one.id, &to);
                }
            }
        }
    }
}

fn new_id(kind: Kind, from: &str, to: &str) -> NewId {
    let (from, to) = (from.to_owned(), to.to_owned());
    NewId { kind, from, to }
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
