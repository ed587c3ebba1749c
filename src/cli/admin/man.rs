//! `man`: manual pages.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output::{Done, Verbatim};
use crate::model::error::UserError;
use memctl_files::named;

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

pub(crate) fn man(args: &ManArgs, command: &clap::Command) -> Done {
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
