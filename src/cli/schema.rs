//! For programs: `schema` prints JSON Schemas of the documents that `--json` prints; for shells, completions and manual
//! pages.
//!
//! Schemas are derived from the types that are printed, so a document cannot leave its schema
//! behind. They name the fields and their types; readers must accept further fields, because a
//! version may add some. A command that can print several documents has the schema of each, in
//! `anyOf`.
//!
//! Deliberately absent: completion of skills and ids, for which a shell would start the program at
//! each Tab. The beginning of an id is enough for every command.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use memctl_files::named;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::cli::care;
use crate::cli::learn;
use crate::cli::memory::{self, change, list};
use crate::cli::output::{Done, Page, Report, Verbatim};
use crate::cli::review::{decisions, stats, watch};
use crate::cli::share::serve;
use crate::cli::start::places::Statuses;
use crate::cli::start::{init, setup};
use crate::model::error::{ErrorDocument, UserError};
use crate::notes::{self, sessions};
use crate::upkeep::{self, merge};
use crate::{host, lessons, remote, review, rules, serve as server, skills};

/// Print the JSON Schema of a command's `--json` document
///
/// Without a command, it lists the commands that have one. `error` is the document of a command
/// that failed. Fields are only added within a version: accept those that you do not know.
///
/// ```console
/// $ memctl schema
/// $ memctl schema list
/// $ memctl schema error > error.schema.json
/// ```
#[derive(Debug, Args)]
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
    "approve": decisions::Approval;
    "completions": Verbatim;
    "config show": care::ConfigReport;
    "correct": rules::CorrectReport;
    "doctor": upkeep::DoctorReport;
    "edit": review::EditReport;
    "error": ErrorDocument<'_>;
    "forget": upkeep::ForgetReport;
    "hint": lessons::HintReport;
    "hooks install": host::Installed<host::Events>;
    "hooks status": Statuses<host::FoundHooks>;
    "hooks uninstall": host::Installed<host::Events>;
    "index": upkeep::IndexReport;
    "init": upkeep::InitReport;
    "learn": learn::sessions::SessionsLearned, lessons::TidyReport;
    "lesson add": lessons::StoredLesson;
    "lesson list": notes::ListReport;
    "list": notes::ListReport, list::AllKinds;
    "man": Verbatim;
    "mcp install": host::Installed<host::Served>;
    "mcp status": Statuses<host::Served>;
    "mcp uninstall": host::Installed<host::Served>;
    "memory add": notes::AddReport;
    "memory audit": upkeep::AuditReport;
    "memory audit verify": memory::Verified;
    "memory conflicts": change::Related, rules::MergeReport, rules::Separated;
    "memory disable": memory::SwitchReport;
    "memory enable": memory::SwitchReport;
    "memory export": upkeep::ExportReport, upkeep::AgentsMdReport;
    "memory import": upkeep::ImportReport;
    "memory promote": review::Promoted;
    "memory prompt": skills::PromptReport;
    "memory prune": upkeep::PruneReport;
    "memory purge": upkeep::PurgeReport;
    "memory resolve": merge::ResolveReport;
    "memory status": upkeep::StatusReport;
    "merge-driver": init::Driven;
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
    "setup": setup::SetupReport;
    "show": notes::ShowReport;
    "stats": stats::Shown;
    "sync": remote::SyncReport;
    "test": skills::TestReport, skills::OutputVerdict, skills::TestExportReport;
    "token": server::token::Minted;
    "trust": care::TrustReport;
    "undo": upkeep::undo::UndoReport, decisions::Changes;
    "watch": crate::model::Execution, watch::Other;
    "why": upkeep::WhyReport;
};

/// Returns the schema of a command's documents.
fn schema_of(command: &str, documents: Documents) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let made: Vec<Schema> = documents.iter().map(|of| of(&mut generator)).collect();
    let fields = match <[Schema; 1]>::try_from(made) {
        Ok([one]) => one,
        Err(several) => json_schema!({ "anyOf": several }),
    };
    let mut schema = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("memctl {command} --json"),
    });
    if let Value::Object(fields) = fields.to_value() {
        schema.ensure_object().extend(fields);
    }
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    RecursiveTransform(describe).transform(&mut schema);
    schema.to_value()
}

/// Rewrites a description, which speaks of code, for readers of JSON: takes the links of the code's documentation out,
/// and calls `None` null.
fn describe(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("`None`", "null").replace("[`", "`");
        *text = text.replace("`]", "`").replace('\n', " ");
    }
}

/// Commands whose `--json` document has a schema.
#[derive(Serialize, JsonSchema)]
struct Commands {
    /// Words of each command; `error` is the document of a command that failed.
    commands: Vec<&'static str>,
}

impl Report for Commands {
    fn page(&self, page: &mut Page) {
        page.line(self.commands.join("\n"));
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

/// Print a completion script for a shell
///
/// It completes commands, options and their values. Start a new shell after installing it.
///
/// ```console
/// $ memctl completions bash > ~/.local/share/bash-completion/completions/memctl
/// $ memctl completions zsh > "${fpath[1]}/_memctl"
/// $ memctl completions fish > ~/.config/fish/completions/memctl.fish
/// ```
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

#[expect(clippy::unnecessary_wraps, reason = "a command like any other")]
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Done<Verbatim> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "memctl", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    Ok(Verbatim { text })
}

/// Print the manual page, or write one for each command
///
/// ```console
/// $ memctl man | man -l -
/// $ memctl man --dir ~/.local/share/man/man1
/// ```
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this existing directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, command: &Command) -> Done<Verbatim> {
    if let Some(dir) = &args.dir {
        if !named::is_dir(dir) {
            return Err(UserError::usage(
                format!("`{}` is not a directory", dir.display()),
                format!("mkdir -p {}", dir.display()),
            ));
        }
        clap_mangen::generate_to(command.clone(), dir)?;
        let text = format!("written to {}", dir.display());
        return Ok(Verbatim { text });
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let text = String::from_utf8_lossy(&page).into_owned();
    Ok(Verbatim { text })
}
