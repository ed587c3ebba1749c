//! Removes expired records from disk, with their words and vectors in the index. Each leaves a
//! tombstone, so that its id is never reused.

use serde::Serialize;

use crate::model::{Kind, MemoryType, utc};
use crate::store::Expired;

use crate::notes::indexing::Index;
use crate::store::workspace::document::document;
use crate::store::workspace::{Error, Workspace, repair_warnings};

/// Outcome of [`prune()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PruneReport {
    /// `true` if nothing was removed.
    pub dry_run: bool,
    /// Expired records, by kind, oldest first.
    pub removed: Vec<Pruned>,
    /// Ids of records that are hidden because their expiry time is unreadable. They stay.
    pub unreadable: Vec<String>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// An expired record.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Pruned {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Type of the memory; `None` for any other kind.
    pub memory_type: Option<MemoryType>,
    /// Expiry time, as stored.
    pub expired_at: String,
}

/// Removes expired records; with `dry_run`, only reports them.
pub fn prune(workspace: &Workspace, dry_run: bool) -> Result<PruneReport, Error> {
    let mut report = PruneReport {
        dry_run,
        removed: Vec::new(),
        unreadable: Vec::new(),
        warnings: Vec::new(),
    };
    for kind in Kind::ALL.into_iter().filter(|kind| kind.may_expire()) {
        let mut expired = workspace.store.expired(kind)?;
        if !dry_run && !expired.over.is_empty() {
            let mut writer = workspace.writer()?;
            let at = workspace.now.to_rfc3339();
            expired = writer.remove_expired(kind, &at, &|entry| {
                document(entry).map(|d| d.content).unwrap_or_default()
            })?;
            report
                .warnings
                .extend(repair_warnings(writer.take_repairs()));
        }
        report.take(kind, expired);
    }
    if !dry_run && !report.removed.is_empty() {
        // A text can be guessed from its words and its vector, so these go too.
        Index::open(&workspace.store)?.drop_gone(&mut |_, _| {})?;
    }
    if !report.unreadable.is_empty() {
        report.warnings.push(format!(
            "nobody can read when these end, so that they are hidden and stay: {}; see `memctl doctor`",
            report.unreadable.join(", ")
        ));
    }
    Ok(report)
}

impl PruneReport {
    fn take(&mut self, kind: Kind, expired: Expired) {
        for entry in expired.over {
            let document = document(&entry);
            self.removed.push(Pruned {
                id: entry.id,
                kind,
                memory_type: document.as_ref().and_then(|d| d.memory_type),
                expired_at: document
                    .and_then(|d| d.expires)
                    .map(|end| utc(&end))
                    .unwrap_or_default(),
            });
        }
        self.unreadable.extend(expired.unreadable);
    }
}
