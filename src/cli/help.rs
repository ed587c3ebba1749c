//! `help`: help of a command, or the list of all commands.

use clap::{Args, Command};

use super::groups::grouped;
use super::output::{Done, Verbatim};
use super::suggest::meant;
use crate::model::error::UserError;

/// Show the help of a command, or all commands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl help --all\n  memctl help memory export")]
pub(super) struct HelpArgs {
    /// Command, as words
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// List every command with its subcommands
    #[arg(long)]
    all: bool,
}

pub(super) fn help(args: &HelpArgs, program: Command) -> Done {
    let mut program = grouped(program, args.all);
    program.build();
    let mut command = &mut program;
    for word in &args.command {
        if command.find_subcommand(word).is_none() {
            let similar = meant(command, word);
            let hint = similar.first().map_or("help --all", |path| path.as_str());
            let hint = format!("memctl {}", hint.trim_start_matches("memctl "));
            return Err(UserError::usage(format!("no command `{word}`"), hint));
        }
        command = command
            .find_subcommand_mut(word)
            .ok_or_else(|| UserError::usage(format!("no command `{word}`"), "memctl help --all"))?;
    }
    let text = command.render_long_help().to_string();
    Ok(Box::new(Verbatim::new(text)))
}
