//! `hooks`: installation of memctl in the settings of agent hosts.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memctl_files::{SharedFile, named};
use serde::Serialize;

use crate::cli::arguments::{HostArgs, HostsArgs};
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::host::{self, Delivery, Host, InstallReport, InstallationStatus, Place, StatusReport};
use crate::model::error::UserError;

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
    Uninstall(HostArgs<Host>),
    /// Show where hooks are installed, the last event of each, and what may block them
    ///
    /// The last event that a hook received, and what it answered, show that an agent host calls it.
    /// A settings file that cannot be read does not hide the other agent hosts; the exit code is 1.
    ///
    /// ```console
    /// $ memctl hooks status
    /// $ memctl hooks status codex --project
    /// ```
    Status(HostsArgs<Host>),
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
    of: HostArgs<Host>,
    /// Recall only: the hooks write nothing to the memory, and learn nothing
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn hooks(context: &Context, command: &HooksCommand) -> Done {
    match command {
        HooksCommand::Install(args) => {
            let HostArgs { host, project } = args.of;
            let place = Place {
                read_only: args.read_only,
                ..place(context, host, project)?
            };
            let mut report = host::install(host, &place)?;
            report.notes = notes(context, host, &place, project);
            Ok(Box::new(report))
        }
        HooksCommand::Uninstall(args) => {
            let place = place(context, args.host, args.project)?;
            Ok(Box::new(host::uninstall(args.host, &place)?))
        }
        HooksCommand::Status(args) => {
            let hosts = args.host.map_or(Host::ALL.to_vec(), |host| vec![host]);
            let mut reports = Vec::new();
            for host in hosts {
                let place = place(context, host, args.project)?;
                let mut report = match host::status(host, &place) {
                    Ok(report) => report,
                    // One broken host does not hide the rest.
                    Err(error) if args.host.is_none() => {
                        let problem = UserError::from(error).message;
                        StatusReport::broken(host, &place, problem)
                    }
                    Err(error) => return Err(error.into()),
                };
                let (absent, broken) = (InstallationStatus::Absent, InstallationStatus::Broken);
                if ![absent, broken].contains(&report.standing) {
                    report.notes.extend(obstacles(context, host, &place));
                }
                reports.push(report);
            }
            Ok(Box::new(HookStatuses { hosts: reports }))
        }
    }
}

/// Returns the settings file of an agent host, and the program that its hooks start.
pub(crate) fn place(context: &Context, host: Host, project: bool) -> Result<Place, UserError> {
    let settings = if project {
        let name = host.name();
        let directory = host.project_directory().ok_or_else(|| {
            let message = format!("`{name}` has no hooks in a project");
            UserError::usage(message, format!("memctl hooks install {name}"))
        })?;
        let below = Path::new(directory).join(host.settings_file());
        in_project(context, &below)?
    } else {
        let hint = "memctl hooks install HOST --project";
        let none = || UserError::usage("no home directory found", hint);
        let directory = directory(context, host).ok_or_else(none)?;
        of_user(directory.join(host.settings_file()))?
    };
    // Project settings are shared with others and contain no path of this machine.
    let program = if project {
        "memctl".to_owned()
    } else {
        program(context)
    };
    Ok(Place {
        settings,
        state_dir: context.environment.state_dir.clone(),
        program,
        read_only: false,
    })
}

/// Returns a settings file of the user.
pub(crate) fn of_user(path: PathBuf) -> Result<SharedFile, UserError> {
    let found = SharedFile::of_user(&path);
    Ok(found.map_err(|source| host::Error::Unreadable { path, source })?)
}

/// Returns a settings file of the project, in which no link is followed. If the project is the home
/// directory, the file is the user's.
pub(crate) fn in_project(context: &Context, name: &Path) -> Result<SharedFile, UserError> {
    let project = context.project();
    if context.environment.home.as_deref() == Some(project) {
        return of_user(project.join(name));
    }
    Ok(SharedFile::of_project(project, name))
}

/// Returns the directory with the user's settings of an agent host; `None` if there is no home.
pub(crate) fn directory(context: &Context, host: Host) -> Option<PathBuf> {
    let environment = &context.environment;
    let named = host.directory_variable().and_then(|(variable, below)| {
        Some(environment.absolute(environment.var(variable)?).join(below))
    });
    let home = || Some(environment.home.as_ref()?.join(host.directory()));
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

/// Returns the command that installs this program to stay, if it is in a cache that its package
/// manager may empty at any time.
fn lasting_install(program: &Path) -> Option<&'static str> {
    let parts: Vec<_> = program.iter().filter_map(|part| part.to_str()).collect();
    let has = |wanted: &[&str]| parts.windows(wanted.len()).any(|part| part == wanted);
    let is_of_uv = parts.iter().any(|part| part.starts_with("archive-v"));
    match () {
        () if has(&["_npx"]) => Some("npm install -g memctl"),
        () if is_of_uv && has(&["uv"]) => Some("uv tool install memctl"),
        () if has(&[".cache", "pipx"]) || has(&["pipx", ".cache"]) => Some("pipx install memctl"),
        () => None,
    }
}

/// Returns notes for the user after an installation.
pub(crate) fn notes(context: &Context, host: Host, place: &Place, project: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let program = context.environment.program.as_deref();
    if let Some(install) = program.and_then(lasting_install).filter(|_| !project) {
        notes.push(format!(
            "the hooks start a file in a cache that may be emptied: run `{install}`, then \
             `memctl hooks install {}`",
            host.name()
        ));
    }
    notes.extend(obstacles(context, host, place));
    let said = match (host, project) {
        (Host::ClaudeCode, true) => {
            "Claude Code asks once whether you trust this folder before it runs the hooks"
        }
        (Host::Codex, false) => {
            "Codex silently skips new hooks until you review them: run `/hooks` in Codex"
        }
        (Host::Codex, true) => {
            "Codex reads this only in a trusted project, and silently skips new hooks until you \
             review them: run `/hooks` in Codex"
        }
        (Host::Gemini, true) => "Gemini CLI warns about new and changed project hooks",
        (Host::Copilot, true) => "Copilot CLI runs project hooks in folders that you trust",
        (Host::Cursor, _) => "not tested with Cursor: look into its hooks output after a call",
        _ => "",
    };
    let said = match said {
        "" => format!("takes effect in the next session of {}", host.title()),
        said => said.to_owned(),
    };
    let no_path = "`memctl` is not on your PATH; project hooks start it from there";
    let no_memory = "hooks learn only in projects with a memory: run `memctl init` there";
    let has_memory = context.has_memory();
    let more = [
        (true, said.as_str()),
        (project && !is_on_path(context), no_path),
        (!has_memory, no_memory),
    ];
    let more = more.iter().filter(|(is_so, _)| *is_so);
    notes.extend(more.map(|(_, note)| (*note).to_owned()));
    notes
}

/// Returns reasons in the agent host's own settings why its hooks do not run.
fn obstacles(context: &Context, host: Host, place: &Place) -> Vec<String> {
    if host != Host::Codex {
        return Vec::new();
    }
    let directory = directory(context, host);
    let config =
        directory.and_then(|dir| named::read_text(&dir.join("config.toml"), 16 << 20).ok());
    host::codex_obstacles(config.as_deref().unwrap_or_default(), place.settings.path())
}

impl Report for InstallReport {
    fn page(&self, page: &mut Page) {
        let is_there = !self.events.is_empty();
        changed(page, is_there, self.changed, &self.settings);
        let events: Vec<String> = self.events.iter().map(ToString::to_string).collect();
        page.list("events", &events);
        self.notes.iter().for_each(|note| page.field("note", note));
    }
}

/// Installation status of each agent host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct HookStatuses {
    hosts: Vec<StatusReport>,
}

impl Report for HookStatuses {
    fn page(&self, page: &mut Page) {
        page.fails_if(self.hosts.iter().any(|host| host.problem.is_some()));
        let is_absent = |one: &&StatusReport| {
            self.hosts.len() > 1 && one.standing == InstallationStatus::Absent && one.last.is_none()
        };
        let absent = self.hosts.iter().filter(is_absent);
        let absent: Vec<String> = absent.map(|one| one.host.to_owned()).collect();
        for report in self.hosts.iter().filter(|one| !is_absent(one)) {
            let outdated = "outdated; install the hooks again";
            let (host, settings) = (report.host, &report.settings);
            status_line(page, host, report.standing, outdated, settings);
            problem(page, report.problem.as_deref());
            if report.standing == InstallationStatus::Installed || report.last.is_some() {
                delivered(page, report.last.as_ref());
            }
            report
                .notes
                .iter()
                .for_each(|note| page.field("  note", note));
        }
        page.list("no hooks in", &absent);
    }
}

/// Prints the last event that a hook received, and what it was answered.
fn delivered(page: &mut Page, last: Option<&Delivery>) {
    let Some(last) = last else {
        let none = "none yet: start a session in a project with a memory";
        return page.field("last event", none);
    };
    let received = format!(
        "{} ({}) in {}",
        last.event,
        page.age(&last.at),
        last.directory
    );
    page.field("last event", &received);
    let told = last
        .told
        .as_ref()
        .map(|told| format!("told \u{201c}{told}\u{201d}"));
    page.field("answered", &told.unwrap_or_else(|| last.silent.clone()));
}

/// Says what became of a settings file.
pub(crate) fn changed(page: &mut Page, is_there: bool, has_changed: bool, settings: &Path) {
    let done = match (is_there, has_changed) {
        (true, true) => "installed in ",
        (true, false) => "already installed in ",
        (false, true) => "removed from ",
        (false, false) => "not installed in ",
    };
    page.good(done, settings.display().to_string());
}

/// Prints the installation status of an agent host. `outdated` is the text for an outdated one.
pub(crate) fn status_line(
    page: &mut Page,
    host: &str,
    status: InstallationStatus,
    outdated: &str,
    settings: &Path,
) {
    let (style, said) = match status {
        InstallationStatus::Installed => (Style::Good, "installed"),
        InstallationStatus::Outdated => (Style::Warn, outdated),
        InstallationStatus::Absent => (Style::Dim, "not installed"),
        InstallationStatus::Broken => (Style::Bad, "settings cannot be read"),
    };
    let name = format!("{host}: ");
    let path = format!(" ({})", settings.display());
    page.styled(&[(Style::Plain, &name), (style, said), (Style::Dim, &path)]);
}

/// Prints the reason why an agent host's settings cannot be read.
pub(crate) fn problem(page: &mut Page, problem: Option<&str>) {
    if let Some(problem) = problem {
        page.bad("  error: ", problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_of_package_managers_are_known() {
        let check = |path: &str, install| assert_eq!(lasting_install(Path::new(path)), install);
        check(
            "/home/a/.npm/_npx/57b/node_modules/@memctl/linux-x64/bin/memctl",
            Some("npm install -g memctl"),
        );
        check(
            "/home/a/.cache/uv/archive-v0/x1Y/bin/memctl",
            Some("uv tool install memctl"),
        );
        check(
            "/home/a/.local/pipx/.cache/9f/bin/memctl",
            Some("pipx install memctl"),
        );
        check(
            "/home/a/.cache/pipx/9f/bin/memctl",
            Some("pipx install memctl"),
        );
        check("/home/a/.local/share/uv/tools/memctl/bin/memctl", None);
        check("/home/a/.local/share/pipx/venvs/memctl/bin/memctl", None);
        check("/usr/lib/node_modules/memctl/bin/memctl", None);
        check("/home/a/archive-v1/memctl", None);
    }
}
