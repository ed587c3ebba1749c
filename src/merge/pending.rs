//! Steps left after a merge: files that only one side has changed, and that name records by ids
//! that the merge has replaced.
//!
//! A step is done only if the file is still as git left it, and only while the records have their
//! new ids: an aborted or reverted merge leaves nothing to do.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::platform::{Directory, FoundKind, named};
use crate::store::{AuditAction, DIRECTORY, PENDING, Role, Scoped, foreign_entries, role};

use super::side::{Files, Side, ids_before};
use super::{Joined, NewId, Versions};
use crate::workspace::Workspace;
use crate::workspace::{Error, redacting_writer};

/// Maximum size of a file to update after a merge: 1 GiB.
const LONGEST: u64 = 1 << 30;

/// Steps left after a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Names of both sides, which identify the merge: its files are merged one by one.
    pub merge: [String; 2],
    /// Steps left before this merge, with their new ids.
    pub before: (Vec<PendingStep>, Vec<NewId>),
    /// Steps left now.
    pub steps: Vec<PendingStep>,
    /// New ids that the steps apply.
    pub new_ids: Vec<NewId>,
}

/// Pending change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStep {
    /// Path relative to the workspace.
    pub path: String,
    /// Hash of the expected content; `None` if the file must not exist.
    pub expects: Option<String>,
    /// New text; `None` to remove the file.
    pub becomes: Option<String>,
}

impl PendingStep {
    /// Returns true if the file has the expected content.
    fn applies(&self, bytes: Option<&[u8]>) -> bool {
        bytes.map(hash) == self.expects
    }

    fn is_done(&self, bytes: Option<&[u8]>) -> bool {
        bytes == self.becomes.as_deref().map(str::as_bytes)
    }
}

/// Result of finishing a merge.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Finished {
    /// Files that were updated to the new ids.
    pub changed: Vec<String>,
    /// Files that have changed since the merge, and may still contain old ids.
    pub left: Vec<String>,
}

fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

impl Pending {
    /// Starts a new list for this merge, and keeps the steps of other merges in `before`.
    #[must_use]
    pub fn of_merge(self, merge: [String; 2]) -> Self {
        if self.merge == merge {
            return self;
        }
        Self {
            merge,
            before: (self.steps, self.new_ids),
            ..Self::default()
        }
    }

    /// Returns true if no file is left and no id was replaced.
    fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.new_ids.is_empty()
    }

    /// Returns our files as they will be once the steps of earlier merges are done.
    pub fn finish_earlier(&self, files: &Files) -> Files {
        let mut finished = files.clone();
        let stands = Side::of(files).is_ok_and(|side| {
            let removed = side.removed_ids();
            self.before.1.iter().all(|id| {
                let mut records = side.records(id.kind).iter();
                removed.contains(&(id.kind, id.to.clone()))
                    || records.any(|r| r.id == id.to && r.before.contains(&id.from))
            })
        });
        if !stands {
            return finished;
        }
        for step in &self.before.0 {
            if step.applies(files.get(&step.path).map(Vec::as_slice)) {
                match &step.becomes {
                    Some(text) => finished.insert(step.path.clone(), text.clone().into_bytes()),
                    None => finished.remove(&step.path),
                };
            }
        }
        finished
    }

    /// Plans the steps for files that git takes from one side without a merge.
    pub fn plan(&mut self, versions: &Versions, joined: &Joined) {
        let Versions { base, ours, theirs } = versions;
        let sides = [base, ours, theirs];
        let paths: BTreeSet<&String> = sides
            .into_iter()
            .flat_map(Files::keys)
            .chain(joined.files.keys())
            .collect();
        self.steps.clear();
        for path in paths {
            let (o, a, b) = (base.get(path), ours.get(path), theirs.get(path));
            let wanted = joined.files.get(path);
            let left = if a == b || o == b {
                a
            } else if o == a {
                b
            } else {
                // Git asks for this file, or a person decides.
                continue;
            };
            if left == wanted || joined.refused.contains_key(path) || is_kept(path) {
                continue;
            }
            let text = wanted.map(|bytes| String::from_utf8(bytes.clone()));
            if let Ok(becomes) = text.transpose() {
                self.steps.push(PendingStep {
                    path: path.clone(),
                    expects: left.map(|bytes| hash(bytes)),
                    becomes,
                });
            }
        }
        self.new_ids.clone_from(&self.before.1);
        let new = joined
            .new_ids
            .iter()
            .filter(|id| !self.before.1.contains(id));
        self.new_ids.extend(new.cloned());
    }
}

/// Writes the merged content of a file to the path that git gave.
pub fn write_result(path: &Path, content: &[u8]) -> Result<(), Error> {
    redacting_writer::write_output(path, content)
}

/// Returns true for files that a merge reads and never writes.
fn is_kept(path: &str) -> bool {
    path.ends_with("workspace.json")
}

/// Returns true if a merge writes files at this path and the path stays inside the workspace.
fn is_ours(root: &Directory, path: &str) -> bool {
    let inside = path
        .strip_prefix(DIRECTORY)
        .and_then(|rest| rest.strip_prefix('/'));
    let is_known = if let Some(name) = inside {
        matches!(
            role(name),
            Role::Records(_) | Role::Log | Role::Tombstones | Role::Account | Role::Seal
        )
    } else {
        let is_plain = |name: &str| !name.is_empty() && !name.starts_with('.');
        super::is_of_corrections(path) && path.split('/').all(is_plain)
    };
    // Neither the file nor a directory above it may be a link.
    is_known && matches!(root.kind(path), Ok(None | Some(FoundKind::File)))
}

/// Project directory that contains a memory directory.
fn root_of(memory: &Directory) -> Directory {
    named::directory(memory.parent().unwrap_or(Path::new(".")))
}

/// Returns the steps left by merges; `None` if there are none.
pub fn pending(store: &Scoped) -> Option<Pending> {
    let text = store.directory().read(PENDING, LONGEST).ok()??;
    let pending: Pending = serde_json::from_slice(&text).ok()?;
    (!pending.is_empty()).then_some(pending)
}

/// Stores the steps that a merge leaves.
pub fn remember_pending(store: &Scoped, pending: &Pending) -> Result<(), Error> {
    let directory = store.directory();
    if pending.is_empty() {
        return redacting_writer::remove(directory, Path::new(PENDING));
    }
    let text = serde_json::to_vec(pending).map_err(crate::store::Error::from)?;
    let text = String::from_utf8_lossy(&text);
    redacting_writer::keep(directory, Path::new(PENDING), &text)
}

/// Files that still have to be updated to the new ids of a merge.
pub(crate) fn unfinished(store: &Scoped) -> Result<Vec<String>, Error> {
    let Some(pending) = pending(store) else {
        return Ok(Vec::new());
    };
    if !stand(store, &pending.new_ids)? {
        return Ok(Vec::new());
    }
    let root = root_of(store.directory());
    let applies = |step: &PendingStep| {
        let bytes = root.read(&step.path, LONGEST).ok().flatten();
        is_ours(&root, &step.path) && !step.is_done(bytes.as_deref())
    };
    let steps = pending.steps.into_iter().filter(applies);
    Ok(steps.map(|step| step.path).collect())
}

/// Does the steps left by merges. A file with neither the expected nor the new content has
/// changed since, and is left to a person.
pub fn finish(workspace: &Workspace) -> Result<Finished, Error> {
    let mut finished = Finished::default();
    let Some(pending) = pending(&workspace.store) else {
        return Ok(finished);
    };
    // The lock keeps other writers out.
    let mut writer = workspace.writer()?;
    if stand(&workspace.store, &pending.new_ids)? {
        // Reverting a change by an old id could change another record.
        let ids = pending.new_ids.iter().map(|id| (id.kind, id.from.as_str()));
        let ids: Vec<_> = ids.collect();
        writer.forget_changes(&ids)?;
        let root = root_of(workspace.store.directory());
        // The list of steps is a file that anyone with write access may have edited.
        let paths = pending.steps.iter().map(|step| (step.path.as_str(), None));
        let paths: Vec<_> = paths.collect();
        workspace.store.audit(AuditAction::Edited, &paths)?;
        for step in &pending.steps {
            let path = root.join(&step.path);
            let bytes = root.read(&path, LONGEST).ok().flatten();
            if !is_ours(&root, &step.path) {
                continue;
            }
            if !step.applies(bytes.as_deref()) {
                if !step.is_done(bytes.as_deref()) {
                    finished.left.push(step.path.clone());
                }
                continue;
            }
            match &step.becomes {
                Some(text) => drop(redacting_writer::replace(&root, &path, text)?),
                None => redacting_writer::remove(&root, &path)?,
            }
            finished.changed.push(step.path.clone());
        }
    }
    redacting_writer::remove(workspace.store.directory(), Path::new(PENDING))?;
    drop(writer);
    Ok(finished)
}

/// Returns true if the records have the ids that a merge gave them.
fn stand(store: &Scoped, new_ids: &[NewId]) -> Result<bool, Error> {
    for kind in Kind::ALL {
        let wanted: Vec<&NewId> = new_ids.iter().filter(|id| id.kind == kind).collect();
        if wanted.is_empty() {
            continue;
        }
        let removed = store.tombstone_ids(kind)?;
        let (entries, _) = foreign_entries(store.directory(), kind)?;
        let stands = |id: &&NewId| {
            removed.contains(&id.to)
                || entries.iter().any(|entry| {
                    let text = String::from_utf8_lossy(&entry.text);
                    entry.id == id.to && ids_before(&text).contains(&id.from)
                })
        };
        if !wanted.iter().all(stands) {
            return Ok(false);
        }
    }
    Ok(true)
}
