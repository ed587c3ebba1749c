//! `memory resolve`: decides what a merge of two branches has left open.

use clap::{ArgGroup, Args};

use crate::engine::{ResolveReport, Side};

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style};

/// Decide what a merge of two branches has left open in a record
///
/// Where both branches have set a field to different values, the record keeps the one of the branch that
/// was merged into, and the other one beside it in `merge_conflict`; `memctl doctor` names it. `memory edit`
/// says something else altogether.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("side").required(true),
    after_help = "Examples:\n  memctl memory resolve REFL-003 --theirs\n  \
    memctl memory resolve MEM-007 --ours --field metadata/tone"
)]
pub(super) struct ResolveArgs {
    /// The record: an id or the beginning of one
    id: String,
    /// Keep the value that stands in the record
    #[arg(long, group = "side")]
    ours: bool,
    /// Take the value of the branch that came
    #[arg(long, group = "side")]
    theirs: bool,
    /// Only this field; all of them where it is not said
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
}

pub(super) fn resolve(context: &Context, args: &ResolveArgs) -> Result<Box<dyn Report>, CliError> {
    let side = if args.theirs {
        Side::Theirs
    } else {
        Side::Ours
    };
    let report = context
        .engine(None)?
        .resolve(&args.id, side, args.field.as_deref())?;
    Ok(Box::new(report))
}

impl Report for ResolveReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let decided = self.decided.join(", ");
        page.styled(&[
            (Style::Good, "decided "),
            (Style::Plain, &self.id),
            (Style::Dim, &format!("  {decided}")),
        ]);
        if self.open.is_empty() {
            let file = self.kind.file();
            let hint = format!("where git waits for it: git add .agentura/{file}");
            page.styled(&[(Style::Dim, &hint)]);
        } else {
            let open = self.open.join(", ");
            page.styled(&[(Style::Warn, "still open "), (Style::Plain, &open)]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
