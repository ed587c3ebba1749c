//! `memory conflicts`, `memory resolve`: rules that disagree, and records that two branches changed.

use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style};
use crate::cli::review::queue;
use crate::model::SkillPath;
use crate::review::queue::{NEAREST, Waiting, WaitingKind};
use crate::rules;
use crate::rules::{MergeReport, Separated};
use crate::upkeep::merge;
use crate::upkeep::merge::{ResolveReport, ResolveSide as Side};

/// List related rules, and near ones that nobody has related
///
/// Shows the pairs of rules that wait in `review`. Only `--merge` and `--keep-both` change anything. A merged
/// rule passes its usage counts, corrections and tests on to the kept one. Nothing is deleted.
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
    let queue = queue(context, skill.as_ref())?;
    let mut related = Related {
        warnings: queue.warnings,
        ..Related::default()
    };
    for waiting in queue.waiting {
        let Some(pair) = RulePair::of(&waiting) else {
            continue;
        };
        let pairs = match waiting.kind {
            WaitingKind::Contradiction => &mut related.contradictions,
            _ if pair.reason.starts_with(NEAREST) => &mut related.near,
            _ => &mut related.duplicates,
        };
        pairs.push(pair);
    }
    Ok(Box::new(related))
}

/// Pairs of rules in use.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub(crate) struct Related {
    /// Rules that a model or a person found to be the same, or with the same words.
    duplicates: Vec<RulePair>,
    /// Rules that a model or a person found to contradict each other.
    contradictions: Vec<RulePair>,
    /// Rules that are near in meaning, and that nobody has related.
    near: Vec<RulePair>,
    /// Non-fatal problems.
    warnings: Vec<String>,
}

/// Pair of rules.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct RulePair {
    /// Id of the older rule.
    a: String,
    /// Id of the newer rule.
    b: String,
    /// Evidence for the finding.
    reason: String,
    /// Text of the older rule.
    text_a: String,
    /// Text of the newer rule.
    text_b: String,
}

impl RulePair {
    /// Returns the pair that an entry of the queue is about; `None` for another entry.
    fn of(waiting: &Waiting) -> Option<Self> {
        let text = |name: &str| waiting.text(name).unwrap_or_default().to_owned();
        Some(Self {
            a: waiting.id.clone(),
            b: waiting.other.clone()?,
            reason: waiting.reason.clone(),
            text_a: text("older"),
            text_b: text("newer"),
        })
    }
}

impl Report for Related {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let kinds = [
            ("contradiction ", &self.contradictions),
            ("duplicate ", &self.duplicates),
            ("near ", &self.near),
        ];
        for (name, pairs) in kinds {
            for pair in pairs {
                page.warn(name, &pair.reason);
                page.field(&pair.a, &pair.text_a);
                page.field(&pair.b, &pair.text_b);
            }
        }
        let first = kinds.into_iter().find_map(|(_, pairs)| pairs.first());
        match first {
            None => page.line("No related or near rules."),
            Some(RulePair { a, b, .. }) => page.dim(format!(
                "to keep both: memctl memory conflicts --keep-both {a} {b}\n\
                 to merge two rules: memctl memory conflicts --merge {a} {b}"
            )),
        }
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
