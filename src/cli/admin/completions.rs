//! `completions`: completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use crate::cli::complete;
use crate::cli::output::{Done, Verbatim};
use crate::model::error::UserError;

/// Print a completion script for a shell
///
/// The script asks this program: it completes commands, options and their values, skills, and ids of
/// rules, procedures, corrections and executions. Start a new shell after installing it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl completions bash > ~/.local/share/bash-completion/completions/memctl\n  \
    memctl completions zsh > \"${fpath[1]}/_memctl\"\n  \
    memctl completions fish > ~/.config/fish/completions/memctl.fish"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Done {
    let shell = args.shell.to_string();
    match complete::script(&shell) {
        Some(script) => Ok(Box::new(Verbatim::new(script))),
        None => Err(UserError::usage(
            format!("no completion for `{shell}`"),
            "memctl completions bash",
        )),
    }
}
