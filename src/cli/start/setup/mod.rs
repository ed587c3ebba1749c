//! `setup`: from nothing to a memory that agents use, in one command.
//!
//! It shows a plan, asks once, and does it: memory, hooks, MCP servers, past sessions of the project.
//! Each step is what a command of its own does, and can be done or undone alone. A step that fails does
//! not stop the others.
//!
//! Deliberately absent: changes of git (`init --git`), trust in records that are there already
//! (`trust`), and a model that is called unasked.

mod found;
mod model;
pub(super) mod next;
mod past;
pub(crate) mod report;
mod steps;

use clap::Args;
use dialoguer::Confirm;

use crate::cli::Global;
use crate::cli::agent_host::of_coding_agents;
use crate::cli::context::Context;
use crate::cli::output::{Done, Report};
use crate::cli::question::ask;
use crate::host::ServerHost;
use crate::model::error::UserError;

use found::{found, named};
use report::{SetupReport, State};
use steps::Setup;

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
    let offer = model::offer(context)?;
    if args.dry_run {
        report.model = offer;
        return Ok(Box::new(report));
    }
    let is_needed = report.steps.iter().any(|step| step.state == State::Planned);
    if is_needed && !args.yes && !confirms(context, &report)? {
        report.note = Some("nothing was changed".to_owned());
        return Ok(Box::new(report));
    }
    setup.run(&mut report, &steps);
    report.model = offer;
    if !args.yes && context.is_interactive() {
        model::ask_for(context, &mut report)?;
        past::ask_for(context, setup.sessions(), setup.project(), &mut report)?;
    }
    report.next = next::steps(context, &report);
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
