//! `serve` and `token`: the HTTP server with its log, and tokens for its clients. `mcp`: the MCP server on standard input
//! and output, and its installation in agent hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use chrono::TimeDelta;
use clap::{Args, Subcommand};
use memctl_files::process::Stop;
use memctl_search::embedder::EmbedderCache;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::cli::arguments::{HostArgs, HostsArgs};
use crate::cli::config::Environment;
use crate::cli::connections;
use crate::cli::context::{Context, random};
use crate::cli::output::{Done, Page, Printer, Report};
use crate::cli::start::places::{Statuses, installed, removed, statuses};
use crate::host::{self, Item, Place, Served};
use crate::model::UserId;
use crate::model::error::UserError;
use crate::serve::http::{Address, Log, Options, Origins, RATE, Server, bind};
use crate::serve::mcp as mcp_server;
use crate::serve::operations::Operation;
use crate::serve::token::{
    AUDIENCE, Jwks, Keys, Minted, NewToken, Secret, Verifier, default_file, mint,
};
use crate::store::workspace::Workspace;

/// Maximum time for a call of a model, below that of a request.
const MODEL: Duration = Duration::from_secs(20);

/// Maximum time for work that is still running after the server has stopped.
const LAST: Duration = Duration::from_secs(5);

/// Line that `--json` prints when the server listens.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Listening {
    /// Address that clients call.
    url: String,
    /// Directory of the memory.
    memory: String,
}

/// Serve the memory over HTTP, to clients with a token
///
/// Listens on this machine only, by default. `memctl token` creates tokens; a request reads and
/// changes only records of the token's user and domains. docs/serve.md lists the endpoints, and the
/// server describes them at `/openapi.json`. An interrupt shuts it down gracefully.
///
/// Without `--jwt-secret-file` and `--jwks`, tokens are those that `memctl token` creates in this
/// workspace, with a secret stored outside of it.
///
/// ```console
/// $ memctl serve
/// $ memctl serve --addr 127.0.0.1:0 --allow-origin https://app.example
/// $ memctl serve --jwks https://auth.example/jwks.json --audience authenticated
/// ```
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    addr: Address,
    /// File with the secret that signs tokens (HS256), of 32 bytes or more
    #[arg(long, value_name = "FILE", conflicts_with = "jwks")]
    jwt_secret_file: Option<PathBuf>,
    /// URL of the public keys that verify tokens (RS256, ES256)
    #[arg(long, value_name = "URL")]
    jwks: Option<String>,
    /// Required `aud` claim of tokens
    #[arg(long, value_name = "NAME", default_value = AUDIENCE)]
    audience: String,
    /// Allowed origin of web pages, as `https://app.example`; repeatable
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Allowed name of this server besides `localhost`; repeatable
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Listen on addresses that other machines can reach: put a proxy with TLS in front
    #[arg(long)]
    allow_remote: bool,
    /// Maximum number of requests per second and user; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = RATE)]
    rate_limit: u32,
    /// Model for rules: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) fn serve(context: &Context, args: &ServeArgs) -> Result<u8, UserError> {
    let origins = Origins::new(&args.allow_host, &args.allow_origin)?;
    if !Environment::has_http_time() {
        return Err(UserError::usage(
            "the system clock is before 1970 or after 9998, which HTTP dates cannot represent",
            "set the clock; `memctl mcp` serves agents without HTTP",
        ));
    }
    let mut workspace = context.workspace(args.model.as_deref())?;
    // A rule is made without a model that is slow, before the time of the request is over.
    let answer_within = &mut workspace.providers.answer_within;
    *answer_within = MODEL.min(*answer_within);
    workspace.begin()?;
    context.connection.follow(&workspace)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let keys = match &args.jwks {
        Some(url) => Keys::Jwks(public_keys(context, &runtime, url)?),
        None => Keys::Secret(secret(context, args.jwt_secret_file.as_deref())?),
    };
    let bound = bind(args.addr, args.allow_remote)?;
    let log = BackgroundLog::start(context.printer.clone())?;
    let server = Server::new(Options {
        workspace,
        verifier: Verifier::new(keys, args.audience.clone()),
        origins,
        rate_limit: args.rate_limit,
        clock: context.environment.clock(),
        log: log.at(Level::Warning),
        access_log: context.global.verbose.then(|| log.at(Level::Note)),
    });
    let url = format!("http://{}", bound.address);
    let memory = context.places.memory.display().to_string();
    let line = if context.printer.is_json() {
        serde_json::to_string(&Listening { url, memory })?
    } else {
        format!("listening on {url}")
    };
    let ended = runtime.block_on(async {
        // Signal handlers are set before the line, so that its reader can stop the server.
        let stop = Stop::new()?;
        context.printer.line(&(line + "\n"));
        bound.serve(server, stop.wait()).await
    });
    runtime.shutdown_timeout(LAST);
    log.finish(LAST);
    ended?;
    Ok(0)
}

/// Returns the keys at a URL. Unavailable keys are fetched with the first token.
fn public_keys(context: &Context, runtime: &Runtime, url: &str) -> Result<Jwks, UserError> {
    let shown = url.escape_debug();
    let keys = Jwks::new(url).map_err(|reason| {
        let message = format!("invalid key URL `{shown}`: {reason}");
        UserError::input(message, "memctl serve --jwks https://…/jwks.json")
    })?;
    if let Err(reason) = runtime.block_on(keys.prepare()) {
        let line = format!(
            "cannot fetch keys from `{shown}`: {reason}; requests are refused until keys are available"
        );
        context.printer.warn(&line);
    }
    Ok(keys)
}

/// Maximum number of lines that wait to be written.
const WAITING: usize = 1_024;

/// Importance of a line.
#[derive(Debug, Clone, Copy)]
enum Level {
    Warning,
    Note,
}

/// Thread that writes the lines, so that a reader of standard error who has stopped does not stop the server.
struct BackgroundLog {
    lines: SyncSender<(Level, String)>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl BackgroundLog {
    fn start(printer: Printer) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<(Level, String)>(WAITING);
        let (alive, ended) = channel();
        thread::Builder::new().spawn(move || {
            let _alive = alive;
            for (level, line) in waiting {
                match level {
                    Level::Warning => printer.warn(&line),
                    Level::Note => printer.note(&line),
                }
            }
        })?;
        Ok(Self { lines, ended })
    }

    /// Receiver of lines of one level. Lines beyond those that wait are dropped.
    fn at(&self, level: Level) -> Log {
        let lines = self.lines.clone();
        Arc::new(move |line| drop(lines.try_send((level, line.to_owned()))))
    }

    /// Waits until all lines are written, at most this long. Other receivers must be gone.
    fn finish(self, longest: Duration) {
        drop(self.lines);
        let _timed_out = self.ended.recv_timeout(longest);
    }
}

/// Create a token for `serve`
///
/// The token gives access as that user, in those domains, until it expires: treat it like a
/// password. `serve` reads the secret that signs it. Without a file, both use a secret of this
/// workspace, which is created on first use in your data directory, outside the workspace. To
/// revoke all tokens, delete that file and restart `serve`.
///
/// `--scope` names the domains of the token; `*` is every domain, and records without one.
///
/// ```console
/// $ memctl token --sub ann --scope hr,dev
/// $ memctl token --sub ann --scope '*' --ttl 7d --jwt-secret-file secret.txt
/// ```
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// User id: the token opens this user's notes and sessions
    #[arg(long, value_name = "ID")]
    sub: UserId,
    /// Role in the token; with `agent`, corrections wait for a person's approval
    #[arg(long, value_name = "ROLE", default_value = "authenticated")]
    role: String,
    /// Lifetime: `90s`, `15m`, `12h` or `7d`, at most a year
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    ttl: TimeDelta,
    /// Audience: the value of the server's `--audience`
    #[arg(long, value_name = "NAME", default_value = AUDIENCE)]
    audience: String,
    /// File with the secret, of 32 bytes or more
    #[arg(long, value_name = "FILE")]
    jwt_secret_file: Option<PathBuf>,
}

/// Parses a whole number of seconds, minutes, hours or days, up to a year.
fn span(text: &str) -> Result<TimeDelta, String> {
    let unit = text.chars().next_back().unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => 0,
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: i64 = number.parse().unwrap_or_default();
    let seconds = number.saturating_mul(seconds);
    if !(1..=366 * 86_400).contains(&seconds) {
        return Err("expected a time such as 90s, 15m, 12h or 7d, at most a year".to_owned());
    }
    Ok(TimeDelta::seconds(seconds))
}

pub(crate) fn token(context: &Context, args: &TokenArgs) -> Done<Minted> {
    let Some(given) = &context.global.scope else {
        return Err(UserError::usage(
            "`--scope` is required",
            format!("memctl token --sub {} --scope hr,dev", args.sub),
        ));
    };
    let domains = given.split(',').map(str::trim);
    let new = NewToken {
        sub: args.sub.clone(),
        domains: domains
            .filter(|domain| !domain.is_empty())
            .map(str::to_owned)
            .collect(),
        role: args.role.clone(),
        audience: args.audience.clone(),
        ttl: args.ttl,
    };
    let secret = secret(context, args.jwt_secret_file.as_deref())?;
    mint(&new, &secret, context.environment.now).map_err(|reason| {
        let hint = format!("memctl token --sub {} --scope hr,dev", args.sub);
        UserError::input(reason, hint)
    })
}

/// Returns the secret in the given file, or the secret of this workspace.
pub(crate) fn secret(context: &Context, file: Option<&Path>) -> Result<Secret, UserError> {
    if let Some(file) = file {
        return Secret::read(&context.environment.absolute(file));
    }
    let Some(state) = &context.environment.state_dir else {
        let message = "cannot store the secret: no home directory found";
        return Err(UserError::usage(message, "--jwt-secret-file FILE"));
    };
    let file = default_file(state, &context.places.memory);
    let secret = Secret::read_or_make(&file, random);
    secret.map_err(|error| error.with_hint(format!("rm {}", file.display())))
}

impl Report for Minted {
    /// Prints only the token, so that it can be assigned to a variable.
    fn page(&self, page: &mut Page) {
        page.line(&self.token);
    }

    /// The token is the requested output.
    fn reveals(&self) -> bool {
        true
    }
}

/// Time for pending calls after the input ends.
const LAST_CALLS: Duration = Duration::from_secs(30);

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
            let given = (item, host, project);
            Box::new(installed(context, given, args.read_only, of)?)
        }
        McpCommand::Uninstall(args) => {
            Box::new(removed::<Served>(context, (item, args.host, args.project))?)
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
    let offered = mcp_server::Server::new(open, read_only, project);
    let connection = context.connection.clone();
    connections::every_second(move || connection.share_rest())?;
    let served = runtime.block_on(mcp_server::serve(offered));
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

impl Report for Statuses<Served> {
    fn page(&self, page: &mut Page) {
        self.show(page, "no server in", |served, page| {
            page.document(served, &[]);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_a_number_and_a_unit() {
        let check = |text: &str, expected: Option<i64>| {
            let read = span(text).ok().map(|span| span.num_seconds());
            assert_eq!(read, expected, "{text}");
        };
        check("90s", Some(90));
        check("15m", Some(900));
        check("1h", Some(3_600));
        check("7d", Some(604_800));
        for bad in [
            "", "h", "0h", "-1h", "1", "1w", "1.5h", "400d", "99999999999999d", "1é",
        ] {
            check(bad, None);
        }
    }
}
