//! Export and import of records, and their formats.
//!
//! - `export`, `import`: the two verbs. An export is JSON Lines; an import redacts, screens, renumbers and stores.
//! - `agents_md`: rules in the `AGENTS.md` of a workspace.
//!
//! The formats are pure functions of text and bytes. A reader accounts for all input: an item that
//! does not become a record is [`Skipped`], with the reason.
//!
//! Deliberately absent: the forms of other tools. `tools/notes.py` turns their notes into an export.

pub(crate) mod agents_md;
pub(crate) mod export;
pub(crate) mod import;

pub use agents_md::{AgentsMdReport, FileChange, export as export_agents_md};
pub use export::{ExportOptions, ExportReport, OnRecords, export, export_user};
pub use import::{ImportOptions, ImportReport, import};

use std::path::Path;

use serde::Serialize;

use crate::store::workspace::Error;

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

/// Error of a file that cannot be read.
fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Unreadable { path, source }
}
