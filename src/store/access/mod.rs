//! Reading through the access filter: one caller with a scope, a user and a time.
//!
//! - Here: the filter, rows in the order of their records, and removed records. `query`: reading of records,
//!   and ids from what a user types. `scoped`: the store of one caller, and what is read beside it.
//!   `disabled`: the marks that switch a memory off.
//!
//! An entry is visible if the scope covers its skill, its user matches the viewer, and it has not
//! expired. Every read for a caller and every change to an existing record applies the filter.
//!
//! Records with a user but no skill are visible to that user in every non-empty scope.
//!
//! The filter fails closed: without a current time, every record with an expiry is hidden.
//!
//! A removed id is taken for every caller; removed content is visible only to its user. A tombstone
//! does not name a skill, so a limited scope sees little.

pub(crate) mod disabled;
pub(crate) mod query;
pub(crate) mod scoped;

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use memctl_files::json;

use crate::model::{Expiry, IdShape, Kind, Scope, Viewer};
use crate::store::files::tombstones;
use crate::store::{
    DataFile, Error, ForgottenRecords, Problem, Row, Scoped, Selection, Snapshot, Tombstone,
};

/// Access filter for one caller.
#[derive(Debug, Clone)]
pub(crate) struct AccessFilter {
    pub(crate) scope: Scope,
    pub(crate) viewer: Viewer,
    /// Current time; `None` hides every record with an expiry.
    pub(crate) now: Option<DateTime<Utc>>,
}

impl AccessFilter {
    /// Returns `true` if an entry of this kind is visible to the caller.
    pub(crate) fn sees(&self, kind: Kind, entry: &[u8]) -> bool {
        self.covers(kind, entry) && !(kind.may_expire() && expiry(entry).is_over(self.now))
    }

    /// Returns `true` if an entry is within scope and user, expired or not.
    pub(crate) fn covers(&self, kind: Kind, entry: &[u8]) -> bool {
        let in_scope = self.scope == Scope::All || {
            let skill = json::string_field(entry, "skill");
            let names_none = matches!(json::field(entry, "skill"), None | Some(b"null"));
            self.scope.allows(skill.as_deref()) || (names_none && self.is_in_every_domain(kind))
        };
        in_scope && self.is_own(kind, entry)
    }

    /// Returns `true` if the scope covers a record of this kind and skill.
    pub(crate) fn covers_skill(&self, kind: Kind, skill: Option<&str>) -> bool {
        self.scope.allows(skill) || (skill.is_none() && self.is_in_every_domain(kind))
    }

    /// Returns `true` if the viewer is a user and the scope is not empty: their records of this
    /// kind without a skill are then visible.
    pub(crate) fn is_in_every_domain(&self, kind: Kind) -> bool {
        let is_empty = matches!(&self.scope, Scope::Domains(domains) if domains.is_empty());
        kind.has_user() && matches!(self.viewer, Viewer::User(_)) && !is_empty
    }

    /// Returns `true` if the user of an entry permits the viewer to read and write it.
    pub(crate) fn is_own(&self, kind: Kind, entry: &[u8]) -> bool {
        !kind.has_user()
            || self.viewer == Viewer::Owner
            || self
                .viewer
                .sees(json::string_field(entry, "user_id").as_deref())
    }

    /// Returns `true` if the caller may see everything in the files, except expired records.
    pub(crate) fn is_whole(&self) -> bool {
        self.scope == Scope::All && self.viewer == Viewer::Owner
    }

    /// Returns `true` if visibility depends on the text of the entry: the table of offsets knows
    /// skills, but no users and times.
    pub(crate) fn asks_the_text(&self, kind: Kind) -> bool {
        kind.may_expire() || (kind.has_user() && self.viewer != Viewer::Owner)
    }
}

/// Returns the expiry of an entry.
pub(crate) fn expiry(entry: &[u8]) -> Expiry {
    match json::field(entry, "expires_at") {
        None | Some(b"null") => Expiry::Never,
        Some(_) => match json::string_field(entry, "expires_at") {
            Some(text) => Expiry::of(Some(&text)),
            None => Expiry::Unreadable,
        },
    }
}

/// Rows that may match a selection, oldest first.
#[derive(Debug)]
struct SelectedRows {
    /// The files of the kind, the shared one first.
    files: Vec<Snapshot>,
    /// Each row with the place of its file.
    rows: Vec<(usize, Row)>,
}

impl SelectedRows {
    /// Returns the rows, each with its file.
    fn rows(&self) -> impl Iterator<Item = (&Snapshot, &Row)> {
        self.rows
            .iter()
            .map(|(file, row)| (&self.files[*file], row))
    }

    /// Returns the problems of the files.
    fn into_problems(self) -> Vec<Problem> {
        self.files.into_iter().flat_map(|f| f.problems).collect()
    }
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

    /// Returns the rows of a kind that may match the selection.
    fn select_all(&self, kind: Kind, selection: &Selection<'_>) -> Result<SelectedRows, Error> {
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
        rows.drain(..rows.len().saturating_sub(limit));
        Ok(SelectedRows { files, rows })
    }
}

impl Scoped {
    /// Returns the tombstone of a record of this kind with this content.
    pub fn tombstone_of(&self, kind: Kind, content: &str) -> Result<Option<Tombstone>, Error> {
        let key = self.identity().map(|identity| identity.tombstone_key);
        let digest = key.map(|key| tombstones::digest(&key, kind, content));
        let is_it = |t: &Tombstone| Some(&t.digest) == digest.as_ref() && self.is_own_removal(t);
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

    /// Returns the ids of all removed records of a kind, of any user.
    pub fn tombstone_ids(&self, kind: Kind) -> Result<HashSet<String>, Error> {
        Ok(tombstones::of_kind(self.directory(), kind)?
            .map(|t| t.id)
            .collect())
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

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn all_three_conditions_hold_at_once() {
        let now = DateTime::parse_from_rfc3339("2026-05-01T00:00:00Z").unwrap();
        let access = |scope, viewer| AccessFilter {
            scope,
            viewer,
            now: Some(now.to_utc()),
        };
        let owner = access(Scope::All, Viewer::Owner);
        let alice = access(Scope::All, Viewer::User("alice".parse().unwrap()));
        let hr = access(Scope::parse("hr"), Viewer::Owner);
        let alice_in_hr = access(Scope::parse("hr"), Viewer::User("alice".parse().unwrap()));
        let nowhere = access(Scope::parse(""), Viewer::User("alice".parse().unwrap()));
        let check_own = |kind, entry: &str, expected: bool| {
            assert_eq!(
                alice_in_hr.sees(kind, entry.as_bytes()),
                expected,
                "{entry}"
            );
            assert!(!nowhere.sees(kind, entry.as_bytes()), "{entry}");
        };
        check_own(Kind::Memory, r#"{"user_id": "alice"}"#, true);
        check_own(
            Kind::Session,
            r#"{"user_id": "alice", "skill": null}"#,
            true,
        );
        check_own(
            Kind::Memory,
            r#"{"user_id": "alice", "skill": "hr/x"}"#,
            true,
        );
        for skill in [r#""finance/x""#, r#"["hr/x"]"#, r#""x""#, r#""""#] {
            let entry = format!(r#"{{"user_id": "alice", "skill": {skill}}}"#);
            check_own(Kind::Memory, &entry, false);
        }
        check_own(Kind::Memory, r#"{"user_id": "bob"}"#, false);
        check_own(Kind::Memory, "{}", false);
        check_own(Kind::Procedure, r#"{"user_id": "alice"}"#, false);
        let check = |kind, entry: &str, expected: [bool; 3]| {
            let seen = [&owner, &alice, &hr].map(|access| access.sees(kind, entry.as_bytes()));
            assert_eq!(seen, expected, "{entry}");
        };
        check(Kind::Memory, r#"{"user_id": "alice"}"#, [true, true, false]);
        check(Kind::Memory, r#"{"user_id": "bob"}"#, [true, false, false]);
        check(
            Kind::Memory,
            r#"{"user_id": ["alice"]}"#,
            [true, false, false],
        );
        check(Kind::Memory, "{}", [true, false, false]);
        check(Kind::Session, "{}", [true, false, false]);
        check(Kind::Procedure, "{}", [true, true, false]);
        check(Kind::Reflexion, r#"{"skill": "hr/x"}"#, [true; 3]);
        // The last of two fields counts, as in every JSON parser.
        let twice = r#"{"user_id": "alice", "user_id": "bob"}"#;
        check(Kind::Memory, twice, [true, false, false]);
        check(Kind::Memory, r#"{"expires_at": "2026-05-01"}"#, [false; 3]);
        check(Kind::Memory, r#"{"expires_at": 90}"#, [false; 3]);
        check(
            Kind::Memory,
            r#"{"expires_at": null}"#,
            [true, false, false],
        );
        check(
            Kind::Procedure,
            r#"{"expires_at": "2026-05-01"}"#,
            [true, true, false],
        );
    }
}
