//! `hooks`: installation of memctl in the settings of agent hosts.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memctl_files::{SharedFile, named};
use serde::Serialize;

use crate::cli::arguments::{HostArgs, HostsArgs};
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::share::mcp;
use crate::host::{
    self, Delivery, Events, Found, FoundHooks, Host, InstallationStatus, Installed, Item, Place,
    Start,
};
use crate::model::error::UserError;
use crate::rules::{UNREAD, are_unread};

/// Install memctl hooks in an agent host, for failures and session events
///
/// An agent gets lessons and rules at its calls and at the start of a session. Sessions are learned
/// from when they end.
///
/// ```console
/// $ memctl hooks install claude-code
/// $ memctl hooks status
/// ```
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    Install(InstallArgs),
    /// Remove the hooks; restores the settings byte for byte
    ///
    /// ```console
    /// $ memctl hooks uninstall claude-code
    /// $ memctl hooks uninstall codex --project
    /// ```
    Uninstall(HostArgs<true>),
    /// Show where hooks are installed, the last event of each, and what may block them
    ///
    /// The last event that a hook received, and its answer, show that an agent host calls it. The last
    /// events at which something was told follow, one of each kind.
    /// A settings file that cannot be read does not hide the other agent hosts; the exit code is 1.
    ///
    /// ```console
    /// $ memctl hooks status
    /// $ memctl hooks status codex --project
    /// ```
    Status(HostsArgs<true>),
}

/// Add the hooks to the agent host's settings; keep everything else
///
/// ```console
/// $ memctl hooks install claude-code
/// $ memctl hooks install codex --project
/// $ memctl hooks install claude-code --read-only
/// ```
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    of: HostArgs<true>,
    /// Recall only: the hooks write nothing to the memory, and learn nothing
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn hooks(context: &Context, command: &HooksCommand) -> Done {
    match command {
        HooksCommand::Install(args) => {
            let HostArgs { host, project } = args.of;
            let place = place(context, Item::Hooks, host, project, args.read_only)?;
            let changed = place.install()?;
            let notes = notes(context, &place, project);
            Ok(Box::new(place.done(changed, Events::of(host), notes)))
        }
        HooksCommand::Uninstall(args) => {
            let place = place(context, Item::Hooks, args.host, args.project, false)?;
            let changed = place.remove()?;
            Ok(Box::new(place.done(changed, Events::default(), Vec::new())))
        }
        HooksCommand::Status(args) => {
            let hosts = args
                .host
                .map_or(Host::with_hooks().collect(), |host| vec![host]);
            let mut found = Vec::new();
            let store = context.workspace_over_files(None).ok();
            let store = store.filter(|_| context.has_memory());
            let is_unread = store.is_some_and(|workspace| are_unread(&workspace.store));
            for host in hosts {
                let place = place(context, Item::Hooks, host, args.project, false)?;
                let mut report = found_in(&place, args.host.is_some(), host::hooks_status)?;
                let (absent, broken) = (InstallationStatus::Absent, InstallationStatus::Broken);
                if ![absent, broken].contains(&report.standing) {
                    report.of.notes.extend(obstacles(context, &place));
                    report.of.notes.extend(is_unread.then(|| UNREAD.to_owned()));
                }
                found.push(report);
            }
            Ok(Box::new(Statuses { hosts: found }))
        }
    }
}

/// Returns what is found in a place. Settings that cannot be read do not hide the other agent hosts, unless one is
/// asked for.
pub(crate) fn found_in<T: Default>(
    place: &Place,
    is_asked_for: bool,
    find: impl FnOnce(&Place) -> Result<Found<T>, host::Error>,
) -> Result<Found<T>, UserError> {
    match find(place) {
        Err(error) if !is_asked_for => Ok(place.found(Err(UserError::from(error).message))),
        found => Ok(found?),
    }
}

/// Returns the place of an item in the settings of an agent host, and the command that it starts.
pub(crate) fn place(
    context: &Context,
    item: Item,
    host: Host,
    project: bool,
    read_only: bool,
) -> Result<Place, UserError> {
    let (name, of) = (host.name(), host.profile());
    let is_server = item == Item::Server;
    let group = if is_server { "mcp" } else { "hooks" };
    let settings = if project {
        let file = if is_server {
            of.project_file.map(PathBuf::from)
        } else {
            let directory = of.project_directory;
            directory.map(|directory| Path::new(directory).join(of.settings_file))
        };
        let none = || {
            let message = format!("`{name}` has no project settings for this");
            UserError::usage(message, format!("memctl {group} install {name}"))
        };
        in_project(context, &file.ok_or_else(none)?)?
    } else {
        let file = if is_server {
            mcp::server_file(context, host)
        } else {
            directory(context, host).map(|directory| directory.join(of.settings_file))
        };
        let hint = format!("memctl {group} install HOST --project");
        let none = || UserError::usage("no home directory found", hint);
        of_user(file.ok_or_else(none)?)?
    };
    // Project settings are shared with others and contain no path of this machine.
    let program = if project {
        "memctl".to_owned()
    } else {
        program(context)
    };
    let start = match item {
        Item::Server => mcp::start(context, host, project, read_only),
        Item::StatusLine => Start {
            command: program,
            args: vec!["statusline".to_owned()],
        },
        _ => host::hook_command(&program, host, read_only),
    };
    Ok(Place {
        item,
        host,
        settings,
        state_dir: context.environment.state_dir.clone(),
        start,
    })
}

/// Returns a settings file of the user.
fn of_user(path: PathBuf) -> Result<SharedFile, UserError> {
    let found = SharedFile::of_user(&path);
    Ok(found.map_err(|source| host::Error::Unreadable { path, source })?)
}

/// Returns a settings file of the project, in which no link is followed. If the project is the home
/// directory, the file is the user's.
fn in_project(context: &Context, name: &Path) -> Result<SharedFile, UserError> {
    let project = context.project();
    if context.environment.home.as_deref() == Some(project) {
        return of_user(project.join(name));
    }
    Ok(SharedFile::of_project(project, name))
}

/// Returns the directory with the user's settings of an agent host; `None` if there is no home.
pub(crate) fn directory(context: &Context, host: Host) -> Option<PathBuf> {
    let environment = &context.environment;
    let of = host.profile();
    let named = of.directory_variable.and_then(|(variable, below)| {
        Some(environment.absolute(environment.var(variable)?).join(below))
    });
    let home = || Some(environment.home.as_ref()?.join(of.directory));
    named.or_else(home)
}

/// Returns the command that starts this program on this machine.
pub(crate) fn program(context: &Context) -> String {
    let own = context.environment.program.as_ref();
    let own = own.filter(|_| !is_on_path(context));
    own.map_or_else(|| "memctl".to_owned(), |path| path.display().to_string())
}

/// Returns `true` if `memctl` on the `PATH` is this program, wherever an agent host runs.
pub(crate) fn is_on_path(context: &Context) -> bool {
    let environment = &context.environment;
    let path = environment.var("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|directory| directory.join(format!("memctl{EXE_SUFFIX}")))
        .find(|file| named::is_file(file));
    // A virtual environment of Python is on the path of one shell only.
    let is_lasting = |file: &Path| {
        let above = file.ancestors().nth(2);
        !above.is_some_and(|root| named::is_file(&root.join("pyvenv.cfg")))
    };
    let real = |path: &Path| named::real(path).ok();
    first.as_deref().is_some_and(is_lasting)
        && first.as_deref().and_then(real) == environment.program.as_deref().and_then(real)
}

/// Returns the agent hosts that have the hooks, in the settings of the user or of this project.
pub(crate) fn hosts(context: &Context) -> Vec<&'static str> {
    let has_hooks = |host: &Host| {
        [false, true].into_iter().any(|project| {
            let place = place(context, Item::Hooks, *host, project, false).ok();
            let status = place.and_then(|place| place.status().ok());
            let (absent, broken) = (InstallationStatus::Absent, InstallationStatus::Broken);
            status.is_some_and(|status| ![absent, broken].contains(&status))
        })
    };
    Host::with_hooks()
        .filter(has_hooks)
        .map(Host::name)
        .collect()
}

/// Returns notes for the user after an installation.
pub(crate) fn notes(context: &Context, place: &Place, project: bool) -> Vec<String> {
    let (host, is_server) = (place.host, place.item == Item::Server);
    let (title, own) = (host.title(), context.project().display());
    let effect = match (host, project) {
        (Host::Cursor, _) if is_server => "enable it in Cursor's settings, under MCP".to_owned(),
        (Host::VsCode, _) | (_, true) => format!("{title} runs it once you trust the project"),
        _ => format!("takes effect in the next session of {title}"),
    };
    let for_all = is_server && !host.profile().starts_in_project && !project;
    let no_path = "`memctl` is not on your PATH; project settings start it from there";
    let no_memory = "hooks learn only in projects with a memory: run `memctl init` there";
    let notes = [
        for_all.then(|| format!("it uses the memory of `{own}` for every project")),
        Some(effect),
        (project && !is_on_path(context)).then(|| no_path.to_owned()),
        (!is_server && !context.has_memory()).then(|| no_memory.to_owned()),
    ];
    let obstacles = obstacles(context, place).into_iter();
    obstacles.chain(notes.into_iter().flatten()).collect()
}

/// Returns reasons in the agent host's own settings why its hooks do not run.
fn obstacles(context: &Context, place: &Place) -> Vec<String> {
    if place.host != Host::Codex || place.item != Item::Hooks {
        return Vec::new();
    }
    let directory = directory(context, place.host);
    let config =
        directory.and_then(|dir| named::read_text(&dir.join("config.toml"), 16 << 20).ok());
    host::codex_obstacles(config.as_deref().unwrap_or_default(), place.settings.path())
}

/// Page of an item of an agent host.
pub(crate) trait OnPage: Serialize {
    /// Problem of an outdated one.
    const OUTDATED: &'static str;
    /// Label of the list of agent hosts without it.
    const ABSENT: &'static str;

    /// Adds what there is to say about it. Returns `true` if it is installed.
    fn show(&self, page: &mut Page) -> bool;
}

impl OnPage for Events {
    const OUTDATED: &'static str = "";
    const ABSENT: &'static str = "";

    fn show(&self, page: &mut Page) -> bool {
        page.list(
            "events",
            &self
                .events
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        );
        !self.events.is_empty()
    }
}

impl OnPage for FoundHooks {
    const OUTDATED: &'static str = "outdated; install the hooks again";
    const ABSENT: &'static str = "no hooks in";

    fn show(&self, page: &mut Page) -> bool {
        let is_there = !self.commands.is_empty();
        match &self.last {
            Some(last) => {
                page.field("last event", &received(last, page));
                page.field("answered", &told(last).unwrap_or(last.silent.clone()));
            }
            None if is_there => {
                let none = "none yet: start a session in a project with a memory";
                page.field("last event", none);
            }
            None => {}
        }
        // The last event of a session never says anything.
        let is_shown = |one: &&Delivery| Some(*one) == self.last.as_ref();
        let earlier = self.last_told.iter().filter(|one| !is_shown(one));
        for (at, earlier) in earlier.enumerate() {
            let label = if at == 0 { "last told" } else { "" };
            page.field(label, &received(earlier, page));
            page.some("", told(earlier));
        }
        self.notes
            .iter()
            .for_each(|note| page.field("  note", note));
        is_there
    }
}

/// Event of an agent host, with its age and the folder of the session.
fn received(of: &Delivery, page: &Page) -> String {
    let (age, directory) = (page.age(&of.at), page.path(&of.directory));
    format!("{} ({age}) in {directory}", of.event)
}

/// Text that an agent was told; `None` if nothing was.
fn told(of: &Delivery) -> Option<String> {
    let told = of.told.as_ref()?;
    Some(format!("told \u{201c}{told}\u{201d}"))
}

impl<T: OnPage> Report for Installed<T> {
    fn page(&self, page: &mut Page) {
        let mut more = page.beside();
        let done = match (self.of.show(&mut more), self.changed) {
            (true, true) => "installed in ",
            (true, false) => "already installed in ",
            (false, true) => "removed from ",
            (false, false) => "not installed in ",
        };
        page.good(done, page.path(&self.settings.display().to_string()));
        page.append(&more);
        self.notes.iter().for_each(|note| page.field("note", note));
    }
}

/// Installation status of each agent host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Statuses<T> {
    pub(crate) hosts: Vec<Found<T>>,
}

impl<T: OnPage> Report for Statuses<T> {
    fn page(&self, page: &mut Page) {
        page.fails_if(self.hosts.iter().any(|host| host.problem.is_some()));
        let mut absent = Vec::new();
        for found in &self.hosts {
            let mut more = page.beside();
            let is_there = found.of.show(&mut more);
            if !is_there && more.is_empty() && found.problem.is_none() && self.hosts.len() > 1 {
                // It may be in another file of the same host.
                let is_it = |other: &&Found<T>| other.host == found.host;
                let mut others = self.hosts.iter().filter(is_it);
                if others.all(|other| other.standing == InstallationStatus::Absent) {
                    absent.push(found.host.to_owned());
                }
                continue;
            }
            let (style, state) = match found.standing {
                InstallationStatus::Installed => (Style::Good, "installed"),
                InstallationStatus::Outdated => (Style::Warn, T::OUTDATED),
                InstallationStatus::Absent => (Style::Dim, "not installed"),
                InstallationStatus::Broken => (Style::Bad, "settings cannot be read"),
            };
            let name = format!("{}: ", found.host);
            let path = page.path(&found.settings.display().to_string());
            let path = format!(" ({path})");
            page.styled(&[(Style::Plain, &name), (style, state), (Style::Dim, &path)]);
            let problem = found.problem.iter();
            problem.for_each(|problem| page.bad("  error: ", problem));
            page.append(&more);
        }
        page.list(T::ABSENT, &absent);
    }
}
