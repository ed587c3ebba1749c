//! Asking what was removed, within what a caller may know of it.
//!
//! An id is gone for everybody; what was said is its user's business. A tombstone does not say which skill's
//! record it was, so that within a scope little is told.

use std::collections::HashSet;

use crate::model::{Kind, Scope};
use crate::platform::Directory;

use super::directory;
use super::error::Error;
use super::scoped::Scoped;
use super::tombstones::{self, Tombstone, digest, standing};

impl Scoped {
    /// The removal of a record of this kind with this content, if there was one.
    pub fn buried(&self, kind: Kind, content: &str) -> Result<Option<Tombstone>, Error> {
        tombstones::find(self.directory(), kind, content, &|t| self.is_own_removal(t))
    }

    /// Whether what was removed there was the viewer's to see.
    fn is_own_removal(&self, tombstone: &Tombstone) -> bool {
        !tombstone.kind.has_user() || self.viewer().sees(tombstone.user_id.as_deref())
    }

    /// The ids of a kind that were removed on purpose, each with the line that is kept of it. For those who
    /// may see everything.
    pub fn tombstone_lines(&self, kind: Kind) -> Result<Vec<(String, String)>, Error> {
        if !self.sees_all() {
            return Ok(Vec::new());
        }
        tombstones::standing_lines(self.directory(), kind)
    }

    /// Everything that was removed on purpose.
    pub fn all_buried(&self) -> Result<Buried, Error> {
        Buried::read(self.directory(), &|t| self.is_own_removal(t))
    }

    /// The ids of a kind that were removed on purpose, whoever they belonged to.
    pub fn buried_ids(&self, kind: Kind) -> Result<HashSet<String>, Error> {
        tombstones::ids(self.directory(), kind)
    }

    /// The removal of the record with this id. A tombstone does not say which skill's record it was, so
    /// that within a scope there are none.
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

/// Everything that was removed here, for those who ask about many records at once.
#[derive(Debug, Default)]
pub struct Buried {
    key: String,
    stones: Vec<Tombstone>,
    ids: HashSet<(Kind, String)>,
    digests: HashSet<(Kind, String)>,
}

impl Buried {
    /// Those of them that count.
    pub(super) fn read(
        directory: &Directory,
        counts: &dyn Fn(&Tombstone) -> bool,
    ) -> Result<Self, Error> {
        let key = directory::identity(directory).map(|identity| identity.tombstone_key);
        let stones = standing(directory)?;
        // An id is gone for everybody; what was said is its user's business.
        let said = stones
            .iter()
            .filter(|stone| counts(stone) && !stone.digest.is_empty());
        Ok(Self {
            digests: said
                .map(|stone| (stone.kind, stone.digest.clone()))
                .collect(),
            ids: stones
                .iter()
                .map(|stone| (stone.kind, stone.id.clone()))
                .collect(),
            key: key.unwrap_or_default(),
            stones,
        })
    }

    /// Whether a record with this id was removed.
    pub fn has_id(&self, kind: Kind, id: &str) -> bool {
        self.ids.contains(&(kind, id.to_owned()))
    }

    /// Whether a record with this content was removed.
    pub fn has_content(&self, kind: Kind, content: &str) -> bool {
        !self.digests.is_empty()
            && self
                .digests
                .contains(&(kind, digest(&self.key, kind, content)))
    }

    /// The ids of a kind that were removed.
    pub fn ids(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let of_kind = self.stones.iter().filter(move |stone| stone.kind == kind);
        of_kind.map(|stone| stone.id.as_str())
    }
}
