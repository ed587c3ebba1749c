//! Content of a memory: counts of its records, and the events of its audit log.
//!
//! The events are listed here. The writer records every write; the operations that return records record reads:
//! always for kinds that belong to a user (memories, sessions), and for every kind if so
//! configured. Rules and lessons belong to the project and are read all the time.

use std::collections::VecDeque;

use memctl_search::embedder::EmbedderConfig;
use serde::Serialize;

use crate::model::Kind;
use crate::store::skill::Skills;
use crate::store::workspace::{Error, Workspace};
use crate::store::{AuditLine, Scoped};

/// Counts of a workspace, limited to the scope.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[expect(missing_docs, reason = "the names are the definition: one count each")]
pub struct StatusReport {
    /// Kind of store, by the names of the source document. `JSONStore`: files alone. `PgStore`: a
    /// database, of which the files are a copy. `CompositeStore`: the same with the embedder of a
    /// service, or files shared through a database.
    pub store: &'static str,
    /// Reason for this kind of store, one sentence.
    pub store_reason: String,
    /// Path of the memory directory.
    pub directory: String,
    pub executions: u64,
    pub corrections: u64,
    pub reflexions: u64,
    pub procedures: u64,
    pub memories: u64,
    pub sessions: u64,
    /// Number of generated regression tests of all skills.
    pub tests: usize,
    /// Size of the data files in bytes; `None` if the scope is not everything.
    pub bytes: Option<u64>,
    /// `false` if memory is switched off, and so neither read nor written.
    pub enabled: bool,
    /// Counts of remote records, limited to the scope.
    pub pulled: PulledStatus,
    /// Damage in the files, one sentence each.
    pub problems: Vec<String>,
}

/// Counts of remote records.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct PulledStatus {
    /// Number of origins.
    pub workspaces: usize,
    /// Number of records from these origins.
    pub records: u64,
}

/// Counts the records of a workspace. Reads none.
pub fn status(workspace: &Workspace) -> Result<StatusReport, Error> {
    let count = |kind| workspace.store.count(kind);
    let mut pulled = PulledStatus::default();
    for other in workspace.store.pulled() {
        pulled.workspaces += 1;
        for kind in Kind::ALL {
            pulled.records += other.store.count(kind)?;
        }
    }
    let skills = Skills::open(&workspace.skills_dir).ok();
    let (store, store_reason) = match workspace.store.primary_name()? {
        Some(name) => (
            match workspace.providers.embedder {
                EmbedderConfig::BuiltIn => "PgStore",
                EmbedderConfig::Remote(_) => "CompositeStore",
            },
            format!(
                "the memory `{}` is in the database {} (`memctl remote join`)",
                name.origin, name.shown
            ),
        ),
        None if workspace.store.is_shared() => (
            "CompositeStore",
            "the files are shared by `memctl sync`".to_owned(),
        ),
        None => ("JSONStore", "the records are in files here".to_owned()),
    };
    Ok(StatusReport {
        store,
        store_reason,
        directory: workspace.store.directory().display().to_string(),
        executions: count(Kind::Execution)?,
        corrections: count(Kind::Correction)?,
        reflexions: count(Kind::Reflexion)?,
        procedures: count(Kind::Procedure)?,
        memories: count(Kind::Memory)?,
        sessions: count(Kind::Session)?,
        tests: skills.map_or(0, |skills| skills.count_generated_tests()),
        bytes: workspace.store.bytes(),
        enabled: !crate::store::is_disabled(workspace.store.directory()),
        pulled,
        problems: damage(&workspace.store)?,
    })
}

/// Names the damaged files, one sentence each.
pub(super) fn damage(store: &Scoped) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    for kind in Kind::ALL {
        let damaged = store.damaged_files(kind)?.into_iter();
        problems.extend(damaged.map(|f| format!("`{f}` has damaged parts; see `memctl doctor`")));
    }
    Ok(problems)
}

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
    let ids = match &filter.record {
        Some(id) => store.all_ids(id)?,
        None => Vec::new(),
    };
    store.audited_by_all(&mut |line| {
        let is_it = |record: &String| ids.iter().any(|id| record.eq_ignore_ascii_case(id));
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
