//! Deletes a record and leaves a tombstone. Deleting a session also deletes its action log.

use serde::Serialize;

use crate::model::{Kind, Reflexion, Session};

use crate::notes::indexing::Index;
use crate::rules::RuleFiles;
use crate::rules::hearing::end_suspension;
use crate::store::workspace::document::{document, remembered};
use crate::store::workspace::{Error, Workspace, repair_warnings};

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
    if for_good {
        writer.remove_for_good(kind, &id, content, workspace.now)?;
    } else {
        writer.remove(kind, &id, content, workspace.now)?;
    }
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
