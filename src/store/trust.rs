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
//! Deliberately absent: settings files (`config` only asks for their digest), and the display of
//! observed text (`memctl_redact::fence`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hmac::Mac as _;
use memctl_files::{Directory, hex, named};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::model::{CallPattern, Kind, Record, Reflexion, Trust, by_kind};
use crate::store::files::directory::TRUST_MARKER as MARKER;
use crate::store::files::keyed_hash;
use crate::store::{Entry, Error};

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
#[derive(Debug, Default)]
pub struct TrustSnapshot {
    /// `true` if the approvals of the workspace's own files count.
    is_whole: bool,
    key: Option<UserKey>,
    listed: HashSet<Mac>,
}

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
        TrustSnapshot {
            is_whole: self.is_trusted(),
            ..self.own_words()
        }
    }

    /// Reads only the texts that this user stated or approved, also in a trusted workspace.
    pub fn own_words(&self) -> TrustSnapshot {
        TrustSnapshot {
            is_whole: self.all,
            key: self.key(),
            listed: self.state.as_deref().map(approved).unwrap_or_default(),
        }
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
        let may_act = rule.trust() != Trust::Observed && !rule.seen_by.is_empty();
        may_act && self.lists(|key| digest_of_patterns(key, rule))
    }

    /// Returns `true` if the approvals of the workspace's own files count.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn effective(&self, own: Trust, digest: impl FnOnce(&UserKey) -> Option<Mac>) -> Trust {
        if own != Trust::Observed && self.lists(digest) {
            own
        } else {
            Trust::Observed
        }
    }

    /// Returns `true` if a digest is approved, or need not be.
    fn lists(&self, digest: impl FnOnce(&UserKey) -> Option<Mac>) -> bool {
        let digest = || self.key.as_ref().and_then(digest);
        self.is_whole || digest().is_some_and(|digest| self.listed.contains(&digest))
    }
}

/// Returns `true` for kinds whose text acts on an agent.
pub(super) fn acts(kind: Kind) -> bool {
    matches!(kind, Kind::Reflexion | Kind::Procedure | Kind::Memory)
}

impl Approvals {
    /// Makes the workspace's own approvals count, including those that anyone adds later: this user began it, which is
    /// noted under its lock, before the first record; or trusts it as a source.
    pub fn trust(
        &self,
        basis: Basis,
        at: &str,
        random: &mut dyn FnMut() -> String,
    ) -> Result<(), Error> {
        if self.note().is_some_and(|note| note.basis.is_some()) {
            return Ok(());
        }
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
        if let Some(key) = self.key() {
            let acting = entries.iter().filter(|entry| acts(entry.kind));
            let digests: Vec<Mac> = acting.flat_map(|entry| digests_of(&key, entry)).collect();
            self.set(&digests, false)?;
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

    /// Appends lines that approve digests, or revoke them, where the list does not say so already.
    pub(crate) fn set(&self, digests: &[Mac], is_approved: bool) -> Result<(), Error> {
        let new = self.new_among(digests, is_approved);
        let Some(state) = self.state.as_deref().filter(|_| !new.is_empty()) else {
            return Ok(());
        };
        let sign = if is_approved { "" } else { REVOKED };
        let lines = new.iter().map(|digest| format!("{sign}{}\n", hex(digest)));
        let file = state.join(APPROVED);
        let appended = named::append(&file, lines.collect::<String>().as_bytes());
        appended.map_err(Error::io("append to", &file))
    }

    /// Returns the digests that are not approved, or not revoked, already.
    pub(crate) fn new_among(&self, digests: &[Mac], is_approved: bool) -> HashSet<Mac> {
        let listed = self.state.as_deref().map(approved);
        let is_new = |digest: &&Mac| {
            let mut listed = listed.iter();
            listed.any(|listed| listed.contains(*digest) != is_approved)
        };
        digests.iter().filter(is_new).copied().collect()
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
        let path = named::real(&self.directory).ok()?;
        let path = path.to_string_lossy().into_owned();
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

/// Name of the file with the key.
const KEY: &str = "key";
/// Length of the key and of a digest, in bytes.
const LENGTH: usize = 32;

/// A keyed digest (HMAC-SHA-256).
pub(crate) type Mac = [u8; LENGTH];

/// Random bytes that only this user can read.
#[derive(Clone)]
pub(crate) struct UserKey([u8; LENGTH]);

impl std::fmt::Debug for UserKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserKey(..)")
    }
}

impl UserKey {
    /// Reads the key in a state directory; `None` if it is missing or damaged.
    fn read(state: &Path) -> Option<Self> {
        let bytes = named::read(&state.join(KEY), LENGTH as u64).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Creates the key. The first of several concurrent processes wins, and all use its key.
    fn make(state: &Path, random: &mut dyn FnMut() -> String) -> Result<Self, Error> {
        let mut hash = Sha256::new();
        for _ in 0..4 {
            hash.update(random());
        }
        let key: [u8; LENGTH] = hash.finalize().into();
        let file = state.join(KEY);
        named::create_dir(state).map_err(Error::io("create", state))?;
        named::create_once(&file, &key).map_err(Error::io("write", &file))?;
        Ok(Self::read(state).unwrap_or(Self(key)))
    }

    /// Returns the digest of the parts; `purpose` separates the digests of different uses.
    pub(crate) fn digest<T: AsRef<[u8]>>(
        &self,
        purpose: &str,
        parts: impl IntoIterator<Item = T>,
    ) -> Mac {
        let mut mac = keyed_hash(&self.0);
        mac.update(purpose.as_bytes());
        for part in parts {
            let part = part.as_ref();
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Name of the file with the list.
const APPROVED: &str = "approved";
/// Beginning of a line that revokes a digest.
const REVOKED: &str = "-";
/// Maximum size of the list in bytes: a quarter of a million texts.
const LONGEST_LIST: u64 = 16 << 20;

/// Reads the digests in the list; skips invalid lines.
fn approved(state: &Path) -> HashSet<Mac> {
    let text = named::read_text(&state.join(APPROVED), LONGEST_LIST).unwrap_or_default();
    let mut digests = HashSet::new();
    for line in text.lines() {
        match line.strip_prefix(REVOKED).map(parse) {
            Some(Some(digest)) => drop(digests.remove(&digest)),
            Some(None) => {}
            None => digests.extend(parse(line)),
        }
    }
    digests
}

/// Returns the digest of a record's claims; `None` for kinds that do not act on an agent.
fn digest<R: Record>(key: &UserKey, record: &R) -> Option<Mac> {
    let claims = record.claims();
    if claims.is_empty() {
        return None;
    }
    let kind = [R::KIND.name().to_owned(), record.trust().name().to_owned()];
    Some(key.digest("approved", kind.into_iter().chain(claims)))
}

/// Returns the digest of an entry's claims; `None` if it is not a readable record of such a kind.
pub(super) fn digest_of(key: &UserKey, entry: &Entry) -> Option<Mac> {
    fn of<R: Record>(key: &UserKey, entry: &Entry) -> Option<Mac> {
        digest(key, &entry.parse::<R>().ok()?)
    }
    by_kind!(entry.kind, of(key, entry))
}

/// Returns the digest of a rule together with its patterns and its action; `None` without patterns.
pub(super) fn digest_of_patterns(key: &UserKey, rule: &Reflexion) -> Option<Mac> {
    if rule.seen_by.is_empty() {
        return None;
    }
    let own = [rule.trust().name(), rule.action.name()].map(str::to_owned);
    let patterns = rule.seen_by.iter().flat_map(CallPattern::claims);
    let claims = own.into_iter().chain(rule.claims());
    Some(key.digest("acts", claims.chain(patterns.map(str::to_owned))))
}

/// Returns the digests under which an entry can be approved: that of its claims, and that of a rule's patterns.
pub(super) fn digests_of(key: &UserKey, entry: &Entry) -> Vec<Mac> {
    let rule = entry.parse::<Reflexion>().ok();
    let patterns = rule.and_then(|rule| digest_of_patterns(key, &rule));
    digest_of(key, entry).into_iter().chain(patterns).collect()
}

/// Parses a digest from hexadecimal.
pub(crate) fn parse(text: &str) -> Option<Mac> {
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = text.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Procedure;

    struct Machine {
        home: tempfile::TempDir,
        next: u32,
    }

    impl Machine {
        fn new() -> Self {
            Self {
                home: tempfile::tempdir().unwrap(),
                next: 0,
            }
        }

        fn random(&mut self) -> impl FnMut() -> String + use<> {
            self.next += 1;
            let home = self.home.path().file_name().unwrap_or_default();
            let name = format!("{}-{}", home.display(), self.next);
            let mut n = 0;
            move || {
                n += 1;
                format!("{name}-{n}")
            }
        }

        fn on(&self, workspace: &Path) -> Approvals {
            Approvals::of(Some(self.home.path()), workspace, false)
        }
    }

    fn procedure(working: &str, trust: &str) -> Procedure {
        let procedure = json!({"procedure_id": "PROC-001", "lesson": working, "trust": trust});
        serde_json::from_value(procedure).unwrap()
    }

    fn entry(procedure: &Procedure) -> Entry {
        Entry {
            kind: Kind::Procedure,
            id: procedure.procedure_id.clone(),
            text: serde_json::to_vec(procedure).unwrap(),
            is_local: false,
            offset: 0,
        }
    }

    #[test]
    fn nothing_is_trusted_by_default() {
        let workspace = tempfile::tempdir().unwrap();
        let approved = procedure("w", "approved");
        for approvals in [
            Approvals::default(),
            Approvals::of(None, workspace.path(), false),
            Machine::new().on(workspace.path()),
        ] {
            assert_eq!(approvals.trust_snapshot().level(&approved), Trust::Observed);
        }
        let all = Approvals::everything().trust_snapshot();
        assert_eq!(all.level(&approved), Trust::Approved);
        assert_eq!(all.level(&procedure("w", "")), Trust::Observed);
    }

    #[test]
    fn workspace_is_trusted_by_its_creator_and_at_its_path() {
        let mut machine = Machine::new();
        let workspace = tempfile::tempdir().unwrap();
        let mut random = machine.random();
        machine
            .on(workspace.path())
            .trust(Basis::Began, "now", &mut random)
            .unwrap();
        assert!(machine.on(workspace.path()).is_trusted());
        assert!(!Machine::new().on(workspace.path()).is_trusted());
        // A copy with the same marker, and another directory at the same path.
        let copy = tempfile::tempdir().unwrap();
        let marker = std::fs::read(workspace.path().join(MARKER)).unwrap();
        named::replace(&copy.path().join(MARKER), &marker).unwrap();
        assert!(!machine.on(copy.path()).is_trusted());
        named::replace(&workspace.path().join(MARKER), b"another\n").unwrap();
        assert!(!machine.on(workspace.path()).is_trusted());
        // Two empty markers do not match.
        named::replace(&workspace.path().join(MARKER), b"\n").unwrap();
        assert!(!machine.on(workspace.path()).is_trusted());
    }

    #[test]
    fn an_approval_is_of_a_text_at_a_level() {
        let mut machine = Machine::new();
        let workspace = tempfile::tempdir().unwrap();
        let approvals = machine.on(workspace.path());
        let approved = procedure("w", "approved");
        approvals
            .approve(&[entry(&approved)], &mut machine.random())
            .unwrap();
        let trust_snapshot = approvals.trust_snapshot();
        assert_eq!(trust_snapshot.level(&approved), Trust::Approved);
        assert_eq!(
            trust_snapshot.of_entry(&entry(&approved), Trust::Approved),
            Trust::Approved
        );
        assert_eq!(
            trust_snapshot.level(&procedure("other", "approved")),
            Trust::Observed
        );
        let mut counted = approved.clone();
        counted.shown = Some(9.0);
        assert_eq!(trust_snapshot.level(&counted), Trust::Approved);
        // A text approved as data gains no trust from another word in the file.
        let observed = procedure("data", "");
        approvals
            .approve(&[entry(&observed)], &mut machine.random())
            .unwrap();
        let trust_snapshot = approvals.trust_snapshot();
        assert_eq!(
            trust_snapshot.level(&procedure("data", "approved")),
            Trust::Observed
        );
        // Another user has another key.
        let other = Machine::new();
        let list = std::fs::read(machine.home.path().join("approved")).unwrap();
        named::replace(&other.home.path().join("approved"), &list).unwrap();
        assert_eq!(
            other.on(workspace.path()).trust_snapshot().level(&approved),
            Trust::Observed
        );
    }

    #[test]
    fn pulled_records_stand_by_their_origin() {
        let mut machine = Machine::new();
        let workspace = tempfile::tempdir().unwrap();
        let approvals = machine.on(workspace.path());
        approvals
            .trust(Basis::Began, "now", &mut machine.random())
            .unwrap();
        assert!(!approvals.of_origin("3f2a").is_trusted());
        approvals
            .trust_origin("3f2a", &mut machine.random())
            .unwrap();
        assert!(
            approvals.of_origin("3f2a").is_trusted() && !approvals.of_origin("4f2a").is_trusted()
        );
        assert!(approvals.is_trusted());
        approvals.revoke(&[]).unwrap();
        assert!(!approvals.is_trusted() && !approvals.of_origin("3f2a").is_trusted());
    }

    #[test]
    fn only_a_whole_record_silences_what_the_user_vouches_for() {
        use TrustedPart::{Nothing, Text, Whole};
        let check = |one: TrustedPart, other: TrustedPart, expected: bool| {
            assert_eq!(one.may_silence(other), expected, "{one:?} {other:?}");
        };
        for other in [Nothing, Text, Whole] {
            check(other, Nothing, true);
            check(Nothing, other, other == Nothing);
            check(Text, other, other == Nothing);
            check(Whole, other, true);
        }
        assert!(Nothing < Text && Text < Whole);
    }
}
