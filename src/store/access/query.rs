//! Queries for records, filtered by scope, user and time.
//!
//! The saved table only pre-selects by hash; every returned record is compared exactly.

use std::collections::HashSet;

use memctl_files::json;

use crate::model::{Kind, Record, Scope, SkillPath};
use crate::store::files::counters::{self, Counters};
use crate::store::files::data::scan::LineNumbers;
use crate::store::{DataFile, Entry, Error, Problem, ProblemKind, Row, Scoped, Snapshot};

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
    /// Returns the number of visible records of a kind. Within a scope, some kinds are counted by
    /// the hash of the domain alone.
    pub fn count(&self, kind: Kind) -> Result<u64, Error> {
        let mut count = 0;
        for snapshot in self.snapshots(kind)? {
            count += self.count_in(&snapshot, kind)?;
        }
        Ok(count)
    }

    fn count_in(&self, snapshot: &Snapshot, kind: Kind) -> Result<u64, Error> {
        if self.access().asks_the_text(kind) {
            let all = Selection::default();
            return Ok(self.select(snapshot, kind, &all)?.len() as u64);
        }
        match self.scope() {
            Scope::All => Ok(snapshot.table.header.count),
            Scope::Domains(domains) => {
                let mut count = 0;
                snapshot.each(false, &mut |row| {
                    count += u64::from(domains.iter().any(|domain| row.may_be_of_domain(domain)));
                    true
                })?;
                Ok(count)
            }
        }
    }

    /// Returns the size of all data files in bytes; `None` with limited access, because part of it
    /// belongs to others.
    pub fn bytes(&self) -> Option<u64> {
        let size = |file: DataFile| {
            let file = self.directory().open(file.name()).ok()??;
            Some(file.metadata().ok()?.len())
        };
        self.sees_all()
            .then(|| DataFile::ALL.into_iter().filter_map(size).sum())
    }

    /// Returns the records of a type, oldest first.
    pub fn list<R: Record>(&self, selection: &Selection<'_>) -> Result<Listing<R>, Error> {
        let mut records = Vec::new();
        let mut others = Vec::new();
        let wanted = selection.skill.map(ToString::to_string);
        let wanted = wanted.as_deref();
        let mut visit = |file, entry: Entry| match entry.parse::<R>() {
            Ok(record) => {
                if wanted.is_none_or(|skill| record.skill() == Some(skill)) {
                    records.push(record);
                }
            }
            Err(error) => {
                if wanted.is_none_or(|skill| is_of_skill(&entry, skill)) {
                    others.push((file, entry, error));
                }
            }
        };
        let mut problems = self.each_candidate(R::KIND, selection, &mut visit)?;
        for file in DataFile::of(R::KIND) {
            let mut here = others.iter().filter(|(of, ..)| *of == file).peekable();
            if here.peek().is_none() {
                continue;
            }
            let (path, opened) = self.data_file(file)?;
            let mut lines = LineNumbers::of(&opened);
            for (_, entry, error) in here {
                let line = lines.at(entry.offset).map_err(Error::io("read", &path))?;
                problems.push(Problem {
                    path: path.clone(),
                    offset: entry.offset,
                    line,
                    kind: ProblemKind::Unreadable,
                    message: unreadable(R::KIND, &entry.id, error),
                });
            }
        }
        Ok(Listing { records, problems })
    }

    /// Visits the entries of a kind, oldest first. Returns the problems of the file.
    pub fn each_entry(
        &self,
        kind: Kind,
        selection: &Selection<'_>,
        visit: &mut dyn FnMut(Entry),
    ) -> Result<Vec<Problem>, Error> {
        let wanted = selection.skill.map(ToString::to_string);
        let wanted = wanted.as_deref();
        self.each_candidate(kind, selection, &mut |_, entry| {
            if wanted.is_none_or(|skill| is_of_skill(&entry, skill)) {
                visit(entry);
            }
        })
    }

    /// Visits the entries of a kind that may be of the selected skill, oldest first, each with its
    /// file. Returns the problems of the files.
    fn each_candidate(
        &self,
        kind: Kind,
        selection: &Selection<'_>,
        visit: &mut dyn FnMut(DataFile, Entry),
    ) -> Result<Vec<Problem>, Error> {
        let selected = self.select_all(kind, selection)?;
        let counters = self.counters(DataFile::shared(kind));
        for (snapshot, row) in selected.rows() {
            let mut entry = snapshot.entry(kind, row)?;
            if !snapshot.of.is_local {
                counters.apply(&mut entry);
            }
            if self.access().sees(kind, &entry.text) {
                visit(snapshot.of, entry);
            }
        }
        Ok(selected.into_problems())
    }

    /// Returns the rows of a file that may match the selection, oldest first.
    pub(super) fn select(
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
        snapshot.try_each(true, &mut |row| {
            let of_skill = skill.as_deref();
            let of_skill = of_skill.is_none_or(|skill| row.may_be_of_skill(skill));
            let in_scope = match self.scope() {
                Scope::All => true,
                Scope::Domains(_) if self.access().is_in_every_domain(kind) => true,
                Scope::Domains(domains) => domains.iter().any(|d| row.may_be_of_domain(d)),
            };
            if of_skill && in_scope && (!asks || self.access().sees(kind, &snapshot.read(row)?)) {
                rows.push(row.clone());
            }
            Ok(rows.len() < limit)
        })?;
        rows.reverse();
        Ok(rows)
    }

    /// Returns the entry with exactly this id, or the one that had it before its approval.
    pub fn find(&self, kind: Kind, id: &str) -> Result<Option<Entry>, Error> {
        Ok(self.find_with_file(kind, id)?.map(|(_, entry)| entry))
    }

    fn find_with_file(&self, kind: Kind, id: &str) -> Result<Option<(DataFile, Entry)>, Error> {
        for snapshot in self.snapshots(kind)? {
            if let Some((_, mut entry)) = self.find_in(&snapshot, kind, id)? {
                self.counters(snapshot.of).apply(&mut entry);
                return Ok(Some((snapshot.of, entry)));
            }
        }
        match self.current_id(kind, id)? {
            now if now == id => Ok(None),
            now => self.find_with_file(kind, &now),
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
            let mut found = Vec::new();
            self.each_of_in(&snapshot, kind, &missing, &mut |_, entry| found.push(entry))?;
            let counters = self.counters(snapshot.of);
            for mut entry in found {
                counters.apply(&mut entry);
                missing.remove(entry.id.as_str());
                visit(entry);
            }
        }
        Ok(())
    }

    /// Visits the entries with exactly these ids in a snapshot, with their rows.
    pub(crate) fn each_of_in(
        &self,
        snapshot: &Snapshot,
        kind: Kind,
        ids: &HashSet<&str>,
        visit: &mut dyn FnMut(Row, Entry),
    ) -> Result<(), Error> {
        let known: HashSet<&[u8]> = ids.iter().map(|id| id.as_bytes()).collect();
        let mut candidates = Vec::new();
        snapshot.each(false, &mut |row| {
            // The table holds only the start of long ids; the entry has the rest.
            if row.id_is_cut() || known.contains(row.id()) {
                candidates.push(row.clone());
            }
            true
        })?;
        let mut shown = HashSet::new();
        for row in candidates {
            let entry = snapshot.entry(kind, &row)?;
            let is_asked = !entry.id.is_empty() && ids.contains(entry.id.as_str());
            if is_asked && !shown.contains(&entry.id) && self.access().sees(kind, &entry.text) {
                shown.insert(entry.id.clone());
                visit(row, entry);
            }
        }
        Ok(())
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
        kind: Kind,
        id: &str,
    ) -> Result<Option<(Row, Entry)>, Error> {
        let seen = |entry: &Entry| self.access().sees(kind, &entry.text);
        Self::find_among(snapshot, kind, id, &seen)
    }

    /// Returns `true` if an id is taken in a snapshot, by any user's record.
    pub(crate) fn holds(snapshot: &Snapshot, kind: Kind, id: &str) -> Result<bool, Error> {
        Ok(Self::find_among(snapshot, kind, id, &|_| true)?.is_some())
    }

    fn find_among(
        snapshot: &Snapshot,
        kind: Kind,
        id: &str,
        counts: &dyn Fn(&Entry) -> bool,
    ) -> Result<Option<(Row, Entry)>, Error> {
        let mut candidates = Vec::new();
        snapshot.each(false, &mut |row| {
            let same = if row.id_is_cut() {
                id.as_bytes().starts_with(row.id())
            } else {
                row.id() == id.as_bytes()
            };
            if same && !id.is_empty() {
                candidates.push(row.clone());
            }
            true
        })?;
        for row in candidates {
            let entry = snapshot.entry(kind, &row)?;
            if entry.id == id && counts(&entry) {
                return Ok(Some((row, entry)));
            }
        }
        Ok(None)
    }

    /// Returns the record with exactly this id.
    pub fn get<R: Record>(&self, id: &str) -> Result<R, Error> {
        let not_found = || Error::NotFound {
            kind: Some(R::KIND),
            id: id.to_owned(),
            similar: Vec::new(),
        };
        let (of, entry) = self.find_with_file(R::KIND, id)?.ok_or_else(not_found)?;
        entry.parse().map_err(|error| {
            let problem = || {
                let (path, file) = self.data_file(of)?;
                let line = LineNumbers::of(&file).at(entry.offset);
                let line = line.map_err(Error::io("read", &path))?;
                Ok(Problem {
                    path,
                    offset: entry.offset,
                    line,
                    kind: ProblemKind::Unreadable,
                    message: unreadable(R::KIND, id, &error),
                })
            };
            problem().map_or_else(|error| error, Error::Damaged)
        })
    }

    /// Returns the files of a kind that have problems; scans a file only if that is unknown.
    pub fn damaged_files(&self, kind: Kind) -> Result<Vec<DataFile>, Error> {
        let snapshots = self.snapshots(kind)?.into_iter();
        let damaged = snapshots.filter(|snapshot| snapshot.table.header.problems > 0);
        Ok(damaged.map(|snapshot| snapshot.of).collect())
    }
}

/// Returns true if the text of an entry names exactly this skill.
fn is_of_skill(entry: &Entry, skill: &str) -> bool {
    json::string_field(&entry.text, "skill").is_some_and(|named| named == skill)
}

/// Message for an entry that is not a valid record of its kind.
pub(crate) fn unreadable(kind: Kind, id: &str, error: &serde_json::Error) -> String {
    let name = if id.is_empty() {
        "an entry without an id"
    } else {
        id
    };
    format!("{name} is kept, but is not a readable {kind}: {error}")
}
