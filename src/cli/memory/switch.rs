//! `memory enable` and `memory disable`.

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::off::Off;
use crate::cli::output::{Page, Report, Style};
use crate::error::UserError;
use crate::model::Scope;
use crate::store::Scoped;

/// Switch memory on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory enable\n  memctl memory enable --json")]
pub(in crate::cli) struct EnableArgs {}

/// Switch memory off: nothing is read, written or lost
///
/// `run` works without rules and records nothing. Hooks and `hint` print nothing. Other commands
/// report that memory is off; `memory status`, `export`, `purge` and `enable` work. The switch is
/// the file `.agentura/disabled`. `MEMCTL_MEMORY=off` does the same for one process.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory disable\n  MEMCTL_MEMORY=off memctl run hr/resume-screen"
)]
pub(in crate::cli) struct DisableArgs {}

pub(in crate::cli) fn enable(
    context: &Context,
    _args: &EnableArgs,
) -> Result<Box<dyn Report>, UserError> {
    let changed = store(context).enable()?;
    Ok(Box::new(SwitchReport::of(context, changed)))
}

pub(in crate::cli) fn disable(
    context: &Context,
    _args: &DisableArgs,
) -> Result<Box<dyn Report>, UserError> {
    let changed = store(context).disable()?;
    Ok(Box::new(SwitchReport::of(context, changed)))
}

/// The switch needs no settings, so that unreadable settings do not block it.
fn store(context: &Context) -> Scoped {
    Scoped::new(&context.places.memory, Scope::All)
}

/// State of the switch.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cli) struct SwitchReport {
    /// `true` if memory is now on, for this process.
    enabled: bool,
    /// `true` if this call created or removed the marker.
    changed: bool,
    directory: String,
    warnings: Vec<String>,
}

impl SwitchReport {
    fn of(context: &Context, changed: bool) -> Self {
        let off = Off::of(&context.environment, &context.places);
        let warnings = match &off {
            Some(off @ Off::Variable(_)) => vec![format!("{off}; {}", off.hint())],
            _ => Vec::new(),
        };
        Self {
            enabled: off.is_none(),
            changed,
            directory: context.places.memory.display().to_string(),
            warnings,
        }
    }
}

impl Report for SwitchReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let already = if self.changed { "" } else { " already" };
        let line = if self.enabled {
            format!("Memory is on{already}.")
        } else {
            format!("Memory is off{already}: it is not read or written.")
        };
        page.line(line);
        page.styled(&[(Style::Dim, &self.directory)]);
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
