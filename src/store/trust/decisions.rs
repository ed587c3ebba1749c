//! Changes to the user's trust decisions about a workspace.

use crate::model::Reflexion;
use crate::store::entry::Entry;
use crate::store::error::Error;
use crate::store::files::directory::TRUST_MARKER as MARKER;
use memctl_files::Directory;

use super::note::{Basis, Note};
use super::{Approvals, UserKey, acts, approved};

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
            if !note.origins.iter().any(|known| known == origin) {
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

    /// Revokes all trust in the workspace and in its remote records. Individually approved texts
    /// stay approved.
    pub fn revoke(&self) -> Result<(), Error> {
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
        let Some(state) = &self.state else {
            return Ok(());
        };
        let acting = entries.iter().filter(|entry| acts(entry.kind));
        let digests = acting.filter_map(|entry| approved::digest_of(key, entry));
        approved::add(state, &digests.collect::<Vec<_>>())
    }

    /// Lets a rule act on calls, with its patterns as they are now.
    pub(crate) fn let_act(&self, key: &UserKey, rule: &Reflexion) -> Result<(), Error> {
        match (&self.state, approved::digest_of_patterns(key, rule)) {
            (Some(state), Some(digest)) => approved::add(state, &[digest]),
            _ => Ok(()),
        }
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
        audited.is_some_and(|known| known == origin)
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
