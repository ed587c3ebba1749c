//! Digests of the entries of a file, by which a request knows if a record that it would add may be there.
//!
//! Only entries added since the last
//! look are read; a replaced file is read again. The caller gets no text, so that entries of other users stay
//! hidden: an existing digest only says that a search is worthwhile.
//!
//! Deliberately absent: exactness of digests. Two texts may have one digest, and an entry may be expired
//! or belong to somebody else.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::model::Kind;
use crate::store::files::data::offsets::Header;
use crate::store::{DataFile, Error, Scoped};

/// State of a file at which it was searched for an entry that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    generation: u64,
    end: u64,
}

impl Compared {
    pub(super) fn of(header: &Header) -> Self {
        Self {
            generation: header.generation,
            end: header.tail,
        }
    }

    /// Returns the position behind which entries came until `now`; `None` if the file was replaced.
    pub(super) fn until(self, now: Self) -> Option<u64> {
        let is_longer = self.generation == now.generation && self.end <= now.end;
        is_longer.then_some(self.end)
    }
}

/// Returns `true` for the JSON text of an entry that says the same.
pub type Repeats = dyn Fn(&[u8]) -> bool + Send;

/// Condition on which a record is not added.
pub struct SkipCondition {
    /// State of the file in which no entry said the same.
    pub compared: Compared,
    /// Comparison with the record.
    pub repeats: Box<Repeats>,
}

/// Digests of the entries of the shared file of one kind.
#[derive(Debug, Default)]
pub struct SeenEntries(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    compared: Option<Compared>,
    digests: HashSet<u64>,
}

impl SeenEntries {
    /// Returns `true` if an entry may have this digest, and the state of the file that this holds
    /// for. `digest_of` computes the digest of an entry's text.
    ///
    /// # Errors
    ///
    /// [`Error`]
    pub fn may_hold(
        &self,
        store: &Scoped,
        kind: Kind,
        digest: u64,
        digest_of: &dyn Fn(&[u8]) -> Option<u64>,
    ) -> Result<(bool, Compared), Error> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = store.file(DataFile::shared(kind)).snapshot()?;
        let now = Compared::of(&snapshot.table.header);
        // Until all is read, nothing is known to be compared.
        let from = seen.compared.take().and_then(|before| before.until(now));
        if from.is_none() {
            seen.digests.clear();
        }
        let from = from.unwrap_or(0);
        for row in snapshot.rows().rev().take_while(|row| row.at >= from) {
            seen.digests.extend(digest_of(&snapshot.read(&row)?));
        }
        seen.compared = Some(now);
        Ok((seen.digests.contains(&digest), now))
    }
}
