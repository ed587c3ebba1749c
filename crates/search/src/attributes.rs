//! Document attributes in the index: enough to filter by and to identify a document.

use chrono::DateTime;
use xxhash_rust::xxh3::xxh3_64;

/// Number of kinds that documents can have.
pub const KINDS: usize = 16;

/// Attributes of a document, apart from its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Identifies this version of this record.
    pub key: u64,
    /// Creation time in seconds since 1970; [`i64::MIN`] if unknown.
    pub created: i64,
    /// Expiry time in seconds since 1970; [`i64::MAX`] if the document does not expire.
    pub expires: i64,
    /// [`name_hash`] of `domain/skill`; 0 for none.
    pub skill: u32,
    /// [`name_hash`] of the domain; 0 for none.
    pub domain: u32,
    /// [`name_hash`] of the user; 0 for none.
    pub user: u32,
    /// Number of the kind, below [`KINDS`].
    pub kind: u8,
    /// Trust level, from 0.
    pub trust: u8,
    /// Memory type, from 1; 0 for none.
    pub note: u8,
}

/// Attributes of plain text, for rankings outside the store.
impl Default for Attributes {
    fn default() -> Self {
        Self {
            key: 0,
            created: i64::MIN,
            expires: i64::MAX,
            skill: 0,
            domain: 0,
            user: 0,
            kind: 0,
            trust: 0,
            note: 0,
        }
    }
}

/// Seconds since 1970 of an RFC 3339 time; `None` if it does not parse.
pub fn seconds(time: &str) -> Option<i64> {
    let parsed = DateTime::parse_from_rfc3339(time).ok()?;
    Some(parsed.timestamp())
}

/// Hash for comparing skills and domains, never 0. About one name in 2³² collides, so exact access
/// checks must compare the record itself.
#[expect(clippy::cast_possible_truncation, reason = "half of the bits is enough for a filter")]
pub fn name_hash(name: &str) -> u32 {
    (xxh3_64(name.as_bytes()) as u32).max(1)
}
