//! Key of a user, and digests under it.
//!
//! List of approved texts: one digest per line, append-only.

use std::collections::HashSet;
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use memctl_files::{hex, named};
use sha2::{Digest as _, Sha256};

use crate::model::{CallPattern, Record, Reflexion, by_kind};
use crate::store::{Entry, Error};

/// Names of the files.
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
        let mut mac = self.mac();
        mac.update(purpose.as_bytes());
        for part in parts {
            let part = part.as_ref();
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    #[expect(
        clippy::expect_used,
        reason = "HMAC takes keys of every length; the error type cannot occur"
    )]
    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("a key of any length")
    }
}

const APPROVED: &str = "approved";
/// Maximum size of the list in bytes: a quarter of a million texts.
const LONGEST: u64 = 16 << 20;

/// Reads the digests in the list; skips invalid lines.
pub(super) fn approved(state: &Path) -> HashSet<Mac> {
    let text = named::read_text(&state.join(APPROVED), LONGEST).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// Appends the digests that are not yet in the list.
pub(super) fn approve(state: &Path, digests: &[Mac]) -> Result<(), Error> {
    let known = approved(state);
    let new: HashSet<&Mac> = digests.iter().filter(|d| !known.contains(*d)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let lines: String = new.into_iter().map(|d| hex(d) + "\n").collect();
    let file = state.join(APPROVED);
    named::append(&file, lines.as_bytes()).map_err(Error::io("append to", &file))
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

/// Parses a digest from hexadecimal.
pub(crate) fn parse(text: &str) -> Option<Mac> {
    let digits: Vec<u32> = text
        .chars()
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect::<Option<_>>()?;
    bytes.try_into().ok()
}
