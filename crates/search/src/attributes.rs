//! Document attributes in the index, enough to filter by and to identify a document, and the filter over them.
//!
//! The filter applies before counting and ranking. Excluded documents do not affect term rarity, so scores
//! reveal nothing about them.
//!
//! Deliberately absent: what the numbers stand for.

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

/// Conditions for a document to be found. The default admits everything, including expired documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Current time in seconds since 1970; excludes documents expired by then.
    pub now: i64,
    /// Required kind.
    pub kind: Option<u8>,
    /// Required skill.
    pub skill: Option<u32>,
    /// Allowed domains; `None` for all.
    pub domains: Option<Vec<u32>>,
    /// Restriction to one user.
    pub own: Option<UserFilter>,
    /// Required memory type.
    pub note: Option<u8>,
    /// Minimum trust.
    pub trust: u8,
    /// Earliest creation time, in seconds since 1970.
    pub since: Option<i64>,
    /// End of the creation time range (exclusive), in seconds since 1970.
    pub until: Option<i64>,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            now: i64::MIN,
            kind: None,
            skill: None,
            domains: None,
            own: None,
            note: None,
            trust: 0,
            since: None,
            until: None,
        }
    }
}

/// Restriction to one user's documents, for kinds that have a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFilter {
    /// The kinds that have a user.
    pub kinds: [bool; KINDS],
    /// `None` matches no document of such a kind.
    pub user: Option<u32>,
}

impl UserFilter {
    /// Returns true if a document belongs to the user and has no domain: it is then visible in
    /// every non-empty scope.
    fn is_in_every_domain(&self, document: &Attributes) -> bool {
        let has_user = self.kinds.get(usize::from(document.kind)) == Some(&true);
        has_user && document.domain == 0 && document.skill == 0 && self.user == Some(document.user)
    }

    fn admits(&self, document: &Attributes) -> bool {
        let has_user = self.kinds.get(usize::from(document.kind));
        has_user == Some(&false) || self.user == Some(document.user)
    }
}

impl Admission {
    /// Returns true if every document that has not expired is admitted.
    pub(super) fn asks_for_nothing(&self) -> bool {
        let nothing = Self {
            now: self.now,
            ..Self::default()
        };
        *self == nothing
    }

    /// Returns true if a document may be found.
    pub fn admits(&self, document: &Attributes) -> bool {
        document.expires > self.now
            && document.trust >= self.trust
            && self.own.as_ref().is_none_or(|own| own.admits(document))
            && self.kind.is_none_or(|kind| document.kind == kind)
            && self.skill.is_none_or(|skill| document.skill == skill)
            && self.note.is_none_or(|note| document.note == note)
            && self.since.is_none_or(|since| document.created >= since)
            // An unknown creation time does not count as before `until`.
            && self.until.is_none_or(|until| document.created < until && document.created > i64::MIN)
            && self
                .domains
                .as_ref()
                .is_none_or(|domains| {
                    let own = self.own.as_ref().filter(|_| !domains.is_empty());
                    domains.contains(&document.domain)
                        || own.is_some_and(|own| own.is_in_every_domain(document))
                })
    }
}
