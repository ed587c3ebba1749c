//! The undo journal, `changes.jsonl`: one line per write, so that the write can be reverted.
//!
//! Invariants:
//! - A line is written before the write that it describes. A crash may leave a line without its
//!   write; reverting it does nothing. If the journal cannot be written, the write proceeds and
//!   cannot be reverted.
//! - The journal holds the replaced values of edits and removals, with secrets redacted. It belongs
//!   to this checkout, is never shared, and keeps the newest changes only.
//! - Each line is signed with the key of the user who wrote it. Only signed lines are reverted.
//! - A record that is removed permanently is also removed from the journal.
//!
//! Deliberately absent: syncing to disk. A power failure may cost the ability to revert, never a
//! record.

use std::collections::HashSet;

use memctl_files::{Directory, hex};
use serde::{Deserialize, Serialize};

use crate::model::{Kind, Viewer};
use crate::store::files::directory::JOURNAL as FILE;
use crate::store::files::log::{self, Sync};
use crate::store::trust::{Mac, UserKey};
use crate::store::{AuditContext, DataFile, Error, Lock, Scoped, atomic};

/// Length in bytes above which the journal drops its oldest changes, each time that it has grown by [`KEPT`].
const LONGEST: u64 = 8 << 20;
/// Maximum length in bytes after dropping them.
const KEPT: usize = 4 << 20;

impl Scoped {
    /// Returns the journal, oldest first. A user sees only their own writes. A limited scope sees
    /// none, because the journal covers everything.
    pub fn changes(&self) -> Result<Vec<Line>, Error> {
        if !self.scope().allows(None) || *self.viewer() == Viewer::Nobody {
            return Ok(Vec::new());
        }
        let mut lines: Vec<Line> = log::read(self.directory(), FILE)?;
        // A journal that came with another user's files must not control writes here.
        let key = self.approvals().key();
        lines.retain(|line| key.as_ref().is_some_and(|key| line.is_signed(key)));
        if let Some(user) = self.viewer().user_id() {
            lines.retain(|line| line.who == user);
        }
        Ok(lines)
    }
}

/// Appends lines of several callers in one write, except those without a change id.
pub(crate) fn append<'a>(
    lock: &Lock,
    key: Option<&UserKey>,
    steps: impl Iterator<Item = (&'a AuditContext, Step)>,
) -> Result<(), Error> {
    let mut lines = Vec::new();
    let mut last = "";
    for (audit_context, step) in steps {
        if audit_context.change.is_empty() {
            continue;
        }
        let mut line = Line {
            change: audit_context.change.clone(),
            at: audit_context.at.clone(),
            who: audit_context.who.clone(),
            why: audit_context.why.clone(),
            step,
            mac: None,
        };
        let mac = key.map(|key| line.digest(key)).transpose()?;
        line.mac = mac.map(|mac| hex(&mac));
        lines.push(serde_json::to_string(&line)?);
        last = &audit_context.change;
    }
    if lines.is_empty() {
        return Ok(());
    }
    log::append(lock.directory(), FILE, &lines, Sync::Leave)?;
    let added: usize = lines.iter().map(|line| line.len() + 1).sum();
    let length = length(lock.directory());
    // A change that is longer than the journal stays whole: the journal is not read at each of its lines.
    let has_grown = length / KEPT as u64 > length.saturating_sub(added as u64) / KEPT as u64;
    if length > LONGEST && has_grown {
        shorten(lock, last)?;
    }
    Ok(())
}

/// Returns the length of the journal.
pub(crate) fn length(directory: &Directory) -> u64 {
    let state = directory.state(FILE);
    state.ok().flatten().map_or(0, |state| state.size)
}

/// Drops the lines after a length that the journal had under the same lock: their writes did not happen.
pub(crate) fn back_to(lock: &Lock, length: u64) -> Result<(), Error> {
    let directory = lock.directory();
    let Some(file) = atomic::open_for_update(directory, FILE)? else {
        return Ok(());
    };
    // A journal that was shortened meanwhile has other offsets.
    let is_longer = file.metadata().is_ok_and(|m| m.len() > length);
    if is_longer {
        let cut = file.set_len(length);
        cut.map_err(Error::io("write", &directory.join(FILE)))?;
    }
    Ok(())
}

/// Drops the oldest changes as a whole, but never the current one.
fn shorten(lock: &Lock, current: &str) -> Result<(), Error> {
    let lines: Vec<Line> = log::read(lock.directory(), FILE)?;
    let mut retained: HashSet<&str> = HashSet::new();
    let mut bytes = 0;
    for line in lines.iter().rev() {
        let length = serde_json::to_string(line)?.len() + 1;
        bytes += length;
        if bytes > KEPT && line.change != current {
            // A partial change cannot be reverted.
            retained.remove(line.change.as_str());
            break;
        }
        retained.insert(&line.change);
    }
    retain(lock, &|line| retained.contains(line.change.as_str())).map(drop)
}

/// Drops the lines of records that are removed permanently. For rules, also drops the lines of
/// skill files in the same changes: guardrails and tests quote the rule.
pub(crate) fn scrub(lock: &Lock, kind: Kind, ids: &[&str]) -> Result<(), Error> {
    let lines: Vec<Line> = log::read(lock.directory(), FILE)?;
    let mut ids: HashSet<&str> = ids.iter().copied().collect();
    for (local, shared) in lines.iter().filter_map(|line| line.step.both_ids()) {
        if ids.contains(local) || ids.contains(shared) {
            ids.extend([local, shared]);
        }
    }
    let concerns = |line: &Line| {
        line.step.kind() == Some(kind) && line.step.target().is_some_and(|id| ids.contains(id))
    };
    let changes: HashSet<&str> = lines
        .iter()
        .filter(|line| concerns(line))
        .map(|line| line.change.as_str())
        .collect();
    let quotes = |line: &Line| {
        let is_skill_file =
            matches!(&line.step, Step::File { path, .. } if !path.starts_with("./"));
        kind == Kind::Reflexion && is_skill_file && changes.contains(line.change.as_str())
    };
    if !changes.is_empty() {
        retain(lock, &|line| !concerns(line) && !quotes(line))?;
    }
    Ok(())
}

/// Keeps these lines of the journal alone. Returns the number of the others.
fn retain(lock: &Lock, is_kept: &dyn Fn(&Line) -> bool) -> Result<u64, Error> {
    let is_kept = |line: &[u8]| serde_json::from_slice(line).is_ok_and(|line| is_kept(&line));
    log::retain(lock, FILE, &is_kept)
}

/// One write: a line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Line {
    /// Id of the change that the write belongs to:
    /// [`AuditContext::change`](crate::store::AuditContext::change).
    pub change: String,
    /// Time: RFC 3339, UTC.
    pub at: String,
    /// Caller; empty if unknown.
    pub who: String,
    /// Reason: the command.
    pub why: String,
    /// The write.
    #[serde(flatten)]
    pub step: Step,
    /// Digest of the line under the key of the user who wrote it. Lines from other sources have no
    /// valid one and are not reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

impl Line {
    fn is_signed(&self, key: &UserKey) -> bool {
        let digest = self.digest(key);
        digest.is_ok_and(|digest| self.mac == Some(hex(&digest)))
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

/// A write, with the values needed to revert it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "did", rename_all = "lowercase")]
pub enum Step {
    /// A record was added.
    Added {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
    },
    /// Fields of a record were changed.
    Edited {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
        /// The changed fields.
        fields: Vec<Field>,
    },
    /// A record was removed.
    Removed {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
        /// `true` if the record was in the local file of its kind.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        local: bool,
        /// JSON text; `None` if it is not UTF-8, so that it cannot be restored.
        text: Option<String>,
    },
    /// A record was moved to another file of its kind.
    Moved {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record there.
        id: String,
        /// Id of the record before; `None` if it is the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// `true` if it is in the local file now.
        local: bool,
    },
    /// A text of a record was approved by this user, or its approval was revoked.
    Approval {
        /// Kind of the record.
        kind: Kind,
        /// Id of the record.
        id: String,
        /// Digest of the text, as in the list of approved texts.
        digest: String,
        /// `true` if the approval was revoked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        revoked: bool,
    },
    /// A file of a skill was written.
    File {
        /// Path relative to the skills directory.
        path: String,
        /// The difference.
        splice: Splice,
    },
    /// A change was reverted.
    Undone {
        /// Id of the reverted change.
        of: String,
    },
}

/// A field before and after an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// JSON text before; `None` if the field was missing.
    pub before: Option<String>,
    /// JSON text after; `None` if the field was removed.
    pub after: Option<String>,
}

/// Difference between two texts: one replaced range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Splice {
    /// Length of the common prefix in bytes.
    pub at: usize,
    /// Replaced text; `None` if the file did not exist.
    pub before: Option<String>,
    /// New text; `None` if the file was removed.
    pub after: Option<String>,
    /// Length of the whole new text in bytes.
    pub length: usize,
}

impl Step {
    /// Step of a record that is moved to this file, where it has another id or the same.
    pub(crate) fn moved(to: DataFile, from: &str, id: &str) -> Self {
        Self::Moved {
            kind: to.kind,
            id: id.to_owned(),
            from: (from != id).then(|| from.to_owned()),
            local: to.is_local,
        }
    }

    /// Returns the id of a moved record in the local and in the shared file, if they differ.
    pub fn both_ids(&self) -> Option<(&str, &str)> {
        match self {
            Self::Moved {
                id,
                from: Some(from),
                local,
                ..
            } => Some(if *local { (id, from) } else { (from, id) }),
            _ => None,
        }
    }

    /// Returns the id of the affected record, or the path of the file; `None` for [`Self::Undone`].
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => self.record().map(|(_, id)| id),
        }
    }

    /// Returns the kind of the affected record.
    pub fn kind(&self) -> Option<Kind> {
        self.record().map(|(kind, _)| kind)
    }

    fn record(&self) -> Option<(Kind, &str)> {
        match self {
            Self::Added { kind, id }
            | Self::Edited { kind, id, .. }
            | Self::Removed { kind, id, .. }
            | Self::Moved { kind, id, .. }
            | Self::Approval { kind, id, .. } => Some((*kind, id)),
            Self::File { .. } | Self::Undone { .. } => None,
        }
    }
}

impl Splice {
    /// Computes the difference between two texts; `None` means a missing file.
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

    /// Reverts the difference in the current text. Searches for the inserted text if the text has
    /// changed elsewhere.
    ///
    /// # Errors
    ///
    /// A message if the inserted text is missing, occurs more than once, or was changed.
    pub fn revert(&self, now: &str) -> Result<String, &'static str> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Err("it no longer exists");
        };
        let rest = now.get(self.at..).filter(|_| now.len() == self.length);
        let at = if rest.is_some_and(|rest| rest.starts_with(after.as_str())) {
            self.at
        } else {
            let mut places = now.match_indices(after.as_str());
            match (after.is_empty(), places.next(), places.next()) {
                (false, Some((at, _)), None) => at,
                _ => return Err("it was changed since then"),
            }
        };
        Ok([&now[..at], before, &now[at + after.len()..]].concat())
    }
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

    fn audit_context(change: &str) -> AuditContext {
        AuditContext {
            change: change.to_owned(),
            ..AuditContext::default()
        }
    }

    fn note(lock: &Lock, change: &str, id: &str) -> Result<(), Error> {
        append(
            lock,
            None,
            std::iter::once((&audit_context(change), added(id))),
        )
    }

    #[test]
    fn permanent_removal_leaves_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        note(&lock, "a", "MEM-001").unwrap();
        note(&lock, "b", "MEM-002").unwrap();
        note(&lock, "", "MEM-003").unwrap();
        scrub(&lock, Kind::Memory, &["MEM-001"]).unwrap();
        let lines: Vec<Line> = log::read(&dir.path().into(), FILE).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].step, added("MEM-002"));
    }

    #[test]
    fn a_long_journal_loses_its_oldest_changes_whole() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        let long = "x".repeat(200 << 10);
        for n in 0..30 {
            for part in ["1", "2"] {
                note(&lock, &n.to_string(), &format!("{part}{long}")).unwrap();
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
