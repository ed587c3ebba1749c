//! The closed set of record kinds, and the interface that they share.
//!
//! A new kind needs a struct, an `impl Record`, and one arm in each `match` here. A test iterates
//! over [`Kind::ALL`] to find omissions.
//!
//! Trust in records, and the labels of those that no user has stated.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::memory_schema::MemoryType;
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
