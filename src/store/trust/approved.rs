//! List of approved texts: one digest per line, append-only.

use std::collections::HashSet;
use std::path::Path;

use crate::model::{
    CallPattern, Correction, Execution, Kind, Memory, Procedure, Record, Reflexion, Session,
};
use crate::store::entry::Entry;
use crate::store::error::Error;
use memctl_files::{hex, named};

use super::key::{Mac, UserKey};

const FILE: &str = "approved";
/// Maximum size of the list in bytes: a quarter of a million texts.
const LONGEST: u64 = 16 << 20;

/// Reads the digests in the list; skips invalid lines.
pub(super) fn read(state: &Path) -> HashSet<Mac> {
    let text = named::read_text(&state.join(FILE), LONGEST).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// Appends the digests that are not yet in the list.
pub(super) fn add(state: &Path, digests: &[Mac]) -> Result<(), Error> {
    let known = read(state);
    let new: HashSet<&Mac> = digests.iter().filter(|d| !known.contains(*d)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let lines: String = new.into_iter().map(|d| hex(d) + "\n").collect();
    let file = state.join(FILE);
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
    match entry.kind {
        Kind::Reflexion => of::<Reflexion>(key, entry),
        Kind::Procedure => of::<Procedure>(key, entry),
        Kind::Memory => of::<Memory>(key, entry),
        Kind::Execution => of::<Execution>(key, entry),
        Kind::Correction => of::<Correction>(key, entry),
        Kind::Session => of::<Session>(key, entry),
    }
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
