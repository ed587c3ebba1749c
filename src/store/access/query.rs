//! Reads records, filtered by scope, user and time. Also reads removed records.
//!
//! The saved table only pre-selects by hash; every returned record is compared exactly.
//!
//! A removed id is taken for every caller; removed content is visible only to its user. A tombstone
//! does not name a skill, so a limited scope sees few of them.

use std::collections::HashSet;

use memctl_files::json;

use crate::model::{IdShape, Kind, Record, Scope, SkillPath};
use crate::store::files::counters::{self, Counters};
use crate::store::files::tombstones;
use crate::store::{
    DataFile, Entry, Error, ForgottenRecords, Problem, ProblemKind, Row, Scoped, Snapshot,
    Tombstone,
};

/// Filter for records of a kind.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// Skill; `None` for all.
    pub skill: Option<&'a SkillPath>,
    /// Maximum number of newest records; `None` for all.
    pub newest: Option<usize>,
}

impl<'a> Selection<'a> {
    /// All records of a skill; of every skill with `None`.
    pub fn of(skill: impl Into<Option<&'a SkillPath>>) -> Self {
        Self {
            skill: skill.into(),
            newest: None,
        }
    }

    /// The newest records of a skill, at most this number; of every skill with `None`.
    pub fn newest(skill: impl Into<Option<&'a SkillPath>>, most: usize) -> Self {
        Self {
            newest: Some(most),
            ..Self::of(skill)
        }
    }
}

/// Readable records, oldest first, and the problems of the others.
#[derive(Debug)]
pub struct Listing<R> {
    /// The records.
    pub records: Vec<R>,
    /// Unreadable entries and damaged parts of the file.
    pub problems: Vec<Problem>,
}

impl Scoped {
    /// Returns the states of the files of a kind, the shared one first.
    pub(crate) fn snapshots(&self, kind: Kind) -> Result<Vec<Snapshot>, Error> {
        // A record that is approved meanwhile is in the shared file before it leaves the local one.
        let files = DataFile::of(kind).rev();
        let read: Result<Vec<_>, _> = files.map(|file| self.file(file).snapshot()).collect();
        let mut snapshots = read?;
        snapshots.reverse();
        Ok(snapshots)
    }

    /// Visits the rows of a kind that may match the selection, oldest first. Returns the problems of the files.
    pub(super) fn each_row(
        &self,
        kind: Kind,
        selection: &Selection<'_>,
        visit: &mut dyn FnMut(&Snapshot, &Row) -> Result<(), Error>,
    ) -> Result<Vec<Problem>, Error> {
        let files = self.snapshots(kind)?;
        let mut rows = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let selected = self.select(file, kind, selection)?.into_iter();
            rows.extend(selected.map(|row| (number, row)));
        }
        if rows.first().map(|(file, _)| file) != rows.last().map(|(file, _)| file) {
            rows.sort_by_cached_key(|(_, row)| {
                IdShape::of(kind, &String::from_utf8_lossy(row.id()))
            });
        }
        let limit = selection.newest.unwrap_or(usize::MAX);
        for (file, row) in &rows[rows.len().saturating_sub(limit)..] {
            visit(&files[*file], row)?;
        }
        Ok(files.into_iter().flat_map(|f| f.problems).collect())
    }

    /// Returns the number of visible records of a kind. Within a scope, some kinds are counted by
    /// the hash of the domain alone.
    pub fn count(&self, kind: Kind) -> Result<u64, Error> {
        let sees_each = *self.scope() == Scope::All && !self.access().asks_the_text(kind);
        let mut count = 0;
        for snapshot in self.snapshots(kind)? {
            count += if sees_each {
                snapshot.table.header.count
            } else {
                self.select(&snapshot, kind, &Selection::default())?.len() as u64
            };
        }
        Ok(count)
    }

    /// Returns the number of visible records of all kinds.
    pub fn record_count(&self) -> Result<u64, Error> {
        Kind::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }

    /// Returns `false` if the scope certainly does not cover the entry of a row.
    fn may_cover(&self, row: &Row) -> bool {
        match self.scope() {
            Scope::All => true,
            Scope::Domains(domains) => domains.iter().any(|domain| row.may_be_of_domain(domain)),
        }
    }

    /// Returns the size of all data files in bytes; `None` with limited access, because part of it
    /// belongs to others.
    pub fn bytes(&self) -> Option<u64> {
        let size = |file: DataFile| {
            let state = self.directory().state(file.name()).ok()??;
            Some(state.size)
        };
        self.sees_all()
            .then(|| DataFile::ALL.into_iter().filter_map(size).sum())
    }

    /// Returns the records of a type, oldest first.
    pub fn list<R: Record>(&self, selection: &Selection<'_>) -> Result<Listing<R>, Error> {
        let mut records = Vec::new();
        let mut others = Vec::new();
        let visit = &mut |entry: Entry| match entry.parse::<R>() {
            Ok(record) => records.push(record),
            Err(error) => others.push((entry, error)),
        };
        let mut problems = self.each_entry(R::KIND, selection, visit)?;
        for file in DataFile::of(R::KIND) {
            let here = others
                .iter()
                .filter(|(entry, _)| entry.is_local == file.is_local);
            let here = here.map(|(entry, error)| {
                let message = unreadable(R::KIND, &entry.id, error);
                (entry.offset, ProblemKind::Unreadable, message)
            });
            problems.extend(self.problems_at(file, here)?);
        }
        Ok(Listing { records, problems })
    }

    /// Visits the selected entries of a kind, oldest first. Returns the problems of the files.
    pub fn each_entry(
        &self,
        kind: Kind,
        selection: &Selection<'_>,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<Vec<Problem>, Error> {
        let wanted = selection.skill.map(ToString::to_string);
        let is_wanted = |entry: &Entry| {
            let skill = || json::string_field(&entry.text, "skill");
            wanted.is_none() || skill().as_deref() == wanted.as_deref()
        };
        let counters = self.counters(DataFile::shared(kind));
        self.each_row(kind, selection, &mut |snapshot, row| {
            let mut entry = snapshot.entry(row)?;
            if !snapshot.of.is_local {
                counters.apply(&mut entry);
            }
            if self.access().sees(kind, &entry.text) && is_wanted(&entry) {
                visit(entry);
            }
            Ok(())
        })
    }

    /// Returns the rows of a file that may match the selection, oldest first.
    fn select(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        selection: &Selection<'_>,
    ) -> Result<Vec<Row>, Error> {
        let skill = selection.skill.map(ToString::to_string);
        let limit = selection.newest.unwrap_or(usize::MAX);
        let mut rows = Vec::new();
        if limit == 0 {
            return Ok(rows);
        }
        // A hidden record must not use up the limit.
        let asks = self.access().asks_the_text(kind);
        let is_everywhere = self.access().is_in_every_domain(kind);
        let of_skill = |row: &Row| {
            skill
                .as_deref()
                .is_none_or(|skill| row.may_be_of_skill(skill))
        };
        for row in snapshot.rows().rev() {
            let may_be = of_skill(&row) && (is_everywhere || self.may_cover(&row));
            if may_be && (!asks || self.access().sees(kind, &snapshot.read(&row)?)) {
                rows.push(row);
                if rows.len() == limit {
                    break;
                }
            }
        }
        rows.reverse();
        Ok(rows)
    }

    /// Returns the entry with exactly this id, or the one that had it before its approval.
    pub fn find(&self, kind: Kind, id: &str) -> Result<Option<Entry>, Error> {
        for snapshot in self.snapshots(kind)? {
            if let Some((_, mut entry)) = self.find_in(&snapshot, id)? {
                self.counters(snapshot.of).apply(&mut entry);
                return Ok(Some(entry));
            }
        }
        match self.current_id(kind, id)? {
            now if now == id => Ok(None),
            now => self.find(kind, &now),
        }
    }

    /// Visits the entries with exactly these ids, each once, in file order. Reads each table once
    /// for any number of ids.
    pub fn each_of(
        &self,
        kind: Kind,
        ids: &HashSet<&str>,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<(), Error> {
        let mut missing = ids.clone();
        for snapshot in self.snapshots(kind)? {
            let counters = self.counters(snapshot.of);
            for (_, mut entry) in self.of_ids(&snapshot, &missing)? {
                counters.apply(&mut entry);
                missing.remove(entry.id.as_str());
                visit(entry);
            }
        }
        Ok(())
    }

    /// Returns the entries with exactly these ids in a snapshot, each once, with their rows.
    pub(crate) fn of_ids(
        &self,
        snapshot: &Snapshot,
        ids: &HashSet<&str>,
    ) -> Result<Vec<(Row, Entry)>, Error> {
        let mut shown = HashSet::new();
        let mut found = snapshot.of_ids(ids)?;
        found.retain(|(_, entry)| {
            self.access().sees(entry.kind, &entry.text) && shown.insert(entry.id.clone())
        });
        Ok(found)
    }

    /// Returns the counters of this machine for the records of a file; none if the records hold
    /// them.
    pub(crate) fn counters(&self, of: DataFile) -> Counters {
        if of.is_local || self.primary.is_some() || counters::fields(of.kind).is_empty() {
            return Counters::default();
        }
        Counters::read(self.directory())
    }

    /// Returns the entry with exactly this id in a snapshot, with its row and without counters of
    /// this machine.
    pub(crate) fn find_in(
        &self,
        snapshot: &Snapshot,
        id: &str,
    ) -> Result<Option<(Row, Entry)>, Error> {
        snapshot.find(id, |entry| self.access().sees(entry.kind, &entry.text))
    }

    /// Returns the record with exactly this id.
    pub fn get<R: Record>(&self, id: &str) -> Result<R, Error> {
        let entry = self.find(R::KIND, id)?;
        let entry = entry.ok_or_else(|| Error::not_found(R::KIND, id))?;
        entry.parse().or_else(|error| {
            let message = unreadable(R::KIND, id, &error);
            let found = [(entry.offset, ProblemKind::Unreadable, message)];
            let problem = self.problems_at(entry.file(), found)?.pop();
            Err(problem.map_or(Error::Serialize(error), Error::Damaged))
        })
    }

    /// Returns the files of a kind that have problems; scans a file only if that is unknown.
    pub fn damaged_files(&self, kind: Kind) -> Result<Vec<DataFile>, Error> {
        let snapshots = self.snapshots(kind)?.into_iter();
        let damaged = snapshots.filter(|snapshot| snapshot.table.header.problems > 0);
        Ok(damaged.map(|snapshot| snapshot.of).collect())
    }
}

/// Message for an entry that is not a valid record of its kind.
pub(crate) fn unreadable(kind: Kind, id: &str, error: &serde_json::Error) -> String {
    let name = if id.is_empty() {
        "an entry without an id"
    } else {
        id
    };
    let noun = kind.noun();
    format!("{name} is kept, but is not a readable {noun}: {error}")
}

impl Scoped {
    /// Returns the tombstone of a record of this kind with this content.
    pub fn tombstone_of(&self, kind: Kind, content: &str) -> Result<Option<Tombstone>, Error> {
        let digests = tombstones::digests(self.identity().as_ref(), kind, content);
        let is_it = |t: &Tombstone| digests.contains(&t.digest) && self.is_own_removal(t);
        let found = tombstones::of_kind(self.directory(), kind)?;
        Ok(found.rev().find(is_it))
    }

    /// Returns `true` if the viewer was allowed to see the removed record.
    fn is_own_removal(&self, tombstone: &Tombstone) -> bool {
        !tombstone.kind.has_user() || self.viewer().sees(tombstone.user_id.as_deref())
    }

    /// Returns the ids of removed records of a kind with their tombstone lines. Empty for callers
    /// with limited access.
    pub fn tombstone_lines(&self, kind: Kind) -> Result<Vec<(String, String)>, Error> {
        if !self.sees_all() {
            return Ok(Vec::new());
        }
        let lines = tombstones::of_kind(self.directory(), kind)?;
        let lines = lines.map(|t| Ok((t.id.clone(), serde_json::to_string(&t)?)));
        lines.collect()
    }

    /// Returns all removed records.
    pub fn all_forgotten(&self) -> Result<ForgottenRecords, Error> {
        ForgottenRecords::read(self.directory(), &|t| self.is_own_removal(t))
    }

    /// Returns the tombstone of the record with this id. Always `None` in a limited scope, because
    /// a tombstone does not name the skill.
    pub fn tombstone(&self, kind: Kind, id: &str) -> Result<Option<Tombstone>, Error> {
        let mut found = tombstones::of_kind(self.directory(), kind)?.rev();
        let found = found.find(|tombstone| tombstone.id.eq_ignore_ascii_case(id));
        let is_seen = |found: &Tombstone| *self.scope() == Scope::All && self.is_own_removal(found);
        Ok(found.filter(is_seen))
    }
}
