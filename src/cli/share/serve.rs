//! `serve`: the memory over HTTP, until a signal stops the server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::background_log::{BackgroundLog, Level};
use super::token::secret;
use crate::cli::config::Environment;
use crate::cli::context::Context;
use crate::cli::primary;
use crate::model::error::UserError;
use crate::serve::http::{Address, Limits, Options, Origins, Server, bind};
use crate::serve::token::{AUDIENCE, Jwks, Keys, Verifier};
use memctl_files::signals::Stop;

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
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl serve\n  memctl serve --addr 127.0.0.1:0 --allow-origin https://app.example\n  \
        memctl serve --jwks https://auth.example/jwks.json --audience authenticated\n\n\
        Without `--jwt-secret-file` and `--jwks`, tokens are those that `memctl token` creates in this\n\
        workspace, with a secret stored outside of it."
)]
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
    #[arg(long, value_name = "N", default_value_t = Limits::default().rate)]
    rate_limit: u32,
    /// Model for rules: `provider/model`, `exec:PROGRAM`, `scripted:FILE` or `offline`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) fn serve(context: &Context, args: &ServeArgs) -> Result<u8, UserError> {
    let origins = Origins::new(&args.allow_host, &args.allow_origin);
    let origins = origins.map_err(|error| {
        UserError::from(error).with_hint("memctl serve --allow-origin https://app.example")
    })?;
    if !Environment::has_http_time() {
        return Err(UserError::usage(
            "the system clock is before 1970 or after 9998, which HTTP dates cannot represent",
            "set the clock; `memctl mcp` serves agents without HTTP",
        ));
    }
    let workspace = context.workspace(args.model.as_deref())?;
    workspace.begin()?;
    primary::follow(&context.environment, &workspace)?;
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
        limits: Limits {
            rate: args.rate_limit,
            ..Limits::default()
        },
        clock: context.environment.clock(),
        log: log.at(Level::Warning),
        access_log: context.verbose.then(|| log.at(Level::Note)),
    })?;
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
