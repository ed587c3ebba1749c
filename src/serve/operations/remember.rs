//! `remember` stores a finding of an agent: a note, or a failure with its solution. `lesson` stores a finding of
//! a session, in the agent's words. `forget` deletes a record; an undo can restore it.
//!
//! Findings count as observed. Agents cannot store rules: rules come from corrections. A lesson is checked against
//! the calls of the session first; a refusal names the field, the reason, and a form that would pass.

use memctl_redact::fence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::lessons::{Asking, HintOptions, LessonArgs, Neighbour, PROMPT, Success};
use crate::model::error::UserError;
use crate::model::{Kind, MemoryType, Trust};
use crate::notes::AddOptions;
use crate::rules::RuleFiles;
use crate::serve::arguments::{LONGEST_TEXT, text};
use crate::serve::operations::hint::hint_service;
use crate::serve::operations::{Report, token_budget, undo, user_error, with_warnings};
use crate::store::workspace::{Workspace, level, locate};
use crate::{notes, upkeep};

/// Note, or failure with what worked, to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberArgs {
    /// The note
    #[serde(default)]
    pub content: Option<String>,
    /// Default `task_memory`: expires after 90 days
    #[schemars(extend("enum" = TYPES.map(MemoryType::name)))]
    #[serde(default, rename = "type")]
    pub memory_type: Option<MemoryType>,
    /// Facts about it
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// A date, 30d, or never
    #[serde(default)]
    pub expires_at: Option<String>,
    /// Id of the note that it amends
    #[serde(default)]
    pub replaces: Option<String>,
    /// The failure and what worked
    #[serde(default)]
    pub fix: Option<FixArgs>,
}

/// Failure and its recovery.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixArgs {
    /// Command or code that failed
    pub failed: String,
    /// Error output
    pub error: String,
    /// Command or code that worked
    pub worked: String,
    /// Output of the recovery
    #[serde(default)]
    pub output: String,
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
    /// Id of the record; `None` if nothing was learned.
    pub id: Option<String>,
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
    /// Reason why nothing was learned; `None` if something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_learned: Option<&'static str>,
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
    let is_of_note = args.memory_type.is_some()
        || args.metadata.is_some()
        || args.expires_at.is_some()
        || args.replaces.is_some();
    match (args.content, args.fix) {
        (Some(content), None) => {
            let metadata = args.metadata.as_ref().map(to_raw_value).transpose();
            note(
                workspace,
                &AddOptions {
                    memory_type: args.memory_type.unwrap_or(MemoryType::TaskMemory),
                    content,
                    metadata: metadata?,
                    expires_at: args.expires_at,
                    replaces: args.replaces.into_iter().collect(),
                },
            )
        }
        (None, Some(given)) if !is_of_note => fix(workspace, given),
        _ => Err(UserError::input(
            "a call stores one thing: a note, or a `fix` without any other field",
            "give a note in `content`, or the failing and the working code in `fix`",
        )),
    }
}

fn note(workspace: &Workspace, options: &AddOptions) -> Result<Remembered, UserError> {
    let report = notes::add_observed(workspace, options).map_err(user_error)?;
    Ok(Remembered {
        approve: report.added.then(|| approval(&report.id)),
        undo: report.added.then(|| undo(workspace)).flatten(),
        id: Some(report.id),
        added: report.added,
        trust: "observed",
        expires_at: report.expires_at,
        warnings: report.warnings,
        ..Remembered::default()
    })
}

/// Records a failure and its recovery, in a separate session.
fn fix(workspace: &Workspace, fix: FixArgs) -> Result<Remembered, UserError> {
    let hint_service = hint_service(workspace, None);
    let session = format!("remember/{}", (workspace.random)());
    let failure = hint_service
        .record_failure(&HintOptions {
            error: text("fix.error", fix.error, LONGEST_TEXT)?,
            command: Some(text("fix.failed", fix.failed, LONGEST_TEXT)?),
            session: Some(session.clone()),
            max_hints: 0,
            ..HintOptions::default()
        })
        .map_err(user_error)?;
    if failure.error_key.is_none() {
        return Err(UserError::input(
            "`fix.error` contains no error",
            "give the lines that the failing call printed, such as `error: …` or a traceback",
        ));
    }
    let report = hint_service
        .record_success(&Success {
            code: text("fix.worked", fix.worked, LONGEST_TEXT)?,
            output: fix.output,
            session,
        })
        .map_err(user_error)?;
    let new = report.learned.into_iter().next();
    let added = new.is_some();
    Ok(Remembered {
        approve: new.as_deref().map(approval),
        undo: new.as_ref().and_then(|_| undo(workspace)),
        id: new.or_else(|| report.merged.into_iter().next()),
        added,
        trust: "observed",
        not_learned: report.not_learned,
        ..Remembered::default()
    })
}

fn approval(id: &str) -> String {
    format!("memctl approve {id}")
}

impl Report for Remembered {
    fn text(&self, nonce: &str) -> String {
        let mut text = match (&self.id, self.not_learned) {
            (Some(id), _) if self.added => format!("Stored as {id}, {}.\n", self.trust),
            (Some(id), _) => format!("{id} already says this.\n"),
            (None, reason) => format!(
                "Nothing was learned: {}.\n",
                reason.unwrap_or("it contains no error")
            ),
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
        if !self.near.is_empty() {
            let near = self.near.iter();
            let lines: Vec<String> = near
                .map(|near| format!("{}: {}", near.id, near.lesson))
                .collect();
            text.push_str("Near it; if one says the same, send it again with `same`, if one is outdated with `replaces`:\n");
            text.push_str(&fence(&lines, nonce));
        }
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
        id: Some(stored.id),
        added: stored.added,
        trust: stored.trust,
        near: near.collect(),
        warnings: stored.warnings,
        ..Remembered::default()
    })
}
