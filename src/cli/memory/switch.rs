//! `memory enable` and `memory disable`.

use clap::Args;
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::off::Off;
use crate::cli::output::{Done, Page, Report};
use crate::model::error::UserError;
use crate::model::{Scope, Viewer};
use crate::store::Scoped;

/// Switch memory on
///
/// With `--user`, for this user only.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl memory enable\n  memctl memory enable --user ada")]
pub(crate) struct EnableArgs {}

/// Switch memory off: nothing is read, written or lost
///
/// `run` works without rules and records nothing. Hooks and `hint` print nothing. Other commands
/// report that memory is off; `memory status`, `export`, `purge` and `enable` work. The switch is
/// the file `.agentura/disabled`. `MEMCTL_MEMORY=off` does the same for one process.
///
/// With `--user`, calls of this user read and write nothing, here and at `memctl serve`. Others see no
/// difference.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory disable\n  memctl memory disable --user ada\n  \
        MEMCTL_MEMORY=off memctl run hr/resume-screen"
)]
pub(crate) struct DisableArgs {}

pub(crate) fn enable(context: &Context, _args: &EnableArgs) -> Done {
    switch(context, false)
}

pub(crate) fn disable(context: &Context, _args: &DisableArgs) -> Done {
    switch(context, true)
}

fn switch(context: &Context, is_disabled: bool) -> Done {
    // The switch for everybody needs no settings, so that unreadable settings do not block it.
    let Some(user) = context.given_user() else {
        let store = Scoped::new(&context.places.memory, Scope::All);
        let changed = if is_disabled {
            store.disable()?
        } else {
            store.enable()?
        };
        return Ok(Box::new(SwitchReport::of(context, changed, None)));
    };
    let config = context.config(&[])?;
    let Viewer::User(user) = config.viewer()? else {
        return Err(UserError::usage(
            format!("`{user}` is no user"),
            "memctl memory disable --user ID",
        ));
    };
    let store = context.store(&config)?.even_if_disabled();
    if !store.directory().is_there() {
        return Err(UserError::usage("no memory found", "memctl init"));
    }
    let changed = store.switch_user(&user, is_disabled)?;
    Ok(Box::new(SwitchReport::of(
        context,
        changed,
        Some(user.to_string()),
    )))
}

/// State of the switch.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SwitchReport {
    /// `true` if memory is now on, for this process.
    enabled: bool,
    /// `true` if this call created or removed the marker.
    changed: bool,
    /// The user that it is for; `None` for everybody.
    user: Option<String>,
    directory: String,
    warnings: Vec<String>,
}

impl SwitchReport {
    fn of(context: &Context, changed: bool, user: Option<String>) -> Self {
        let off = Off::of(&context.environment, &context.places, user.as_deref());
        let warnings = match &off {
            Some(off @ Off::Variable(_)) => vec![format!("{off}; {}", off.hint())],
            _ => Vec::new(),
        };
        Self {
            enabled: off.is_none(),
            changed,
            user,
            directory: context.places.memory.display().to_string(),
            warnings,
        }
    }
}

impl Report for SwitchReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let already = if self.changed { "" } else { " already" };
        let user = self.user.as_ref();
        let whom = user.map(|user| format!(" for the user `{user}`"));
        let whom = whom.unwrap_or_default();
        let line = if self.enabled {
            format!("Memory is on{whom}{already}.")
        } else {
            format!("Memory is off{whom}{already}: it is not read or written.")
        };
        page.line(line);
        page.dim(&self.directory);
    }
}
