//! `memory conflicts`, `memory resolve`: rules that disagree, and records that two branches changed.

use clap::{ArgGroup, Args};

use crate::cli::context::Context;
use crate::cli::output::page::Page;
use crate::cli::output::text::plural;
use crate::cli::output::{Done, Report, Style};
use crate::model::SkillPath;
use crate::rules;
use crate::rules::{ConflictsReport, MergeReport, RulePair, Separated};
use crate::upkeep::merge;
use crate::upkeep::merge::{ResolveReport, ResolveSide as Side};

/// List related rules, and near ones that nobody has related
///
/// Shows pairs that were found to be the same or contradictory, and rules that are near in meaning.
/// Only `--merge` and `--keep-both` change anything. A merged rule passes its usage counts,
/// corrections and tests on to the kept one. Nothing is deleted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  memctl memory conflicts hr/resume-screen\n  memctl memory conflicts --merge REFL-001 REFL-004\n  \
    memctl memory conflicts --keep-both REFL-001 REFL-004"
)]
pub(crate) struct ConflictsArgs {
    /// Check only the rules of this skill, as `domain/skill`
    #[arg(conflicts_with = "merge")]
    skill: Option<String>,
    /// Merge two rules: KEEP stays active, OTHER stays in the file but leaves prompts
    #[arg(long, num_args = 2, value_names = ["KEEP", "OTHER"])]
    merge: Option<Vec<String>>,
    /// Keep two rules as separate ones, and stop listing them
    #[arg(long, num_args = 2, value_names = ["ID", "OTHER"], conflicts_with_all = ["merge", "skill"])]
    keep_both: Option<Vec<String>>,
}

pub(crate) fn conflicts(context: &Context, args: &ConflictsArgs) -> Done {
    let workspace = context.workspace(None)?;
    if let Some([keep, other]) = args.merge.as_deref() {
        return Ok(Box::new(rules::merge(&workspace, keep, other)?));
    }
    if let Some([rule, other]) = args.keep_both.as_deref() {
        return Ok(Box::new(rules::keep_both(&workspace, rule, other)?));
    }
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let bar = context.printer.bar("rules");
    let report = rules::conflicts(&workspace.store, skill.as_ref(), &mut |done, of| {
        bar.reach(done, of);
    });
    drop(bar);
    Ok(Box::new(report?))
}

impl Report for ConflictsReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let mut part = |name: &str, pairs: &[RulePair]| {
            for pair in pairs {
                page.warn(name, format!(" {}: {}", pair.skill, pair.reason));
                page.field(&pair.a, &pair.text_a);
                page.field(&pair.b, &pair.text_b);
            }
        };
        part("contradiction", &self.contradictions);
        part("duplicate", &self.duplicates);
        part("near", &self.near);
        let all = || {
            self.contradictions
                .iter()
                .chain(&self.duplicates)
                .chain(&self.near)
        };
        if all().next().is_none() {
            let rules = plural(self.rules as u64, "rule");
            page.line(format!("No related or near rules among {rules}."));
            return;
        }
        if let Some(RulePair { a, b, .. }) = all().next() {
            let keep = format!("to keep both: memctl memory conflicts --keep-both {a} {b}");
            page.dim(&keep);
        }
        if let Some(RulePair { a, b, .. }) = self.duplicates.iter().chain(&self.near).next() {
            let merge = format!("to merge two rules: memctl memory conflicts --merge {a} {b}");
            page.dim(&merge);
        }
        page.dim("to delete a rule: memctl forget ID");
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
