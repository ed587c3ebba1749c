//! The closed set of record kinds, and the one shape that they all share.
//!
//! A new kind is a struct, one `impl Record`, and one arm in each `match` here; a test walks
//! [`Kind::ALL`] so that none is forgotten.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::knowledge::MemoryType;

/// A kind of record. The order is the order of the data's way: what happened, then what was
/// learnt from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One run of a skill.
    Execution,
    /// What a person said was wrong with an execution.
    Correction,
    /// A rule learnt from a correction.
    Reflexion,
    /// A how-to learnt from a failure that was overcome.
    Procedure,
    /// An error → fix pattern.
    Fix,
    /// A typed note.
    Memory,
    /// What an agent did, from start to end.
    Session,
}

impl Kind {
    /// Every kind, in the order in which listings show them.
    pub const ALL: [Self; 7] = [
        Self::Execution,
        Self::Correction,
        Self::Reflexion,
        Self::Procedure,
        Self::Fix,
        Self::Memory,
        Self::Session,
    ];

    /// The file under `.agentura/` that holds the records of this kind.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Execution => "episodic_memory.json",
            Self::Correction => "corrections.json",
            Self::Reflexion => "reflexion_entries.json",
            Self::Procedure => "procedural_memory.json",
            Self::Fix => "fixes.json",
            Self::Memory => "memories.json",
            Self::Session => "sessions.json",
        }
    }

    /// The key of the root object under which the array of entries lies.
    pub const fn root_key(self) -> &'static str {
        match self {
            Self::Correction => "corrections",
            _ => "entries",
        }
    }

    /// The field of an entry that holds its id.
    pub const fn id_field(self) -> &'static str {
        match self {
            Self::Execution => "execution_id",
            Self::Correction => "correction_id",
            Self::Reflexion => "reflexion_id",
            Self::Procedure => "procedure_id",
            Self::Fix => "fix_id",
            Self::Memory => "id",
            Self::Session => "session_id",
        }
    }

    /// What an id of this kind starts with, without the dash.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Execution => "EXEC",
            Self::Correction => "CORR",
            Self::Reflexion => "REFL",
            Self::Procedure => "PROC",
            Self::Fix => "FIX",
            Self::Memory => "MEM",
            Self::Session => "SESS",
        }
    }

    /// The singular name, as in `--kind reflexion` and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Correction => "correction",
            Self::Reflexion => "reflexion",
            Self::Procedure => "procedure",
            Self::Fix => "fix",
            Self::Memory => "memory",
            Self::Session => "session",
        }
    }

    /// The plural name, as in the JSON of `memory status`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Execution => "executions",
            Self::Correction => "corrections",
            Self::Reflexion => "reflexions",
            Self::Procedure => "procedures",
            Self::Fix => "fixes",
            Self::Memory => "memories",
            Self::Session => "sessions",
        }
    }

    /// Whether its records belong to a user: only that one, and the owner of the files, may see
    /// them.
    pub const fn has_user(self) -> bool {
        matches!(self, Self::Memory | Self::Session)
    }

    /// Whether its records may have an end in `expires_at`.
    pub const fn may_expire(self) -> bool {
        matches!(self, Self::Memory)
    }

    /// The kind that an id, or the beginning of one, belongs to: `corr-00` is a correction.
    pub fn of_id(id: &str) -> Option<Self> {
        let (prefix, _) = id.split_once('-')?;
        Self::ALL
            .into_iter()
            .find(|kind| kind.prefix().eq_ignore_ascii_case(prefix))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a record may be believed, and so where a prompt may show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Taken from tool output, the web or a foreign repository. Shown only as data.
    Observed,
    /// Observed, and then approved by a person.
    Approved,
    /// Said by a person.
    User,
}

impl Trust {
    /// The name in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Approved => "approved",
            Self::User => "user",
        }
    }
}

/// What search, listing, export and the front doors see of any record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// The kind of the record.
    pub kind: Kind,
    /// Its id, unique within its workspace.
    pub id: String,
    /// The `domain/skill` that it belongs to, if it belongs to one.
    pub skill: Option<String>,
    /// The words by which it is found: values only, never field names.
    pub content: String,
    /// What a list shows of it, on one line.
    pub summary: String,
    /// When it was made: RFC 3339, UTC. Empty where the file does not say.
    pub created: String,
    /// How far it may be believed.
    pub trust: Trust,
    /// When it is no longer to be found: RFC 3339, UTC. `None` is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Which type of note it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// Whose it is, of the kinds that have a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How it stands, of the kinds that can stand in more than one way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who brought it, where the record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What stands before the words of a record wherever it is shown, so that nobody takes what an agent has
/// passed on for a person's word; `None` for all others.
pub fn mark(status: Option<&str>, source: Option<&str>) -> Option<&'static str> {
    match (
        status == Some(super::CANDIDATE),
        source == Some(super::AGENT),
    ) {
        (true, true) => Some("candidate [agent]"),
        (true, false) => Some("candidate"),
        (false, true) => Some("[agent]"),
        (false, false) => None,
    }
}

/// A record of one [`Kind`]: how it names itself, and how it is seen by those who do not care
/// which kind it is.
pub trait Record: Serialize + DeserializeOwned {
    /// The kind of every record of this type.
    const KIND: Kind;

    /// The id; empty until the store has given one.
    fn id(&self) -> &str;

    /// Sets the id. Called once, by the store, under its lock.
    fn set_id(&mut self, id: String);

    /// The `domain/skill` that it belongs to, if it belongs to one.
    fn skill(&self) -> Option<&str>;

    /// The words by which it is found: values only, never field names.
    fn content(&self) -> String;

    /// What a list shows of it: the most telling of its words, on one line.
    fn summary(&self) -> String {
        one_line(&self.content())
    }

    /// When it was made: RFC 3339, UTC.
    fn created(&self) -> &str;

    /// How far it may be believed.
    fn trust(&self) -> Trust {
        Trust::User
    }

    /// The texts that act on an agent: what an approval covers. Empty for kinds that are shown as data
    /// only.
    fn claims(&self) -> Vec<String> {
        Vec::new()
    }

    /// When it is no longer to be found: RFC 3339, UTC. `None` is never.
    fn expires(&self) -> Option<&str> {
        None
    }

    /// Which type of note it is, if it is one.
    fn memory_type(&self) -> Option<MemoryType> {
        None
    }

    /// Whose it is, of the kinds that have a user.
    fn user_id(&self) -> Option<&str> {
        None
    }

    /// How it stands, of the kinds that can stand in more than one way.
    fn status(&self) -> Option<&str> {
        None
    }

    /// Who brought it, where the record says so.
    fn source(&self) -> Option<&str> {
        None
    }

    /// Says whose it is. Called by the store, for what a user adds; of no effect on kinds that have
    /// no user.
    fn set_user_id(&mut self, _id: &str) {}

    /// The record as one [`Document`].
    fn document(&self) -> Document {
        Document {
            kind: Self::KIND,
            id: self.id().to_owned(),
            skill: self.skill().map(str::to_owned),
            content: self.content(),
            summary: self.summary(),
            created: self.created().to_owned(),
            trust: self.trust(),
            expires: self.expires().map(str::to_owned),
            memory_type: self.memory_type(),
            user_id: self.user_id().map(str::to_owned),
            status: self.status().map(str::to_owned),
            source: self.source().map(str::to_owned),
        }
    }
}

/// A JSON text without its layout, so that equal values have equal texts.
pub(super) fn one_layout(json: &serde_json::value::RawValue) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json.get());
    value.map_or_else(|_| json.get().to_owned(), |value| value.to_string())
}

/// The text on one line, each run of white space one space.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
