//! `memory pin`: keeps a rule from being retired.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::rules::{self, PinReport};

/// Keep a rule from being retired by its evidence
///
/// A rule whose utility sinks below 0.3 after five outcomes leaves the prompt. A pinned one stays,
/// and one that has left comes back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory pin REFL-003\n  memctl memory pin REFL-003 --remove"
)]
pub(crate) struct PinArgs {
    /// Rule id, or a prefix of one
    id: String,
    /// Remove the pin
    #[arg(long)]
    remove: bool,
}

pub(crate) fn pin(context: &Context, args: &PinArgs) -> Done {
    let workspace = context.workspace(None)?;
    Ok(Box::new(rules::pin(&workspace, &args.id, !args.remove)?))
}

impl Report for PinReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let (style, done) = if self.pinned {
            (Style::Good, "pinned")
        } else {
            (Style::Warn, "no longer pinned")
        };
        let what = format!(" {} ({})", self.id, self.status);
        page.styled(&[(style, done), (Style::Plain, &what)]);
        page.field("rule", &self.rule);
    }
}
