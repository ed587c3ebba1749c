//! Options of every command.

use std::path::PathBuf;

use clap::Args;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(next_help_heading = "Everywhere")]
pub(super) struct Global {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Workspace: the directory that contains `.agentura/` and `skills/`
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
    /// Read and change only these domains, e.g. `hr,dev`
    #[arg(long, global = true, value_name = "DOMAINS")]
    pub(super) scope: Option<String>,
    /// Use only this user's memories and sessions; also `MEMCTL_USER`, setting `user`
    #[arg(long, global = true, value_name = "ID")]
    pub(super) user: Option<String>,
    /// Print only results, warnings and errors
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// Print no colours; also set by the variable `NO_COLOR`
    #[arg(long, global = true)]
    pub(super) no_color: bool,
    /// Print more details
    #[arg(long, short, global = true)]
    pub(super) verbose: bool,
}
