//! Queries on removed records, limited by the access filter.
//!
//! A removed id is taken for every caller; removed content is visible only to its user. A tombstone
//! does not name a skill, so a limited scope sees little.

use std::collections::HashSet;

use crate::model::{Kind, Scope};
use crate::store::error::Error;
use crate::store::files::tombstones::{self, ForgottenRecords, Tombstone};

use super::scoped::Scoped;

impl Scoped {
    /// Returns the tombstone of a record of this kind with this content.
    pub fn tombstone_of(&self, kind: Kind, content: &str) -> Result<Option<Tombstone>, Error> {
        tombstones::find(self.directory(), kind, content, &|t| self.is_own_removal(t))
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
        tombstones::lines_in_force(self.directory(), kind)
    }

    /// Returns all removed records.
    pub fn all_forgotten(&self) -> Result<ForgottenRecords, Error> {
        ForgottenRecords::read(self.directory(), &|t| self.is_own_removal(t))
    }

    /// Returns the ids of all removed records of a kind, of any user.
    pub fn tombstone_ids(&self, kind: Kind) -> Result<HashSet<String>, Error> {
        tombstones::ids(self.directory(), kind)
    }

    /// Returns the tombstone of the record with this id. Always `None` in a limited scope, because
    /// a tombstone does not name the skill.
    pub fn tombstone(&self, kind: Kind, id: &str) -> Result<Option<Tombstone>, Error> {
        match self.scope() {
            Scope::All => {
                let found = tombstones::of_id(self.directory(), kind, id)?;
                Ok(found.filter(|tombstone| self.is_own_removal(tombstone)))
            }
            Scope::Domains(_) => Ok(None),
        }
    }
}
