//! What the index knows of a document besides its words: enough to filter by, and to recognise it.

use chrono::DateTime;
use xxhash_rust::xxh3::xxh3_64;

use crate::model::{Document, Expiry, Kind, MemoryType, SkillPath, Trust};

/// What a document is, besides its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Tells this version of this record from every other.
    pub key: u64,
    /// Tells its text from every other: equal texts have equal vectors.
    pub text: u64,
    /// Seconds since 1970; [`i64::MIN`] where nobody knows.
    pub created: i64,
    /// Seconds since 1970; [`i64::MAX`] where it does not expire.
    pub expires: i64,
    /// `name_hash` of its `domain/skill`, 0 where it has none.
    pub skill: u32,
    /// `name_hash` of its domain, 0 where it has none.
    pub domain: u32,
    /// `name_hash` of whose it is, 0 where it is nobody's in particular.
    pub user: u32,
    /// Its place in [`Kind::ALL`].
    pub kind: u8,
    /// How far it may be believed, from 0.
    pub trust: u8,
    /// Which type of note it is, from 1; 0 where it is none.
    pub note: u8,
}

impl Attributes {
    /// Those of a document. `key` tells this version of its record from every other.
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
                // What ends nobody knows when is not found.
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

/// Those of a text that is no record, for rankings outside the memory.
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

/// A time of a record in seconds since 1970.
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

/// The hash under which skills and domains are compared, never 0. A filter by it lets another name
/// through once in four thousand million: who must be sure looks at the record.
#[expect(
    clippy::cast_possible_truncation,
    reason = "half of the bits is enough for a filter"
)]
pub(super) fn name_hash(name: &str) -> u32 {
    (xxh3_64(name.as_bytes()) as u32).max(1)
}

/// The hash by which texts are told apart.
pub(super) fn text_hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
