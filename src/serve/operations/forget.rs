//! `forget`: deletes a record; an undo can restore it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::model::error::UserError;
use crate::rules::RuleFiles;
use crate::store::workspace::Workspace;
use crate::upkeep;
use memctl_redact::fence;

use super::{Report, token_budget, undo, user_error};

/// Maximum length of a summary in characters.
const SUMMARY: usize = 500;

/// Record to delete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetArgs {
    /// Id, such as MEM-001
    pub id: String,
}

/// Deleted record.
#[derive(Debug, Serialize)]
pub struct Forgotten {
    /// Id, which is never reused.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Text of the record on one line.
    pub summary: String,
    /// Command with which a person restores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Files that a rule was removed from.
    #[serde(flatten)]
    pub files: RuleFiles,
    /// Problems that did not stop the operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

pub(super) fn forget(workspace: &Workspace, args: &ForgetArgs) -> Result<Forgotten, UserError> {
    let report = upkeep::forget(workspace, &args.id, false).map_err(user_error)?;
    Ok(Forgotten {
        id: report.id,
        kind: report.kind,
        summary: token_budget::beginning(&token_budget::sanitize(&report.summary), SUMMARY)
            .into_owned(),
        undo: undo(workspace),
        files: report.files,
        warnings: report.warnings,
    })
}

impl Report for Forgotten {
    fn text(&self, nonce: &str) -> String {
        let mut text = format!("Forgotten: {} {}. It said:\n", self.kind, self.id);
        text.push_str(&fence(&[&self.summary], nonce));
        if let Some(undo) = &self.undo {
            text.extend(["A person restores it by `", undo, "`.\n"]);
        }
        for warning in &self.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}
