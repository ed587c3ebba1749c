//! Compact manifest of the local records of a kind, one small entry per record.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use crate::model::Kind;
use crate::store::{Entry, Positions, redact, text_field};

use super::super::error::Error;

/// Manifest entry of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Hash of the record id.
    pub(super) id: u64,
    /// First 8 bytes of the SHA-256 of the text; `None` if the record has expired. Expired records
    /// are not sent, and their rows are not removed.
    pub(super) text: Option<u64>,
    /// Place among the records of its kind.
    pub(super) place: u32,
}

/// Manifest of a kind, sorted by id hash, each id once.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) lines: Vec<Line>,
    /// Number of records that cannot be sent.
    pub(super) unfit: u64,
}

/// Record prepared for sending.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) entry: Entry,
    /// Redacted text.
    pub(super) text: String,
}

impl Outgoing {
    /// Skill of the record; empty for none.
    pub(super) fn skill(&self) -> String {
        text_field(&self.entry.text, "skill").unwrap_or_default()
    }
}

pub(super) fn hash_of_id(id: &str) -> u64 {
    xxh3_64(id.as_bytes())
}

/// First 8 bytes of the SHA-256.
pub(super) fn hash_of_text(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(8)
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// Returns `true` if a record with this id and text can be stored as a row.
pub(crate) fn is_fit(id: &str, text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    id.len() <= 128
        && id.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && id.bytes().all(plain)
        && !text.contains('\0')
}

/// Redacts a record for sending; `None` if it cannot be stored as a row.
pub(super) fn outgoing(entry: Entry) -> Option<Outgoing> {
    let text = std::str::from_utf8(&entry.text).ok()?;
    let text = match redact(text).text {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    };
    is_fit(&entry.id, &text).then_some(Outgoing { entry, text })
}

/// Reads all records of a kind. Calls `on_record` for each.
pub(super) fn manifest(
    positions: &Positions,
    on_record: &mut dyn FnMut(),
) -> Result<Manifest, Error> {
    let mut manifest = Manifest::default();
    manifest.lines.reserve(positions.len());
    for place in positions.places() {
        on_record();
        let Some((_, entry)) = positions.any_entry(place)? else {
            continue;
        };
        let is_alive = !entry.kind.may_expire() || positions.entry(place)?.is_some();
        let Some(outgoing) = outgoing(entry) else {
            manifest.unfit += 1;
            continue;
        };
        manifest.lines.push(Line {
            id: hash_of_id(&outgoing.entry.id),
            text: is_alive.then(|| hash_of_text(&outgoing.text)),
            place,
        });
    }
    // If records share an id, the last one wins, as everywhere.
    manifest
        .lines
        .sort_by_key(|line| (line.id, std::cmp::Reverse(line.place)));
    manifest.lines.dedup_by_key(|line| line.id);
    Ok(manifest)
}

/// Kinds in sending order: referenced records go before the records that refer to them.
pub(super) const ORDER: [Kind; 6] = Kind::ALL;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_beginning_of_the_one_that_the_server_makes() {
        // select left(encode(sha256(convert_to('abc', 'UTF8')), 'hex'), 16)
        assert_eq!(hash_of_text("abc"), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn what_no_row_takes_is_left_out() {
        let check = |id: &str, text: &str, expected: bool| {
            assert_eq!(is_fit(id, text), expected, "{id:?} {text:?}");
        };
        check("CORR-001", "{}", true);
        check("EXEC-20260220124341-a1b2c3", "{}", true);
        check("", "{}", false);
        check("-x", "{}", false);
        check("a b", "{}", false);
        check(&"x".repeat(129), "{}", false);
        check("CORR-001", "{\"a\": \"\0\"}", false);
    }
}
