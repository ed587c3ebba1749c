//! Merges two branches of the same memory.
//!
//! Git merges one file at a time, but records refer to each other across files. So every file merge
//! reads all versions of all files, and the result is a pure function of them: each file gets the
//! same new ids, in any order of the files.
//!
//! Git takes a file that only one branch has changed as it is, without calling this program. Such a
//! file may name a record by its former id: [`Joined::outdated`] lists it for the user.
//!
//! Deliberately absent: git itself. The caller reads the three versions.

pub(crate) mod git;
mod ids;
pub(crate) mod resolve;
mod side;
mod skills;
mod three_way;
mod union;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use chrono::{DateTime, FixedOffset};

use crate::model::Kind;
use crate::store::{DIRECTORY, Frame, text_field};
use crate::upkeep::exchange::import::existing::tests;
use memctl_files::Directory;

use ids::Ids;
pub use ids::NewId;
pub(crate) use resolve::open_conflicts;
pub(crate) use side::CONFLICT;
pub use side::{Conflict, Files, Unjoinable};
use side::{Record, Side, file_of, tombstones_file};
pub use skills::is_of_corrections;
use union::{Union, Versions as RecordVersions};

use crate::store::workspace::{Error, redacting_writer};

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
    /// Fields that a person has to decide.
    pub conflicts: Vec<Conflict>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Merges the two sides.
///
/// # Errors
///
/// Damaged file: ids cannot be assigned without all records.
pub fn join(versions: &Versions) -> Result<Joined, Unjoinable> {
    let base = Side::of(&versions.base)?;
    let ours = Side::of(&versions.ours)?;
    let theirs = Side::of(&versions.theirs)?;
    let ids = Ids::decide(&base, &ours, &theirs);
    let base = base.mended(&ids.base);
    let theirs = theirs.mended(&ids.theirs);
    let mut joined = Joined::default();
    let new: HashMap<String, String> = ids
        .new
        .iter()
        .map(|id| (id.to.clone(), id.from.clone()))
        .collect();
    let removed = [ours.removed_ids(), theirs.removed_ids()];
    for kind in Kind::ALL {
        let union = RecordVersions {
            kind,
            base: base.records(kind),
            ours: ours.records(kind),
            theirs: theirs.records(kind),
            new: &new,
            removed: [&removed[0], &removed[1]],
        }
        .union();
        joined.put(kind, [&ours, &theirs], union);
    }
    if ours.lines.is_some() || theirs.lines.is_some() {
        let lines = [&base, &ours, &theirs].map(|side| side.lines.as_deref().unwrap_or_default());
        let lines = joined_tombstones(lines[0], lines[1], lines[2]).into_iter();
        let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
        joined.files.insert(tombstones_file(), text.into_bytes());
    }
    let of_skills = |files: &Files| -> Files {
        let files = files.iter().filter(|(path, _)| is_of_corrections(path));
        files
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    };
    let before = of_skills(&versions.base);
    let known = (&before, &ids.base);
    let (files, refused) = skills::union(
        &skills::mended(&before, &ids.base, known),
        &of_skills(&versions.ours),
        &skills::mended(&of_skills(&versions.theirs), &ids.theirs, known),
    );
    joined.files.extend(files);
    let why = "both sides have changed it by hand, or one has removed it";
    let refused = refused.into_iter();
    joined.refused = refused.map(|path| (path, why.to_owned())).collect();
    joined.new_ids = ids.new;
    Ok(joined)
}

/// Returns our tombstones and the new ones of theirs, sorted by time. A base line that one side removed is dropped.
fn joined_tombstones(base: &[String], ours: &[String], theirs: &[String]) -> Vec<String> {
    let [of_base, of_ours, of_theirs] = [base, ours, theirs].map(HashSet::<_>::from_iter);
    let is_dropped =
        |line: &&String, other: &HashSet<&String>| of_base.contains(line) && !other.contains(line);
    let kept = ours.iter().filter(|line| !is_dropped(line, &of_theirs));
    let new = theirs.iter().filter(|line| !of_ours.contains(line));
    let new = new.filter(|line| !of_base.contains(line));
    let mut lines: Vec<String> = kept.chain(new).cloned().collect();
    // The sort is stable: lines without a time stay behind, in their order.
    lines.sort_by_cached_key(|line| (time(line).is_none(), time(line)));
    lines
}

fn time(line: &str) -> Option<DateTime<FixedOffset>> {
    let at = text_field(line.as_bytes(), "at")?;
    DateTime::parse_from_rfc3339(&at).ok()
}

/// Writes the merged content of a file to the path that git gave.
pub fn write_result(path: &Path, content: &[u8]) -> Result<(), Error> {
    redacting_writer::write_output(path, content)
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
    /// New path of their version of a file that is named after a record with a new id, and its
    /// content.
    pub fn renamed(&self, path: &str) -> Option<(String, &[u8])> {
        let ids = self.new_ids.iter();
        let ids = ids.filter_map(|id| tests(id.kind, &id.from, &id.to));
        let path = skills::moved(path, &ids.collect())?;
        let content = self.files.get(&path)?;
        Some((path, content))
    }

    /// Files that only one side has changed, and that name records by former ids.
    pub fn outdated(&self, versions: &Versions) -> Vec<String> {
        let Versions { base, ours, theirs } = versions;
        let of_theirs = theirs.iter().filter(|(path, bytes)| {
            let (before, here) = (base.get(*path), ours.get(*path));
            before == here && here != Some(bytes)
        });
        let of_theirs = of_theirs.filter(|(path, bytes)| self.files.get(*path) != Some(bytes));
        of_theirs.map(|(path, _)| path.clone()).collect()
    }

    /// Writes the merged records of a kind into their file.
    fn put(&mut self, kind: Kind, sides: [&Side; 2], union: Union) {
        self.conflicts.extend(union.conflicts);
        self.notes.extend(union.notes);
        // Data of other programs around the entries stays as it is on our side.
        let frames = sides.map(|side| {
            side.frames
                .get(&kind)
                .map(|frame| (frame, side.records(kind)))
        });
        let [ours, theirs] = frames;
        let is_filled = |(_, records): &(&Frame, &[Record])| !records.is_empty();
        if let Some((frame, _)) = ours.filter(is_filled).or(theirs).or(ours) {
            let text = file_of(kind, frame, &union.entries);
            let path = format!("{DIRECTORY}/{}", kind.file());
            self.files.insert(path, text.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests;

pub use resolve::{ResolveReport, Side as ResolveSide, resolve};
