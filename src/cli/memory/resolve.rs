//! `memory resolve`: resolution of merge conflicts in records.

use clap::{ArgGroup, Args};

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::upkeep::merge::{self, ResolveReport, ResolveSide as Side};

/// Resolve a merge conflict in a record
///
/// If both branches set a field to different values, the record keeps the value of the branch that
/// was merged into. The other value is in `merge_conflict`; `memctl doctor` lists it. Use
/// `memctl edit` to set a third value.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("side").required(true),
    after_help = "Examples:\n  memctl memory resolve REFL-003 --theirs\n  \
    memctl memory resolve MEM-007 --ours --field metadata/tone"
)]
pub(crate) struct ResolveArgs {
    /// Record id, or a prefix of one
    id: String,
    /// Keep the value in the record
    #[arg(long, group = "side")]
    ours: bool,
    /// Use the value of the merged branch
    #[arg(long, group = "side")]
    theirs: bool,
    /// Resolve only this field; default: all fields
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
}

pub(crate) fn resolve(context: &Context, args: &ResolveArgs) -> Done {
    let side = if args.theirs {
        Side::Theirs
    } else {
        Side::Ours
    };
    let report = merge::resolve(
        &context.workspace(None)?,
        &args.id,
        side,
        args.field.as_deref(),
    )?;
    Ok(Box::new(report))
}

impl Report for ResolveReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let decided = self.decided.join(", ");
        page.styled(&[
            (Style::Good, "resolved "),
            (Style::Plain, &self.id),
            (Style::Dim, &format!("  {decided}")),
        ]);
        if self.open.is_empty() {
            let file = self.kind.file();
            let hint = format!("if git reports a conflict: git add .agentura/{file}");
            page.dim(&hint);
        } else {
            let open = self.open.join(", ");
            page.warn("unresolved ", &open);
        }
    }
}
