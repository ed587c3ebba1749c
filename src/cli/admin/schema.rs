//! `schema`: JSON Schemas of the documents that `--json` prints.
//!
//! Schemas are derived from the types that are printed, so a document cannot leave its schema
//! behind. They name the fields and their types; readers must accept further fields, because a
//! version may add some. A command that can print several documents has the schema of each, in
//! `anyOf`.

use clap::Args;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::insight::watch;
use crate::cli::learning;
use crate::cli::memory::{approve, audit, list, switch, undo};
use crate::cli::output::{Done, Page, Report, Verbatim};
use crate::cli::share::{join, mcp, serve};
use crate::cli::start::setup;
use crate::cli::version::VersionReport;
use crate::model::error::{ErrorDocument, UserError};
use crate::notes::{self, sessions};
use crate::upkeep::{self, exchange, merge};
use crate::{host, lessons, remote, review, rules, serve as server, skills};

use super::{config, merge_driver, trust};

/// Print the JSON Schema of a command's `--json` document
///
/// Without a command, it lists the commands that have one. `error` is the document of a command
/// that failed. Fields are only added within a version: accept those that you do not know.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl schema\n  memctl schema list\n  memctl schema error > error.schema.json"
)]
pub(crate) struct SchemaArgs {
    /// Words of the command, or `error`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Schema of each document of one command, as a type.
type Documents = &'static [fn(&mut SchemaGenerator) -> Schema];

/// Commands with a document.
const SCHEMAS: &[(&str, Documents)] = &[
    ("accept", &[of::<rules::ReviewReport>]),
    ("completions", &[of::<Verbatim>]),
    ("config show", &[of::<config::ConfigReport>]),
    (
        "correct",
        &[of::<rules::CorrectReport>, of::<rules::CorrectPreview>],
    ),
    (
        "doctor",
        &[of::<upkeep::DoctorReport>, of::<upkeep::SecretsReport>],
    ),
    ("error", &[of::<ErrorDocument<'_>>]),
    ("eval retrieval", &[of::<upkeep::EvaluateReport>]),
    ("hint", &[of::<lessons::HintReport>]),
    ("hooks install", &[of::<host::InstallReport>]),
    ("hooks status", &[of::<learning::hooks::HookStatuses>]),
    ("hooks uninstall", &[of::<host::InstallReport>]),
    ("index", &[of::<upkeep::IndexReport>]),
    ("init", &[of::<upkeep::InitReport>]),
    ("lesson add", &[of::<lessons::StoredLesson>]),
    ("lesson list", &[of::<learning::lesson::LessonList>]),
    (
        "learn",
        &[
            of::<learning::learn::SessionsLearned>,
            of::<lessons::TidyReport>,
        ],
    ),
    ("man", &[of::<Verbatim>]),
    ("mcp install", &[of::<host::RegisterReport>]),
    ("mcp status", &[of::<mcp::Registered>]),
    ("mcp uninstall", &[of::<host::RegisterReport>]),
    ("memory add", &[of::<notes::AddReport>]),
    ("approve", &[of::<approve::Approval>]),
    ("memory audit", &[of::<upkeep::AuditReport>]),
    ("memory audit verify", &[of::<audit::Verified>]),
    (
        "memory conflicts",
        &[
            of::<rules::ConflictsReport>,
            of::<rules::MergeReport>,
            of::<rules::Separated>,
        ],
    ),
    ("memory disable", &[of::<switch::SwitchReport>]),
    ("edit", &[of::<review::EditReport>]),
    ("memory enable", &[of::<switch::SwitchReport>]),
    (
        "memory export",
        &[of::<exchange::ExportReport>, of::<exchange::AgentsMdReport>],
    ),
    ("forget", &[of::<upkeep::ForgetReport>]),
    ("memory import", &[of::<exchange::ImportReport>]),
    ("list", &[of::<notes::ListReport>, of::<list::AllKinds>]),
    ("memory pin", &[of::<rules::PinReport>]),
    ("memory promote", &[of::<review::Promoted>]),
    ("memory prompt", &[of::<skills::PromptReport>]),
    ("memory prune", &[of::<upkeep::PruneReport>]),
    ("memory purge", &[of::<upkeep::PurgeReport>]),
    ("memory resolve", &[of::<merge::ResolveReport>]),
    ("search", &[of::<notes::FindReport>]),
    ("show", &[of::<notes::ShowReport>]),
    ("memory status", &[of::<upkeep::StatusReport>]),
    (
        "undo",
        &[of::<upkeep::undo::UndoReport>, of::<undo::Changes>],
    ),
    ("why", &[of::<upkeep::WhyReport>]),
    (
        "merge-driver",
        &[of::<merge_driver::Driven>, of::<merge_driver::SetUp>],
    ),
    ("record failure", &[of::<lessons::HintReport>]),
    ("record success", &[of::<lessons::RecordReport>]),
    (
        "reject",
        &[of::<rules::ReviewReport>, of::<review::Rejected>],
    ),
    ("remote check", &[of::<remote::CheckReport>]),
    ("remote embed", &[of::<remote::VectorsReport>]),
    (
        "remote init",
        &[of::<remote::InitReport>, of::<remote::RemotePruneReport>],
    ),
    ("remote join", &[of::<remote::JoinReport>]),
    ("remote leave", &[of::<join::LeaveReport>]),
    ("remote status", &[of::<remote::StatusReport>]),
    ("remote user add", &[of::<remote::UserReport>]),
    ("review", &[of::<review::queue::Queue>]),
    ("run", &[of::<skills::RunReport>]),
    ("schema", &[of::<Commands>]),
    ("serve", &[of::<serve::Listening>]),
    ("session end", &[of::<sessions::ChangedSession>]),
    ("session list", &[of::<sessions::SessionsReport>]),
    ("session log", &[of::<sessions::ActionReport>]),
    ("session progress", &[of::<sessions::ChangedSession>]),
    ("session show", &[of::<sessions::SessionReport>]),
    ("session start", &[of::<sessions::ChangedSession>]),
    ("stats", &[of::<upkeep::StatsReport>]),
    ("setup", &[of::<setup::report::SetupReport>]),
    ("sync", &[of::<remote::SyncReport>]),
    (
        "test",
        &[
            of::<skills::TestReport>,
            of::<skills::OutputVerdict>,
            of::<skills::TestExportReport>,
        ],
    ),
    ("token", &[of::<server::token::Minted>]),
    ("trust", &[of::<trust::TrustReport>]),
    ("version", &[of::<VersionReport>]),
    (
        "watch",
        &[of::<crate::model::Execution>, of::<watch::Other>],
    ),
];

/// Schema of a type, without those that it refers to.
fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// Returns the schema of a command's documents.
fn schema_of(command: &str, documents: Documents) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let made: Vec<Schema> = documents.iter().map(|of| of(&mut generator)).collect();
    let mut fields = match <[Schema; 1]>::try_from(made) {
        Ok([one]) => one.to_value(),
        Err(several) => json!({ "anyOf": several }),
    };
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("memctl {command} --json"),
    });
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        fields["$defs"] = Value::Object(definitions);
    }
    if let (Some(schema), Value::Object(fields)) = (schema.as_object_mut(), fields) {
        schema.extend(fields);
    }
    describe(&mut schema);
    schema
}

/// Rewrites descriptions, which speak of code, for readers of JSON.
fn describe(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" => *text = plain(text),
                    value => describe(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(describe),
        _ => {}
    }
}

/// Takes the links of the code's documentation out of a text, and calls `None` null.
fn plain(text: &str) -> String {
    let text = text.replace("`None`", "null").replace("[`", "`");
    text.replace("`]", "`").replace('\n', " ")
}

/// Commands whose `--json` document has a schema.
#[derive(Serialize, JsonSchema)]
struct Commands {
    /// Words of each command; `error` is the document of a command that failed.
    commands: Vec<&'static str>,
}

impl Report for Commands {
    fn page(&self, page: &mut Page) {
        for command in &self.commands {
            page.line(*command);
        }
    }
}

/// Schema of one command.
#[derive(Serialize)]
#[serde(transparent)]
struct Found(Value);

impl Report for Found {
    fn page(&self, page: &mut Page) {
        page.verbatim(&format!("{:#}", self.0));
    }
}

pub(crate) fn schema(args: &SchemaArgs) -> Done {
    if args.command.is_empty() {
        let commands = SCHEMAS.iter().map(|(name, _)| *name).collect();
        return Ok(Box::new(Commands { commands }));
    }
    let typed = args.command.join(" ");
    // `memory` may be typed or left out before commands that stand at both levels.
    let bare = |name: &str| name.strip_prefix("memory ").unwrap_or(name).to_owned();
    let found = SCHEMAS.iter().find(|(name, _)| bare(name) == bare(&typed));
    match found {
        Some((name, documents)) => Ok(Box::new(Found(schema_of(name, documents)))),
        None => Err(UserError::usage(
            format!("`{}` has no `--json` document", typed.escape_debug()),
            "memctl schema",
        )),
    }
}
