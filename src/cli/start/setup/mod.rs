//! `setup`: from nothing to a memory that agents use, in one command.
//!
//! It shows a plan, asks once, and does it: memory, hooks, MCP servers, past sessions of the project.
//! Each step is what a command of its own does, and can be done or undone alone. A step that fails does
//! not stop the others. Then it goes through what past sessions repeat.
//!
//! Deliberately absent: changes of git (`init --git`), trust in records that are there already
//! (`trust`), and a model that is called unasked.

pub(crate) mod report;
pub(crate) mod steps;

use std::path::PathBuf;

use clap::Args;
use dialoguer::Confirm;
use memctl_files::{Directory, named};

use crate::cli::Global;
use crate::cli::ask::ask;
use crate::cli::context::Context;
use crate::cli::database::DATABASE;
use crate::cli::learn::repeats;
use crate::cli::output::{Done, Report};
use crate::cli::start::hooks;
use crate::cli::start::setup::report::{SetupHost, SetupReport};
use crate::cli::start::setup::steps::{Setup, State};
use crate::host::ServerHost;
use crate::model::Scope;
use crate::model::error::UserError;
use crate::skills::installed_agents;
use crate::store::Scoped;

/// Set up the memory of this project and the agents that use it
///
/// Finds installed agent hosts and shows a plan: create the memory, install hooks and the MCP server in
/// the settings of each host, and learn from past sessions of this project. Asks before it changes
/// anything. A second run completes what is missing.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl setup\n  memctl setup claude-code --yes\n  memctl setup --dry-run\n  memctl setup --undo"
)]
pub(crate) struct SetupArgs {
    /// Agent hosts to set up; those that are installed by default
    #[arg(value_name = "HOST", value_enum)]
    hosts: Vec<ServerHost>,
    /// Do it without asking
    #[arg(short, long)]
    yes: bool,
    /// Show the plan, and change nothing
    #[arg(long, conflicts_with_all = ["yes", "undo"])]
    dry_run: bool,
    /// Remove the hooks and the MCP server again; the memory stays
    #[arg(long)]
    undo: bool,
}

pub(crate) fn setup(context: &Context, global: &Global, args: &SetupArgs) -> Done {
    let mut hosts: Vec<SetupHost> = Vec::new();
    for host in &args.hosts {
        if hosts.iter().all(|known| known.host != *host) {
            hosts.push(SetupHost::new(*host, None));
        }
    }
    if hosts.is_empty() {
        let all = ServerHost::of_coding_agents();
        let all = all.map(|host| SetupHost::new(host, found_by(context, host)));
        hosts = all
            .filter(|host| args.undo || host.found_by.is_some())
            .collect();
    }
    let setup = Setup { context, global };
    if args.undo {
        return Ok(Box::new(setup.undo(hosts)));
    }
    let mut report = setup.plan(hosts);
    if args.dry_run {
        return Ok(Box::new(report));
    }
    let asks = !args.yes && context.is_interactive();
    if !args.yes && report.steps.iter().any(|step| step.state == State::Planned) {
        if !confirms(context, &report)? {
            report.note = Some("nothing was changed".to_owned());
            return Ok(Box::new(report));
        }
        report.is_confirmed = true;
    }
    setup.run(&mut report);
    if Directory::at(&context.places.memory).is_there() {
        let workspace = context.workspace(None)?;
        report.repeats = repeats::of_project(context, &workspace)?;
    }
    if asks && !report.repeats.repeats.is_empty() {
        let repeats = std::mem::take(&mut report.repeats);
        repeats::go_through(context, &repeats, model(context)?.as_deref())?;
    }
    report.next = next_steps(context, &report);
    Ok(Box::new(report))
}

/// Shows the plan and asks.
fn confirms(context: &Context, report: &SetupReport) -> Result<bool, UserError> {
    if !context.is_interactive() {
        return Err(UserError::usage(
            "setup asks before it changes anything, and there is no terminal to ask on",
            "memctl setup --yes; memctl setup --dry-run shows the plan",
        ));
    }
    let mut page = context.printer.page();
    report.page(&mut page);
    context.printer.note(page.into_text().trim_end());
    let question = Confirm::new().with_prompt("Do this?").default(true);
    ask(|| question.interact())
}

/// Program of an agent host.
const fn program(host: ServerHost) -> &'static str {
    match host {
        ServerHost::ClaudeCode => "claude",
        ServerHost::VsCode => "code",
        _ => host.name(),
    }
}

/// Returns what shows that a host is installed: its program on the `PATH`, or its settings directory, which it
/// makes when it first runs.
fn found_by(context: &Context, host: ServerHost) -> Option<PathBuf> {
    let path = context.environment.search_path();
    let mut programs = path.iter().map(|dir| dir.join(program(host)));
    let of_settings = || match host.hooks() {
        Some(host) => hooks::directory(context, host),
        None => Some(context.environment.all_settings_dir.as_ref()?.join("Code")),
    };
    programs
        .find(|program| named::is_file(program))
        .or_else(|| of_settings().filter(|dir| named::is_dir(dir)))
}

/// Returns the model that words lessons if the person wants it: the configured one, else an installed agent.
fn model(context: &Context) -> Result<Option<String>, UserError> {
    let configured = context.config_quietly()?.text("model").map(str::to_owned);
    let installed = installed_agents(&context.environment.search_path());
    Ok(configured.or(installed.into_iter().next()))
}

/// Maximum number of next steps.
const MOST: usize = 3;

/// Returns the next steps, the most useful first.
fn next_steps(context: &Context, report: &SetupReport) -> Vec<String> {
    let mut steps = report.steps.iter();
    let new = steps.find(|step| step.name == "hooks" && step.state == State::Done);
    let mut hosts = report.hosts.iter();
    let new = hosts.find(|host| new.is_some_and(|step| step.host == Some(host.name)));
    let has_learned = report.learned.is_some_and(|learned| learned.records > 0);
    let line = |command: &str, why: &str| format!("{command:<29} {why}");
    let steps = [
        new.map(|new| {
            let why = "start it here: it is told rules and lessons";
            line(program(new.host), why)
        }),
        has_learned.then(|| {
            let why = "go over what was learned, and approve it";
            line("memctl review", why)
        }),
        offer_to_join(context),
        Some(line("memctl search \"…\"", "find what is remembered")),
        Some(line("memctl stats", "see what hints and rules were worth")),
    ];
    steps.into_iter().flatten().take(MOST).collect()
}

/// Returns the offer to keep the memory in a database, if one is named and the memory is in files.
pub(crate) fn offer_to_join(context: &Context) -> Option<String> {
    let environment = &context.environment;
    let is_named = DATABASE.iter().any(|name| environment.var(name).is_some());
    let store = Scoped::new(&context.places.memory, Scope::All);
    let is_joined = store.primary_name().is_ok_and(|name| name.is_some());
    let offer = "memctl remote join NAME       keep this memory in the database of DATABASE_URL";
    (is_named && !is_joined).then(|| offer.to_owned())
}
