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

pub(crate) mod step;

use std::collections::HashSet;

use memctl_files::Directory;
use step::{Line, Step};

use crate::model::{Kind, Viewer};
use crate::store::files::directory::JOURNAL as FILE;
use crate::store::files::log::{self, Sync};
use crate::store::trust::UserKey;
use crate::store::{AuditContext, Error, Lock, Scoped, atomic};

/// Length in bytes above which the journal drops its oldest changes.
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

/// Appends a line; does nothing for writes without a change id.
pub(crate) fn append(
    lock: &Lock,
    audit_context: &AuditContext,
    key: Option<&UserKey>,
    step: Step,
) -> Result<(), Error> {
    append_each(lock, key, std::iter::once((audit_context, step)))
}

/// Appends lines of several callers in one write, except those without a change id.
pub(crate) fn append_each<'a>(
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
        let line = Line {
            change: audit_context.change.clone(),
            at: audit_context.at.clone(),
            who: audit_context.who.clone(),
            why: audit_context.why.clone(),
            step,
            mac: None,
        };
        lines.push(serde_json::to_string(&line.signed(key)?)?);
        last = &audit_context.change;
    }
    if lines.is_empty() {
        return Ok(());
    }
    log::append_all(lock, FILE, &lines, Sync::Leave)?;
    let length = length(lock.directory());
    if length > LONGEST {
        shorten(lock, last)?;
    }
    Ok(())
}

/// Length of the journal at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(u64);

/// Returns the current end of the journal.
pub(crate) fn mark(lock: &Lock) -> Mark {
    let state = lock.directory().state(FILE);
    Mark(state.ok().flatten().map_or(0, |state| state.size))
}

/// Drops the lines after a mark from the same lock: their writes did not happen.
pub(crate) fn back_to(lock: &Lock, mark: Mark) -> Result<(), Error> {
    let directory = lock.directory();
    let Some(file) = atomic::open_for_update(directory, FILE)? else {
        return Ok(());
    };
    // A journal that was shortened meanwhile has other offsets.
    let is_longer = file.metadata().is_ok_and(|m| m.len() > mark.0);
    if is_longer {
        let cut = file.set_len(mark.0);
        cut.map_err(Error::io("write", &directory.join(FILE)))?;
    }
    Ok(())
}

/// Drops the oldest changes as a whole, but never the current one.
fn shorten(lock: &Lock, current: &str) -> Result<(), Error> {
    let lines: Vec<Line> = log::read(lock.directory(), FILE)?;
    let mut kept: HashSet<&str> = HashSet::new();
    let mut bytes = 0;
    for line in lines.iter().rev() {
        let length = serde_json::to_string(line)?.len() + 1;
        bytes += length;
        if bytes > KEPT && line.change != current {
            // A partial change cannot be reverted.
            kept.remove(line.change.as_str());
            break;
        }
        kept.insert(&line.change);
    }
    retain(lock, &|line| kept.contains(line.change.as_str()))
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

/// Keeps these lines of the journal alone.
fn retain(lock: &Lock, is_kept: &dyn Fn(&Line) -> bool) -> Result<(), Error> {
    let is_kept = |line: &[u8]| serde_json::from_slice(line).is_ok_and(|line| is_kept(&line));
    log::retain(lock, FILE, &is_kept).map(drop)
}

fn length(directory: &Directory) -> u64 {
    let file = directory.open(FILE).ok().flatten();
    file.and_then(|file| Some(file.metadata().ok()?.len()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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

    #[test]
    fn what_is_removed_for_good_leaves_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        append(&lock, &audit_context("a"), None, added("MEM-001")).unwrap();
        append(&lock, &audit_context("b"), None, added("MEM-002")).unwrap();
        append(&lock, &audit_context(""), None, added("MEM-003")).unwrap();
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
                append(
                    &lock,
                    &audit_context(&n.to_string()),
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
}
