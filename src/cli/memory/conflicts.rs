//! `memory conflicts`, `memory resolve`: decisions about two rules, and about a record that two branches changed.

use clap::{ArgGroup, Args};

use crate::cli::context::Context;
use crate::cli::output::page::Page;
use crate::cli::output::{Done, Report, Style};
use crate::model::error::UserError;
use crate::rules;
use crate::rules::{MergeReport, Separated};
use crate::upkeep::merge;
use crate::upkeep::merge::{ResolveReport, ResolveSide as Side};

/// Merge two rules, or keep both apart
///
/// `memctl review` lists rules that contradict each other or are near in meaning. A merged rule passes its
/// usage counts, corrections and tests on to the kept one. Nothing is deleted.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("decision").required(true),
    after_help = "Examples:\n  memctl memory conflicts --merge REFL-001 REFL-004\n  \
    memctl memory conflicts --keep-both REFL-001 REFL-004"
)]
pub(crate) struct ConflictsArgs {
    /// Merge two rules: KEEP stays active, OTHER stays in the file but leaves prompts
    #[arg(long, group = "decision", num_args = 2, value_names = ["KEEP", "OTHER"])]
    merge: Option<Vec<String>>,
    /// Keep two rules as separate ones: `review` does not list them again
    #[arg(long, group = "decision", num_args = 2, value_names = ["ID", "OTHER"])]
    keep_both: Option<Vec<String>>,
}

pub(crate) fn conflicts(context: &Context, args: &ConflictsArgs) -> Done {
    let workspace = context.workspace(None)?;
    match (args.merge.as_deref(), args.keep_both.as_deref()) {
        (Some([keep, other]), _) => Ok(Box::new(rules::merge(&workspace, keep, other)?)),
        (_, Some([rule, other])) => Ok(Box::new(rules::keep_both(&workspace, rule, other)?)),
        _ => Err(UserError::usage("two rules are needed", "memctl review")),
    }
}

impl Report for Separated {
    fn page(&self, page: &mut Page) {
        let both = format!(" {} and {}", self.rule, self.other);
        page.good("kept both", &both);
    }
}

impl Report for MergeReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.good("merged", format!(" {} into {}", self.merged, self.kept));
        page.field(&self.kept, &self.rule);
        let evidence = self.evidence;
        page.field(
            "evidence",
            &format!(
                "shown {}, helped {}, harmed {}",
                evidence.shown, evidence.helped, evidence.harmed
            ),
        );
        if !self.guardrails.is_empty() {
            let files = self.guardrails.join(", ");
            page.field("guardrail", &format!("removed from {files}"));
        }
        let why = format!("to see its history: memctl why {}", self.merged);
        page.dim(&why);
    }
}

/// Resolve a merge conflict in a record
///
/// If both branches set a field to different values, the record keeps the value of the branch that
/// was merged into. The other value is in `merge_conflict`; `memctl doctor` lists it. Use
/// `memctl edit` to set a third value.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("side").required(true),
    after_help = "Examples:\n  memctl memory resolve REFL-003 --theirs\n  \
    memctl memory resolve MEM-007 --ours"
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
}

pub(crate) fn resolve(context: &Context, args: &ResolveArgs) -> Done {
    let side = if args.theirs {
        Side::Theirs
    } else {
        Side::Ours
    };
    let report = merge::resolve(&context.workspace(None)?, &args.id, side)?;
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
        let file = self.kind.file();
        page.dim(format!(
            "if git reports a conflict: git add .agentura/{file}"
        ));
    }
}
