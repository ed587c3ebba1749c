//! How what is remembered goes out to others and comes in from them: the forms, and nothing else.
//!
//! - `lines`: this program's own export, JSON Lines from which everything comes back byte for byte.
//! - `markdown`, `skill_md`: for people, and for agents that load skills.
//! - `claude_mem`, `mem0`, `notes`: what other memories leave behind, read as [`Foreign`] records.
//! - `sqlite`: the databases that some of them keep it in.
//!
//! Pure functions of text and bytes. A reader counts everything that it meets: whatever does not become
//! a record is [`Skipped`], with the reason. It judges nothing; screening and redaction, ids, duplicates
//! and storing are the engine's.

pub mod claude_mem;
pub mod lines;
pub mod markdown;
pub mod mem0;
pub mod notes;
pub mod skill_md;
pub mod sqlite;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::MemoryType;

/// Something of another memory that can be remembered here.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreign {
    /// What it is there, to be told to a person: `observation 12`.
    pub what: String,
    /// Its id there; together with the source it is never imported twice.
    pub id: String,
    /// When it was made there, as far as it is known: RFC 3339.
    pub created: Option<String>,
    /// The type of note that it comes nearest to.
    pub memory_type: MemoryType,
    /// What it says.
    pub text: String,
    /// Whose it is, where the other memory knows users.
    pub user: Option<String>,
    /// What else the other memory says of it.
    pub metadata: Map<String, Value>,
}

/// What was read and does not become a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// What it is: one thing by its name, or several of a kind.
    pub what: String,
    /// Why.
    pub reason: String,
    /// How many they are.
    pub count: u64,
}

impl Skipped {
    /// One thing.
    pub fn one(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::some(1, what, reason)
    }

    /// Several things of one kind, for one reason.
    pub fn some(count: u64, what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            reason: reason.into(),
            count,
        }
    }
}

/// What a reader found. Everything that it met is in one of the two.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// What can be remembered, in the order of the source.
    pub records: Vec<Foreign>,
    /// What cannot.
    pub skipped: Vec<Skipped>,
}

/// The metadata of a record: fields that say something.
fn metadata(fields: Vec<(&str, Value)>) -> Map<String, Value> {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let fields = fields.into_iter().filter(|(_, value)| says(value));
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
