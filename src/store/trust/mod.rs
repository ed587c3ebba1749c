//! Trust: which records of a workspace count as this user's own word.
//!
//! Others write the files of a workspace: a clone, a pull, an archive, an agent. So no field in them
//! grants trust. Notes about trust lie in the user's state directory, outside every workspace:
//!
//! ```text
//! key                      32 random bytes: key of the digests and signatures below
//! approved                 a digest a line: each text that the user said or approved on this machine
//! workspaces/<name>.json   what the user has decided about one workspace: see `note`
//! ```
//!
//! A workspace *stands* when the user began it or trusted it as a source: then the `trust` that its
//! records carry counts. In any other workspace a record counts only if its text is in `approved`.
//!
//! Invariants:
//! - Without a state directory, or with one that cannot be read, nothing stands.
//! - A note names its workspace by path and by a marker, a random word in the git-ignored file `.trust`
//!   of the memory directory. Another directory that takes the path has no such marker.
//! - An approval covers the text that acts on an agent ([`Record::claims`]) and the level of trust. A
//!   changed text is an unapproved text; counters may change.
//!
//! Deliberately absent: settings files (`config` asks here for their digest only), and how observed
//! text is shown (`guard::fence`).

mod approved;
mod key;
mod note;
mod settle;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::model::{Kind, Record, Trust};

use super::scoped::Entry;

pub(super) use approved::{hex, parse};
pub(super) use key::{Mac, UserKey};
pub use note::{Basis, Note};

/// The marker that binds a memory directory to its note.
pub(super) const MARKER: &str = ".trust";

/// Notes of one user about the trust in one workspace.
#[derive(Debug, Clone, Default)]
pub struct Approvals {
    /// The user's state directory.
    state: Option<PathBuf>,
    /// The memory directory.
    directory: PathBuf,
    /// The workspace of other records, where these were pulled.
    origin: Option<String>,
    /// Whether the environment says that everything stands.
    all: bool,
}

/// Decision about the records of a workspace at one moment; ask for it once an operation.
#[derive(Debug)]
pub struct Standing(State);

#[derive(Debug)]
enum State {
    Whole,
    Listed(Option<UserKey>, HashSet<Mac>),
}

impl Approvals {
    /// Notes in the state directory of a user about a memory directory. `all` trusts everything, for
    /// machines that build what they have just checked out.
    pub fn of(state: Option<&Path>, directory: &Path, all: bool) -> Self {
        Self {
            state: state.map(Path::to_owned),
            directory: directory.to_owned(),
            origin: None,
            all,
        }
    }

    /// Approvals for files that only this process has written.
    pub fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    /// Approvals for what was pulled from another workspace.
    pub(super) fn of_origin(&self, origin: &str) -> Self {
        Self {
            origin: Some(origin.to_owned()),
            ..self.clone()
        }
    }

    /// Reads what the user has decided.
    pub fn standing(&self) -> Standing {
        if self.stands() {
            return Standing(State::Whole);
        }
        self.own_words()
    }

    /// Decision by what this user has said or approved alone, also in a workspace that stands.
    pub fn own_words(&self) -> Standing {
        if self.all {
            return Standing(State::Whole);
        }
        let key = self.state.as_deref().and_then(UserKey::read);
        let listed = self.state.as_deref().map(approved::read);
        Standing(State::Listed(key, listed.unwrap_or_default()))
    }

    /// Whether the workspace's own approvals count: the user began it, or trusts it as a source.
    pub fn stands(&self) -> bool {
        if self.all {
            return true;
        }
        let Some(note) = self.note() else {
            return false;
        };
        match &self.origin {
            Some(origin) => note.origins.contains(origin),
            None => note.basis.is_some(),
        }
    }

    /// The key of this user; `None` where there is none yet.
    pub(super) fn key(&self) -> Option<UserKey> {
        UserKey::read(self.state.as_deref()?)
    }

    /// The key of this user, made where there is none; `None` without a state directory.
    pub(super) fn make_key(&self, random: &mut dyn FnMut() -> String) -> Option<UserKey> {
        let state = self.state.as_deref()?;
        UserKey::read(state).or_else(|| UserKey::make(state, random).ok())
    }
}

impl Standing {
    /// Level of trust of a record: `own`, the level that its file gives, or `observed` where this user
    /// does not stand behind it.
    pub fn level<R: Record>(&self, record: &R) -> Trust {
        self.settle(record.trust(), |key| approved::digest(key, record))
    }

    /// Level of trust of an entry whose file gives `own`.
    pub fn of_entry(&self, entry: &Entry, own: Trust) -> Trust {
        self.settle(own, |key| approved::digest_of(key, entry))
    }

    /// Whether the approvals of the workspace's own files count.
    pub fn is_whole(&self) -> bool {
        matches!(self.0, State::Whole)
    }

    fn settle(&self, own: Trust, digest: impl FnOnce(&UserKey) -> Option<Mac>) -> Trust {
        match &self.0 {
            State::Whole => own,
            _ if own == Trust::Observed => own,
            State::Listed(Some(key), listed)
                if digest(key).is_some_and(|digest| listed.contains(&digest)) =>
            {
                own
            }
            State::Listed(..) => Trust::Observed,
        }
    }
}

/// Kinds whose text acts on an agent.
pub(super) fn acts(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Reflexion | Kind::Fix | Kind::Procedure | Kind::Memory
    )
}

#[cfg(test)]
mod tests;
