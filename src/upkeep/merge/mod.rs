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
use side::{Ids, Record, Side, file_of, tombstones_file};
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
mod tests {
    //! Property tests of the union of two sides: complete, symmetric except for numbers, idempotent.

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Changes on one side: new pairs of a correction and its rule, edited rules, removed rules.
    #[derive(Debug, Clone, Default)]
    struct Story {
        comes: u8,
        edits: Vec<(u8, u8)>,
        forgets: Vec<u8>,
        drops: Vec<u8>,
    }

    fn story() -> impl Strategy<Value = Story> {
        let edits = proptest::collection::vec((0..4_u8, 0..3_u8), 0..3);
        let some = || proptest::collection::vec(0..4_u8, 0..2);
        (0..4_u8, edits, some(), some()).prop_map(|(comes, edits, forgets, drops)| Story {
            comes,
            edits,
            forgets,
            drops,
        })
    }

    #[derive(Debug, Clone, Default)]
    struct World {
        corrections: Vec<Value>,
        rules: Vec<Value>,
        tombstones: Vec<Value>,
    }

    impl World {
        fn with(mut self, side: u8, story: &Story) -> Self {
            for n in 0..story.comes {
                let number = self.corrections.len() + 1;
                let birth = format!("2026-01-01T00:00:{:02}.{side:03}{n:03}+00:00", 10 + n);
                let correction = format!("CORR-{number:03}");
                self.corrections.push(json!({
                    "correction_id": correction, "skill": "hr/x", "timestamp": birth, "user_correction": birth,
                }));
                let highest = self
                    .rules
                    .iter()
                    .chain(&self.tombstones)
                    .filter_map(|rule| {
                        let id = rule.get("reflexion_id").or(rule.get("id"))?.as_str()?;
                        id.strip_prefix("REFL-")?.parse::<u64>().ok()
                    });
                let id = format!("REFL-{:03}", highest.max().unwrap_or(0) + 1);
                self.rules.push(json!({
                    "reflexion_id": id, "skill": "hr/x", "created_at": birth, "correction_id": correction,
                    "rule": birth, "times_injected": 0,
                }));
            }
            for (at, value) in &story.edits {
                if let Some(rule) = self.rules.get_mut(usize::from(*at)) {
                    rule["mistake"] = json!(format!("m{value}"));
                    rule["times_injected"] = json!(rule["times_injected"].as_u64().unwrap() + 1);
                }
            }
            for (at, is_forgotten) in story
                .forgets
                .iter()
                .map(|a| (a, true))
                .chain(story.drops.iter().map(|a| (a, false)))
            {
                if usize::from(*at) < self.rules.len() {
                    let removed = self.rules.remove(usize::from(*at));
                    if is_forgotten {
                        self.tombstones.push(json!({
                            "id": removed["reflexion_id"], "kind": "reflexion", "at": "2026-01-02T00:00:00Z", "digest": "",
                        }));
                    }
                }
            }
            self
        }

        fn files(&self) -> Files {
            let lines: Vec<String> = self.tombstones.iter().map(Value::to_string).collect();
            let lines = lines
                .iter()
                .flat_map(|line| [line.as_str(), "\n"])
                .collect();
            let text = [
                (
                    "corrections.json",
                    json!({"corrections": self.corrections}).to_string(),
                ),
                (
                    "reflexion_entries.json",
                    json!({"entries": self.rules}).to_string(),
                ),
                ("tombstones.jsonl", lines),
            ];
            let text = text.into_iter();
            text.map(|(name, text)| (format!("{DIRECTORY}/{name}"), text.into_bytes()))
                .collect()
        }
    }

    fn entries(files: &Files, name: &str, key: &str) -> Vec<Value> {
        let file: Value = serde_json::from_slice(&files[&format!("{DIRECTORY}/{name}")]).unwrap();
        file[key].as_array().unwrap().clone()
    }

    /// Records by creation time, without their numbers. Checks that every rule matches its correction.
    fn contents(files: &Files) -> BTreeMap<String, Value> {
        let corrections = entries(files, "corrections.json", "corrections");
        let mut found = BTreeMap::new();
        let mut ids = std::collections::BTreeSet::new();
        for correction in &corrections {
            assert!(
                ids.insert(correction["correction_id"].clone().to_string()),
                "twice: {correction}"
            );
            let birth = correction["timestamp"].as_str().unwrap();
            assert!(
                found
                    .insert(format!("correction {birth}"), json!({}))
                    .is_none(),
                "twice: {birth}"
            );
        }
        for mut rule in entries(files, "reflexion_entries.json", "entries") {
            assert!(
                ids.insert(rule["reflexion_id"].to_string()),
                "twice: {rule}"
            );
            let of = corrections
                .iter()
                .find(|c| c["correction_id"] == rule["correction_id"]);
            assert_eq!(of.unwrap()["timestamp"], rule["created_at"], "{rule}");
            let birth = rule["created_at"].as_str().unwrap().to_owned();
            for name in ["reflexion_id", "correction_id", "merged_from", CONFLICT] {
                rule.as_object_mut().unwrap().shift_remove(name);
            }
            assert!(
                found.insert(format!("rule {birth}"), rule).is_none(),
                "twice: {birth}"
            );
        }
        found
    }

    fn joined(base: &Files, ours: &Files, theirs: &Files) -> Joined {
        let [base, ours, theirs] = [base, ours, theirs].map(Clone::clone);
        join(&Versions { base, ours, theirs }).unwrap()
    }

    proptest! {
        #[test]
        fn any_two_sides_are_joined_without_loss(start in story(), a in story(), b in story()) {
            let base = World::default().with(1, &Story { comes: 3, ..start });
            let (a, b) = (base.clone().with(2, &a), base.clone().with(3, &b));
            let [base, ours, theirs] = [base.files(), a.files(), b.files()];
            let both = joined(&base, &ours, &theirs);
            let found = contents(&both.files);
            let (of_base, of_ours, of_theirs) = (contents(&base), contents(&ours), contents(&theirs));
            for (birth, record) in of_ours.iter().chain(&of_theirs) {
                let is_new = !of_base.contains_key(birth);
                let is_kept = of_ours.contains_key(birth) && of_theirs.contains_key(birth);
                if is_new || is_kept {
                    prop_assert!(found.contains_key(birth), "{birth} is lost");
                }
                if is_new {
                    prop_assert_eq!(&found[birth], record);
                }
            }
            // No record appears from nowhere.
            for birth in found.keys() {
                prop_assert!(of_ours.contains_key(birth) || of_theirs.contains_key(birth));
            }
            // Swapping the sides changes only numbers and open conflicts.
            let other = joined(&base, &theirs, &ours);
            prop_assert_eq!(both.conflicts.len(), other.conflicts.len());
            if both.conflicts.is_empty() {
                let again = contents(&other.files);
                prop_assert_eq!(&again, &found);
            }
            // A second merge adds nothing.
            for (base, theirs) in [(&base, &theirs), (&theirs, &theirs)] {
                let again = joined(base, &both.files, theirs);
                if both.conflicts.is_empty() && std::ptr::eq(base, theirs) {
                    prop_assert_eq!(&again.files, &both.files);
                }
                prop_assert!(again.new_ids.is_empty());
            }
            // Merging again gives the same files: there is no hidden state.
            prop_assert_eq!(joined(&base, &ours, &theirs).files, both.files);
        }
    }

    /// Merges two sides as git does: a file that only one side has changed is taken as it is.
    fn merged_by_git(base: &Files, ours: &Files, theirs: &Files) -> Files {
        let mut files = joined(base, ours, theirs).files;
        for (path, before) in base {
            if ours[path] == *before {
                files.insert(path.clone(), theirs[path].clone());
            } else if theirs[path] == *before {
                files.insert(path.clone(), ours[path].clone());
            }
        }
        files
    }

    proptest! {
        /// `contents` checks that each rule is tied to its own correction.
        #[test]
        fn references_are_right_after_a_merge_of_a_merge(
            a in 0..3_u8, b in 0..3_u8, edits in proptest::collection::vec((0..6_u8, 0..3_u8), 0..3), later in 0..2_u8,
        ) {
            let comes = |comes: u8| Story { comes, ..Story::default() };
            let base = World::default().with(1, &comes(2));
            let (ann, ben) = (base.clone().with(2, &comes(a)), base.clone().with(3, &comes(b)));
            let shared = merged_by_git(&base.files(), &ben.files(), &ann.files());
            // Ann edits while Ben pushes a merge; then each pulls.
            let next = ann.clone().with(4, &Story { comes: later, edits, ..Story::default() });
            let (ann, next) = (ann.files(), next.files());
            let all = contents(&shared).len() + 2 * usize::from(later);
            for (ours, theirs) in [(&next, &shared), (&shared, &next)] {
                let found = contents(&merged_by_git(&ann, ours, theirs));
                prop_assert_eq!(found.len(), all);
            }
        }
    }

    #[test]
    fn lines_of_both_sides_stand_in_the_order_of_time() {
        let line = |n: u32| format!("{{\"at\": \"2026-01-01T00:00:{n:02}Z\"}}");
        let check = |base: &[u32], ours: &[u32], theirs: &[u32], expected: &[u32]| {
            let lines = |numbers: &[u32]| numbers.iter().map(|n| line(*n)).collect::<Vec<_>>();
            let found = joined_tombstones(&lines(base), &lines(ours), &lines(theirs));
            assert_eq!(found, lines(expected), "{base:?} {ours:?} {theirs:?}");
        };
        check(&[1], &[1, 3, 5], &[1, 2, 4, 6], &[1, 2, 3, 4, 5, 6]);
        check(&[], &[1], &[1], &[1]);
        check(&[1, 2], &[1], &[1, 2, 3], &[1, 3]);
        check(&[1, 2], &[1, 2, 3], &[2], &[2, 3]);
        check(&[], &[], &[], &[]);
        let text = |text: &str| vec![text.to_owned()];
        assert_eq!(joined_tombstones(&[], &text("x"), &text("y")), ["x", "y"]);
    }
}
