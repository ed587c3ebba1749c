//! What a merge leaves to be done when version control has finished: files that only one side has
//! changed, and that name records whose ids are others now.
//!
//! A step is done only where the file is still what version control has left, and only while the records
//! stand under their new ids: a merge that was given up, or gone back behind, leaves nothing to do.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::platform::{Directory, FoundKind, named};
use crate::store::{DIRECTORY, Did, PENDING, Role, foreign_entries, role};

use super::super::{Engine, Error, door};
use super::side::{Files, Side, ids_before};
use super::{Joined, NewId, Versions};

/// The most bytes of a file that a merge has left something to do in.
const LONGEST: u64 = 1 << 30;

/// Everything that is left to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Which merge it is: the names of both sides. Its files are joined one by one, and each finds the
    /// same.
    pub merge: [String; 2],
    /// What was left to be done before this merge, and the ids that it follows.
    pub before: (Vec<PendingStep>, Vec<NewId>),
    /// What is left to be done now.
    pub steps: Vec<PendingStep>,
    /// The ids that all of it follows.
    pub new_ids: Vec<NewId>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStep {
    /// Its path from the workspace.
    pub path: String,
    /// A hash of its bytes as they are; `None` where it is not there.
    pub expects: Option<String>,
    /// Its text as it is to be; `None` where it is to go.
    pub becomes: Option<String>,
}

impl PendingStep {
    /// Whether it has something to do where the file is this.
    fn applies(&self, bytes: Option<&[u8]>) -> bool {
        bytes.map(hash) == self.expects
    }

    fn is_done(&self, bytes: Option<&[u8]>) -> bool {
        bytes == self.becomes.as_deref().map(str::as_bytes)
    }
}

/// What was done after a merge.
#[derive(Debug, Default, Serialize)]
pub struct Finished {
    /// The files that follow the new ids now.
    pub changed: Vec<String>,
    /// The files that were changed meanwhile, and may name records by ids that they no longer have.
    pub left: Vec<String>,
}

fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

impl Pending {
    /// The same for a merge of two sides, which may be another one than that of the last file.
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

    /// Whether nothing is left to be done: no file, and no id that somebody may still have in mind.
    fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.new_ids.is_empty()
    }

    /// Our side as it will be when what earlier merges have left is done.
    pub fn settle(&self, files: &Files) -> Files {
        let mut settled = files.clone();
        let stands = Side::of(files).is_ok_and(|side| {
            let buried = side.buried();
            self.before.1.iter().all(|id| {
                let mut records = side.records(id.kind).iter();
                buried.contains(&(id.kind, id.to.clone()))
                    || records.any(|r| r.id == id.to && r.before.contains(&id.from))
            })
        });
        if !stands {
            return settled;
        }
        for step in &self.before.0 {
            if step.applies(files.get(&step.path).map(Vec::as_slice)) {
                match &step.becomes {
                    Some(text) => settled.insert(step.path.clone(), text.clone().into_bytes()),
                    None => settled.remove(&step.path),
                };
            }
        }
        settled
    }

    /// The steps that are left when version control has joined what both sides have changed.
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
                // It is asked for, or a person decides.
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

/// Writes what a file has become to where git asked for it.
pub fn give_back(path: &Path, content: &[u8]) -> Result<(), Error> {
    door::hand_over(path, content)
}

/// Files that a merge reads and never writes.
fn is_kept(path: &str) -> bool {
    path.ends_with("workspace.json")
}

/// Whether a merge writes files of this path, and whether it leads out of the workspace.
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
    // Neither it nor a directory above it may be a link.
    is_known && matches!(root.kind(path), Ok(None | Some(FoundKind::File)))
}

/// The project that a memory directory lies in.
fn root_of(memory: &Directory) -> Directory {
    named::directory(memory.parent().unwrap_or(Path::new(".")))
}

impl Engine {
    /// What merges have left to be done here; `None` where nothing is.
    pub fn pending(&self) -> Option<Pending> {
        let text = self.store.directory().read(PENDING, LONGEST).ok()??;
        let pending: Pending = serde_json::from_slice(&text).ok()?;
        (!pending.is_empty()).then_some(pending)
    }

    /// Remembers what a merge leaves to be done.
    pub fn remember_pending(&self, pending: &Pending) -> Result<(), Error> {
        let directory = self.store.directory();
        if pending.is_empty() {
            return door::remove(directory, Path::new(PENDING));
        }
        let text = serde_json::to_vec(pending).map_err(crate::store::Error::from)?;
        let text = String::from_utf8_lossy(&text);
        door::keep(directory, Path::new(PENDING), &text)
    }

    /// The files that do not follow the new ids of a merge yet.
    pub(in crate::engine) fn unfinished_merge(&self) -> Result<Vec<String>, Error> {
        let Some(pending) = self.pending() else {
            return Ok(Vec::new());
        };
        if !self.stand(&pending.new_ids)? {
            return Ok(Vec::new());
        }
        let root = root_of(self.store.directory());
        let applies = |step: &PendingStep| {
            let bytes = root.read(&step.path, LONGEST).ok().flatten();
            is_ours(&root, &step.path) && !step.is_done(bytes.as_deref())
        };
        let steps = pending.steps.into_iter().filter(applies);
        Ok(steps.map(|step| step.path).collect())
    }

    /// Does what merges have left to be done. A file that is neither what a merge has left nor what it is to
    /// become was changed meanwhile, and is a person's to look at.
    pub fn finish_merge(&self) -> Result<Finished, Error> {
        let mut finished = Finished::default();
        let Some(pending) = self.pending() else {
            return Ok(finished);
        };
        // Nobody writes meanwhile.
        let mut writer = self.writer()?;
        if self.stand(&pending.new_ids)? {
            // Whoever took back a change by such an id could take back that of another record.
            let ids = pending.new_ids.iter().map(|id| (id.kind, id.from.as_str()));
            let ids: Vec<_> = ids.collect();
            writer.forget_changes(&ids)?;
            let root = root_of(self.store.directory());
            // The list lies in the workspace, where anybody may have put it.
            let paths = pending.steps.iter().map(|step| (step.path.as_str(), None));
            let paths: Vec<_> = paths.collect();
            self.store.audit(Did::Edited, &paths)?;
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
                    Some(text) => drop(door::replace(&root, &path, text)?),
                    None => door::remove(&root, &path)?,
                }
                finished.changed.push(step.path.clone());
            }
        }
        door::remove(self.store.directory(), Path::new(PENDING))?;
        drop(writer);
        Ok(finished)
    }

    /// Whether records stand under the ids that a merge gave them.
    fn stand(&self, new_ids: &[NewId]) -> Result<bool, Error> {
        for kind in Kind::ALL {
            let wanted: Vec<&NewId> = new_ids.iter().filter(|id| id.kind == kind).collect();
            if wanted.is_empty() {
                continue;
            }
            let buried = self.store.buried_ids(kind)?;
            let (entries, _) = foreign_entries(self.store.directory(), kind)?;
            let stands = |id: &&NewId| {
                buried.contains(&id.to)
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
}
