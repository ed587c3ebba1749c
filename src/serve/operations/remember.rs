//! `remember`: keeps what an agent has found out: a note, or what failed and what then worked.
//!
//! Both count as observed. A rule is nothing that can be remembered here: rules come of what people
//! correct.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::to_raw_value};

use crate::engine::{AddOptions, Engine, Success};
use crate::error::Explained;
use crate::model::MemoryType;
use crate::store;

use super::{Report, hint::adviser, told, undo};

/// What is to be kept: a note or a fix.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberArgs {
    /// The note
    #[serde(default)]
    pub content: Option<String>,
    /// Its type; if not given a `task_memory`, which ends after 90 days
    #[schemars(with = "Option<TypeArg>")]
    #[serde(default, rename = "type")]
    pub memory_type: Option<MemoryType>,
    /// Facts about the note
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// When the note ends: a date, 30d, or never
    #[serde(default)]
    pub expires_at: Option<String>,
    /// What failed, and what then worked
    #[serde(default)]
    pub fix: Option<FixArgs>,
}

/// What failed and what then worked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixArgs {
    /// The command or code that failed
    pub failed: String,
    /// What it printed
    pub error: String,
    /// What worked instead
    pub worked: String,
    /// What that printed
    #[serde(default)]
    pub output: String,
}

/// The types, for the schema: [`MemoryType`] knows nothing of schemas.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum TypeArg {
    TaskMemory,
    UserPreferences,
    BrandMemory,
    CompetitiveMemory,
    PerformanceMemory,
}

/// What is remembered now.
#[derive(Debug, Serialize)]
pub struct Remembered {
    /// The record; none where nothing was learnt.
    pub id: Option<String>,
    /// Whether it is new; else it was known.
    pub added: bool,
    /// How far it may be believed until a person says more.
    pub trust: &'static str,
    /// When it ends: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Why nothing was learnt, where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_learned: Option<&'static str>,
    /// The command by which a person approves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// The command by which a person takes it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What went wrong and did not stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

pub(super) fn remember(engine: &Engine, args: RememberArgs) -> Result<Remembered, Explained> {
    let is_of_note =
        args.memory_type.is_some() || args.metadata.is_some() || args.expires_at.is_some();
    match (args.content, args.fix) {
        (Some(content), None) => {
            let metadata = args.metadata.as_ref().map(to_raw_value).transpose();
            note(
                engine,
                &AddOptions {
                    memory_type: args.memory_type.unwrap_or(MemoryType::TaskMemory),
                    content,
                    metadata: metadata.map_err(store::Error::from)?,
                    expires_at: args.expires_at,
                },
            )
        }
        (None, Some(_)) if is_of_note => Err(Explained::usage(
            "`type`, `metadata` and `expires_at` are of a note, and a `fix` has none",
            "leave them out",
        )),
        (None, Some(given)) => fix(engine, given),
        (content, _) => Err(Explained::usage(
            match content {
                Some(_) => "`content` and `fix` were both given",
                None => "there is nothing to remember",
            },
            "give a note in `content`, or what failed and what worked in `fix`",
        )),
    }
}

fn note(engine: &Engine, options: &AddOptions) -> Result<Remembered, Explained> {
    let report = engine.add_observed(options).map_err(told)?;
    Ok(Remembered {
        approve: report.added.then(|| approval(&report.id)),
        undo: report.added.then(|| undo(engine)).flatten(),
        id: Some(report.id),
        added: report.added,
        trust: "observed",
        expires_at: report.expires_at,
        not_learned: None,
        warnings: report.warnings,
    })
}

/// A failure and its success, in a session of their own.
fn fix(engine: &Engine, fix: FixArgs) -> Result<Remembered, Explained> {
    for (name, text) in [
        ("failed", &fix.failed),
        ("error", &fix.error),
        ("worked", &fix.worked),
    ] {
        if text.trim().is_empty() {
            return Err(Explained::usage(
                format!("`fix.{name}` is empty"),
                "a fix is what failed, what it printed, and what worked instead",
            ));
        }
    }
    let adviser = adviser(engine);
    let session = format!("remember/{}", (engine.random)());
    let failure = adviser
        .record_failure(&fix.failed, &fix.error, &session, 0)
        .map_err(told)?;
    if failure.error_key.is_none() {
        return Err(Explained::usage(
            "`fix.error` names no error",
            "give the lines that the failing call printed, such as `error: …` or a traceback",
        ));
    }
    let report = adviser
        .record_success(&Success {
            code: fix.worked,
            output: fix.output,
            session,
        })
        .map_err(told)?;
    let new = report.learned.into_iter().next();
    let added = new.is_some();
    Ok(Remembered {
        approve: new.as_deref().map(approval),
        undo: new.as_ref().and_then(|_| undo(engine)),
        id: new.or_else(|| report.merged.into_iter().next()),
        added,
        trust: "observed",
        expires_at: None,
        not_learned: report.not_learned,
        warnings: Vec::new(),
    })
}

fn approval(id: &str) -> String {
    format!("memctl memory approve {id}")
}

impl Report for Remembered {
    fn text(&self, _nonce: &str) -> String {
        let mut text = match (&self.id, self.not_learned) {
            (Some(id), _) if self.added => format!("Remembered as {id}, as observed.\n"),
            (Some(id), _) => format!("{id} says it already.\n"),
            (None, reason) => format!(
                "Nothing was learnt: {}.\n",
                reason.unwrap_or("it names no error")
            ),
        };
        if let (Some(approve), Some(undo)) = (&self.approve, &self.undo) {
            text.extend([
                "A person approves it by `",
                approve,
                "`, and takes it back by `",
                undo,
                "`.\n",
            ]);
        }
        for warning in &self.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}
