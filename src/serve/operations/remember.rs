//! `remember` stores a finding of an agent as a note. `lesson` stores a finding of a session, in the agent's words. `forget` deletes a record; an undo can restore it.
//!
//! Findings count as observed. Agents cannot store rules: rules come from corrections. A lesson is checked against
//! the calls of the session first; a refusal names the field, the reason, and a form that would pass.

use memctl_redact::fence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::lessons::{Asking, LessonArgs, Neighbour, PROMPT};
use crate::model::error::UserError;
use crate::model::{Kind, MemoryType, Trust};
use crate::notes::AddOptions;
use crate::rules::RuleFiles;
use crate::serve::operations::{Report, add_fenced, token_budget, undo, user_error, with_warnings};
use crate::store::workspace::{Workspace, level, locate};
use crate::{notes, upkeep};

/// Note to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberArgs {
    /// The note
    pub content: String,
    /// Default `task_memory`: expires after 90 days
    #[schemars(extend("enum" = TYPES.map(MemoryType::name)))]
    #[serde(rename = "type")]
    pub memory_type: Option<MemoryType>,
    /// Facts about it
    pub metadata: Option<Map<String, Value>>,
    /// A date, 30d, or never
    pub expires_at: Option<String>,
    /// Id of the note that it amends
    pub replaces: Option<String>,
}

/// Memory types in the schema, the most useful for an agent first.
const TYPES: [MemoryType; 5] = [
    MemoryType::TaskMemory,
    MemoryType::UserPreferences,
    MemoryType::BrandMemory,
    MemoryType::CompetitiveMemory,
    MemoryType::PerformanceMemory,
];

/// Stored record.
#[derive(Debug, Default, Serialize)]
pub struct Remembered {
    /// Id of the record.
    pub id: String,
    /// `true` if the record is new, `false` if it was known.
    pub added: bool,
    /// Trust level until a person approves the record.
    pub trust: &'static str,
    /// Lessons that say nearly the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Neighbour>,
    /// Expiry: RFC 3339, UTC; `None` if it never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Command with which a person approves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// Command with which a person reverts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Problems that did not stop the operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

pub(super) fn remember(workspace: &Workspace, args: RememberArgs) -> Result<Remembered, UserError> {
    let metadata = args.metadata.as_ref().map(to_raw_value).transpose();
    let options = AddOptions {
        memory_type: args.memory_type.unwrap_or(MemoryType::TaskMemory),
        content: args.content,
        metadata: metadata?,
        expires_at: args.expires_at,
        replaces: args.replaces.into_iter().collect(),
    };
    let report = notes::add_observed(workspace, &options).map_err(user_error)?;
    let approve = format!("memctl approve {}", report.id);
    Ok(Remembered {
        approve: report.added.then_some(approve),
        undo: report.added.then(|| undo(workspace)).flatten(),
        id: report.id,
        added: report.added,
        trust: "observed",
        expires_at: report.expires_at,
        warnings: report.warnings,
        ..Remembered::default()
    })
}

impl Report for Remembered {
    fn text(&self, nonce: &str) -> String {
        let mut text = if self.added {
            format!("Stored as {}, {}.\n", self.id, self.trust)
        } else {
            format!("{} already says this.\n", self.id)
        };
        if let (Some(approve), Some(undo)) = (&self.approve, &self.undo) {
            text.extend([
                "A person approves it by `",
                approve,
                "`, or reverts it by `",
                undo,
                "`.\n",
            ]);
        }
        let near = self.near.iter();
        let lines = near.map(|near| format!("{}: {}", near.id, near.lesson));
        let head = "Near it; if one says the same, send it again with `same`, if one is outdated with `replaces`:\n";
        add_fenced(&mut text, head, &lines.collect::<Vec<_>>(), nonce);
        with_warnings(text, &self.warnings)
    }
}

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

/// Deletes a record for an agent, unless a person has put it in force: a rule or a lesson of theirs ends by their
/// own hand.
pub(super) fn forget(workspace: &Workspace, args: &ForgetArgs) -> Result<Forgotten, UserError> {
    let (kind, id) = locate(&workspace.store, &args.id).map_err(user_error)?;
    let acts = matches!(kind, Kind::Reflexion | Kind::Procedure);
    let entry = workspace.store.find(kind, &id).ok().flatten();
    if entry.is_some_and(|entry| acts && level(&workspace.store, &entry) != Trust::Observed) {
        let message = format!("`{id}` is in force by a person's decision, which no agent revokes");
        let hint = format!("ask the person to run `memctl forget {id}`");
        return Err(UserError::input(message, hint));
    }
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
        with_warnings(text, &self.warnings)
    }
}

/// Maximum length of a neighbour in an answer, in characters.
const LONGEST: usize = 240;

pub(super) fn lesson(workspace: &Workspace, args: &LessonArgs) -> Result<Remembered, UserError> {
    let asking = Asking {
        records: workspace.records(),
        words: PROMPT,
        person: &workspace.settings.person,
        root: workspace.store.directory().path().parent(),
    };
    let session = asking
        .session(args.session.as_deref(), None)
        .ok_or_else(|| {
            UserError::input(
                "no session is known here, and its calls are what a lesson is checked against",
                "the hooks of memctl must be installed in this agent host; do not use it now",
            )
        })?;
    let stored = asking.add(&session, args).map_err(user_error)?;
    let near = stored.near.into_iter().map(|near| Neighbour {
        lesson: token_budget::beginning(&token_budget::sanitize(&near.lesson), LONGEST)
            .into_owned(),
        ..near
    });
    Ok(Remembered {
        id: stored.id,
        added: stored.added,
        trust: stored.trust,
        near: near.collect(),
        warnings: stored.warnings,
        ..Remembered::default()
    })
}
