//! `mcp`: the memory as tools for agents, over standard input and output.

use std::time::Duration;

use clap::Args;

use crate::engine::Engine;
use crate::serve::mcp::{Server, serve};
use crate::serve::operations::Operation;

use super::Global;
use super::context::Context;
use super::error::CliError;
use super::output::Printer;

/// Calls that are under way when the input ends get so long.
const LAST_CALLS: Duration = Duration::from_secs(30);

/// Be an MCP server: the memory as six tools for agents
///
/// Speaks the Model Context Protocol on standard input and output until the input ends; a host starts it.
/// `--scope` and `--user` hold it to a part of the memory.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  claude mcp add memctl -- memctl mcp\n  memctl mcp --read-only --scope hr"
)]
pub(super) struct McpArgs {
    /// Offer only what changes nothing: search, hint, why
    #[arg(long)]
    read_only: bool,
}

pub(super) fn mcp(context: &Context, global: &Global, args: &McpArgs) -> Result<u8, CliError> {
    use std::io::IsTerminal as _;
    if std::io::stdin().is_terminal() {
        context.printer.note(
            "This waits for an agent's host to speak on standard input; `memctl mcp --help` says how one is told to.",
        );
    }
    // What is odd about the settings is said now, and not at every call.
    context.config(&[])?;
    let (environment, global) = (context.environment.clone(), global.clone());
    let open = move |operation: Operation| open(&environment.later(), &global, operation);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .build()?;
    let served = runtime.block_on(serve(Server::new(open).read_only(args.read_only)));
    runtime.shutdown_timeout(LAST_CALLS);
    served?;
    Ok(0)
}

/// The memory as it is now, for one call.
fn open(
    environment: &crate::config::Environment,
    global: &Global,
    operation: Operation,
) -> Result<Engine, CliError> {
    let why = format!("mcp {}", operation.name());
    let printer = Printer::new(false, true, true);
    let context = Context::new(environment.clone(), global, printer, why);
    match &context.off {
        Some(off) => Err(CliError::usage(off.to_string(), off.hint())),
        None => context.engine(None),
    }
}
