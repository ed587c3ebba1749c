//! `completions`: completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use crate::cli::output::{Report, Verbatim};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  memctl completions bash > ~/.local/share/bash-completion/completions/memctl"
)]
pub(in crate::cli) struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

pub(in crate::cli) fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
) -> Box<dyn Report> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "memctl", &mut script);
    Box::new(Verbatim::new(String::from_utf8_lossy(&script).into_owned()))
}
