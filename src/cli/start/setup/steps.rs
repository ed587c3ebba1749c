//! Steps of `setup`: their plan, and how each is done and undone.

use std::path::PathBuf;

use memctl_files::Directory;

use crate::cli::Global;
use crate::cli::context::Context;
use crate::cli::learn::sessions::{all_sessions, project_sessions, reading};
use crate::cli::share::mcp;
use crate::cli::start::hooks;
use crate::cli::start::setup::FoundHost;
use crate::cli::start::setup::report::{Learned, SetupReport, State, Step};
use crate::host;
use crate::host::{Host, InstallationStatus, Place, ServerHost, StatusLine};
use crate::lessons::{LearnOptions, learn};
use crate::model::error::UserError;
use crate::store::shared_files;
use crate::upkeep::initialise;
use crate::upkeep::merge::git::Repository;

/// Way to have both, for a user with a status line.
const COMPOSE: &str = "your own status line stays; a script can show both: input=$(cat); printf %s \"$input\" | \
    YOUR-COMMAND; printf %s \"$input\" | memctl statusline";

/// Purpose of the permission.
const ASKED: &str =
    "only `lesson` of memctl, for what a session found out (off: `learning.ask = \"off\"`)";

/// Action of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Memory,
    Hooks(Host),
    Server(ServerHost),
    StatusLine,
    Permission,
    Learn,
}

/// Context of the steps.
pub(crate) struct Setup<'a> {
    pub(crate) context: &'a Context,
    pub(crate) global: &'a Global,
    pub(crate) all_projects: bool,
}

impl Step {
    fn new(name: &'static str, host: Option<&'static str>) -> Self {
        Self {
            name,
            host,
            state: State::Planned,
            path: None,
            detail: None,
        }
    }

    /// Step whose state `look` finds out. An error of it fails the step.
    fn of(
        name: &'static str,
        host: Option<&'static str>,
        look: impl FnOnce(&mut Self) -> Result<(), UserError>,
    ) -> Self {
        let mut step = Self::new(name, host);
        if let Err(error) = look(&mut step) {
            step.state = State::Failed;
            step.detail = Some(error.message);
        }
        step
    }

    /// Notes that there is nothing left to do, if so.
    fn is_there(&mut self, is_there: bool) {
        if is_there {
            self.state = State::Already;
        }
    }

    /// Notes the outcome: whether something was changed, and a note for the user.
    fn ended(&mut self, done: Result<(bool, Option<String>), UserError>) {
        match done {
            Ok((changed, note)) => {
                self.state = if changed { State::Done } else { State::Already };
                self.detail = note;
            }
            Err(error) => {
                self.state = State::Failed;
                self.detail = Some(error.message);
            }
        }
    }
}

impl Setup<'_> {
    /// Returns the plan, with the action of each step.
    pub(crate) fn plan(&self, hosts: Vec<FoundHost>) -> (SetupReport, Vec<Action>) {
        let mut report = SetupReport::new(&hosts, self.context.environment.home.as_deref());
        let mut actions = Vec::new();
        let mut add = |step: Step, action| {
            report.steps.push(step);
            actions.push(action);
        };
        add(self.plan_memory(), Action::Memory);
        for FoundHost { host, .. } in hosts {
            if let Some(hooks) = host.hooks() {
                add(self.plan_hooks(hooks), Action::Hooks(hooks));
                if hooks == Host::ClaudeCode {
                    add(self.plan_status_line(), Action::StatusLine);
                    add(self.plan_permission(), Action::Permission);
                }
            }
            add(self.plan_server(host), Action::Server(host));
        }
        add(self.plan_learning(), Action::Learn);
        report.git = self.seen_by_git(&report.steps);
        (report, actions)
    }

    /// Files below the project that the steps make or change and that git does not ignore.
    fn seen_by_git(&self, steps: &[Step]) -> Vec<String> {
        let project = self.context.project();
        let Some(repository) = Repository::of(project) else {
            return Vec::new();
        };
        let memory = &self.context.places.memory;
        let of_memory = shared_files().chain([".gitignore", "workspace.json"]);
        let of_memory = of_memory.map(|name| memory.join(name));
        let settings = steps.iter().filter(|step| step.host.is_some());
        let settings = settings.filter_map(|step| step.path.as_deref().map(PathBuf::from));
        let mut seen: Vec<String> = of_memory
            .chain(settings)
            .filter(|path| !repository.ignores(path))
            .filter_map(|path| Some(path.strip_prefix(project).ok()?.display().to_string()))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    fn plan_memory(&self) -> Step {
        let memory = &self.context.places.memory;
        Step::of("memory", None, |step| {
            step.path = Some(memory.display().to_string());
            step.is_there(Directory::at(memory).is_there());
            Ok(())
        })
    }

    fn plan_hooks(&self, host: Host) -> Step {
        Step::of("hooks", Some(host.name()), |step| {
            let place = self.settings_of(host, step)?;
            step.is_there(host::status(host, &place)?.standing == InstallationStatus::Installed);
            Ok(())
        })
    }

    fn plan_status_line(&self) -> Step {
        Step::of("status line", Some(Host::ClaudeCode.name()), |step| {
            let place = self.settings_of(Host::ClaudeCode, step)?;
            match host::status_line(&place.settings)? {
                StatusLine::Absent => {}
                StatusLine::Own => step.state = State::Already,
                StatusLine::Other => {
                    step.state = State::Skipped;
                    step.detail = Some(COMPOSE.to_owned());
                }
            }
            Ok(())
        })
    }

    /// The tool by which the agent records lessons, so that no dialog opens at the end of a session.
    fn plan_permission(&self) -> Step {
        Step::of("allow tool", Some(Host::ClaudeCode.name()), |step| {
            let place = self.settings_of(Host::ClaudeCode, step)?;
            let allows = host::allows_lessons(&place.settings)?;
            step.is_there(allows);
            step.detail = (!allows).then(|| ASKED.to_owned());
            Ok(())
        })
    }

    fn plan_server(&self, host: ServerHost) -> Step {
        Step::of("mcp", Some(host.name()), |step| {
            let settings = mcp::settings(self.context, host, in_project(host))?;
            step.path = Some(settings.shown());
            let standing = host::registered(host, &settings)?.standing;
            step.is_there(standing == InstallationStatus::Installed);
            Ok(())
        })
    }

    /// Settings of a host with hooks, which a step names as its file.
    fn settings_of(&self, host: Host, step: &mut Step) -> Result<Place, UserError> {
        let place = hooks::place(self.context, host, false)?;
        step.path = Some(place.settings.shown());
        Ok(place)
    }

    fn plan_learning(&self) -> Step {
        let mut step = Step::new("learn", None);
        let paths = self.sessions();
        if paths.is_empty() {
            step.state = State::Skipped;
            step.detail = Some("no past sessions found".to_owned());
        } else {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            step.path = Some(paths.join(", "));
        }
        step
    }

    /// Folders with past sessions.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        if self.all_projects {
            all_sessions(self.context)
        } else {
            project_sessions(self.context)
        }
    }

    /// Directory that sessions must have run in; `None` for all projects.
    pub(crate) fn project(&self) -> Option<String> {
        let project = self.context.project();
        (!self.all_projects).then(|| project.display().to_string())
    }

    /// Does the planned steps.
    pub(crate) fn run(&self, report: &mut SetupReport, actions: &[Action]) {
        for (i, action) in actions.iter().enumerate() {
            if report.steps[i].state != State::Planned {
                continue;
            }
            let done = match *action {
                Action::Memory => self.begin(),
                Action::Hooks(host) => self.install(host),
                Action::Server(host) => self.register(host),
                Action::StatusLine => self.set_status_line(),
                Action::Permission => self.allow(),
                Action::Learn => self.learn().map(|(learned, warnings)| {
                    report.learned = Some(learned);
                    report.warnings.extend(warnings);
                    (true, None)
                }),
            };
            report.steps[i].ended(done);
        }
    }

    fn begin(&self) -> Result<(bool, Option<String>), UserError> {
        let context = self.context;
        let mut random = || uuid::Uuid::new_v4().to_string();
        let store = context.store(&context.config(&[])?)?;
        let done = initialise(&store, &context.places.skills, &mut random)?;
        Ok((!done.created.is_empty(), None))
    }

    fn install(&self, host: Host) -> Result<(bool, Option<String>), UserError> {
        let place = hooks::place(self.context, host, false)?;
        let done = host::install(host, &place)?;
        let note = hooks::notes(self.context, host, &place, false);
        Ok((done.changed, note.into_iter().next()))
    }

    fn set_status_line(&self) -> Result<(bool, Option<String>), UserError> {
        let place = hooks::place(self.context, Host::ClaudeCode, false)?;
        let command = format!("{} statusline", host::quoted(&place.program));
        let state = place.state_dir.as_deref();
        let found = host::set_status_line(&place.settings, state, &command)?;
        Ok((found == StatusLine::Absent, None))
    }

    fn allow(&self) -> Result<(bool, Option<String>), UserError> {
        let place = hooks::place(self.context, Host::ClaudeCode, false)?;
        let changed = host::allow_lessons(&place.settings, place.state_dir.as_deref())?;
        Ok((changed, None))
    }

    fn register(&self, host: ServerHost) -> Result<(bool, Option<String>), UserError> {
        let project = in_project(host);
        let settings = mcp::settings(self.context, host, project)?;
        let start = mcp::start(
            self.context,
            self.global,
            host,
            project,
            mcp::Offer::default(),
        );
        let state = self.context.environment.state_dir.as_deref();
        let done = host::register(host, &settings, state, &start)?;
        let note = mcp::notes(self.context, host, project);
        Ok((done.changed, note.into_iter().next()))
    }

    fn learn(&self) -> Result<(Learned, Vec<String>), UserError> {
        let context = self.context;
        let workspace = context.workspace(None)?;
        let options = LearnOptions {
            paths: self.sessions(),
            project: self.project(),
            session: context.session(None),
            project_name: context.project_name(),
            ..LearnOptions::default()
        };
        let report = reading(context, |progress| {
            learn(&workspace.records(), &options, progress)
        })?;
        Ok((Learned::of(&report), report.warnings))
    }

    /// Removes hooks and servers. The memory stays.
    pub(crate) fn undo(&self, hosts: Vec<FoundHost>) -> SetupReport {
        let mut report = SetupReport::new(&hosts, self.context.environment.home.as_deref());
        let state = self.context.environment.state_dir.as_deref();
        for FoundHost { host, .. } in hosts {
            // In the reverse order of the installation, so that the original file comes back.
            let mut remove = |name, removed: &dyn Fn(&mut Step) -> Result<bool, UserError>| {
                let mut step = Step::new(name, Some(host.name()));
                let changed = removed(&mut step);
                step.ended(changed.map(|changed| (changed, None)));
                report.steps.push(step);
            };
            if host.hooks() == Some(Host::ClaudeCode) {
                remove("remove allowed tool", &|step| {
                    let place = self.settings_of(Host::ClaudeCode, step)?;
                    Ok(host::disallow_lessons(&place.settings, state)?)
                });
                remove("remove status line", &|step| {
                    let place = self.settings_of(Host::ClaudeCode, step)?;
                    Ok(host::remove_status_line(&place.settings, state)?)
                });
            }
            if let Some(host) = host.hooks() {
                remove("remove hooks", &|step| {
                    let place = self.settings_of(host, step)?;
                    Ok(host::uninstall(host, &place)?.changed)
                });
            }
            remove("remove mcp", &|step| {
                let settings = mcp::settings(self.context, host, in_project(host))?;
                step.path = Some(settings.shown());
                Ok(host::unregister(host, &settings, state)?.changed)
            });
        }
        report.steps.retain(|step| step.state != State::Already);
        report.note = Some(if report.steps.is_empty() {
            "Nothing of setup is installed.".to_owned()
        } else {
            "The memory stays; `memctl memory purge` deletes it.".to_owned()
        });
        report
    }
}

/// Returns `true` if the server is installed in the settings of the project: an agent host that does
/// not start servers in the project would use this memory for every project.
const fn in_project(host: ServerHost) -> bool {
    !host.starts_in_project()
}
