//! `memctl forget`: the removal of one record.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report};
use crate::model::{USER_STORE, with_origin};
use crate::upkeep::{self, ForgetReport};

/// Delete a record, and do not learn its content again
///
/// A rule takes its guardrail and its generated tests along, unless a person has edited them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl forget REFL-003\n  memctl forget MEM-001 --for-good")]
pub(crate) struct ForgetArgs {
    /// Record id, or a prefix of one
    id: String,
    /// Delete the record permanently: `memctl undo` cannot restore it
    #[arg(long)]
    for_good: bool,
}

pub(crate) fn forget(context: &Context, args: &ForgetArgs) -> Done {
    let (workspace, id) = context.workspace_of_id(&args.id)?;
    let mut report = upkeep::forget(&workspace, &id, args.for_good)?;
    if id != args.id {
        report.id = with_origin(&report.id, USER_STORE);
        context.note_change_of_user_store();
    }
    Ok(Box::new(report))
}

impl Report for ForgetReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.good("forgotten ", &self.id);
        page.field(self.kind.noun(), &self.summary);
        for (name, files) in [
            ("guardrail", &self.files.guardrails),
            ("tests", &self.files.tests),
        ] {
            if !files.is_empty() {
                page.field(name, &format!("removed from {}", files.join(", ")));
            }
        }
    }
}
