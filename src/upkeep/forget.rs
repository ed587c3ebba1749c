//! Deletes a record and leaves a tombstone. Deleting a session also deletes its action log.

use serde::Serialize;

use crate::model::{Kind, MemoryType, Reflexion, Session, utc};
use crate::notes::indexing::Index;
use crate::rules::RuleFiles;
use crate::rules::hearing::end_suspension;
use crate::store::workspace::records::{document, remembered};
use crate::store::workspace::{Error, Workspace, repair_warnings};
use crate::store::{Expired, RemovalMode};

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
    let document = entry.as_ref().and_then(document);
    let of_rule = entry.as_ref().filter(|_| kind == Kind::Reflexion);
    let rule = of_rule.and_then(|entry| entry.parse::<Reflexion>().ok());
    // The action log of a session goes first: after a crash the deletion can be repeated.
    if let Some(Ok(session)) = entry
        .filter(|_| kind == Kind::Session)
        .map(|entry| entry.parse::<Session>())
    {
        writer.remove_execution_logs(&id, &session.names(), for_good)?;
    }
    if let Some(rule) = &rule {
        end_suspension(&mut writer, rule)?;
    }
    let content = document.as_ref().map(remembered).unwrap_or_default();
    let mode = if for_good {
        RemovalMode::Permanent
    } else {
        RemovalMode::Undoable
    };
    writer.remove_several(kind, &[(&id, content)], workspace.now, mode)?;
    let summary = document.map(|d| d.summary).unwrap_or_default();
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    let files = rule.map(|r| workspace.remove_files_of(&mut writer, &r, for_good, &mut warnings));
    drop(writer);
    // The index could reveal the text through its terms and vectors, so they go as well.
    Index::open(&workspace.store)?.drop_gone(&mut |_, _| {})?;
    Ok(ForgetReport {
        id,
        kind,
        summary,
        files: files.unwrap_or_default(),
        warnings,
    })
}

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
