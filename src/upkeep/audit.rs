//! Audit log: records reads, and lists events.
//!
//! The writer records every write. The operations that return records call this module for reads:
//! always for kinds that belong to a user (memories, sessions), and for every kind if so
//! configured. Rules and lessons belong to the project and are read all the time.

use std::collections::VecDeque;

use serde::Serialize;

use crate::store::workspace::Error;
use crate::store::{AuditLine, Scoped};

/// Filter for audit events.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Events of this user or program; `None` for all.
    pub who: Option<String>,
    /// Events about the record with this id; `None` for all.
    pub record: Option<String>,
    /// Only events where a user saw or changed the data of another user.
    pub foreign: bool,
    /// Maximum number of events to return.
    pub limit: usize,
}

/// Audit events.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AuditReport {
    /// Number of matching events.
    pub total: u64,
    /// Newest matching events, newest first.
    pub lines: VecDeque<AuditLine>,
}

/// Returns the newest audit events.
pub fn audit(store: &Scoped, filter: &AuditFilter) -> Result<AuditReport, Error> {
    let mut report = AuditReport {
        total: 0,
        lines: VecDeque::new(),
    };
    let both = match &filter.record {
        Some(id) => store.both_ids(id)?,
        None => Vec::new(),
    };
    store.audited_by_all(&mut |line| {
        let is_it = |record: &String| both.iter().any(|id| record.eq_ignore_ascii_case(id));
        let is_wanted = filter.who.as_ref().is_none_or(|who| line.who == *who)
            && (filter.record.is_none() || line.records.iter().any(is_it))
            && (!filter.foreign || line.is_foreign());
        if is_wanted {
            report.total += 1;
            report.lines.push_front(line);
            report.lines.truncate(filter.limit);
        }
    })?;
    Ok(report)
}
