//! Texts that the user stated or approved: their digests under the key of the user, and the list of them.

use std::collections::HashSet;
use std::path::Path;

use hmac::Mac as _;
use memctl_files::{hex, named};
use sha2::{Digest as _, Sha256};

use crate::model::{CallPattern, Record, Reflexion, by_kind};
use crate::store::files::keyed_hash;
use crate::store::{Entry, Error};

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
    pub(super) fn read(state: &Path) -> Option<Self> {
        let bytes = named::read(&state.join(KEY), LENGTH as u64).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// Creates the key. The first of several concurrent processes wins, and all use its key.
    pub(super) fn make(state: &Path, random: &mut dyn FnMut() -> String) -> Result<Self, Error> {
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
pub(super) fn approved(state: &Path) -> HashSet<Mac> {
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

/// Returns the digests that the list does not approve, or not revoke, already.
pub(super) fn new_among(state: &Path, digests: &[Mac], is_approved: bool) -> HashSet<Mac> {
    let listed = approved(state);
    let is_new = |digest: &&Mac| listed.contains(*digest) != is_approved;
    digests.iter().filter(is_new).copied().collect()
}

/// Appends lines that approve digests, or revoke them, where the list does not say so already.
pub(super) fn append(state: &Path, digests: &[Mac], is_approved: bool) -> Result<(), Error> {
    let new = new_among(state, digests, is_approved);
    if new.is_empty() {
        return Ok(());
    }
    let sign = if is_approved { "" } else { REVOKED };
    let lines = new
        .into_iter()
        .map(|digest| format!("{sign}{}\n", hex(&digest)));
    let file = state.join(APPROVED);
    let appended = named::append(&file, lines.collect::<String>().as_bytes());
    appended.map_err(Error::io("append to", &file))
}

/// Returns the digest of a record's claims; `None` for kinds that do not act on an agent.
pub(super) fn digest<R: Record>(key: &UserKey, record: &R) -> Option<Mac> {
    let claims = record.claims();
    if claims.is_empty() {
        return None;
    }
    let kind = [R::KIND.name().to_owned(), record.trust().name().to_owned()];
    Some(key.digest("approved", kind.into_iter().chain(claims)))
}

/// Returns the digest of an entry's claims; `None` if it is not a readable record of such a kind.
pub(crate) fn digest_of(key: &UserKey, entry: &Entry) -> Option<Mac> {
    fn of<R: Record>(key: &UserKey, entry: &Entry) -> Option<Mac> {
        digest(key, &entry.parse::<R>().ok()?)
    }
    by_kind!(entry.kind, of(key, entry))
}

/// Returns the digest of a rule together with its patterns and its action; `None` without patterns.
pub(crate) fn digest_of_patterns(key: &UserKey, rule: &Reflexion) -> Option<Mac> {
    if rule.seen_by.is_empty() {
        return None;
    }
    let own = [rule.trust().name(), rule.action.name()].map(str::to_owned);
    let patterns = rule.seen_by.iter().flat_map(CallPattern::claims);
    let claims = own.into_iter().chain(rule.claims());
    Some(key.digest("acts", claims.chain(patterns.map(str::to_owned))))
}

/// Returns the digests under which an entry can be approved: that of its claims, and that of a rule's patterns.
pub(crate) fn digests_of(key: &UserKey, entry: &Entry) -> Vec<Mac> {
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
