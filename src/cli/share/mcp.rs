//! `mcp`: the MCP server on standard input and output, and its installation in agent hosts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use memctl_files::named;
use memctl_search::embedder::EmbedderCache;

use crate::cli::arguments::{HostArgs, HostsArgs};
use crate::cli::connections;
use crate::cli::context::Context;
use crate::cli::output::{Page, Printer, Report};
use crate::cli::start::hooks::{Statuses, directory, installed, is_on_path, removed, statuses};
use crate::host::{self, Host, Item, Place, Served, ServerFile, Start};
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
    Uninstall(HostArgs<false>),
    /// Show which agent hosts have the server, in your settings or this project's
    ///
    /// A settings file that cannot be read does not hide the other agent hosts; the exit code is 1.
    ///
    /// ```console
    /// $ memctl mcp status
    /// $ memctl mcp status codex --project
    /// ```
    Status(HostsArgs<false>),
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
    of: HostArgs<false>,
    /// Offer only the tools that change nothing: search, hint
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn mcp(context: &Context, args: &McpArgs) -> Result<u8, UserError> {
    let Some(command) = &args.command else {
        return be_server(context, args.read_only);
    };
    let item = Item::Server;
    let report: Box<dyn Report> = match command {
        McpCommand::Install(args) => {
            let HostArgs { host, project } = args.of;
            let of = |place: &Place| Served {
                start: Some(place.start.clone()),
            };
            let done = installed(context, (item, host, project), args.read_only, of);
            Box::new(done?)
        }
        McpCommand::Uninstall(args) => {
            let done = removed::<Served>(context, (item, args.host, args.project));
            Box::new(done?)
        }
        McpCommand::Status(args) => {
            // Only the presence of the entry counts; its command line is the user's choice.
            let given = (args.host, args.project);
            Box::new(statuses(context, item, given, host::server_status)?)
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
    let mut context = context.clone();
    context.environment.distrust();
    // Warnings about the settings are printed once, not at every call.
    context.config()?;
    let started = context.clone();
    let embedder_cache = EmbedderCache::default();
    let open = move |operation: Operation| {
        let mut workspace = open(&started, operation)?;
        workspace.providers.embedder_cache = Some(embedder_cache.clone());
        Ok::<_, UserError>(workspace)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .build()?;
    // An agent host starts the server in the directory that the agent works in.
    let project = context.project_name();
    let offered = Server::new(open, read_only, project);
    let connection = context.connection.clone();
    connections::every_second(move || connection.share_rest())?;
    let served = runtime.block_on(serve(offered));
    runtime.shutdown_timeout(LAST_CALLS);
    served?;
    Ok(0)
}

/// Opens the current memory for one call of a server.
fn open(started: &Context, operation: Operation) -> Result<Workspace, UserError> {
    let why = format!("mcp {}", operation.name());
    let printer = Printer::new(false, true, true);
    let (environment, global) = (started.environment.later(), started.global.clone());
    let context = Context::new(
        environment,
        global,
        printer,
        why,
        started.connection.clone(),
    );
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

/// Returns the file of the user that lists the servers of a host; `None` without a home directory.
pub(crate) fn server_file(context: &Context, host: Host) -> Option<PathBuf> {
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
pub(crate) fn start(context: &Context, host: Host, project: bool, read_only: bool) -> Start {
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

impl Report for Statuses<Served> {
    fn page(&self, page: &mut Page) {
        self.show(page, "no server in", |served, page| {
            page.document(served, &[])
        });
    }
}
