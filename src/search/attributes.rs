//! Document attributes in the index: enough to filter by and to identify a document.

use chrono::DateTime;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Document, Expiry, Kind, MemoryType, SkillPath, Trust};

/// Attributes of a document, apart from its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Identifies this version of this record.
    pub key: u64,
    /// Hash of the text: equal texts have equal vectors.
    pub text: u64,
    /// Creation time in seconds since 1970; [`i64::MIN`] if unknown.
    pub created: i64,
    /// Expiry time in seconds since 1970; [`i64::MAX`] if the document does not expire.
    pub expires: i64,
    /// `name_hash` of `domain/skill`; 0 for none.
    pub skill: u32,
    /// `name_hash` of the domain; 0 for none.
    pub domain: u32,
    /// `name_hash` of the user; 0 for none.
    pub user: u32,
    /// Index in [`Kind::ALL`].
    pub kind: u8,
    /// Trust level, from 0.
    pub trust: u8,
    /// Memory type, from 1; 0 for none.
    pub note: u8,
}

impl Attributes {
    /// Attributes of a document. `key` identifies this version of its record.
    pub fn of(document: &Document, key: u64) -> Self {
        let skill = document.skill.as_deref();
        let path = skill.and_then(|skill| skill.parse::<SkillPath>().ok());
        let expires = document.expires.as_deref();
        Self {
            key,
            text: text_hash(&document.content),
            created: seconds(&document.created).unwrap_or(i64::MIN),
            expires: match Expiry::of(expires) {
                Expiry::Never => i64::MAX,
                Expiry::At(end) => end.timestamp(),
                // Records with an unreadable expiry time are never found.
                Expiry::Unreadable => i64::MIN,
            },
            skill: skill.map_or(0, name_hash),
            domain: path.map_or(0, |path| name_hash(path.domain())),
            user: document.user_id.as_deref().map_or(0, name_hash),
            kind: kind_number(document.kind),
            trust: trust_number(document.trust),
            note: document.memory_type.map_or(0, note_number),
        }
    }
}

/// Attributes of plain text, for rankings outside the store.
impl Default for Attributes {
    fn default() -> Self {
        Self {
            key: 0,
            text: 0,
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

pub(super) fn kind_number(kind: Kind) -> u8 {
    let place = Kind::ALL.iter().position(|other| *other == kind);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(u8::MAX)
}

pub(super) const fn trust_number(trust: Trust) -> u8 {
    match trust {
        Trust::Observed => 0,
        Trust::Approved => 1,
        Trust::User => 2,
    }
}

pub(super) const fn note_number(memory_type: MemoryType) -> u8 {
    match memory_type {
        MemoryType::BrandMemory => 1,
        MemoryType::UserPreferences => 2,
        MemoryType::CompetitiveMemory => 3,
        MemoryType::TaskMemory => 4,
        MemoryType::PerformanceMemory => 5,
    }
}

/// Hash for comparing skills and domains, never 0. About one name in 2³² collides, so exact access
/// checks must compare the record itself.
#[expect(clippy::cast_possible_truncation, reason = "half of the bits is enough for a filter")]
pub(super) fn name_hash(name: &str) -> u32 {
    (xxh3_64(name.as_bytes()) as u32).max(1)
}

/// Hash that identifies a text.
pub(super) fn text_hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
