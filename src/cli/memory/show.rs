//! `memctl show`: one record as it is stored.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, clean, plural};
use crate::model::{CANDIDATE, mark};
use crate::notes::{self, ShowReport};

/// Show one record as stored
///
/// Secrets are redacted. Ids of remote records and of the user store work too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl show REFL-003\n  memctl show latest")]
pub(crate) struct ShowArgs {
    /// Record id, a prefix of one, or `latest` for the newest execution
    id: String,
}

pub(crate) fn show(context: &Context, args: &ShowArgs) -> Done {
    let report = notes::show(&context.workspace_of_user(None)?, &args.id)?;
    Ok(Box::new(report))
}

impl Report for ShowReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        if let Some(mark) = mark(self.status.as_deref(), self.source.as_deref()) {
            let waits = self.status.as_deref() == Some(CANDIDATE);
            let hint = format!("memctl approve {}", self.id);
            page.styled(&[
                (Style::Warn, mark),
                (Style::Dim, if waits { "  " } else { "" }),
                (Style::Dim, if waits { &hint } else { "" }),
            ]);
        }
        if let Some(retrieved) = &self.retrieved {
            let times = plural(retrieved.times, "time");
            let last = &retrieved.last;
            page.dim(format!("retrieved {times}, last {last}"));
        }
        page.verbatim(&clean(self.record.get()).replace("\n    ", "\n"));
    }
}
