//! Places of hooks, the server and other items in the settings of agent hosts: their files, what is installed there,
//! and what they start.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

use memctl_files::{SharedFile, named};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Page, Report, Style};
use crate::host::{
    self, Found, Host, InstallationStatus, Installed, Item, Place, ServerFile, Start,
};
use crate::model::error::UserError;

/// Variable for the open folder, as editors write it.
const WORKSPACE_FOLDER: &str = "${workspaceFolder}";

/// Installs an item in the settings of a host, of the project if `true`. `of` describes what was installed.
pub(crate) fn installed<T>(
    context: &Context,
    (item, host, project): (Item, Host, bool),
    read_only: bool,
    of: impl FnOnce(&Place) -> T,
) -> Result<Installed<T>, UserError> {
    let place = place(context, item, host, project, read_only)?;
    let changed = place.install()?;
    let notes = notes(context, &place, project);
    Ok(place.done(changed, of(&place), notes))
}

/// Removes an item from the settings of a host.
pub(crate) fn removed<T: Default>(
    context: &Context,
    (item, host, project): (Item, Host, bool),
) -> Result<Installed<T>, UserError> {
    let place = place(context, item, host, project, false)?;
    let changed = place.remove()?;
    Ok(place.done(changed, T::default(), Vec::new()))
}

/// Returns what is found of an item in the settings of one host or of all, with those of the project where it is in
/// them. Settings that cannot be read do not hide the other hosts, unless one is asked for.
pub(crate) fn statuses<T: Default>(
    context: &Context,
    item: Item,
    (asked_for, of_project): (Option<Host>, bool),
    find: impl Fn(&Place) -> Result<Found<T>, host::Error>,
) -> Result<Statuses<T>, UserError> {
    let all = Host::ALL.into_iter();
    let all = all.filter(|host| item == Item::Server || host.has_hooks());
    let hosts = asked_for.map_or_else(|| all.collect(), |host| vec![host]);
    let mut found: Vec<Found<T>> = Vec::new();
    for (host, project) in hosts
        .iter()
        .flat_map(|host| [(*host, false), (*host, true)])
    {
        let is_named = asked_for.is_some() && of_project == project;
        let place = match place(context, item, host, project, false) {
            Err(_) if project && !is_named => continue,
            place => place?,
        };
        let is_known = found
            .iter()
            .any(|one| one.settings == place.settings.path());
        if is_known || (of_project && !project) {
            continue;
        }
        let one = match find(&place) {
            Err(error) if !is_named => place.found(Err(UserError::from(error).message)),
            one => one?,
        };
        if project == of_project || one.standing != InstallationStatus::Absent {
            found.push(one);
        }
    }
    Ok(Statuses { hosts: found })
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
            server_file(context, host)
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
        Item::Server => server_start(context, host, project, read_only),
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
fn is_on_path(context: &Context) -> bool {
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
pub(crate) fn obstacles(context: &Context, place: &Place) -> Vec<String> {
    if place.host != Host::Codex || place.item != Item::Hooks {
        return Vec::new();
    }
    let directory = directory(context, place.host);
    let config =
        directory.and_then(|dir| named::read_text(&dir.join("config.toml"), 16 << 20).ok());
    host::codex_obstacles(config.as_deref().unwrap_or_default(), place.settings.path())
}

/// Returns the file of the user that lists the servers of a host; `None` without a home directory.
fn server_file(context: &Context, host: Host) -> Option<PathBuf> {
    let environment = &context.environment;
    let of = host.profile();
    let is_moved = of
        .directory_variable
        .is_some_and(|(name, _)| environment.var(name).is_some());
    Some(match of.server_file {
        ServerFile::InHome(name) if !is_moved => environment.home.as_ref()?.join(name),
        ServerFile::InConfiguration(name) => environment.all_settings_dir.as_ref()?.join(name),
        ServerFile::InSettings(name) | ServerFile::InHome(name) => {
            let file = directory(context, host)?.join(name);
            // OpenCode reads both, and makes one of them itself.
            let commented = file.with_extension("jsonc");
            let is_commented = !named::is_file(&file) && named::is_file(&commented);
            if host == Host::OpenCode && is_commented {
                commented
            } else {
                file
            }
        }
    })
}

/// Returns the command with which an agent host starts the server.
fn server_start(context: &Context, host: Host, project: bool, read_only: bool) -> Start {
    let global = &context.global;
    let starts_in_project = host.profile().starts_in_project;
    // Shared settings contain no path of this machine; graphical programs have no `PATH`.
    let by_name = project || (is_on_path(context) && starts_in_project);
    let own = context.environment.program.as_ref().filter(|_| !by_name);
    let mut args = vec!["mcp".to_owned()];
    let root = match (starts_in_project, project) {
        (true, _) if global.root.is_none() || project => None,
        (false, true) => Some(WORKSPACE_FOLDER.to_owned()),
        _ => Some(context.project().display().to_string()),
    };
    let given = [
        ("--root", root),
        ("--scope", global.scope.clone()),
        ("--user", global.user.clone()),
    ];
    for (flag, value) in given {
        args.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    }
    args.extend(read_only.then(|| "--read-only".to_owned()));
    Start {
        command: own.map_or_else(|| "memctl".to_owned(), |path| path.display().to_string()),
        args,
    }
}

impl<T: Serialize> Report for Installed<T> {
    fn page(&self, page: &mut Page) {
        let settings = self.settings.display().to_string();
        let done = if self.changed {
            "changed "
        } else {
            "unchanged "
        };
        page.good(done, page.path(&settings));
        page.document(self, &[&settings, self.host]);
    }
}

/// Installation status of each agent host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Statuses<T> {
    hosts: Vec<Found<T>>,
}

impl<T> Statuses<T> {
    /// Shows the status of each host; `absent` is the label of those without the item. `show` adds what there is to say
    /// about one.
    pub(crate) fn show(&self, page: &mut Page, absent: &str, show: impl Fn(&T, &mut Page)) {
        page.fails_if(self.hosts.iter().any(|host| host.problem.is_some()));
        let is_absent = |one: &Found<T>| one.standing == InstallationStatus::Absent;
        for found in &self.hosts {
            let state = match found.standing {
                InstallationStatus::Installed => (Style::Good, "installed"),
                InstallationStatus::Outdated => (Style::Warn, "outdated; install it again"),
                InstallationStatus::Absent => continue,
                InstallationStatus::Broken => (Style::Bad, "settings cannot be read"),
            };
            let name = format!("{}: ", found.host);
            let path = page.path(&found.settings.display().to_string());
            let path = format!(" ({path})");
            page.styled(&[(Style::Plain, &name), state, (Style::Dim, &path)]);
            page.some("error", found.problem.as_deref());
            show(&found.of, page);
        }
        let has_it = |host| {
            let of_host = |one: &&Found<T>| one.host == host;
            !self.hosts.iter().filter(of_host).all(is_absent)
        };
        let without = self.hosts.iter().map(|one| one.host);
        let without = without.filter(|host| !has_it(*host)).map(str::to_owned);
        page.list(absent, &without.collect::<Vec<_>>());
    }
}
