//! Export and import of records, and their formats.
//!
//! - `export`, `import`: the two verbs. An export is JSON Lines; an import redacts, screens, renumbers and stores.
//! - `agents_md`: rules in the `AGENTS.md` of a workspace.
//! - `foreign`: notes of mem0, read as [`Foreign`] records.
//!
//! The formats are pure functions of text and bytes. A reader accounts for all input: an item that
//! does not become a record is [`Skipped`], with the reason.
//!
//! Deliberately absent: databases of other tools. `tools/notes_of_sqlite.py` turns them into lines.

pub(crate) mod agents_md;
pub(crate) mod export;
pub mod foreign;
pub(crate) mod import;

pub use agents_md::{AgentsMdReport, FileChange, export as export_agents_md};
pub use export::{ExportOptions, ExportReport, OnRecords, export, export_user};
pub use import::{ImportOptions, ImportReport, ImportSource, import};

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::MemoryType;
use crate::store::workspace::Error;

/// Record of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreign {
    /// Name for display, such as `observation 12`.
    pub what: String,
    /// Id in the source; source and id together prevent a second import.
    pub id: String,
    /// Creation time: RFC 3339; `None` if unknown.
    pub created: Option<String>,
    /// Closest memory type.
    pub memory_type: MemoryType,
    /// Text content.
    pub text: String,
    /// User in the source; `None` if it has no users.
    pub user: Option<String>,
    /// Other fields of the source.
    pub metadata: Map<String, Value>,
}

/// Input that does not become a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Skipped {
    /// Name of one item, or a plural for several.
    pub what: String,
    /// Reason as text.
    pub reason: String,
    /// Number of items.
    pub count: u64,
}

impl Skipped {
    /// One skipped item.
    pub fn one(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::some(1, what, reason)
    }

    /// Several skipped items of one type, with the same reason.
    pub fn some(count: u64, what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            reason: reason.into(),
            count,
        }
    }
}

/// Result of a reader, which accounts for all input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Records in the order of the source.
    pub records: Vec<Foreign>,
    /// Skipped input.
    pub skipped: Vec<Skipped>,
}

/// Error of a file that cannot be read.
fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Unreadable { path, source }
}
