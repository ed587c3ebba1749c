//! The journal of changes, `changes.jsonl`: what each write did, so that it can be taken back.
//!
//! Invariants:
//! - A line is written before what it tells of, so that no write is missing here. A line without its
//!   write is what a crash leaves; taking it back finds that nothing is to be done.
//! - The journal holds what edits and removals have replaced, without its secrets. It belongs to this
//!   checkout, is never shared, and keeps the newest changes only.
//! - Each line is signed with the key of the user who wrote it. Only such lines are taken back.
//! - Whatever is removed for good is removed here as well.
//!
//! Deliberately absent: waiting for the disk. A power cut may cost the way back, never a record.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::model::{Kind, Viewer};
use crate::platform::Directory;

use super::act::Act;
use super::atomic;
use super::directory::Lock;
use super::error::Error;
use super::log::{self, Sync};
use super::scoped::Scoped;
use super::trust::{Mac, UserKey, hex, parse};
use super::writer::Writer;

pub(super) const FILE: &str = "changes.jsonl";
/// A journal that is longer than this loses its oldest changes …
const LONGEST: u64 = 8 << 20;
/// … until it has at most this length.
const KEPT: usize = 4 << 20;

/// One write: a line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The change that it is a part of: [`Act::change`].
    pub change: String,
    /// When: RFC 3339, UTC.
    pub at: String,
    /// Who.
    pub who: String,
    /// What for: the command.
    pub why: String,
    /// What was done.
    #[serde(flatten)]
    pub step: Step,
    /// The digest of the line under the key of the user who wrote it. Files of others hold no such line,
    /// and a line without it is not undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

impl Line {
    fn signed(mut self, key: Option<&UserKey>) -> Result<Self, Error> {
        self.mac = match key {
            Some(key) => Some(hex(&self.digest(key)?)),
            None => None,
        };
        Ok(self)
    }

    fn is_signed(&self, key: &UserKey) -> bool {
        let found = self.mac.as_deref().and_then(parse);
        found.is_some_and(|found| self.digest(key).is_ok_and(|digest| digest == found))
    }

    fn digest(&self, key: &UserKey) -> Result<Mac, Error> {
        let unsigned = Self {
            mac: None,
            ..self.clone()
        };
        let text = serde_json::to_string(&unsigned)?;
        Ok(key.digest("journal", [text]))
    }
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "lowercase")]
pub enum Step {
    /// A record came.
    Added {
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: String,
    },
    /// Fields of a record got other values.
    Edited {
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: String,
        /// The fields.
        fields: Vec<Field>,
    },
    /// A record went.
    Removed {
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: String,
        /// The id of the record that stood before it; `None` for the first one.
        after: Option<String>,
        /// Its JSON text; `None` where it is no text, so that it cannot come back.
        text: Option<String>,
    },
    /// A file of a skill was written.
    File {
        /// Where it is, from the skills directory.
        path: String,
        /// What is different in it.
        splice: Splice,
    },
    /// Lines of the log of actions went with their session, or came back with it.
    Lines {
        /// The id of the session.
        id: String,
        /// Whether they came.
        came: bool,
        /// The lines.
        lines: Vec<PlacedLine>,
    },
    /// A change was taken back.
    Undone {
        /// Its name.
        of: String,
    },
}

/// A field before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its JSON text before; `None` where it was not there.
    pub before: Option<String>,
    /// Its JSON text after; `None` where it is not there.
    pub after: Option<String>,
}

/// A line of a log and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedLine {
    /// How many bytes stand before it in the log.
    pub at: u64,
    /// Its text, without the line break.
    pub text: String,
}

impl PlacedLine {
    /// Whether a line of a log, with its line break, is this one.
    pub fn is(&self, line: &[u8]) -> bool {
        line.strip_suffix(b"\n").unwrap_or(line) == self.text.as_bytes()
    }
}

/// What is different between two texts: one stretch of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// How many bytes in front of it are the same.
    pub at: usize,
    /// What stood there; `None` where there was no file.
    pub before: Option<String>,
    /// What stands there; `None` where there is no file any more.
    pub after: Option<String>,
    /// How long the whole text is with it, in bytes.
    pub length: usize,
}

impl Step {
    /// What it touches: the id of a record, or the path of a file. Nothing, where it only says that a
    /// change was taken back.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Added { id, .. }
            | Self::Edited { id, .. }
            | Self::Removed { id, .. }
            | Self::Lines { id, .. } => Some(id),
            Self::File { path, .. } => Some(path),
            Self::Undone { .. } => None,
        }
    }

    /// The kind of the record that it touches.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Added { kind, .. } | Self::Edited { kind, .. } | Self::Removed { kind, .. } => {
                Some(*kind)
            }
            Self::Lines { .. } => Some(Kind::Session),
            Self::File { .. } | Self::Undone { .. } => None,
        }
    }
}

impl Splice {
    /// The difference between a text, if there is one yet, and another.
    pub fn between(before: Option<&str>, after: Option<&str>) -> Self {
        let (Some(a), Some(b)) = (before, after) else {
            return Self {
                at: 0,
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
                length: after.map_or(0, str::len),
            };
        };
        let mut start = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        while !a.is_char_boundary(start) {
            start -= 1;
        }
        let ends = a[start..].bytes().rev().zip(b[start..].bytes().rev());
        let mut end = ends.take_while(|(a, b)| a == b).count();
        while !a.is_char_boundary(a.len() - end) {
            end -= 1;
        }
        Self {
            at: start,
            before: Some(a[start..a.len() - end].to_owned()),
            after: Some(b[start..b.len() - end].to_owned()),
            length: b.len(),
        }
    }

    /// The text as it was, from the text as it is now. Where it has changed elsewhere since, what came
    /// is looked for; what was changed itself cannot be taken back.
    ///
    /// # Errors
    ///
    /// That what came with the change does not stand in the text, or more than once.
    pub fn revert(&self, now: &str) -> Result<String, &'static str> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Err("it is not there any more");
        };
        let rest = now.get(self.at..).filter(|_| now.len() == self.length);
        let at = if rest.is_some_and(|rest| rest.starts_with(after.as_str())) {
            self.at
        } else {
            let mut places = now.match_indices(after.as_str());
            match (after.is_empty(), places.next(), places.next()) {
                (false, Some((at, _)), None) => at,
                _ => return Err("it has been changed since"),
            }
        };
        Ok([&now[..at], before, &now[at + after.len()..]].concat())
    }
}

impl Scoped {
    /// The journal, oldest first. It tells of everything, so that within a scope it tells nothing, and a
    /// user only what he did.
    pub fn changes(&self) -> Result<Vec<Line>, Error> {
        if !self.scope().allows(None) || *self.viewer() == Viewer::Nobody {
            return Ok(Vec::new());
        }
        let mut lines: Vec<Line> = log::read(self.directory(), FILE)?;
        // A journal that came with the files of others must not decide what is written here.
        let key = self.approvals().key();
        lines.retain(|line| key.as_ref().is_some_and(|key| line.is_signed(key)));
        if let Some(user) = self.viewer().user_id() {
            lines.retain(|line| line.who == user);
        }
        Ok(lines)
    }
}

/// Writes a line; nothing where nobody makes a change.
pub(super) fn append(
    lock: &Lock,
    act: &Act,
    key: Option<&UserKey>,
    step: Step,
) -> Result<(), Error> {
    if act.change.is_empty() {
        return Ok(());
    }
    let line = Line {
        change: act.change.clone(),
        at: act.at.clone(),
        who: act.who.clone(),
        why: act.why.clone(),
        step,
        mac: None,
    };
    let line = line.signed(key)?;
    log::append_all(lock, FILE, &[serde_json::to_string(&line)?], Sync::Leave)?;
    let length = length(lock.directory());
    if length > LONGEST {
        shorten(lock, &act.change)?;
    }
    Ok(())
}

/// The end of the journal at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(u64);

/// The end of the journal now.
pub(super) fn mark(lock: &Lock) -> Mark {
    let state = lock.directory().metadata(FILE);
    Mark(state.ok().flatten().map_or(0, |m| m.len()))
}

/// Drops the lines behind a mark that was made under this lock: what they tell of did not happen.
pub(super) fn back_to(lock: &Lock, mark: Mark) -> Result<(), Error> {
    let directory = lock.directory();
    let Some(file) = atomic::open_for_update(directory, FILE)? else {
        return Ok(());
    };
    // A journal that was shortened meanwhile has other places.
    let is_longer = file.metadata().is_ok_and(|m| m.len() > mark.0);
    if is_longer {
        let cut = file.set_len(mark.0);
        cut.map_err(Error::io("write", &directory.join(FILE)))?;
    }
    Ok(())
}

/// Drops the oldest changes, whole ones, and never the one that is being made.
fn shorten(lock: &Lock, current: &str) -> Result<(), Error> {
    let lines: Vec<Line> = log::read(lock.directory(), FILE)?;
    let mut kept: HashSet<&str> = HashSet::new();
    let mut bytes = 0;
    for line in lines.iter().rev() {
        let length = serde_json::to_string(line)?.len() + 1;
        bytes += length;
        if bytes > KEPT && line.change != current {
            // The rest of a change whose older part does not fit is no way back.
            kept.remove(line.change.as_str());
            break;
        }
        kept.insert(&line.change);
    }
    rewrite(
        lock,
        lines
            .iter()
            .filter(|line| kept.contains(line.change.as_str())),
    )
}

/// Drops what the journal knows of records that are removed for good.
pub(super) fn scrub(lock: &Lock, kind: Kind, ids: &[&str]) -> Result<(), Error> {
    let lines: Vec<Line> = log::read(lock.directory(), FILE)?;
    let ids: HashSet<&str> = ids.iter().copied().collect();
    let concerns = |line: &&Line| {
        line.step.kind() == Some(kind) && line.step.target().is_some_and(|id| ids.contains(id))
    };
    if lines.iter().any(|line| concerns(&line)) {
        rewrite(lock, lines.iter().filter(|line| !concerns(line)))?;
    }
    Ok(())
}

impl Writer {
    /// Drops every change that a record of one of these ids had a part in, with all its parts: the ids are
    /// those of other records now, and what has an id cannot be taken for what had it.
    pub fn forget_changes(&mut self, ids: &[(Kind, &str)]) -> Result<(), Error> {
        let lines: Vec<Line> = log::read(self.lock().directory(), FILE)?;
        let concerned = |line: &&Line| {
            line.step
                .kind()
                .zip(line.step.target())
                .is_some_and(|key| ids.contains(&key))
        };
        let gone: HashSet<&str> = lines
            .iter()
            .filter(concerned)
            .map(|line| line.change.as_str())
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        let kept = lines
            .iter()
            .filter(|line| !gone.contains(line.change.as_str()));
        rewrite(self.lock(), kept)
    }
}

fn rewrite<'a>(lock: &Lock, lines: impl Iterator<Item = &'a Line>) -> Result<(), Error> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    atomic::replace(lock.directory(), FILE, &text)
}

fn length(directory: &Directory) -> u64 {
    let file = directory.open(FILE).ok().flatten();
    file.and_then(|file| Some(file.metadata().ok()?.len()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn added(id: &str) -> Step {
        Step::Added {
            kind: Kind::Memory,
            id: id.to_owned(),
        }
    }

    fn act(change: &str) -> Act {
        Act {
            change: change.to_owned(),
            ..Act::default()
        }
    }

    #[test]
    fn what_is_removed_for_good_leaves_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::ZERO).unwrap();
        append(&lock, &act("a"), None, added("MEM-001")).unwrap();
        append(&lock, &act("b"), None, added("MEM-002")).unwrap();
        append(&lock, &act(""), None, added("MEM-003")).unwrap();
        scrub(&lock, Kind::Memory, &["MEM-001"]).unwrap();
        let lines: Vec<Line> = log::read(&dir.path().into(), FILE).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].step, added("MEM-002"));
    }

    #[test]
    fn a_long_journal_loses_its_oldest_changes_whole() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::ZERO).unwrap();
        let long = "x".repeat(200 << 10);
        for n in 0..30 {
            for part in ["1", "2"] {
                append(
                    &lock,
                    &act(&n.to_string()),
                    None,
                    added(&format!("{part}{long}")),
                )
                .unwrap();
            }
        }
        let lines: Vec<Line> = log::read(&dir.path().into(), FILE).unwrap();
        assert!((10..41).contains(&lines.len()), "{}", lines.len());
        assert_eq!(lines.last().unwrap().change, "29");
        let mut counts = std::collections::BTreeMap::new();
        for line in &lines {
            *counts.entry(line.change.clone()).or_insert(0) += 1;
        }
        assert!(counts.values().all(|count| *count == 2), "{counts:?}");
    }

    proptest! {
        #[test]
        fn a_splice_comes_back(a in "[ab✓é\n]{0,12}", b in "[ab✓é\n]{0,12}") {
            let splice = Splice::between(Some(&a), Some(&b));
            prop_assert_eq!(splice.revert(&b), Ok(a));
        }
    }

    #[test]
    fn a_splice_is_found_where_the_rest_has_changed() {
        let splice = Splice::between(Some("# G\n"), Some("# G\n## 1\nrule\n"));
        assert_eq!(
            splice.revert("# Title\n\n## 1\nrule\nmore\n").unwrap(),
            "# Title\n\nmore\n"
        );
        assert!(splice.revert("# G\n## 1\nother rule\n").is_err());
        assert!(splice.revert("## 1\nrule\n## 1\nrule\n").is_err());
    }
}
