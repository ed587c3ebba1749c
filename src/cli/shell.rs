//! For shells: completion of commands, options and their fixed values, and manual pages.
//!
//! Deliberately absent: completion of skills and ids, for which a shell would start the program at
//! each Tab. The beginning of an id is enough for every command.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use memctl_files::named;

use crate::cli::output::{Done, Verbatim};
use crate::model::error::UserError;

/// Print a completion script for a shell
///
/// It completes commands, options and their values. Start a new shell after installing it.
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

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Verbatim {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "memctl", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Verbatim::new(script)
}

/// Print the manual page, or write one for each command
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl man | man -l -\n  memctl man --dir ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this existing directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, command: &Command) -> Done {
    if let Some(dir) = &args.dir {
        if !named::is_dir(dir) {
            return Err(UserError::usage(
                format!("`{}` is not a directory", dir.display()),
                format!("mkdir -p {}", dir.display()),
            ));
        }
        clap_mangen::generate_to(command.clone(), dir)?;
        return Ok(Box::new(Verbatim::new(format!(
            "written to {}",
            dir.display()
        ))));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(Box::new(Verbatim::new(
        String::from_utf8_lossy(&page).into_owned(),
    )))
}
