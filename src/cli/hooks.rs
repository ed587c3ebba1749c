//! `hooks`: telling a coding agent's host to call us, and taking that back.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::host::{self, Host, InstallReport, Place, Standing, StatusReport};
use crate::platform::{Directory, named};

use super::context::Context;
use super::error::CliError;
use super::installation;
use super::output::{Page, Report};

/// Let a coding agent's host call memctl at failures, and at the start and end of sessions
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  memctl hooks install claude-code")]
pub(super) enum HooksCommand {
    Install(InstallArgs),
    Uninstall(UninstallArgs),
    Status(StatusArgs),
}

/// A host.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum HostName {
    /// Claude Code
    ClaudeCode,
    /// `OpenAI` Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
}

impl HostName {
    const fn host(self) -> Host {
        match self {
            Self::ClaudeCode => Host::ClaudeCode,
            Self::Codex => Host::Codex,
            Self::Gemini => Host::Gemini,
        }
    }
}

/// Add the hooks to the host's settings; everything else in them stays as it is
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl hooks install claude-code\n  memctl hooks install codex --project"
)]
pub(super) struct InstallArgs {
    /// The host
    host: HostName,
    /// In the settings of this project instead of yours
    #[arg(long)]
    project: bool,
}

/// Take the hooks out again; the settings are then byte for byte what they were
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl hooks uninstall claude-code")]
pub(super) struct UninstallArgs {
    /// The host
    host: HostName,
    /// From the settings of this project instead of yours
    #[arg(long)]
    project: bool,
}

/// Show where hooks are installed, and what may keep them from working
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl hooks status\n  memctl hooks status codex --project")]
pub(super) struct StatusArgs {
    /// The host; all of them without one
    host: Option<HostName>,
    /// In the settings of this project instead of yours
    #[arg(long)]
    project: bool,
}

pub(super) fn hooks(
    context: &Context,
    command: &HooksCommand,
) -> Result<Box<dyn Report>, CliError> {
    match command {
        HooksCommand::Install(args) => {
            let host = args.host.host();
            let place = place(context, host, args.project)?;
            let mut report = host::install(host, &place)?;
            report.notes = notes(context, host, &place, args.project);
            Ok(Box::new(report))
        }
        HooksCommand::Uninstall(args) => {
            let host = args.host.host();
            let place = place(context, host, args.project)?;
            Ok(Box::new(host::uninstall(host, &place)?))
        }
        HooksCommand::Status(args) => {
            let all = || Host::ALL.to_vec();
            let hosts = args.host.map_or_else(all, |name| vec![name.host()]);
            let mut reports = Vec::new();
            for host in hosts {
                let place = place(context, host, args.project)?;
                let mut report = host::status(host, &place)?;
                if report.standing != Standing::Absent {
                    report.notes.extend(obstacles(context, host, &place));
                }
                reports.push(report);
            }
            Ok(Box::new(Standings { hosts: reports }))
        }
    }
}

/// The settings of a host, and the program that its hooks are to start.
fn place(context: &Context, host: Host, project: bool) -> Result<Place, CliError> {
    let environment = &context.environment;
    let directory = if project {
        project_of(context).join(host.directory())
    } else {
        let named = environment.var(host.directory_variable());
        let home = || Some(environment.home.as_ref()?.join(host.directory()));
        named
            .map(|dir| environment.absolute(dir))
            .or_else(home)
            .ok_or_else(|| {
                CliError::usage(
                    "there is no home directory",
                    "memctl hooks install HOST --project",
                )
            })?
    };
    // What is shared with others names no path of this machine.
    let program = if project {
        "memctl".to_owned()
    } else {
        program(context)
    };
    Ok(Place {
        settings: directory.join(host.settings_file()),
        state_dir: environment.state_dir.clone(),
        program,
    })
}

/// How another program starts this one on this machine.
pub(super) fn program(context: &Context) -> String {
    let own = context.environment.program.as_ref();
    let own = own.filter(|_| !is_on_path(context));
    own.map_or_else(|| "memctl".to_owned(), |path| path.display().to_string())
}

pub(super) fn project_of(context: &Context) -> PathBuf {
    let memory = &context.places.memory;
    memory.parent().unwrap_or(memory).to_owned()
}

/// Whether `memctl`, typed anywhere, is this program.
pub(super) fn is_on_path(context: &Context) -> bool {
    let environment = &context.environment;
    let path = environment.var("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|directory| directory.join("memctl"))
        .find(|file| named::is_file(file));
    let real = |path: &Path| named::real(path).ok();
    first.is_some()
        && first.as_deref().and_then(real) == environment.program.as_deref().and_then(real)
}

/// What the user has to do or to know after the hooks are installed.
fn notes(context: &Context, host: Host, place: &Place, project: bool) -> Vec<String> {
    let mut notes = obstacles(context, host, place);
    let said = match (host, project) {
        (Host::ClaudeCode, false) => {
            "counts from the next session of Claude Code; `/hooks` there lists it"
        }
        (Host::ClaudeCode, true) => {
            "Claude Code asks once whether you trust this folder before it runs the hooks of its settings"
        }
        (Host::Codex, false) => {
            "Codex skips new hooks in silence until you have reviewed them: type `/hooks` in Codex"
        }
        (Host::Codex, true) => {
            "Codex reads this only in a trusted project, and skips new hooks in silence until you have \
             reviewed them: type `/hooks` in Codex"
        }
        (Host::Gemini, false) => "counts from the next session of Gemini CLI",
        (Host::Gemini, true) => {
            "Gemini CLI warns about hooks of a project when they are new or have changed"
        }
    };
    notes.push(said.to_owned());
    if project && !is_on_path(context) {
        notes.push(
            "`memctl` is not on your PATH, where the hooks of a project look for it".to_owned(),
        );
    }
    if !Directory::at(&context.places.memory).is_there() {
        notes.push(
            "hooks learn in projects that have a memory: type `memctl init` there".to_owned(),
        );
    }
    notes
}

/// What keeps hooks of a host from working, as far as its own settings say.
fn obstacles(context: &Context, host: Host, place: &Place) -> Vec<String> {
    if host != Host::Codex {
        return Vec::new();
    }
    let home = context
        .environment
        .home
        .as_ref()
        .map(|home| home.join(host.directory()));
    let named = context.environment.var(host.directory_variable());
    let directory = named.map(|dir| context.environment.absolute(dir)).or(home);
    let config =
        directory.and_then(|dir| named::read_text(&dir.join("config.toml"), 16 << 20).ok());
    host::codex_obstacles(config.as_deref().unwrap_or_default(), &place.settings)
}

impl Report for InstallReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let installing = !self.events.is_empty();
        installation::done(page, &self.settings, installing, self.changed);
        if installing {
            page.field("events", &self.events.join(", "));
        }
        if let Some(backup) = &self.backup {
            page.field("as it was", &backup.display().to_string());
        }
        installation::notes(page, "note: ", &self.notes);
    }
}

/// The standing of each host.
#[derive(Debug, Serialize)]
struct Standings {
    hosts: Vec<StatusReport>,
}

impl Report for Standings {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        for report in &self.hosts {
            let outdated = "of an older form; install them again";
            let (host, settings) = (report.host, &report.settings);
            installation::standing(page, host, report.standing, outdated, settings);
            installation::notes(page, "  note: ", &report.notes);
        }
    }
}
