//! The closed set of record kinds, their common interface, the syntax of their ids, and trust in records.
//!
//! A new kind needs a struct, an `impl Record`, and one arm in each `match` here. A test iterates
//! over [`Kind::ALL`] to find omissions.
//!
//! The source documents fix two forms of ids. `CORR-003` carries a counter. `EXEC-20260220124341` carries
//! the second of its creation, with `-2`, `-3` … for later ids of the same second. The store
//! ensures uniqueness, under its lock.
//!
//! A record that only this machine has carries a random word behind its counter, `REFL-003-k3v9q2`.
//! No clone gives such an id. The record gets the form of the source documents when a person
//! approves it, and keeps the first id in its field [`LOCAL_ID`].

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::metadata::MemoryType;
use crate::model::text::one_line;
use crate::model::words::{names, schema};

names! {
    /// Kind of a record. The order follows the data flow, and is that of listings: events first, then the
    /// knowledge learned from them.
    Kind {
        /// One run of a skill.
        Execution = "execution",
        /// A user's correction of an execution.
        Correction = "correction",
        /// A rule learned from a correction.
        Reflexion = "reflexion",
        /// A lesson: a procedure learned from a recovery or a detour.
        Procedure = "procedure",
        /// A typed note.
        Memory = "memory",
        /// One session of an agent.
        Session = "session",
    }
}

schema!(Kind, { "type": "string", "enum": Self::ALL.map(Self::name) });

/// Names of each kind, in the order of [`Kind::ALL`]: its file, the field of its id, the prefix of ids, the
/// plural in JSON, and the words for one and for many in text for people.
const NAMES: [[&str; 6]; Kind::ALL.len()] = [
    [
        "episodic_memory.json", "execution_id", "EXEC", "executions", "execution", "executions",
    ],
    [
        "corrections.json", "correction_id", "CORR", "corrections", "correction", "corrections",
    ],
    [
        "reflexion_entries.json", "reflexion_id", "REFL", "reflexions", "rule", "rules",
    ],
    [
        "procedural_memory.json", "procedure_id", "PROC", "procedures", "lesson", "lessons",
    ],
    ["memories.json", "id", "MEM", "memories", "note", "notes"],
    [
        "sessions.json", "session_id", "SESS", "sessions", "session", "sessions",
    ],
];

impl Kind {
    /// Returns the file under `.agentura/` that stores records of this kind.
    pub const fn file(self) -> &'static str {
        NAMES[self as usize][0]
    }

    /// Returns the key of the root object that holds the array of entries.
    pub const fn root_key(self) -> &'static str {
        match self {
            Self::Correction => "corrections",
            _ => "entries",
        }
    }

    /// Returns the name of the id field.
    pub const fn id_field(self) -> &'static str {
        NAMES[self as usize][1]
    }

    /// Returns the prefix of ids of this kind, without the dash.
    pub const fn prefix(self) -> &'static str {
        NAMES[self as usize][2]
    }

    /// Returns the plural name, as in the JSON of `memory status`.
    pub const fn plural(self) -> &'static str {
        NAMES[self as usize][3]
    }

    /// Returns the word for a record in text for people.
    pub const fn noun(self) -> &'static str {
        NAMES[self as usize][4]
    }

    /// Returns the word for records in text for people, which the command line takes too.
    pub const fn nouns(self) -> &'static str {
        NAMES[self as usize][5]
    }

    /// Returns `true` if records of this kind belong to a user. Only that user and the owner of the
    /// files may see them.
    pub const fn has_user(self) -> bool {
        matches!(self, Self::Memory | Self::Session)
    }

    /// Returns `true` if records of this kind may have an `expires_at`.
    pub const fn may_expire(self) -> bool {
        matches!(self, Self::Memory)
    }

    /// Returns `true` if ids of this kind carry the second of creation instead of a counter.
    pub const fn is_timestamped(self) -> bool {
        matches!(self, Self::Execution | Self::Session)
    }

    /// Returns the kind of an id or of an id prefix: `corr-00` is a correction.
    pub fn of_id(id: &str) -> Option<Self> {
        let (prefix, _) = id.split_once('-')?;
        Self::ALL
            .into_iter()
            .find(|kind| kind.prefix().eq_ignore_ascii_case(prefix))
    }
}

/// Uniform view of a record for search, listing, export and the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The kind of the record.
    pub kind: Kind,
    /// Id, unique within its workspace.
    pub id: String,
    /// `domain/skill`; `None` if the record belongs to no skill.
    pub skill: Option<String>,
    /// Searchable text: values only, no field names.
    pub content: String,
    /// One-line summary for lists.
    pub summary: String,
    /// Creation time: RFC 3339, UTC; empty if the file has none.
    pub created: String,
    /// Trust in the record.
    pub trust: Trust,
    /// Expiry: RFC 3339, UTC; `None` means never.
    pub expires: Option<String>,
    /// Type of the note; `None` for other kinds.
    pub memory_type: Option<MemoryType>,
    /// Id of the user; `None` for the owner's records and for kinds without users.
    pub user_id: Option<String>,
    /// Status; `None` for kinds without one.
    pub status: Option<String>,
    /// Source, if the record names one.
    pub source: Option<String>,
}

impl Document {
    /// A document with an id and a time of creation, and nothing else.
    pub(super) fn new(kind: Kind, id: &str, created: &str) -> Self {
        Self {
            kind,
            id: id.to_owned(),
            skill: None,
            content: String::new(),
            summary: String::new(),
            created: created.to_owned(),
            trust: Trust::Observed,
            expires: None,
            memory_type: None,
            user_id: None,
            status: None,
            source: None,
        }
    }
}

/// Returns a field of a file, if it is not empty.
pub(super) fn given(field: &str) -> Option<String> {
    (!field.is_empty()).then(|| field.to_owned())
}

/// A record of one [`Kind`], with what kind-independent code needs.
pub trait Record: Serialize + DeserializeOwned {
    /// The kind of every record of this type.
    const KIND: Kind;

    /// Returns the document without its texts and its trust.
    fn labels(&self) -> Document;

    /// Returns the searchable text: values only, no field names.
    fn content(&self) -> String;

    /// Returns a one-line summary for lists.
    fn summary(&self) -> String {
        one_line(&self.content())
    }

    /// Returns the trust in the record.
    fn trust(&self) -> Trust {
        Trust::User
    }

    /// Returns the texts that act on an agent, which an approval covers. Empty for kinds that are
    /// only shown as data.
    fn claims(&self) -> Vec<String> {
        Vec::new()
    }

    /// Converts the record to a [`Document`].
    fn document(&self) -> Document {
        Document {
            content: self.content(),
            summary: self.summary(),
            trust: self.trust(),
            ..self.labels()
        }
    }
}

/// Normalizes the layout of a JSON text, so that equal values have equal texts.
pub(super) fn one_layout(json: &serde_json::value::RawValue) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json.get());
    value.map_or_else(|_| json.get().to_owned(), |value| value.to_string())
}

/// `source` of records that an agent relayed.
pub const AGENT: &str = "agent";

/// Field of a record with the id of its copy in the user store.
pub const PROMOTED_TO: &str = "promoted_to";

/// `source` of rules that were heard in the messages of a person to an agent.
pub const CHAT: &str = "chat";

/// `status` of a rule that awaits a user's approval.
pub const CANDIDATE: &str = "candidate";

/// State of a candidate that a person has rejected.
pub const REJECTED: &str = "rejected";

/// Value of a `trust` field: nobody has approved the record.
pub const OBSERVED: &str = "observed";

names! {
    /// Trust in a record, which decides where a prompt may show it.
    #[derive(JsonSchema)]
    Trust {
        /// Taken from tool output, the web or a foreign repository; shown only as data.
        Observed = "observed",
        /// Observed, then approved by a user.
        Approved = "approved",
        /// Stated by a user.
        User = "user",
    }
}

impl Trust {
    /// Reads the `trust` field of a record that nobody has stated here. An unknown word gives no trust.
    pub(super) fn stored(field: &str) -> Self {
        match field {
            "user" => Self::User,
            "approved" => Self::Approved,
            _ => Self::Observed,
        }
    }
}

/// Returns the label shown before a record, so that no reader takes an agent's text for a user's, or a
/// rule for one in force; `None` for all other records. `trust` is that of a rule; `None` for other
/// kinds.
pub fn mark(status: Option<&str>, source: Option<&str>, trust: Option<Trust>) -> Option<String> {
    let state = match (status, trust) {
        (Some("active"), Some(Trust::Observed)) => Some(OBSERVED),
        (Some("active"), _) => None,
        (Some(status), Some(_)) => Some(status),
        (status, _) => status.filter(|status| *status == CANDIDATE),
    };
    let agent = (source == Some(AGENT)).then_some("[agent]");
    let words: Vec<&str> = state.into_iter().chain(agent).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Position of an id in its sequence, from which the next id is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct IdShape {
    /// The number of `CORR-003`, or the fourteen digits of `EXEC-20260220124341`.
    pub number: u64,
    /// The `2` of `EXEC-20260220124341-2`; 1 without a suffix.
    pub suffix: u32,
}

impl IdShape {
    /// Parses an id of this kind. Returns `None` for any other form (`weird`, or the reference's
    /// `EXEC-…-a1b2c3`); such ids are only compared for equality.
    pub fn of(kind: Kind, id: &str) -> Option<Self> {
        let rest = id.strip_prefix(kind.prefix())?.strip_prefix('-')?;
        if !kind.is_timestamped() {
            let number = local_number(kind, id).or_else(|| digits(rest))?;
            return Some(Self { number, suffix: 1 });
        }
        let (stamp, suffix) = match rest.split_once('-') {
            None => (rest, 1),
            Some((stamp, suffix)) => {
                // Six hexadecimal characters are the random suffix of the reference implementation,
                // even if all of them are digits.
                if suffix.len() >= 6 {
                    return None;
                }
                (stamp, u32::try_from(digits(suffix)?).ok()?)
            }
        };
        (stamp.len() == 14).then_some(Self {
            number: digits(stamp)?,
            suffix,
        })
    }
}

/// Returns the highest number that directly follows `before` in a text; 0 if there is none. One with more
/// digits than any counter reaches is no number of ours.
pub fn highest_after(text: &[u8], before: &str) -> u64 {
    let starts = memchr::memmem::find_iter(text, before).map(|at| at + before.len());
    let number = |start: usize| {
        let rest = &text[start..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit());
        let found = std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()?;
        digits(found).filter(|_| found.len() < 12)
    };
    starts.filter_map(number).max().unwrap_or_default()
}

/// Formats `CORR-003`: at least three digits, more if needed.
pub fn numbered(kind: Kind, number: u64) -> String {
    format!("{}-{number:03}", kind.prefix())
}

/// Field of an approved record: the id that it had while only this machine had it.
pub const LOCAL_ID: &str = "local_id";

/// Length of the random word in the id of a record that only this machine has.
const WORD: usize = 6;

/// Formats `REFL-003-k3v9q2`, the id of a record that only this machine has. The word is the beginning
/// of `random`.
pub fn local(kind: Kind, number: u64, random: &str) -> String {
    let word = random.chars().filter(char::is_ascii_alphanumeric);
    let word: String = word.take(WORD).collect();
    format!("{}-{:0<WORD$}", numbered(kind, number), word.to_lowercase())
}

/// Returns the number in the id of a record that only this machine has; `None` for other ids.
pub fn local_number(kind: Kind, id: &str) -> Option<u64> {
    let rest = id.strip_prefix(kind.prefix())?.strip_prefix('-')?;
    let (number, word) = rest.split_once('-').filter(|_| !kind.is_timestamped())?;
    let is_word = |b: u8| b.is_ascii_digit() || b.is_ascii_lowercase();
    let is_local = word.len() == WORD && word.bytes().all(is_word);
    is_local.then(|| digits(number)).flatten()
}

/// Formats `EXEC-20260220124341`, with `-2` and so on for later ids of the same second.
pub fn timestamped(kind: Kind, at: DateTime<Utc>, suffix: u32) -> String {
    let stamp = at.format("%Y%m%d%H%M%S");
    match suffix {
        0 | 1 => format!("{}-{stamp}", kind.prefix()),
        n => format!("{}-{stamp}-{n}", kind.prefix()),
    }
}

/// Number of characters of the workspace name after an id: enough to distinguish those of a team.
const ORIGIN_SHOWN: usize = 8;

/// Origin of the records in the user store: `REFL-001@user`. No workspace has this name.
pub const USER_STORE: &str = "user";

/// Formats the id of a remote record: `CORR-003@3f2a9c1b`.
pub fn with_origin(id: &str, origin: &str) -> String {
    let shown: String = origin.chars().take(ORIGIN_SHOWN).collect();
    format!("{id}@{shown}")
}

/// Splits an id from the prefix of its workspace name, if it has one.
pub fn split_origin(id: &str) -> (&str, Option<&str>) {
    let parts = id.split_once('@');
    parts.map_or((id, None), |(id, origin)| (id, Some(origin)))
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_file_name_and_prefix() {
        for (i, a) in Kind::ALL.iter().enumerate() {
            for b in &Kind::ALL[i + 1..] {
                assert_ne!(a.file(), b.file());
                assert_ne!(a.prefix(), b.prefix());
                assert_ne!(a.name(), b.name());
                assert_ne!(a.plural(), b.plural());
            }
            assert_eq!(Kind::of_id(&format!("{}-001", a.prefix())), Some(*a));
        }
    }

    #[test]
    fn an_id_names_its_kind_whatever_its_case() {
        assert_eq!(Kind::of_id("corr-0"), Some(Kind::Correction));
        assert_eq!(Kind::of_id("REFL-003"), Some(Kind::Reflexion));
        assert_eq!(Kind::of_id("latest"), None);
        assert_eq!(Kind::of_id("XYZ-1"), None);
    }
}

#[cfg(test)]
mod tests_of_id {
    use super::*;

    #[test]
    fn the_shape_of_an_id_is_read_or_ignored() {
        let check = |kind, id, expected: Option<(u64, u32)>| {
            let shape = IdShape::of(kind, id).map(|s| (s.number, s.suffix));
            assert_eq!(shape, expected, "{id}");
        };
        check(Kind::Correction, "CORR-007", Some((7, 1)));
        check(Kind::Correction, "CORR-1000", Some((1000, 1)));
        check(Kind::Correction, "weird", None);
        check(Kind::Correction, "CORR-", None);
        check(Kind::Correction, "CORR-+1", None);
        check(Kind::Correction, "CORR-007-k3v9q2", Some((7, 1)));
        check(Kind::Correction, "CORR-007-k3v9", None);
        check(Kind::Correction, "CORR-007-K3V9Q2", None);
        check(
            Kind::Execution,
            "EXEC-20260220124341",
            Some((20_260_220_124_341, 1)),
        );
        check(
            Kind::Execution,
            "EXEC-20260220124341-3",
            Some((20_260_220_124_341, 3)),
        );
        check(Kind::Execution, "EXEC-20260220124341-a1b2c3", None);
        check(Kind::Execution, "EXEC-20260220124341-123456", None);
        check(Kind::Execution, "EXEC-001", None);
    }

    #[test]
    fn an_id_of_this_machine_alone_is_told_from_those_of_clones() {
        let id = local(Kind::Reflexion, 3, "4F1c9a1e-0000");
        assert_eq!(id, "REFL-003-4f1c9a");
        assert_eq!(local(Kind::Reflexion, 3, "r"), "REFL-003-r00000");
        assert_eq!(local_number(Kind::Reflexion, &id), Some(3));
        for other in [
            "REFL-003", "REFL-003-4f1c9", "PROC-003-4f1c9a", "REFL-x-4f1c9a",
        ] {
            assert_eq!(local_number(Kind::Reflexion, other), None, "{other}");
        }
        let run = "EXEC-20260220124341-a1b2c3";
        assert_eq!(local_number(Kind::Execution, run), None);
    }

    #[test]
    fn ids_keep_the_form_of_the_source_documents() {
        assert_eq!(numbered(Kind::Reflexion, 3), "REFL-003");
        assert_eq!(numbered(Kind::Reflexion, 1000), "REFL-1000");
        let at = DateTime::parse_from_rfc3339("2026-02-20T12:43:41.681444Z")
            .unwrap()
            .to_utc();
        assert_eq!(timestamped(Kind::Execution, at, 1), "EXEC-20260220124341");
        assert_eq!(timestamped(Kind::Execution, at, 2), "EXEC-20260220124341-2");
    }
}
