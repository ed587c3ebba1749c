//! Report and progress of a synchronisation.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::Kind;
use crate::store::{self, AuditAction, Scoped};

/// Progress: number of records done, and total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncStage {
    /// Compared with the shared store.
    Compared(u64, u64),
    /// Sent.
    Pushed(u64, u64),
    /// Fetched.
    Pulled(u64, u64),
    /// Embedded.
    Vectors(u64, u64),
}

/// Callback for progress.
pub type OnSync<'a> = &'a mut dyn FnMut(SyncStage);

/// Result of a synchronisation.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct SyncReport {
    /// Host, port and name of the database.
    pub database: String,
    /// Name of this workspace in the shared store.
    pub origin: String,
    /// Number of records sent, new or changed.
    pub pushed: u64,
    /// Number of records fetched, new or changed.
    pub pulled: u64,
    /// Number of removals in both directions.
    pub tombstones: u64,
    /// Numbers per kind; kinds without changes are left out.
    pub by_kind: BTreeMap<&'static str, Moved>,
    /// Lines of logs that were sent.
    pub lines: MovedLines,
    /// Report on vectors; `None` if nothing was pushed.
    pub vectors: Option<VectorsReport>,
    /// `true` if nothing was changed; the numbers then say what would move.
    pub dry_run: bool,
    /// Duration in milliseconds.
    pub took_ms: f64,
    /// Problems that did not stop the run.
    pub warnings: Vec<String>,
}

/// Lines of logs that a sync has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MovedLines {
    /// Lines of the log of agents.
    pub execution_logs: u64,
    /// Audit events.
    pub audit_events: u64,
}

/// Numbers of moved records of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Moved {
    /// Records sent.
    pub pushed: u64,
    /// Removals sent.
    pub push_removed: u64,
    /// Records fetched.
    pub pulled: u64,
    /// Removals fetched.
    pub pull_removed: u64,
}

/// Numbers of embedded and missing vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct VectorsReport {
    /// Name of the embedder.
    pub embedder: String,
    /// Vectors made in this run.
    pub made: u64,
    /// Contents without a vector.
    pub waiting: u64,
}

impl SyncReport {
    pub(super) fn of(&mut self, kind: Kind) -> &mut Moved {
        self.by_kind.entry(kind.plural()).or_default()
    }

    /// Writes the audit events: the numbers of records sent and received, by kind.
    pub(super) fn audit(&self, store: &Scoped) -> Result<(), store::Error> {
        let sent: fn(&Moved) -> u64 = |moved| moved.pushed + moved.push_removed;
        let received: fn(&Moved) -> u64 = |moved| moved.pulled + moved.pull_removed;
        for (did, of) in [
            (AuditAction::Exported, sent),
            (AuditAction::Added, received),
        ] {
            let moved = self.by_kind.iter().filter(|(_, moved)| of(moved) > 0);
            let moved = moved.map(|(kind, moved)| format!("{} {kind}", of(moved)));
            let moved: Vec<String> = moved.collect();
            let touched: Vec<_> = moved.iter().map(|what| (what.as_str(), None)).collect();
            if !touched.is_empty() {
                store.audit(did, &touched)?;
            }
        }
        Ok(())
    }

    pub(super) fn sum_up(&mut self) {
        self.by_kind.retain(|_, moved| *moved != Moved::default());
        let moved = || self.by_kind.values();
        self.pushed = moved().map(|moved| moved.pushed).sum();
        self.pulled = moved().map(|moved| moved.pulled).sum();
        self.tombstones = moved().map(|m| m.push_removed + m.pull_removed).sum();
    }
}
