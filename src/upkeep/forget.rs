//! Deletes records: one, those that have expired, or all.
//!
//! A deleted record leaves a tombstone. Deleting a session also deletes its action log.
//!
//! A purge removes the whole memory: records, data derived from them, and copies. Settings, prompts and the
//! workspace name stay: they belong to a person and hold no record. Unknown files stay too, and so do files
//! that corrections wrote into skills. The report names them for removal by hand. Within a scope, or for a
//! user, only visible records are removed.
//!
//! Out of scope: wiping. Deleted files may be readable on the disk until they are overwritten.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memctl_files::json;
use serde::Serialize;

use crate::model::{Kind, MemoryType, PROMOTED_TO, Reflexion, Scope, Session, Viewer, utc};
use crate::notes::indexing::Index;
use crate::rules::RuleFiles;
use crate::store::files::log;
use crate::store::skill::Skills;
use crate::store::workspace::{Error, Workspace, document, remembered, warnings_of};
use crate::store::{AuditAction, Item, RemovalMode, Role, inventory, lined, text_field};

/// Result of a deletion.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ForgetReport {
    /// Id of the record, which is never used again.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Content on one line, shown for the last time.
    pub summary: String,
    /// Files that the rule was removed from.
    #[serde(flatten)]
    pub files: RuleFiles,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Deletes a record, named by id or id prefix; `for_good` leaves nothing to revert.
pub fn forget(workspace: &Workspace, id: &str, for_good: bool) -> Result<ForgetReport, Error> {
    let kind = Kind::of_id(id).ok_or_else(|| Error::NoId(id.to_owned()))?;
    let id = workspace.store.resolve(kind, id, None)?;
    let mut writer = workspace.writer()?;
    let entry = writer.store().find(kind, &id)?;
    let copy = entry
        .as_ref()
        .and_then(|entry| json::string_field(&entry.text, PROMOTED_TO).map(Cow::into_owned));
    let document = entry.as_ref().and_then(document);
    let of_rule = entry.as_ref().filter(|_| kind == Kind::Reflexion);
    let rule = of_rule.and_then(|entry| entry.parse::<Reflexion>().ok());
    // The actions of a session go first: after a crash the deletion can be repeated.
    let session = entry.filter(|_| kind == Kind::Session && for_good);
    if let Some(Ok(session)) = session.map(|entry| entry.parse::<Session>()) {
        writer.remove_execution_logs(&session.names())?;
    }
    let content = document.as_ref().map(remembered).unwrap_or_default();
    let mode = if for_good {
        RemovalMode::Permanent
    } else {
        RemovalMode::Undoable
    };
    writer.remove(kind, &[(&id, content)], workspace.now, mode)?;
    let summary = document.map(|d| d.summary).unwrap_or_default();
    let mut warnings: Vec<String> = warnings_of(&mut writer).collect();
    let files = rule.map(|r| workspace.remove_files_of(&mut writer, &r, for_good, &mut warnings));
    warnings.extend(
        copy.map(|copy| {
            format!("its copy for all projects is told as before: memctl forget {copy}")
        }),
    );
    drop(writer);
    Index::drop_gone(&workspace.store)?;
    Ok(ForgetReport {
        id,
        kind,
        summary,
        files: files.unwrap_or_default(),
        warnings,
    })
}

/// Outcome of [`prune()`].
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
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
        ..PruneReport::default()
    };
    for kind in Kind::ALL.into_iter().filter(|kind| kind.may_expire()) {
        let mut expired = workspace.store.expired(kind)?;
        if !dry_run && !expired.over.is_empty() {
            let mut writer = workspace.writer()?;
            let at = workspace.now.to_rfc3339();
            expired.over = writer.remove_expired(kind, &at, &|entry| {
                document(entry).map(|d| d.content).unwrap_or_default()
            })?;
            report.warnings.extend(warnings_of(&mut writer));
        }
        for entry in expired.over {
            let document = document(&entry);
            let end = document
                .as_ref()
                .and_then(|document| document.expires.as_deref());
            report.removed.push(Pruned {
                id: entry.id,
                kind,
                expired_at: end.map(utc).unwrap_or_default(),
                memory_type: document.and_then(|document| document.memory_type),
            });
        }
        report.unreadable.extend(expired.unreadable);
    }
    if !dry_run && !report.removed.is_empty() {
        Index::drop_gone(&workspace.store)?;
    }
    if !report.unreadable.is_empty() {
        report.warnings.push(format!(
            "nobody can read when these end, so that they are hidden and stay: {}; see `memctl doctor`",
            report.unreadable.join(", ")
        ));
    }
    Ok(report)
}

/// File or directory that was removed whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Removed {
    /// Path below the memory directory.
    pub name: String,
    /// Number of files.
    pub files: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Outcome of [`purge()`].
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct PurgeReport {
    /// Path of the memory directory.
    pub directory: String,
    /// `true` for everything, `false` if limited to what the caller may see.
    pub complete: bool,
    /// Number of removed records, by the plural of their kind.
    pub records: BTreeMap<String, u64>,
    /// Number of removed log lines.
    pub lines: u64,
    /// Files and directories removed whole.
    pub removed: Vec<Removed>,
    /// Total size removed, in bytes.
    pub bytes: u64,
    /// Files that hold no record, and stayed.
    pub kept: Vec<String>,
    /// Unknown files, which stayed.
    pub unknown: Vec<String>,
    /// Files that corrections left in skills, exported tests included, which stayed.
    pub in_skills: Vec<String>,
    /// `true` if nothing was removed.
    pub dry_run: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

impl PurgeReport {
    fn count(&mut self, kind: Kind, records: u64) {
        if records > 0 {
            self.records.insert(kind.plural().to_owned(), records);
        }
    }
}

/// Removes everything that the caller may see. A dry run only reports it.
pub fn purge(workspace: &Workspace, dry_run: bool) -> Result<PurgeReport, Error> {
    let directory = workspace.store.directory();
    let items = inventory(directory)?;
    let complete = workspace.store.sees_all();
    let mut report = PurgeReport {
        directory: directory.display().to_string(),
        complete,
        dry_run,
        ..PurgeReport::default()
    };
    if complete {
        purge_all(workspace, items, &mut report)?;
    } else {
        purge_visible(workspace, &items, &mut report)?;
    }
    Ok(report)
}

/// Removes everything of the user who asks, and audits it.
///
/// # Errors
///
/// Fails unless the caller is a user with access to all domains: the removal of a part must not be
/// taken for that of all.
pub fn purge_user(workspace: &Workspace) -> Result<PurgeReport, Error> {
    let user = workspace.whole_user()?;
    let report = purge(workspace, false)?;
    // Also a removal of nothing is one.
    let touched = [("everything of a user", Some(user.as_str()))];
    workspace.store.audit(AuditAction::Purged, &touched)?;
    Ok(report)
}

fn purge_all(
    workspace: &Workspace,
    items: Vec<Item>,
    report: &mut PurgeReport,
) -> Result<(), Error> {
    for item in &items {
        if let Role::Records(kind) = item.role {
            // A damaged file goes too; only its records are not counted.
            report.count(kind, workspace.store.count(kind).unwrap_or_default());
        }
    }
    for (name, _) in lined() {
        let lines = workspace.store.lines(name);
        report.lines += lines.map_or(0, |lines| lines.len() as u64);
    }
    for item in items {
        match item.role {
            role if role.is_memory() => {
                report.bytes += item.bytes;
                report.removed.push(Removed {
                    name: item.name,
                    files: item.files,
                    bytes: item.bytes,
                });
            }
            Role::Unknown => report.unknown.push(item.name),
            Role::Lock => {}
            _ => report.kept.push(item.name),
        }
    }
    report.in_skills = left_in_skills(&workspace.skills_dir);
    // An empty memory is not created just to be purged.
    if !report.dry_run && !report.removed.is_empty() {
        let mut writer = workspace.writer()?;
        delete_logs(workspace, None)?;
        writer.purge()?;
    }
    Ok(())
}

/// Removes the records visible to a user or in a scope.
fn purge_visible(
    workspace: &Workspace,
    items: &[Item],
    report: &mut PurgeReport,
) -> Result<(), Error> {
    if report.dry_run {
        for kind in Kind::ALL {
            if *workspace.store.viewer() == Viewer::Owner || kind.has_user() {
                report.count(kind, workspace.store.count(kind)?);
            }
        }
        return Ok(());
    }
    if !workspace.store.directory().is_there() {
        return Ok(());
    }
    let mut writer = workspace.writer()?;
    let before = bytes_of(items);
    let mut removed = Vec::new();
    for kind in Kind::ALL {
        let ids = writer.remove_visible(kind, &workspace.timestamp())?;
        report.count(kind, ids.len() as u64);
        removed.extend(ids);
    }
    if *workspace.store.scope() == Scope::All {
        // An audit event is chained to its neighbours, and holds no text of a record.
        let with_words = |role| matches!(role, Role::Log | Role::Journal);
        for (name, _) in lined().filter(|(_, role)| with_words(*role)) {
            report.lines += log::retain(writer.lock(), name, &|line| {
                let is_own = text_field(line, "user_id")
                    .is_some_and(|user| workspace.store.viewer().sees(Some(&user)));
                !is_own && !removed.iter().any(|id| names(line, id))
            })?;
        }
    }
    if let (Scope::All, Viewer::User(user)) = (workspace.store.scope(), workspace.store.viewer()) {
        delete_logs(workspace, Some(user.as_str()))?;
    }
    report.warnings.extend(warnings_of(&mut writer));
    drop(writer);
    Index::drop_gone(&workspace.store)?;
    report.bytes = before.saturating_sub(bytes_of(&inventory(workspace.store.directory())?));
    let copies = items
        .iter()
        .filter(|item| matches!(item.role, Role::Copies | Role::Leftover));
    report.warnings.extend(copies.map(|item| {
        format!(
            "`{}` may hold copies of what was removed; only a purge of everything removes it",
            item.name
        )
    }));
    Ok(())
}

/// Deletes the logs of a user, or all, in the database that holds the records.
fn delete_logs(workspace: &Workspace, user: Option<&str>) -> Result<(), Error> {
    let primary = workspace.store.primary();
    let deleted = primary.map(|primary| primary.delete_logs(user)).transpose();
    deleted?;
    Ok(())
}

fn bytes_of(items: &[Item]) -> u64 {
    items
        .iter()
        .filter(|item| item.role.is_memory())
        .map(|item| item.bytes)
        .sum()
}

/// Tests and guardrails that corrections left in skills, relative to the project.
fn left_in_skills(skills_dir: &Path) -> Vec<String> {
    let Ok(skills) = Skills::open(skills_dir) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = Vec::new();
    let listed = skills.list().map(|listing| listing.skills);
    for skill in listed.unwrap_or_default() {
        found.extend(skills.test_files(&skill).unwrap_or_default());
        let mut guardrails = skills.guardrail_files(&skill).unwrap_or_default();
        guardrails.retain(|file| {
            let text = skills.read(file).ok().flatten().unwrap_or_default();
            let mut lines = text.lines();
            !found.contains(file) && lines.any(|line| line.starts_with("**Source**: CORR-"))
        });
        found.extend(guardrails);
    }
    found.iter().map(|path| skills.shown(path)).collect()
}

/// Returns `true` if a line holds an id as a whole string.
fn names(line: &[u8], id: &str) -> bool {
    memchr::memmem::find(line, format!("\"{id}\"").as_bytes()).is_some()
}
