//! `mcp`: the MCP server on standard input and output, and its installation in agent hosts.

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use memctl_files::{SharedFile, named};
use memctl_search::embedder::EmbedderCache;
use serde::Serialize;

use crate::cli::arguments::{Global, HostArgs, HostsArgs};
use crate::cli::config::Environment;
use crate::cli::connections;
use crate::cli::context::Context;
use crate::cli::output::{Page, Printer, Report};
use crate::cli::start::hooks::{self, in_project, is_on_path, of_user};
use crate::host::{
    self, Host, InstallationStatus, RegisterReport, ServerHost, ServerReport, Start,
};
use crate::model::error::UserError;
use crate::serve::mcp::{Server, serve};
use crate::serve::operations::Operation;
use crate::store::workspace::Workspace;

/// Time for pending calls after the input ends.
const LAST_CALLS: Duration = Duration::from_secs(30);

/// Variable for the open folder, as editors write it.
const WORKSPACE_FOLDER: &str = "${workspaceFolder}";

/// Run the MCP server
///
/// Speaks the Model Context Protocol on standard input and output until the input ends; an agent
/// host starts it. `--scope` and `--user` limit it to a part of the memory.
///
/// ```console
/// $ memctl mcp install claude-code
/// $ memctl mcp --read-only --scope hr
/// ```
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// Offer only the tools that change nothing: search, hint
    #[arg(long)]
    read_only: bool,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    Install(InstallArgs),
    /// Remove the server; keep everything else
    ///
    /// ```console
    /// $ memctl mcp uninstall claude-code
    /// $ memctl mcp uninstall cursor --project
    /// ```
    Uninstall(HostArgs<ServerHost>),
    /// Show which agent hosts have the server, in your settings or this project's
    ///
    /// A settings file that cannot be read does not hide the other agent hosts; the exit code is 1.
    ///
    /// ```console
    /// $ memctl mcp status
    /// $ memctl mcp status codex --project
    /// ```
    Status(HostsArgs<ServerHost>),
}

/// Add the server to the agent host's settings; keep everything else
///
/// `--scope` and `--user` are stored with it and limit it to that part of the memory.
///
/// ```console
/// $ memctl mcp install claude-code
/// $ memctl mcp install cursor --project --read-only
/// ```
#[derive(Debug, Args)]
struct InstallArgs {
    #[command(flatten)]
    of: HostArgs<ServerHost>,
    /// Offer only the tools that change nothing: search, hint
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn mcp(context: &Context, args: &McpArgs) -> Result<u8, UserError> {
    let Some(command) = &args.command else {
        return be_server(context, args.read_only);
    };
    let state = context.environment.state_dir.as_deref();
    let report: Box<dyn Report> = match command {
        McpCommand::Install(args) => {
            let HostArgs { host, project } = args.of;
            let settings = settings(context, host, project)?;
            let start = start(context, host, project, args.read_only);
            let mut report = host::register(host, &settings, state, &start)?;
            report.notes = notes(context, host, project);
            Box::new(report)
        }
        McpCommand::Uninstall(args) => {
            let settings = settings(context, args.host, args.project)?;
            Box::new(host::unregister(args.host, &settings, state)?)
        }
        McpCommand::Status(args) => {
            let mut reports: Vec<ServerReport> = Vec::new();
            let hosts = args
                .host
                .map_or(ServerHost::ALL.to_vec(), |host| vec![host]);
            let places = hosts
                .into_iter()
                .flat_map(|host| [(host, false), (host, true)]);
            for (host, project) in places {
                let is_named = args.project && args.host.is_some();
                let is_left_out = match project {
                    true => host.project_file().is_none() && !is_named,
                    false => args.project,
                };
                if is_left_out {
                    continue;
                }
                let settings = settings(context, host, project)?;
                if reports
                    .iter()
                    .any(|known| known.settings == settings.path())
                {
                    continue;
                }
                // Only the presence of the entry counts; its command line is the user's choice.
                let found = match host::registered(host, &settings) {
                    Ok(found) => found,
                    // One broken host does not hide the rest.
                    Err(error) if args.host.is_none() => {
                        let problem = UserError::from(error).message;
                        ServerReport::broken(host, &settings, problem)
                    }
                    Err(error) => return Err(error.into()),
                };
                // Unless it is asked for, the project is of interest where it has the server.
                let is_absent = found.standing == InstallationStatus::Absent;
                if !(project && is_absent) || args.project {
                    reports.push(found);
                }
            }
            Box::new(Registered { hosts: reports })
        }
    };
    context.printer.show(report.as_ref())
}

/// Serves until the input ends.
fn be_server(context: &Context, read_only: bool) -> Result<u8, UserError> {
    use std::io::IsTerminal as _;
    if std::io::stdin().is_terminal() {
        context.printer.note(
            "Waiting for an agent host on standard input; run `memctl mcp install HOST` to set one up.",
        );
    }
    // Warnings about the settings are printed once, not at every call.
    context.config()?;
    let (environment, global) = (context.environment.clone(), context.global.clone());
    let kept = EmbedderCache::default();
    let open = move |operation: Operation| {
        let mut workspace = open(&environment.later(), &global, operation)?;
        workspace.providers.kept = Some(kept.clone());
        Ok::<_, UserError>(workspace)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .build()?;
    // An agent host starts the server in the directory that the agent works in.
    let project = context.project_name();
    let offered = Server::new(open, read_only, project);
    connections::every_second(connections::share_rest)?;
    let served = runtime.block_on(serve(offered));
    runtime.shutdown_timeout(LAST_CALLS);
    served?;
    Ok(0)
}

/// Opens the current memory for one call.
fn open(
    environment: &Environment,
    global: &Global,
    operation: Operation,
) -> Result<Workspace, UserError> {
    let why = format!("mcp {}", operation.name());
    let printer = Printer::new(false, true, true);
    let context = Context::new(environment.clone(), global.clone(), printer, why);
    if let Some(off) = &context.off {
        return Err(off.clone().into());
    }
    // An agent host starts the server in every project; only a person creates a memory there.
    if !operation.reads() && !context.has_memory() {
        let message = format!("no memory found in `{}`", context.project().display());
        let hint = "the user can create one there: memctl init";
        return Err(UserError::usage(message, hint));
    }
    context.workspace_of_user(None)
}

/// Returns the file in which an agent host looks for servers.
pub(crate) fn settings(
    context: &Context,
    host: ServerHost,
    project: bool,
) -> Result<SharedFile, UserError> {
    let environment = &context.environment;
    if project {
        let name = host.name();
        let file = host.project_file().ok_or_else(|| {
            let message = format!("`{name}` has no project settings");
            UserError::usage(message, format!("memctl mcp install {name}"))
        })?;
        return in_project(context, Path::new(file));
    }
    let home = environment.home.as_ref();
    let of_host = |host: Host, file: &str| Some(hooks::directory(context, host)?.join(file));
    // It reads both, and makes one of them itself.
    let of_opencode = || {
        let file = of_host(Host::OpenCode, "opencode.json")?;
        let commented = file.with_extension("jsonc");
        let is_commented = !named::is_file(&file) && named::is_file(&commented);
        Some(if is_commented { commented } else { file })
    };
    // Graphical programs keep their settings in the system's configuration directory.
    let of_system = |file: &str| Some(environment.all_settings_dir.as_ref()?.join(file));
    let file = match host {
        // Without the variable the file is in the home directory itself, not in `.claude`.
        ServerHost::ClaudeCode => {
            let variable = Host::ClaudeCode.directory_variable();
            if variable.is_some_and(|(name, _)| environment.var(name).is_some()) {
                of_host(Host::ClaudeCode, ".claude.json")
            } else {
                home.map(|home| home.join(".claude.json"))
            }
        }
        ServerHost::Codex => of_host(Host::Codex, "config.toml"),
        ServerHost::Gemini => of_host(Host::Gemini, Host::Gemini.settings_file()),
        ServerHost::Copilot => of_host(Host::Copilot, "mcp-config.json"),
        ServerHost::OpenCode => of_opencode(),
        ServerHost::Cline => of_host(Host::Cline, "data/settings/cline_mcp_settings.json"),
        ServerHost::Cursor => home.map(|home| home.join(".cursor/mcp.json")),
        ServerHost::VsCode => of_system("Code/User/mcp.json"),
        ServerHost::ClaudeDesktop => of_system("Claude/claude_desktop_config.json"),
    };
    let hint = "memctl mcp install HOST --project";
    of_user(file.ok_or_else(|| UserError::usage("no home directory found", hint))?)
}

/// Returns the command with which an agent host starts the server.
pub(crate) fn start(context: &Context, host: ServerHost, project: bool, read_only: bool) -> Start {
    let global = &context.global;
    // Shared settings contain no path of this machine; graphical programs have no `PATH`.
    let by_name = project || (is_on_path(context) && host.starts_in_project());
    let own = context.environment.program.as_ref().filter(|_| !by_name);
    let mut args = vec!["mcp".to_owned()];
    let root = match (host.starts_in_project(), project) {
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
    if read_only {
        args.push("--read-only".to_owned());
    }
    Start {
        command: own.map_or_else(|| "memctl".to_owned(), |path| path.display().to_string()),
        args,
    }
}

/// Returns notes for the user after an installation.
pub(crate) fn notes(context: &Context, host: ServerHost, project: bool) -> Vec<String> {
    let said = match (host, project) {
        (ServerHost::ClaudeCode, true) => "Claude Code asks once before it starts project servers",
        (ServerHost::Codex, true) => "Codex reads this only in a trusted project",
        (ServerHost::Cursor, _) => "enable it in Cursor's settings, under MCP",
        (ServerHost::VsCode, _) => "VS Code asks once before it starts the server",
        _ => "",
    };
    let said = match said {
        "" => format!("takes effect in the next session of {}", host.title()),
        said => said.to_owned(),
    };
    let mut notes = vec![said];
    if !host.starts_in_project() && !project {
        let root = context.project().display().to_string();
        notes.push(format!("it uses the memory of `{root}` for every project"));
    }
    if project && !is_on_path(context) {
        notes.push("`memctl` is not on your PATH; project settings start it from there".to_owned());
    }
    notes
}

impl Report for RegisterReport {
    fn page(&self, page: &mut Page) {
        hooks::changed(page, self.start.is_some(), self.changed, &self.settings);
        page.some("starts", self.start.as_ref().map(shown));
        self.notes.iter().for_each(|note| page.field("note", note));
    }
}

fn shown(start: &Start) -> String {
    let args = start.args.join(" ");
    format!("{} {args}", start.command)
}

/// Installation status of each agent host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Registered {
    hosts: Vec<ServerReport>,
}

impl Report for Registered {
    fn page(&self, page: &mut Page) {
        page.fails_if(self.hosts.iter().any(|host| host.problem.is_some()));
        for report in &self.hosts {
            let outdated = "the program it starts does not exist";
            let (host, settings) = (report.host, &report.settings);
            hooks::status_line(page, host, report.standing, outdated, settings);
            if let Some(start) = &report.start {
                page.field("starts", &shown(start));
            }
            hooks::problem(page, report.problem.as_deref());
        }
    }
}
