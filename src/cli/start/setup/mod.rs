//! `setup`: from nothing to a memory that agents use, in one command.
//!
//! It shows a plan, asks once, and performs it: memory, hooks, MCP servers, past sessions of the project.
//! Each step also has a command of its own, and can be done or undone alone. A failed step does not stop
//! the others. Then `setup` goes through the repeats of past sessions. The report is the plan, with the
//! result of each step.
//!
//! Deliberately absent: changes of git (`init --git`), trust in existing records (`trust`), and a model call
//! without a request.

use std::path::PathBuf;

use clap::Args;
use memctl_files::named;
use serde::Serialize;

use crate::cli::arguments::hosts;
use crate::cli::ask::confirms;
use crate::cli::context::Context;
use crate::cli::learn::repeats;
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::cli::start::hooks;
use crate::cli::start::init::show_git;
use crate::cli::start::setup::steps::{State, Step};
use crate::host::Host;
use crate::lessons::LearnReport;
use crate::model::error::UserError;
use crate::review::Repeats;
use crate::skills::installed_agents;

pub(crate) mod steps;

/// Set up the memory of this project and the agents that use it
///
/// Finds installed agent hosts and shows a plan: create the memory, install hooks and the MCP server in
/// the settings of each host, and learn from past sessions of this project. Asks before it changes
/// anything. A second run completes what is missing.
///
/// ```console
/// $ memctl setup
/// $ memctl setup claude-code --yes
/// $ memctl setup --dry-run
/// $ memctl setup --undo --dry-run
/// ```
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Agent hosts to set up; those that are installed by default
    #[arg(value_name = "HOST", value_parser = hosts(false))]
    hosts: Vec<Host>,
    /// Do it without asking
    #[arg(short, long)]
    yes: bool,
    /// Show the plan, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove the hooks and the MCP server again; the memory stays
    #[arg(long)]
    undo: bool,
}

pub(crate) fn setup(context: &Context, args: &SetupArgs) -> Done<SetupReport> {
    let hosts: Vec<SetupHost> = if args.hosts.is_empty() {
        let all = Host::ALL.into_iter();
        let all = all.map(|host| SetupHost::new(host, found_by(context, host)));
        // Claude Desktop is set up by name: it would use the memory of this project for every one.
        let is_usual =
            |host: &SetupHost| host.found_by.is_some() && host.host != Host::ClaudeDesktop;
        all.filter(|host| args.undo || is_usual(host)).collect()
    } else {
        let named = Host::ALL
            .into_iter()
            .filter(|host| args.hosts.contains(host));
        named.map(|host| SetupHost::new(host, None)).collect()
    };
    if args.undo {
        return Ok(steps::undo(context, hosts, args.dry_run));
    }
    if let Some(off) = &context.off {
        return Err(off.clone().into());
    }
    let mut report = steps::plan(context, hosts);
    if args.dry_run {
        return Ok(report);
    }
    let asks = !args.yes && context.is_interactive();
    if !args.yes && report.steps.iter().any(|step| step.state == State::Planned) {
        if !is_wanted(context, &report)? {
            report.note = Some("nothing was changed".to_owned());
            return Ok(report);
        }
        report.is_confirmed = true;
    }
    steps::run(context, &mut report);
    if context.has_memory() {
        let workspace = context.workspace(None)?;
        report.repeats = repeats::of_project(context, &workspace)?;
    }
    if asks && !report.repeats.repeats.is_empty() {
        let repeats = std::mem::take(&mut report.repeats);
        repeats::go_through(context, &repeats, model(context)?.as_deref())?;
    }
    report.next = next_steps(&report);
    Ok(report)
}

/// Shows the plan and asks.
fn is_wanted(context: &Context, report: &SetupReport) -> Result<bool, UserError> {
    if !context.is_interactive() {
        return Err(UserError::usage(
            "setup asks before it changes anything, and there is no terminal to ask on",
            "memctl setup --yes; memctl setup --dry-run shows the plan",
        ));
    }
    context.printer.note_page(|page| report.page(page));
    confirms("Do this?", true)
}

/// Returns what shows that a host is installed: its program on the `PATH`, or its settings directory, which it
/// makes when it first runs.
fn found_by(context: &Context, host: Host) -> Option<PathBuf> {
    let path = context.environment.search_path();
    let mut programs = path.iter().map(|dir| dir.join(host.profile().program));
    let of_settings = || match host {
        Host::VsCode => Some(context.environment.all_settings_dir.as_ref()?.join("Code")),
        host => hooks::directory(context, host),
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
fn next_steps(report: &SetupReport) -> Vec<String> {
    let is_new = |step: &&Step| step.name == "hooks" && step.state == State::Done;
    let new = report.steps.iter().find(is_new).and_then(|step| step.host);
    let new = report.hosts.iter().find(|host| Some(host.name) == new);
    let has_learned = report.learned.is_some_and(|learned| learned.records > 0);
    let line = |command: &str, why: &str| format!("{command:<29} {why}");
    let start = "start it here: it is told rules and lessons";
    let review = line("memctl review", "go over what was learned, and approve it");
    let steps = [
        new.map(|new| line(new.host.profile().program, start)),
        has_learned.then_some(review),
        Some(line("memctl search \"…\"", "find what is remembered")),
        Some(line("memctl stats", "see what hints and rules were worth")),
    ];
    steps.into_iter().flatten().take(MOST).collect()
}

/// Agent host that is set up.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupHost {
    #[serde(skip)]
    pub(crate) host: Host,
    /// Name of the agent host.
    pub(crate) name: &'static str,
    /// Program or directory that shows that it is installed; null if it was named.
    pub(crate) found_by: Option<String>,
}

impl SetupHost {
    pub(crate) fn new(host: Host, found_by: Option<PathBuf>) -> Self {
        Self {
            host,
            name: host.name(),
            found_by: found_by.map(|path| path.display().to_string()),
        }
    }
}

/// Numbers of what was learned from past sessions.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub(crate) struct Learned {
    /// Session files read.
    pub(crate) sessions: usize,
    /// Session files that were read before.
    pub(crate) unchanged: usize,
    /// Failing tool calls.
    pub(crate) failures: usize,
    /// New lessons.
    pub(crate) records: usize,
}

impl Learned {
    pub(crate) fn of(report: &LearnReport) -> Self {
        Self {
            sessions: report.transcripts.len(),
            unchanged: report.unchanged,
            failures: report.transcripts.iter().map(|one| one.failures).sum(),
            records: report.learned.len(),
        }
    }
}

/// Plan of `setup`, and what was done.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupReport {
    /// Agent hosts.
    pub(crate) hosts: Vec<SetupHost>,
    /// Steps in order.
    pub(crate) steps: Vec<Step>,
    /// Numbers of the past sessions; null if none was read.
    pub(crate) learned: Option<Learned>,
    /// Repetitions in past sessions.
    pub(crate) repeats: Repeats,
    /// Files of the project that git will see; empty outside of a repository.
    pub(crate) git: Vec<String>,
    /// Next steps, at most three.
    pub(crate) next: Vec<String>,
    /// `true` if a person has just seen the plan.
    #[serde(skip)]
    pub(crate) is_confirmed: bool,
    /// Remark about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Non-fatal problems.
    pub(crate) warnings: Vec<String>,
}

impl SetupReport {
    fn show(step: &Step, page: &mut Page) {
        let (style, mark) = match step.state {
            State::Planned => (Style::Strong, "will     "),
            State::Done => (Style::Good, "done     "),
            State::Already => (Style::Dim, "already  "),
            State::Failed => (Style::Bad, "failed   "),
            State::Skipped => (Style::Dim, "skipped  "),
        };
        let what = step.in_words();
        let path = step.path.as_deref().map(|path| page.path(path));
        let beside = path.as_ref().map(|path| format!(" ({path})"));
        let beside = beside.unwrap_or_default();
        let fits = mark.len() + what.len() + beside.len() <= page.width();
        let shown = if fits { &beside } else { "" };
        page.styled(&[(style, mark), (Style::Plain, &what), (Style::Dim, shown)]);
        page.some("", path.filter(|_| !fits));
        page.some(
            "",
            step.detail.as_ref().filter(|_| step.state != State::Failed),
        );
    }

    /// Shows what failed, each reason once, with the way out.
    fn show_failures(&self, page: &mut Page) {
        let mut failed: Vec<&Step> = self.steps.iter().collect();
        failed.retain(|step| step.state == State::Failed);
        let again = match failed.first() {
            Some(step) if step.name.starts_with("remove") => "then: memctl setup --undo",
            Some(_) => "then: memctl setup",
            None => return,
        };
        while let Some(Step { detail, hint, .. }) = failed.first().copied() {
            let of_it = |step: &mut &Step| step.detail == *detail;
            let steps: Vec<String> = failed.extract_if(.., of_it).map(Step::in_words).collect();
            page.line("");
            page.sentence(Style::Bad, "failed   ", &steps.join(", "));
            page.some("", detail.as_ref());
            page.some("", hint.as_ref());
        }
        page.field("", again);
    }
}

impl Report for SetupReport {
    fn page(&self, page: &mut Page) {
        let has = |state| self.steps.iter().any(|step| step.state == state);
        page.fails_if(has(State::Failed));
        if page.is_quiet() && !has(State::Planned) {
            self.show_failures(page);
            return;
        }
        if self.hosts.is_empty() {
            page.line("No agent host was found; name one: memctl setup claude-code");
        }
        for host in self.hosts.iter().filter(|_| !self.is_confirmed) {
            if let Some(found_by) = &host.found_by {
                let found = format!("{} ({})", host.name, page.path(found_by));
                page.note("found ", found);
            }
        }
        for step in &self.steps {
            Self::show(step, page);
        }
        if !self.is_confirmed {
            show_git(&self.git, page);
        }
        if let Some(learned) = &self.learned {
            let before = match learned.unchanged {
                0 => String::new(),
                unchanged => format!(" ({unchanged} more were read before)"),
            };
            let [sessions, failures, records] = [
                (learned.sessions, "session"),
                (learned.failures, "failing call"),
                (learned.records, "record"),
            ]
            .map(|(count, noun)| plural(count as u64, noun));
            page.line(match learned.sessions + learned.unchanged {
                0 => "\nNo past sessions were found.".to_owned(),
                _ => format!("\nRead {sessions}{before}: {failures}, {records} learned."),
            });
        }
        if self.repeats.sessions > 0 {
            page.line("");
        }
        repeats::show(&self.repeats, page);
        self.show_failures(page);
        self.note.iter().for_each(|note| page.line(note));
        if !self.next.is_empty() {
            page.line(format!("\nNext:\n  {}", self.next.join("\n  ")));
        }
    }
}
