//! Removes what has expired from the disk: the records, their words and vectors in the index. Each
//! leaves a tombstone, so that its id is never given again.

use serde::Serialize;

use crate::model::{Kind, MemoryType};
use crate::store::Expired;

use super::find::document;
use super::index::Index;
use super::{Engine, Error, mended};

/// What was removed, or would be.
#[derive(Debug, Serialize)]
pub struct PruneReport {
    /// Whether this only says what would be removed.
    pub dry_run: bool,
    /// The records, oldest first.
    pub removed: Vec<Pruned>,
    /// The ids of those that are hidden because nobody can read when they end. They stay.
    pub unreadable: Vec<String>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// A record that has expired.
#[derive(Debug, Serialize)]
pub struct Pruned {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// Which type of memory it was.
    pub memory_type: Option<MemoryType>,
    /// When it ended, as its file says.
    pub expired_at: String,
}

impl Engine {
    /// Removes what has expired; `dry_run` only looks.
    pub fn prune(&self, dry_run: bool) -> Result<PruneReport, Error> {
        let mut report = PruneReport {
            dry_run,
            removed: Vec::new(),
            unreadable: Vec::new(),
            warnings: Vec::new(),
        };
        for kind in Kind::ALL.into_iter().filter(|kind| kind.may_expire()) {
            let mut expired = self.store.expired(kind)?;
            if !dry_run && !expired.over.is_empty() {
                let mut writer = self.writer()?;
                let at = self.now.to_rfc3339();
                expired = writer.remove_expired(kind, &at, &|entry| {
                    document(entry).map(|d| d.content).unwrap_or_default()
                })?;
                report.warnings.extend(mended(writer.take_mended()));
            }
            report.take(kind, expired);
        }
        if !dry_run && !report.removed.is_empty() {
            // A text can be guessed from its words and its vector: they go as well.
            Index::open(&self.store)?.drop_gone(&mut |_, _| {})?;
        }
        if !report.unreadable.is_empty() {
            report.warnings.push(format!(
                "nobody can read when these end, so that they are hidden and stay: {}; see `memctl doctor`",
                report.unreadable.join(", ")
            ));
        }
        Ok(report)
    }
}

impl PruneReport {
    fn take(&mut self, kind: Kind, expired: Expired) {
        for entry in expired.over {
            let document = document(&entry);
            self.removed.push(Pruned {
                id: entry.id,
                kind,
                memory_type: document.as_ref().and_then(|d| d.memory_type),
                expired_at: document.and_then(|d| d.expires).unwrap_or_default(),
            });
        }
        self.unreadable.extend(expired.unreadable);
    }
}
