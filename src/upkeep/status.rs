//! A memory as a whole: its creation, the counts of its records, and the events of its audit log.
//!
//! The events are listed here. The writer records every write; the operations that return records record reads:
//! always for kinds that belong to a user (memories, sessions), and for every kind if so
//! configured. Rules and lessons belong to the project and are read all the time.

use std::collections::VecDeque;
use std::path::Path;

use memctl_files::SharedFile;
use memctl_search::embedder::EmbedderConfig;
use serde::Serialize;

use crate::model::Kind;
use crate::store::skill::Skills;
use crate::store::workspace::{Error, Workspace, redacting_writer};
use crate::store::{AuditLine, Scoped, ignore_local_files, with_missing_lines};

/// Maximum size of a file to which lines are added.
const LONGEST: u64 = 16 << 20;

/// Result of an initialisation.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct InitReport {
    /// Path of the memory directory.
    pub directory: String,
    /// Path of the skills directory.
    pub skills: String,
    /// Name of the workspace among other workspaces.
    pub origin: String,
    /// Paths that were created; empty if everything existed.
    pub created: Vec<String>,
    /// Files of the memory that git will see; filled in by the caller, empty outside of a repository.
    pub git: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Creates the memory directory if it is missing. A skills directory is left to the author of a skill.
pub fn initialise(
    store: &Scoped,
    skills: &Path,
    random: &mut dyn FnMut() -> String,
) -> Result<InitReport, Error> {
    let directory = store.directory();
    let mut created = Vec::new();
    if directory.create().map_err(Error::io("create", directory))? {
        created.push(directory.display().to_string());
    }
    let is_new = store.identity().is_none();
    let identity = {
        let _writer = store.write(random)?;
        store.identity()
    };
    // The writer has made the file of a new memory; a person may have removed lines.
    ignore_local_files(directory)?;
    if is_new {
        created.push(directory.join(".gitignore").display().to_string());
    }
    Ok(InitReport {
        directory: directory.display().to_string(),
        skills: skills.display().to_string(),
        origin: identity.map(|identity| identity.origin).unwrap_or_default(),
        created,
        git: Vec::new(),
        warnings: Vec::new(),
    })
}

/// Adds the missing lines to a text file, and creates it if it does not exist. Returns true if
/// lines were missing.
pub fn with_lines(file: &SharedFile, wanted: &str) -> Result<bool, Error> {
    // An unreadable file is left to a person.
    let text = file.read_text(LONGEST).ok();
    let text = text.and_then(|text| with_missing_lines(&text.unwrap_or_default(), wanted.lines()));
    if let Some(text) = &text {
        redacting_writer::replace_in_project(file, text)?;
    }
    Ok(text.is_some())
}

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
        pulled.records += other.store.record_count()?;
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

/// Audit events.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct AuditReport {
    /// Number of matching events.
    pub total: u64,
    /// Newest matching events, newest first.
    pub lines: VecDeque<AuditLine>,
}

/// Returns the newest audit events, of one user or program if given, at most this many.
pub fn audit(store: &Scoped, who: Option<&str>, limit: usize) -> Result<AuditReport, Error> {
    let mut report = AuditReport::default();
    store.audited_by_all(&mut |line| {
        if who.is_none_or(|who| line.who == who) {
            report.total += 1;
            report.lines.push_front(line);
            report.lines.truncate(limit);
        }
    })?;
    Ok(report)
}
