//! Trust: the records of a workspace that count as this user's own word.
//!
//! The files of a workspace may come from others: a clone, a pull, an archive, an agent. No field
//! in them grants trust. Notes about trust are in the user's state directory, outside every
//! workspace:
//!
//! ```text
//! key                      32 random bytes: key of the digests and signatures below
//! approved                 one digest per line: each text that the user stated or approved here;
//!                          a line `-<digest>` revokes it
//! workspaces/<name>.json   the user's decisions about one workspace: a [`Note`]
//! ```
//!
//! A workspace is *trusted* if the user created it or trusted it as a source: then the `trust` field of
//! its records counts. In any other workspace a record counts only if its text is in `approved`.
//!
//! Invariants:
//! - Without a readable state directory, nothing is trusted.
//! - A note identifies its workspace by path and by a marker, a random word in the git-ignored file
//!   `.trust` of the memory directory. Another directory at the same path has no such marker.
//! - An approval covers the text that acts on an agent ([`Record::claims`]) and the level of trust.
//!   A changed text is not approved; counters may change.
//! - Only what this user vouches for may block, replace, outrank or merge with what this user vouches
//!   for: [`TrustedPart`] is the one order of that. An approval covers the text of a record alone, so the
//!   other fields of such a record have no effect on other records.
//! - A rule acts on calls only with an approval of its own, over the rule, its patterns and its
//!   action. No decision about a workspace or an origin lets a rule act.
//!
//! `approved` has the key, digests of texts, and the list of the approved ones.
//!
//! Deliberately absent: settings files (`config` only asks for their digest), and the display of
//! observed text (`memctl_redact::fence`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use memctl_files::{Directory, hex, named};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::model::{Kind, Record, Reflexion, Trust};
use crate::store::files::directory::TRUST_MARKER as MARKER;
use crate::store::{Entry, Error};
pub(crate) use approved::{Mac, UserKey, parse};
use approved::{append, approved, digest};
pub(super) use approved::{digest_of, digest_of_patterns, digests_of};

mod approved;

/// Decisions of one user about trust in one workspace.
#[derive(Debug, Clone, Default)]
pub struct Approvals {
    /// State directory of the user; `None` if there is none.
    state: Option<PathBuf>,
    /// Memory directory.
    directory: PathBuf,
    /// Origin of the workspace, for remote records.
    origin: Option<String>,
    /// `true` if the environment trusts everything.
    all: bool,
}

/// Trust decision about the records of a workspace at one moment; read it once per operation.
#[derive(Debug)]
pub struct TrustSnapshot(State);

/// Part of a record that this user vouches for, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TrustedPart {
    /// Nothing: the record is data.
    #[default]
    Nothing,
    /// The text that acts on an agent. Anyone may have written the other fields.
    Text,
    /// The whole record: its workspace is trusted.
    Whole,
}

impl TrustedPart {
    /// Returns `true` if a record of this standing may silence one of the other: replace it, or take
    /// its place because both say the same.
    pub fn may_silence(self, other: Self) -> bool {
        other == Self::Nothing || self == Self::Whole
    }
}

#[derive(Debug)]
enum State {
    Whole,
    Listed(Option<UserKey>, HashSet<Mac>),
}

impl Approvals {
    /// Opens the decisions of a user about a memory directory. `all` trusts everything, for
    /// machines that build a fresh checkout.
    pub fn of(state: Option<&Path>, directory: &Path, all: bool) -> Self {
        Self {
            state: state.map(Path::to_owned),
            directory: directory.to_owned(),
            origin: None,
            all,
        }
    }

    /// Returns approvals for files that only this process has written.
    #[cfg(test)]
    pub fn everything() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    /// Returns the approvals for remote records of another workspace.
    pub(super) fn of_origin(&self, origin: &str) -> Self {
        Self {
            origin: Some(origin.to_owned()),
            ..self.clone()
        }
    }

    /// Reads the user's decision.
    pub fn trust_snapshot(&self) -> TrustSnapshot {
        if self.is_trusted() {
            return TrustSnapshot(State::Whole);
        }
        self.own_words()
    }

    /// Reads only the texts that this user stated or approved, also in a trusted workspace.
    pub fn own_words(&self) -> TrustSnapshot {
        if self.all {
            return TrustSnapshot(State::Whole);
        }
        let key = self.state.as_deref().and_then(UserKey::read);
        let listed = self.state.as_deref().map(approved);
        TrustSnapshot(State::Listed(key, listed.unwrap_or_default()))
    }

    /// Returns `true` if the workspace's own approvals count: the user created it, or trusts it as
    /// a source.
    pub fn is_trusted(&self) -> bool {
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

    /// Returns the key of this user; `None` if there is none yet.
    pub(super) fn key(&self) -> Option<UserKey> {
        UserKey::read(self.state.as_deref()?)
    }

    /// Returns the key of this user and creates a missing one; `None` without a state directory.
    pub(super) fn make_key(&self, random: &mut dyn FnMut() -> String) -> Option<UserKey> {
        let state = self.state.as_deref()?;
        UserKey::read(state).or_else(|| UserKey::make(state, random).ok())
    }
}

impl TrustSnapshot {
    /// Returns the trust in a record: the level in its file, or `observed` if this user does not
    /// vouch for it.
    pub fn level<R: Record>(&self, record: &R) -> Trust {
        self.effective(record.trust(), |key| digest(key, record))
    }

    /// Returns the part of a record that this user vouches for.
    pub fn trusted_part<R: Record>(&self, record: &R) -> TrustedPart {
        match (self.level(record), self.is_whole()) {
            (Trust::Observed, _) => TrustedPart::Nothing,
            (_, false) => TrustedPart::Text,
            (_, true) => TrustedPart::Whole,
        }
    }

    /// Returns the trust in an entry whose file gives `own`.
    pub fn of_entry(&self, entry: &Entry, own: Trust) -> Trust {
        self.effective(own, |key| digest_of(key, entry))
    }

    /// Returns `true` if a rule may act on calls: it is in use, and this user approved exactly these
    /// patterns of exactly this text. Ask the user's own words ([`Approvals::own_words`]): in a
    /// trusted workspace, its files let no rule act.
    pub fn lets_act(&self, rule: &Reflexion) -> bool {
        rule.is_in_use() && self.seals(rule)
    }

    /// Returns `true` if this user approved exactly these patterns of exactly this text, whether or not
    /// the rule is in use.
    pub fn seals(&self, rule: &Reflexion) -> bool {
        if rule.trust() == Trust::Observed || rule.seen_by.is_empty() {
            return false;
        }
        match &self.0 {
            State::Whole => true,
            State::Listed(Some(key), listed) => {
                let digest = digest_of_patterns(key, rule);
                digest.is_some_and(|digest| listed.contains(&digest))
            }
            State::Listed(None, _) => false,
        }
    }

    /// Returns `true` if the approvals of the workspace's own files count.
    pub fn is_whole(&self) -> bool {
        matches!(self.0, State::Whole)
    }

    fn effective(&self, own: Trust, digest: impl FnOnce(&UserKey) -> Option<Mac>) -> Trust {
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

/// Returns `true` for kinds whose text acts on an agent.
pub(super) fn acts(kind: Kind) -> bool {
    matches!(kind, Kind::Reflexion | Kind::Procedure | Kind::Memory)
}

impl Approvals {
    /// Notes that this user began the workspace. Called under its lock, before the first record.
    pub(crate) fn begin(&self, at: &str, random: &mut dyn FnMut() -> String) -> Result<(), Error> {
        self.stand(Basis::Began, at, random)
    }

    /// Makes the workspace's own approvals count, including those that anyone adds later.
    pub fn trust(&self, at: &str, random: &mut dyn FnMut() -> String) -> Result<(), Error> {
        if self.note().is_some_and(|note| note.basis.is_some()) {
            return Ok(());
        }
        self.stand(Basis::Trusted, at, random)
    }

    fn stand(
        &self,
        basis: Basis,
        at: &str,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        self.change(random, |note| {
            note.basis = Some(basis);
            at.clone_into(&mut note.at);
        })
    }

    /// Trusts the remote records of another workspace.
    pub fn trust_origin(
        &self,
        origin: &str,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        self.change(random, |note| {
            if !note.origins.iter().any(|other| other == origin) {
                note.origins.push(origin.to_owned());
            }
        })
    }

    /// Trusts settings and prompts with this digest.
    pub fn trust_settings(
        &self,
        digest: String,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        self.change(random, |note| note.settings = Some(digest))
    }

    /// Revokes all trust in the workspace, in its remote records and in the texts of its entries.
    pub fn revoke(&self, entries: &[Entry]) -> Result<(), Error> {
        if let (Some(state), Some(key)) = (&self.state, self.key()) {
            let acting = entries.iter().filter(|entry| acts(entry.kind));
            let digests: Vec<Mac> = acting.flat_map(|entry| digests_of(&key, entry)).collect();
            append(state, &digests, false)?;
        }
        match self.stored() {
            Some(note) => self.keep(Note {
                audited: note.audited,
                ..Note::default()
            }),
            None => Ok(()),
        }
    }

    /// Approves the current texts of entries, at the level of trust in their files.
    pub fn approve(
        &self,
        entries: &[Entry],
        random: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        match self.make_key(random) {
            Some(key) => self.approve_with(&key, entries),
            None => Ok(()),
        }
    }

    pub(crate) fn approve_with(&self, key: &UserKey, entries: &[Entry]) -> Result<(), Error> {
        let acting = entries.iter().filter(|entry| acts(entry.kind));
        let digests = acting.filter_map(|entry| digest_of(key, entry));
        self.set(&digests.collect::<Vec<_>>(), true)
    }

    /// Approves digests, or revokes them.
    pub(crate) fn set(&self, digests: &[Mac], is_approved: bool) -> Result<(), Error> {
        match &self.state {
            Some(state) => append(state, digests, is_approved),
            None => Ok(()),
        }
    }

    /// Returns the digests that are not approved, or not revoked, already.
    pub(crate) fn new_among(&self, digests: &[Mac], is_approved: bool) -> HashSet<Mac> {
        let state = self.state.as_deref();
        state.map_or_else(HashSet::new, |state| {
            approved::new_among(state, digests, is_approved)
        })
    }
}

/// Directory of the notes.
const NOTES: &str = "workspaces";
/// Maximum size of a note, in bytes.
const LONGEST_NOTE: u64 = 64 << 10;
/// Maximum size of a marker, in bytes.
const LONGEST_MARKER: u64 = 256;

/// Reason why a workspace's own approvals count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// This user created it on this machine.
    Began,
    /// This user trusts it as a source.
    Trusted,
}

/// One user's note about one workspace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Note {
    /// Canonical path of the memory directory.
    pub path: String,
    /// Random word in the marker file of the directory.
    #[serde(default)]
    pub marker: String,
    /// Reason why its own approvals count; `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// Time of that decision: RFC 3339.
    #[serde(default)]
    pub at: String,
    /// Digest of the trusted settings and prompts; `None` if the user trusts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Origins of other workspaces whose remote records are trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// Origin of the workspace whose audit log exists: if it is missing, it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audited: Option<String>,
}

impl Approvals {
    /// Returns the note about this workspace, if its marker matches this directory.
    pub fn note(&self) -> Option<Note> {
        let note = self.stored()?;
        (!note.marker.is_empty() && self.marker().as_ref() == Some(&note.marker)).then_some(note)
    }

    /// Returns the digest of the trusted settings; `None` if no settings of the workspace may be
    /// read.
    pub fn settings(&self) -> Option<String> {
        self.note()?.settings
    }

    /// Returns the note about the path, regardless of the directory there now.
    fn stored(&self) -> Option<Note> {
        let (file, path) = self.place()?;
        let note: Note = serde_json::from_slice(&named::read(&file, LONGEST_NOTE).ok()?).ok()?;
        (note.path == path).then_some(note)
    }

    /// Writes the note; does nothing without a state directory.
    fn keep(&self, note: Note) -> Result<(), Error> {
        let Some((file, path)) = self.place() else {
            return Ok(());
        };
        if let Some(parent) = file.parent() {
            named::create_dir(parent).map_err(Error::io("create", parent))?;
        }
        let mut text = serde_json::to_vec_pretty(&Note { path, ..note })?;
        text.push(b'\n');
        named::replace(&file, &text).map_err(Error::io("write", &file))
    }

    /// Reads the marker in the memory directory.
    fn marker(&self) -> Option<String> {
        let directory = Directory::at(&self.directory);
        let text = directory.read_text(MARKER, LONGEST_MARKER).ok()??;
        Some(text.trim().to_owned()).filter(|marker| !marker.is_empty())
    }

    /// Returns the file of the note, and the path that it describes.
    fn place(&self) -> Option<(PathBuf, String)> {
        let state = self.state.as_deref()?;
        let path = canonical(&self.directory)?;
        let name = hex(&Sha256::digest(path.as_bytes()));
        let file = state.join(NOTES).join(format!("{}.json", &name[..32]));
        Some((file, path))
    }

    /// Records that the workspace with this origin has an audit log.
    pub(crate) fn remember_audit(&self, origin: &str) -> Result<(), Error> {
        if self.remembers_audit(origin) {
            return Ok(());
        }
        self.keep(Note {
            audited: Some(origin.to_owned()),
            ..self.stored().unwrap_or_default()
        })
    }

    /// Returns `true` if the workspace with this origin is known to have an audit log.
    pub(crate) fn remembers_audit(&self, origin: &str) -> bool {
        let audited = self.stored().and_then(|note| note.audited);
        audited.is_some_and(|audited_origin| audited_origin == origin)
    }

    /// Changes the note about the directory, and binds it by a marker if needed. Does nothing
    /// without a state directory.
    fn change(
        &self,
        random: &mut dyn FnMut() -> String,
        change: impl FnOnce(&mut Note),
    ) -> Result<(), Error> {
        if self.state.is_none() {
            return Ok(());
        }
        let mut note = match self.note() {
            Some(note) => note,
            None => self.marked(random())?,
        };
        change(&mut note);
        self.keep(note)
    }

    /// Creates a note that is bound to the directory by this marker. Decisions about another
    /// directory at the same path do not apply.
    fn marked(&self, marker: String) -> Result<Note, Error> {
        let directory = Directory::at(&self.directory);
        let text = format!("{marker}\n");
        let written = directory.replace_file(MARKER, text.as_bytes());
        written.map_err(Error::io("write", &directory.join(MARKER)))?;
        Ok(Note {
            marker,
            audited: self.stored().and_then(|note| note.audited),
            ..Note::default()
        })
    }
}

fn canonical(directory: &Path) -> Option<String> {
    Some(named::real(directory).ok()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
