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

use crate::cli::care::{git, settings};
use crate::cli::memory::{audit, conflicts, list};
use crate::cli::output::{Done, Page, Report, Verbatim};
use crate::cli::review::{approve, stats, undo, watch};
use crate::cli::share::{mcp, serve};
use crate::cli::start::{hooks, setup};
use crate::cli::{learn, memory};
use crate::model::error::{ErrorDocument, UserError};
use crate::notes::sessions;
use crate::upkeep::{exchange, merge};
use crate::{host, lessons, notes, remote, review, rules, serve as server, skills, upkeep};

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

/// Table of the commands with a document, each with the types of its documents.
macro_rules! documents {
    ($($command:literal: $($document:ty),+;)+) => {
        &[$(($command, &[$(<$document>::json_schema),+])),+]
    };
}

/// Commands with a document.
const SCHEMAS: &[(&str, Documents)] = documents! {
    "accept": rules::ReviewReport;
    "approve": approve::Approval;
    "completions": Verbatim;
    "config show": settings::ConfigReport;
    "correct": rules::CorrectReport, rules::CorrectPreview;
    "doctor": upkeep::DoctorReport, upkeep::SecretsReport;
    "edit": review::EditReport;
    "error": ErrorDocument<'_>;
    "eval retrieval": upkeep::EvaluateReport;
    "forget": upkeep::ForgetReport;
    "hint": lessons::HintReport;
    "hooks install": host::InstallReport;
    "hooks status": hooks::HookStatuses;
    "hooks uninstall": host::InstallReport;
    "index": upkeep::IndexReport;
    "init": upkeep::InitReport;
    "learn": learn::sessions::SessionsLearned, lessons::TidyReport;
    "lesson add": lessons::StoredLesson;
    "lesson list": notes::ListReport;
    "list": notes::ListReport, list::AllKinds;
    "man": Verbatim;
    "mcp install": host::RegisterReport;
    "mcp status": mcp::Registered;
    "mcp uninstall": host::RegisterReport;
    "memory add": notes::AddReport;
    "memory audit": upkeep::AuditReport;
    "memory audit verify": audit::Verified;
    "memory conflicts": conflicts::Related, rules::MergeReport, rules::Separated;
    "memory disable": memory::SwitchReport;
    "memory enable": memory::SwitchReport;
    "memory export": exchange::ExportReport, exchange::AgentsMdReport;
    "memory import": exchange::ImportReport;
    "memory pin": rules::PinReport;
    "memory promote": review::Promoted;
    "memory prompt": skills::PromptReport;
    "memory prune": upkeep::PruneReport;
    "memory purge": upkeep::PurgeReport;
    "memory resolve": merge::ResolveReport;
    "memory status": upkeep::StatusReport;
    "merge-driver": git::Driven;
    "record failure": lessons::HintReport;
    "record success": lessons::RecordReport;
    "reject": rules::ReviewReport, review::Rejected;
    "remote check": remote::CheckReport;
    "remote init": remote::InitReport, remote::RemotePruneReport;
    "remote join": remote::JoinReport;
    "remote leave": crate::cli::share::remote::LeaveReport;
    "remote status": remote::StatusReport;
    "remote user add": remote::UserReport;
    "review": review::queue::Queue;
    "run": skills::RunReport;
    "schema": Commands;
    "search": notes::FindReport;
    "serve": serve::Listening;
    "session end": sessions::ChangedSession;
    "session list": sessions::SessionsReport;
    "session log": sessions::ActionReport;
    "session progress": sessions::ChangedSession;
    "session show": sessions::SessionReport;
    "session start": sessions::ChangedSession;
    "setup": setup::report::SetupReport;
    "show": notes::ShowReport;
    "stats": stats::Shown;
    "sync": remote::SyncReport;
    "test": skills::TestReport, skills::OutputVerdict, skills::TestExportReport;
    "token": server::token::Minted;
    "trust": settings::TrustReport;
    "undo": upkeep::undo::UndoReport, undo::Changes;
    "watch": crate::model::Execution, watch::feed::Other;
    "why": upkeep::WhyReport;
};

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
