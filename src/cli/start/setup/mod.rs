//! `setup`: from nothing to a memory that agents use, in one command.
//!
//! It shows a plan, asks once, and does it: memory, hooks, MCP servers, past sessions of the project.
//! Each step is what a command of its own does, and can be done or undone alone. A step that fails does
//! not stop the others.
//!
//! Deliberately absent: changes of git (`init --git`), trust in records that are there already
//! (`trust`), and a model that is called unasked.

pub(crate) mod report;
pub(crate) mod steps;

use std::path::PathBuf;

use clap::Args;
use dialoguer::Confirm;
use memctl_files::{Directory, named, named as files};

use crate::cli::arguments::of_coding_agents;
use crate::cli::ask::ask;
use crate::cli::context::Context;
use crate::cli::database::DATABASE;
use crate::cli::learn::repeats;
use crate::cli::output::{Done, Report};
use crate::cli::start::hooks;
use crate::cli::start::init::first_skill;
use crate::cli::start::setup::report::{ModelOffer, SetupReport, State};
use crate::cli::start::setup::steps::Setup;
use crate::cli::{Global, config};
use crate::host::ServerHost;
use crate::model::Scope;
use crate::model::error::UserError;
use crate::skills::agent_programs::installed_agents;
use crate::store::Scoped;
use crate::store::workspace::redacting_writer::write_output;

/// Set up the memory of this project and the agents that use it
///
/// Finds installed agent hosts and shows a plan: create the memory, install hooks and the MCP server in
/// the settings of each host, and learn from past sessions of this project. Asks before it changes
/// anything. A second run completes what is missing.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl setup\n  memctl setup claude-code --yes\n  memctl setup --dry-run\n  memctl setup --undo"
)]
#[expect(clippy::struct_excessive_bools, reason = "one field per flag")]
pub(crate) struct SetupArgs {
    /// Agent hosts to set up; those that are installed by default
    #[arg(value_name = "HOST", value_parser = of_coding_agents())]
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
    /// Learn from past sessions of all projects
    #[arg(long, conflicts_with = "undo")]
    all_projects: bool,
}

pub(crate) fn setup(context: &Context, global: &Global, args: &SetupArgs) -> Done {
    let hosts = if !args.hosts.is_empty() {
        named(args.hosts.iter().copied())
    } else if args.undo {
        named(ServerHost::of_coding_agents())
    } else {
        found(context)
    };
    let setup = Setup {
        context,
        global,
        all_projects: args.all_projects,
    };
    if args.undo {
        return Ok(Box::new(setup.undo(hosts)));
    }
    let (mut report, steps) = setup.plan(hosts);
    let offer = offer(context)?;
    if args.dry_run {
        report.model = offer;
        return Ok(Box::new(report));
    }
    let is_needed = report.steps.iter().any(|step| step.state == State::Planned);
    if is_needed && !args.yes && !confirms(context, &report)? {
        report.note = Some("nothing was changed".to_owned());
        return Ok(Box::new(report));
    }
    report.is_confirmed = is_needed && !args.yes;
    setup.run(&mut report, &steps);
    let model = word_by(context, offer.as_ref())?;
    report.model = offer;
    let asks = !args.yes && context.is_interactive();
    if asks {
        ask_for(context, &mut report)?;
        // A person who has just refused needs no line about how to set it.
        report.model = report.model.filter(|offer| offer.set);
    }
    if Directory::at(&context.places.memory).is_there() {
        let workspace = context.workspace(None)?;
        report.repeats = repeats::of_project(context, &workspace)?;
    }
    if asks && !report.repeats.repeats.is_empty() {
        let repeats = std::mem::take(&mut report.repeats);
        repeats::go_through(context, &repeats, model.as_deref())?;
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

/// Agent host that is set up.
#[derive(Debug, Clone)]
pub(crate) struct FoundHost {
    pub(crate) host: ServerHost,
    /// Program or directory that shows that it is installed; `None` if the user named it.
    pub(crate) found_by: Option<PathBuf>,
}

/// Program of an agent host.
const fn program(host: ServerHost) -> &'static str {
    match host {
        ServerHost::ClaudeCode => "claude",
        ServerHost::VsCode => "code",
        _ => host.name(),
    }
}

/// Directory of its settings, which it makes when it first runs.
fn directory(context: &Context, host: ServerHost) -> Option<PathBuf> {
    if let Some(host) = host.hooks() {
        return hooks::directory(context, host);
    }
    let all = context.environment.all_settings_dir.as_ref();
    Some(all?.join("Code"))
}

/// Returns the hosts that the user named, each once.
pub(crate) fn named(hosts: impl IntoIterator<Item = ServerHost>) -> Vec<FoundHost> {
    let mut all: Vec<FoundHost> = Vec::new();
    for host in hosts {
        if all.iter().all(|known| known.host != host) {
            all.push(FoundHost {
                host,
                found_by: None,
            });
        }
    }
    all
}

/// Returns the hosts whose program is on the `PATH`, or whose settings directory is there.
pub(crate) fn found(context: &Context) -> Vec<FoundHost> {
    let path = context.environment.search_path();
    let found_by = |host: ServerHost| {
        let mut programs = path.iter().map(|dir| dir.join(program(host)));
        let program = programs.find(|program| files::is_file(program));
        let directory = || directory(context, host).filter(|dir| files::is_dir(dir));
        program.or_else(directory)
    };
    let all = ServerHost::of_coding_agents();
    all.filter_map(|host| {
        let found_by = Some(found_by(host)?);
        Some(FoundHost { host, found_by })
    })
    .collect()
}

/// Variables with the key or the address of a model.
const CONFIGURED: [&str; 4] = [
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "MEMCTL_LOCAL_BASE_URL",
];

/// Returns the first installed agent that can answer, unless a model is configured.
pub(crate) fn offer(context: &Context) -> Result<Option<ModelOffer>, UserError> {
    let environment = &context.environment;
    let config = context.config_quietly()?;
    let has_key = CONFIGURED
        .iter()
        .any(|name| environment.var(name).is_some());
    if has_key || config.is_set("model") {
        return Ok(None);
    }
    let agents = installed_agents(&environment.search_path());
    let settings = environment.config_dir.as_ref();
    let settings = settings.map(|dir| dir.join(config::FILE));
    Ok(agents
        .into_iter()
        .next()
        .zip(settings)
        .map(|(model, settings)| ModelOffer {
            model,
            settings: settings.display().to_string(),
            set: false,
        }))
}

/// Asks whether the agent may answer, and writes the setting if so.
pub(crate) fn ask_for(context: &Context, report: &mut SetupReport) -> Result<(), UserError> {
    let Some(offer) = &mut report.model else {
        return Ok(());
    };
    let program = offer.model.trim_start_matches("exec:");
    let prompt = format!("Use `{program}` where a command asks for a model? Its plan pays.");
    let question = Confirm::new().with_prompt(prompt).default(false);
    if !ask(|| question.interact())? {
        return Ok(());
    }
    let Some(directory) = &context.environment.config_dir else {
        return Ok(());
    };
    let path = directory.join(config::FILE);
    let text = match named::read_text(&path, config::LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    // A key before the first table is one of the whole file.
    let text = text.trim_start_matches('\u{feff}');
    let text = format!("model = \"{}\"\n{text}", offer.model);
    named::create_dir(directory)?;
    write_output(&path, text.as_bytes())?;
    offer.set = true;
    Ok(())
}

/// Returns the model that words lessons if the person wants it: the configured one, else the installed agent.
fn word_by(context: &Context, offer: Option<&ModelOffer>) -> Result<Option<String>, UserError> {
    if let Some(offer) = offer {
        return Ok(Some(offer.model.clone()));
    }
    Ok(context.config_quietly()?.text("model").map(str::to_owned))
}

/// Maximum number of next steps.
const MOST: usize = 3;

/// Returns the offer to keep the memory in a database, if one is named and the memory is in files.
pub(crate) fn offer_to_join(context: &Context) -> Option<String> {
    let environment = &context.environment;
    let is_named = DATABASE.iter().any(|name| environment.var(name).is_some());
    let store = Scoped::new(&context.places.memory, Scope::All);
    let is_joined = store.primary_name().is_ok_and(|name| name.is_some());
    let offer = "memctl remote join NAME       keep this memory in the database of DATABASE_URL";
    (is_named && !is_joined).then(|| offer.to_owned())
}

/// Returns the next steps, the most useful first.
pub(crate) fn next_steps(context: &Context, report: &SetupReport) -> Vec<String> {
    let mut next = Vec::new();
    let new_hooks = report
        .steps
        .iter()
        .find(|step| step.name == "hooks" && step.state == State::Done);
    let mut hosts = ServerHost::of_coding_agents();
    if let Some(host) =
        hosts.find(|host| new_hooks.is_some_and(|step| step.host == Some(host.name())))
    {
        next.push(format!(
            "{:<29} start it here: it is told rules and lessons",
            program(host)
        ));
    }
    let waiting = report.learned.map_or(0, |learned| learned.records);
    if waiting > 0 {
        next.push(
            "memctl review                 go over what was learned, and approve it".to_owned(),
        );
    }
    if let Some(offer) = offer_to_join(context) {
        next.push(offer);
    }
    match first_skill(context) {
        Some(skill) => next.push(format!(
            "memctl correct {skill} \"…\"   say once what a skill gets wrong"
        )),
        None => next.push("memctl search \"…\"             find what is remembered".to_owned()),
    }
    next.push("memctl stats                  see what hints and rules were worth".to_owned());
    next.truncate(MOST);
    next
}
