//! Messages of the parser: help and versions are results, everything else is wrong usage.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::output::Printer;
use super::{program, suggest, written};
use crate::model::error::{Kind, UserError};

/// Prints help and versions as results, and every other message of clap as wrong usage.
pub(super) fn refuse(error: &clap::Error, arguments: &[OsString], plain: bool) -> ExitCode {
    let printer = Printer::new(arguments.iter().any(|a| a == "--json"), false, plain);
    if !error.use_stderr() {
        let text = error.render();
        printer.write(&if plain {
            text.to_string()
        } else {
            styled(&text)
        });
        return ExitCode::from(written(&printer).unwrap_or(0));
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        if !printer.is_json() {
            printer.note(&text);
        }
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
        let hint = usage.map_or("memctl --help".to_owned(), |usage| {
            format!("usage: {usage}")
        });
        printer.error(&UserError::usage("a command is required", hint));
        return ExitCode::from(Kind::Usage.code());
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        printer.error(&unknown_command(typed));
        return ExitCode::from(Kind::Usage.code());
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim();
    // The message keeps clap's suggestions; the hint only adds the usage.
    let (message, usage) = text.split_once("\n\nUsage:").unwrap_or((text, ""));
    let usage = usage.split("\n\n").next().unwrap_or_default().trim();
    let hint = if usage.is_empty() {
        "memctl --help".to_owned()
    } else {
        format!("usage: {usage}")
    };
    printer.error(&UserError::usage(message.trim(), hint));
    ExitCode::from(Kind::Usage.code())
}

/// Error for a command that does not exist, with those that may be meant.
fn unknown_command(typed: &str) -> UserError {
    let meant = suggest::meant(&program(), typed);
    let hint = if meant.is_empty() {
        "memctl help --all".to_owned()
    } else {
        format!(
            "did you mean {}?",
            meant
                .iter()
                .map(|path| format!("`{path}`"))
                .collect::<Vec<_>>()
                .join(" or ")
        )
    };
    UserError::usage(format!("no command `{}`", typed.escape_debug()), hint)
}

fn styled(text: &clap::builder::StyledStr) -> String {
    use std::io::IsTerminal as _;
    if std::io::stdout().is_terminal() {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}
