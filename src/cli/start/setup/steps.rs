//! Steps of `setup`: the plan, execution and undo of each.

use std::path::PathBuf;

use memctl_files::Directory;
use serde::Serialize;

use crate::cli::context::{Context, random};
use crate::cli::learn::sessions::{learn_from, project_sessions};
use crate::cli::start::hooks;
use crate::cli::start::init::seen_by_git;
use crate::cli::start::setup::{Learned, SetupHost, SetupReport};
use crate::host::{self, CORRECT_TOOL, Host, InstallationStatus, Item, LESSON_TOOL, Place};
use crate::lessons::LearnOptions;
use crate::model::error::UserError;
use crate::upkeep::initialise;

/// Way to have both, for a user with a status line.
const COMPOSE: &str = "your own status line stays; a script can show both: input=$(cat); printf %s \"$input\" | \
    YOUR-COMMAND; printf %s \"$input\" | memctl statusline";

/// Purposes of the permissions.
const OF_LESSONS: &str = "only `lesson` of memctl, for what a session found out (off: `learning.ask = \"off\"` in .agentura/config.toml)";
const OF_CORRECTIONS: &str =
    "only `correct` of memctl, for what you say for good in the chat; it waits for your approval";

/// Action of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Memory,
    Install(Item, Host),
    Learn,
}

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
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
pub(crate) struct Step {
    /// `memory`, `hooks`, `status line`, `allow tool`, `allow correct`, `mcp` or `learn`; with `remove` before it for an undo.
    pub(crate) name: String,
    /// Agent host, for hooks and the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<&'static str>,
    /// State of the step.
    pub(crate) state: State,
    /// File or directory that is changed or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Reason, or note for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// Way out of a failure.
    #[serde(skip)]
    pub(crate) hint: Option<String>,
    /// The step in words.
    #[serde(skip)]
    pub(crate) what: &'static str,
    #[serde(skip)]
    action: Action,
}

impl Step {
    fn new(action: Action, is_undo: bool) -> Self {
        let (name, done, undone) = match action {
            Action::Memory => ("memory", "create the memory", ""),
            Action::Install(Item::Hooks, _) => ("hooks", "install the hooks", "remove the hooks"),
            Action::Install(Item::StatusLine, _) => (
                "status line", "show a status line", "remove the status line",
            ),
            // Without these, a dialog opens in the middle of a session.
            Action::Install(Item::Permission(LESSON_TOOL), _) => (
                "allow tool",
                "allow the tool that records lessons",
                "no longer allow the tool that records lessons",
            ),
            Action::Install(Item::Permission(_), _) => (
                "allow correct",
                "allow the tool that records corrections",
                "no longer allow the tool that records corrections",
            ),
            Action::Install(Item::Server, _) => {
                ("mcp", "install the MCP server", "remove the MCP server")
            }
            Action::Learn => ("learn", "learn from past sessions", ""),
        };
        let undo = || format!("remove {}", name.replace("allow ", "allowed "));
        Self {
            name: if is_undo { undo() } else { name.to_owned() },
            what: if is_undo { undone } else { done },
            host: match action {
                Action::Install(_, host) => Some(host.name()),
                Action::Memory | Action::Learn => None,
            },
            state: State::Planned,
            path: None,
            detail: None,
            hint: None,
            action,
        }
    }

    /// The step in words, with its agent host.
    pub(crate) fn in_words(&self) -> String {
        let host = self.host.map(|host| format!("{host}: "));
        host.unwrap_or_default() + self.what
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
}

/// Returns the plan.
pub(crate) fn plan(context: &Context, hosts: Vec<SetupHost>) -> SetupReport {
    let of_hosts = hosts.iter().flat_map(|host| actions_of(host.host));
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
    let place = hooks::place(context, item, host, project, false)?;
    step.path = Some(place.settings.shown());
    Ok(place)
}

/// Does the planned steps.
pub(crate) fn run(context: &Context, report: &mut SetupReport) {
    let mut steps = std::mem::take(&mut report.steps);
    for step in &mut steps {
        if step.state == State::Planned {
            let done = act(context, step, report);
            step.ended(done);
        }
    }
    report.steps = steps;
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
                Item::Hooks => hooks::notes(context, &place, false),
                Item::Server => hooks::notes(context, &place, in_project(host)),
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
            report.learned = Some(Learned::of(&learned));
            report.warnings.extend(learned.warnings);
            Ok((true, None))
        }
    }
}

/// Removes hooks and servers, or plans it with `dry_run`. The memory stays.
pub(crate) fn undo(context: &Context, hosts: Vec<SetupHost>, dry_run: bool) -> SetupReport {
    let mut steps = Vec::new();
    for host in &hosts {
        // In the reverse order of the installation, so that the original file comes back.
        for action in actions_of(host.host).into_iter().rev() {
            let Action::Install(item, of) = action else {
                continue;
            };
            let mut step = Step::new(action, true);
            let removed = place(context, item, of, &mut step).and_then(|place| {
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
        let memory = context.places.memory.display();
        format!(
            "The memory stays; `memctl memory purge` deletes its records, `rm -r {memory}` all of it."
        )
    };
    SetupReport {
        hosts,
        steps,
        note: Some(note),
        ..SetupReport::default()
    }
}

/// Actions for an agent host, in their order.
fn actions_of(host: Host) -> Vec<Action> {
    let items: &[Item] = match host {
        Host::ClaudeCode => &[
            Item::Hooks,
            Item::StatusLine,
            Item::Permission(LESSON_TOOL),
            Item::Permission(CORRECT_TOOL),
            Item::Server,
        ],
        host if host.has_hooks() => &[Item::Hooks, Item::Server],
        _ => &[Item::Server],
    };
    items
        .iter()
        .map(|item| Action::Install(*item, host))
        .collect()
}

/// Returns `true` if the server is installed in the settings of the project: an agent host that does
/// not start servers in the project would use this memory for every project. Claude Desktop has no other settings.
const fn in_project(host: Host) -> bool {
    let of = host.profile();
    !of.starts_in_project && of.project_file.is_some()
}
