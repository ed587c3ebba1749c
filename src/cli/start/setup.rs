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
use memctl_files::{Directory, named};
use serde::Serialize;

use crate::cli::arguments::hosts;
use crate::cli::ask::confirms;
use crate::cli::context::{Context, random};
use crate::cli::learn::repeats;
use crate::cli::learn::sessions::{learn_from, project_sessions};
use crate::cli::output::{Done, Page, Report, Style, plural};
use crate::cli::start::init::{seen_by_git, show_git};
use crate::cli::start::places;
use crate::host::{self, CORRECT_TOOL, Host, InstallationStatus, Item, LESSON_TOOL, Place};
use crate::lessons::LearnOptions;
use crate::model::error::UserError;
use crate::review::Repeats;
use crate::skills::installed_agents;
use crate::upkeep::initialise;

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
    let set_up = |host: Host, found_by: Option<PathBuf>| SetupHost {
        host,
        name: host.name(),
        found_by: found_by.map(|path| path.display().to_string()),
    };
    let hosts: Vec<SetupHost> = if args.hosts.is_empty() {
        let all = Host::ALL.into_iter();
        let all = all.map(|host| set_up(host, found_by(context, host)));
        // Claude Desktop is set up by name: it would use the memory of this project for every one.
        let is_usual =
            |host: &SetupHost| host.found_by.is_some() && host.host != Host::ClaudeDesktop;
        all.filter(|host| args.undo || is_usual(host)).collect()
    } else {
        let named = Host::ALL
            .into_iter()
            .filter(|host| args.hosts.contains(host));
        named.map(|host| set_up(host, None)).collect()
    };
    if args.undo {
        return Ok(undo(context, hosts, args.dry_run));
    }
    if let Some(off) = &context.off {
        return Err(off.clone().into());
    }
    let mut report = plan(context, hosts);
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
    let mut steps = std::mem::take(&mut report.steps);
    for step in steps.iter_mut().filter(|step| step.state == State::Planned) {
        let done = act(context, step, &mut report);
        step.ended(done);
    }
    report.steps = steps;
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
        host => places::directory(context, host),
    };
    programs
        .find(|program| named::is_file(program))
        .or_else(|| of_settings().filter(|dir| named::is_dir(dir)))
}

/// Returns the model that words lessons if the person wants it: the configured one, else an installed agent.
fn model(context: &Context) -> Result<Option<String>, UserError> {
    let configured = context
        .config_quietly(None)?
        .text("model")
        .map(str::to_owned);
    let installed = installed_agents(&context.environment.search_path());
    Ok(configured.or(installed.into_iter().next()))
}

/// Returns the next steps, at most three, the most useful first.
fn next_steps(report: &SetupReport) -> Vec<String> {
    let is_new = |host: &&SetupHost| {
        let is_it = |step: &Step| step.name == "hooks" && step.state == State::Done;
        let mut steps = report.steps.iter().filter(|step| is_it(step));
        steps.any(|step| step.host == Some(host.name))
    };
    let new = report.hosts.iter().find(is_new);
    let has_learned = report.learned.is_some_and(|learned| learned.records > 0);
    let line = |command: &str, why: &str| format!("{command:<29} {why}");
    let start = "start it here: it is told rules and lessons";
    let steps = [
        new.map(|new| line(new.host.profile().program, start)),
        has_learned.then(|| line("memctl review", "go over what was learned, and approve it")),
        Some(line("memctl search \"…\"", "find what is remembered")),
        Some(line("memctl stats", "see what hints and rules were worth")),
    ];
    steps.into_iter().flatten().take(3).collect()
}

/// Way to have both, for a user with a status line.
const COMPOSE: &str = "your own status line stays; a script can show both: input=$(cat); printf %s \"$input\" | \
    YOUR-COMMAND; printf %s \"$input\" | memctl statusline";

/// Purposes of the permissions.
const OF_LESSONS: &str = "only `lesson` of memctl, for what a session found out (off: `learning.ask = \"off\"` in .agentura/config.toml)";
const OF_CORRECTIONS: &str =
    "only `correct` of memctl, for what you say for good in the chat; it waits for your approval";

/// Action of a step.
#[derive(Debug, Clone, Copy)]
enum Action {
    Memory,
    Install(Item, Host),
    Learn,
}

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// To be done.
    Planned,
    /// Done now.
    Done,
    /// Done before.
    Already,
    /// Not possible; `detail` has the reason.
    Failed,
    /// Nothing to do.
    Skipped,
}

/// One step.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Step {
    /// `memory`, `hooks`, `status line`, `allow tool`, `allow correct`, `mcp` or `learn`; with `remove` before it for an undo.
    name: String,
    /// Agent host, for hooks and the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'static str>,
    /// State of the step.
    state: State,
    /// File or directory that is changed or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Reason, or note for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Way out of a failure.
    #[serde(skip)]
    hint: Option<String>,
    #[serde(skip)]
    action: Action,
}

impl Action {
    /// Returns the name of the step, and its text on the page when it installs and when it removes.
    fn words(self) -> [&'static str; 3] {
        let item = match self {
            Self::Memory => return ["memory", "create the memory", ""],
            Self::Learn => return ["learn", "learn from past sessions", ""],
            Self::Install(item, _) => item,
        };
        match item {
            Item::Hooks => ["hooks", "install the hooks", "remove the hooks"],
            Item::StatusLine => [
                "status line", "show a status line", "remove the status line",
            ],
            // Without these, a dialog opens in the middle of a session.
            Item::Permission(LESSON_TOOL) => [
                "allow tool",
                "allow the tool that records lessons",
                "no longer allow the tool that records lessons",
            ],
            Item::Permission(_) => [
                "allow correct",
                "allow the tool that records corrections",
                "no longer allow the tool that records corrections",
            ],
            Item::Server => ["mcp", "install the MCP server", "remove the MCP server"],
        }
    }
}

impl Step {
    fn new(action: Action, is_undo: bool) -> Self {
        let [name, _, _] = action.words();
        let host = match action {
            Action::Memory | Action::Learn => None,
            Action::Install(_, host) => Some(host.name()),
        };
        let undo = || format!("remove {}", name.replace("allow ", "allowed "));
        Self {
            name: if is_undo { undo() } else { name.to_owned() },
            host,
            state: State::Planned,
            path: None,
            detail: None,
            hint: None,
            action,
        }
    }

    /// Notes the outcome: whether something was changed, and a note for the user.
    fn ended(&mut self, done: Result<(bool, Option<String>), UserError>) {
        (self.state, self.detail) = match done {
            Ok((true, note)) => (State::Done, note),
            Ok((false, note)) => (State::Already, note),
            Err(error) => {
                self.hint = error.hint;
                (State::Failed, Some(error.message))
            }
        };
    }

    /// Text of the step on the page.
    fn act(&self) -> &'static str {
        let [_, install, remove] = self.action.words();
        if self.name.starts_with("remove ") {
            remove
        } else {
            install
        }
    }

    fn show(&self, page: &mut Page) {
        let (style, mark) = match self.state {
            State::Planned => (Style::Strong, "will     "),
            State::Done => (Style::Good, "done     "),
            State::Already => (Style::Dim, "already  "),
            State::Failed => (Style::Bad, "failed   "),
            State::Skipped => (Style::Dim, "skipped  "),
        };
        let host = self.host.map(|host| format!("{host}: "));
        let what = host.unwrap_or_default() + self.act();
        let path = self.path.as_deref().map(|path| page.path(path));
        let path = path.unwrap_or_default();
        let beside = format!(" ({path})");
        let fits = mark.len() + what.len() + beside.len() <= page.width;
        let beside = if fits && !path.is_empty() {
            &*beside
        } else {
            ""
        };
        page.styled(&[(style, mark), (Style::Plain, &what), (Style::Dim, beside)]);
        page.some("", Some(&path).filter(|path| !fits && !path.is_empty()));
        page.some("", self.detail.as_ref());
        page.some("", self.hint.as_ref());
    }
}

/// Returns the plan.
fn plan(context: &Context, hosts: Vec<SetupHost>) -> SetupReport {
    let of_host = |host: Host| {
        let items = items_of(host).iter();
        items.map(move |item| Action::Install(*item, host))
    };
    let of_hosts = hosts.iter().flat_map(|host| of_host(host.host));
    let actions = [Action::Memory].into_iter().chain(of_hosts);
    let steps = actions.chain([Action::Learn]).map(|action| {
        let mut step = Step::new(action, false);
        if let Err(error) = look(context, &mut step) {
            step.ended(Err(error));
        }
        step
    });
    let steps: Vec<Step> = steps.collect();
    let settings = steps.iter().filter(|step| step.host.is_some());
    let settings = settings.filter_map(|step| Some(PathBuf::from(step.path.as_deref()?)));
    SetupReport {
        git: seen_by_git(context, settings.collect()),
        hosts,
        steps,
        ..SetupReport::default()
    }
}

/// Finds out the file of a step, and whether there is anything left to do.
fn look(context: &Context, step: &mut Step) -> Result<(), UserError> {
    let is_there = match step.action {
        Action::Memory => {
            let memory = &context.places.memory;
            step.path = Some(memory.display().to_string());
            Directory::at(memory).is_there()
        }
        Action::Install(item, host) => {
            let place = place(context, item, host, step)?;
            if item == Item::StatusLine && host::has_other_status_line(&place.settings)? {
                step.state = State::Skipped;
                step.detail = Some(COMPOSE.to_owned());
                return Ok(());
            }
            let is_there = place.status()? == InstallationStatus::Installed;
            let purpose = match item {
                Item::Permission(LESSON_TOOL) => Some(OF_LESSONS),
                Item::Permission(_) => Some(OF_CORRECTIONS),
                _ => None,
            };
            step.detail = purpose.filter(|_| !is_there).map(str::to_owned);
            is_there
        }
        Action::Learn => {
            let paths = project_sessions(context);
            let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            if names.is_empty() {
                step.state = State::Skipped;
                step.detail = Some("no past sessions found".to_owned());
            } else {
                step.path = Some(names.join(", "));
            }
            false
        }
    };
    if is_there {
        step.state = State::Already;
    }
    Ok(())
}

/// Place of an item, whose file a step names.
fn place(context: &Context, item: Item, host: Host, step: &mut Step) -> Result<Place, UserError> {
    let project = item == Item::Server && in_project(host);
    let place = places::place(context, item, host, project, false)?;
    step.path = Some(place.settings.shown());
    Ok(place)
}

/// Does a step. Returns `true` if something was changed, and a note for the user.
fn act(
    context: &Context,
    step: &mut Step,
    report: &mut SetupReport,
) -> Result<(bool, Option<String>), UserError> {
    match step.action {
        Action::Memory => {
            let mut random = random;
            let store = context.store(&context.config()?)?;
            let done = initialise(&store, &context.places.skills, &mut random)?;
            Ok((!done.created.is_empty(), None))
        }
        Action::Install(item, host) => {
            let place = place(context, item, host, step)?;
            let changed = place.install()?;
            let notes = match item {
                Item::Hooks => places::notes(context, &place, false),
                Item::Server => places::notes(context, &place, in_project(host)),
                Item::StatusLine | Item::Permission(_) => Vec::new(),
            };
            Ok((changed, notes.into_iter().next()))
        }
        Action::Learn => {
            let workspace = context.workspace(None)?;
            let options = LearnOptions {
                paths: project_sessions(context),
                project: Some(context.project().display().to_string()),
                session: context.session(None),
                project_name: context.project_name(),
                ..LearnOptions::default()
            };
            let learned = learn_from(context, &workspace, &options)?;
            report.learned = Some(Learned {
                sessions: learned.transcripts.len(),
                unchanged: learned.unchanged,
                failures: learned.transcripts.iter().map(|one| one.failures).sum(),
                records: learned.learned.len(),
            });
            report.warnings.extend(learned.warnings);
            Ok((true, None))
        }
    }
}

/// Removes hooks and servers, or plans it with `dry_run`. The memory stays.
fn undo(context: &Context, hosts: Vec<SetupHost>, dry_run: bool) -> SetupReport {
    let mut steps = Vec::new();
    for host in &hosts {
        // In the reverse order of the installation, so that the original file comes back.
        for item in items_of(host.host).iter().rev() {
            let mut step = Step::new(Action::Install(*item, host.host), true);
            let removed = place(context, *item, host.host, &mut step).and_then(|place| {
                let removed = if dry_run {
                    place.is_there()
                } else {
                    place.remove()
                };
                Ok(removed?)
            });
            step.ended(removed.map(|changed| (changed, None)));
            if dry_run && step.state == State::Done {
                step.state = State::Planned;
            }
            steps.push(step);
        }
    }
    steps.retain(|step| step.state != State::Already);
    let note = if steps.is_empty() {
        "Nothing of setup is installed.".to_owned()
    } else {
        format!("The memory stays in {}.", context.places.memory.display())
    };
    SetupReport {
        hosts,
        steps,
        note: Some(note),
        ..SetupReport::default()
    }
}

/// Items of an agent host, in the order of their installation.
const fn items_of(host: Host) -> &'static [Item] {
    match host {
        Host::ClaudeCode => &[
            Item::Hooks,
            Item::StatusLine,
            Item::Permission(LESSON_TOOL),
            Item::Permission(CORRECT_TOOL),
            Item::Server,
        ],
        _ if host.has_hooks() => &[Item::Hooks, Item::Server],
        _ => &[Item::Server],
    }
}

/// Returns `true` if the server is installed in the settings of the project: an agent host that does
/// not start servers in the project would use this memory for every project. Claude Desktop has no other settings.
const fn in_project(host: Host) -> bool {
    let of = host.profile();
    !of.starts_in_project && of.project_file.is_some()
}

/// Agent host that is set up.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupHost {
    #[serde(skip)]
    host: Host,
    /// Name of the agent host.
    name: &'static str,
    /// Program or directory that shows that it is installed; null if it was named.
    found_by: Option<String>,
}

/// Numbers of what was learned from past sessions.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub(crate) struct Learned {
    /// Session files read.
    sessions: usize,
    /// Session files that were read before.
    unchanged: usize,
    /// Failing tool calls.
    failures: usize,
    /// New lessons.
    records: usize,
}

/// Plan of `setup`, and what was done.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct SetupReport {
    /// Agent hosts.
    hosts: Vec<SetupHost>,
    /// Steps in order.
    steps: Vec<Step>,
    /// Numbers of the past sessions; null if none was read.
    learned: Option<Learned>,
    /// Repetitions in past sessions.
    repeats: Repeats,
    /// Files of the project that git will see; empty outside of a repository.
    git: Vec<String>,
    /// Next steps, at most three.
    next: Vec<String>,
    /// `true` if a person has just seen the plan.
    #[serde(skip)]
    is_confirmed: bool,
    /// Remark about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Non-fatal problems.
    warnings: Vec<String>,
}

impl Report for SetupReport {
    fn page(&self, page: &mut Page) {
        let has = |state| self.steps.iter().any(|step| step.state == state);
        page.fails_if(has(State::Failed));
        // Quiet, a failure is all that is said.
        let is_brief = page.quiet && !has(State::Planned);
        if self.hosts.is_empty() {
            page.line("No agent host was found; name one: memctl setup claude-code");
        }
        for host in self
            .hosts
            .iter()
            .filter(|_| !self.is_confirmed && !is_brief)
        {
            if let Some(found_by) = &host.found_by {
                let found = format!("{} ({})", host.name, page.path(found_by));
                page.note("found ", found);
            }
        }
        for step in &self.steps {
            if step.state == State::Failed || !is_brief {
                step.show(page);
            }
        }
        if has(State::Failed) {
            let is_undo = self
                .steps
                .iter()
                .any(|step| step.name.starts_with("remove"));
            let undo = if is_undo { " --undo" } else { "" };
            page.field("", &format!("then: memctl setup{undo}"));
        }
        if is_brief {
            return;
        }
        if !self.is_confirmed {
            show_git(&self.git, page);
        }
        if let Some(learned) = &self.learned {
            let sessions = plural(learned.sessions as u64, "session");
            let (before, failures, records) =
                (learned.unchanged, learned.failures, learned.records);
            page.line(format!(
                "\nRead {sessions} ({before} were read before): {failures} failing calls, {records} records learned."
            ));
        }
        if self.repeats.sessions > 0 {
            page.line("");
        }
        repeats::show(&self.repeats, page);
        self.note.iter().for_each(|note| page.line(note));
        if !self.next.is_empty() {
            page.line(format!("\nNext:\n  {}", self.next.join("\n  ")));
        }
    }
}
