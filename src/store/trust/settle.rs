//! Decisions of the user about a workspace, written down.

use crate::platform::Directory;
use crate::store::error::Error;
use crate::store::scoped::Entry;

use super::note::{Basis, Note};
use super::{Approvals, MARKER, UserKey, acts, approved};

impl Approvals {
    /// Notes that this user began the workspace. Called under its lock, before the first record.
    pub(in crate::store) fn begin(
        &self,
        at: &str,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        self.stand(Basis::Began, at, random)
    }

    /// Makes the workspace's own approvals count from now on, whoever adds to them.
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

    /// Trusts the records that were pulled from another workspace, from now on.
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

    /// Takes all trust in the workspace and in what was pulled into it back. Texts that the user
    /// approved one by one stay approved.
    pub fn revoke(&self) -> Result<(), Error> {
        match self.stored() {
            Some(note) => self.keep(Note {
                audited: note.audited,
                ..Note::default()
            }),
            None => Ok(()),
        }
    }

    /// Approves the texts of entries as they are now, at the level of trust that their files give.
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

    pub(in crate::store) fn approve_with(
        &self,
        key: &UserKey,
        entries: &[Entry],
    ) -> Result<(), Error> {
        let Some(state) = &self.state else {
            return Ok(());
        };
        let acting = entries.iter().filter(|entry| acts(entry.kind));
        let digests = acting.filter_map(|entry| approved::digest_of(key, entry));
        approved::add(state, &digests.collect::<Vec<_>>())
    }

    /// Remembers that the audit of the workspace with this origin has begun.
    pub(in crate::store) fn remember_audit(&self, origin: &str) -> Result<(), Error> {
        if self.remembers_audit(origin) {
            return Ok(());
        }
        self.keep(Note {
            audited: Some(origin.to_owned()),
            ..self.stored().unwrap_or_default()
        })
    }

    /// Whether the audit of the workspace with this origin has begun here.
    pub(in crate::store) fn remembers_audit(&self, origin: &str) -> bool {
        let audited = self.stored().and_then(|note| note.audited);
        audited.is_some_and(|known| known == origin)
    }

    /// Changes the note about the directory, and binds it by a marker where it is not bound yet. Of no effect
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

    /// A new note, bound to the directory by this marker. Whatever was decided about another directory of the
    /// path does not hold for this one.
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
