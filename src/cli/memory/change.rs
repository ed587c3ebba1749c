//! `edit`, `forget`, `memory conflicts`, `memory resolve`: changes of records by hand, their removal, and
//! contradictions between two records or two branches.

use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::cli::ask::in_editor;
use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report};
use crate::cli::review::queue;
use crate::model::error::UserError;
use crate::model::{Reflexion, SkillPath, USER_STORE, with_origin};
use crate::review::queue::WaitingKind;
use crate::review::{self, EditReport};
use crate::rules::{self, MergeReport, Separated};
use crate::store::Selection;
use crate::upkeep::merge::{self, ResolveReport, ResolveSide as Side};
use crate::upkeep::{self, ForgetReport};

/// Change the text of a record
///
/// Without a text, on a terminal, opens the text of the record in the editor. Other fields, including
/// those that other programs added, keep every byte. A rule or a lesson with a new text loses the
/// results of its tests, its usage counts and its receipts. A rule that you let act on calls goes on to.
///
/// ```console
/// $ memctl edit REFL-001
/// $ memctl edit REFL-001 "Escalate tickets that mention an audit."
/// $ memctl edit REFL-001 --set confidence=0.9 \
///     --set "rule=When a ticket mentions an audit, ALWAYS escalate."
/// $ memctl edit MEM-002 --set expires_at=30d --set metadata='{"tone": ["calm"]}'
/// ```
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Record id, a prefix of one, or `latest` for the newest execution
    id: String,
    /// New text of the record: of a rule its rule, of a note its content; `-` reads standard input
    #[arg(conflicts_with = "set", allow_hyphen_values = true)]
    text: Option<String>,
    /// Field and its new value; `-` as the value reads standard input
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

fn assignment(given: &str) -> Result<(String, String), &'static str> {
    let (name, value) = given.split_once('=').ok_or("expected FIELD=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(crate) fn edit(context: &Context, args: &EditArgs) -> Done<EditReport> {
    let (workspace, id) = context.workspace_of_id(&args.id)?;
    let mut given = Vec::new();
    for (name, value) in &args.set {
        given.push((name.clone(), context.text(value)?));
    }
    if given.is_empty() {
        let draft = review::draft(&workspace, &id)?;
        match &args.text {
            Some(text) => given.push((draft.field.to_owned(), context.text(text)?)),
            None if context.is_interactive() => {
                return in_editor(context, &workspace, &draft);
            }
            None => {
                return Err(UserError::usage(
                    "nothing to change",
                    format!("memctl edit {} --set {}=…", draft.id, draft.field),
                ));
            }
        }
    }
    let mut report = review::edit(&workspace, &id, &given)?;
    report.id = context.id_of(&args.id, report.id);
    Ok(report)
}

impl Report for EditReport {
    fn page(&self, page: &mut Page) {
        if self.changed.is_empty() {
            page.line(format!("{} is unchanged.", self.id));
            return;
        }
        page.good("edited ", &self.id);
        self.now
            .iter()
            .for_each(|(name, text)| page.field(name, text));
        if !self.patterns.is_empty() {
            let patterns = self.patterns.join("`, `");
            let off = format!("memctl approve {} --action off", self.id);
            page.dim(format!(
                "it acts at calls as before (`{patterns}`); to end that: {off}"
            ));
        }
        page.list("guardrail", &self.guardrails);
        if !self.reset.is_empty() {
            page.dim(format!("reset: {}", self.reset.join(", ")));
        }
    }
}

/// Delete a record, and do not learn its content again
///
/// A rule takes its guardrail and its generated tests along, unless a person has edited them.
///
/// ```console
/// $ memctl forget REFL-003
/// $ memctl forget MEM-001 --for-good
/// ```
#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// Record id, or a prefix of one
    id: String,
    /// Delete the record permanently: `memctl undo` cannot restore it
    #[arg(long)]
    for_good: bool,
}

pub(crate) fn forget(context: &Context, args: &ForgetArgs) -> Done<ForgetReport> {
    let (workspace, id) = context.workspace_of_id(&args.id)?;
    let mut report = upkeep::forget(&workspace, &id, args.for_good)?;
    report.id = if args.for_good && id != args.id {
        with_origin(&report.id, USER_STORE)
    } else {
        context.id_of(&args.id, report.id)
    };
    Ok(report)
}

impl Report for ForgetReport {
    fn page(&self, page: &mut Page) {
        page.result("forgotten", &self.id, self);
    }
}

/// List related rules, and near ones that nobody has related
///
/// Shows the pairs of rules that wait in `review`, and those near in meaning among the newest 300. Only `--merge` and `--keep-both` change anything. A merged
/// rule passes its counts, receipts, corrections and tests on to the kept one. Nothing is deleted, and a merge that would
/// lose patterns is refused.
///
/// ```console
/// $ memctl memory conflicts hr/resume-screen
/// $ memctl memory conflicts --merge REFL-001 REFL-004
/// $ memctl memory conflicts --keep-both REFL-001 REFL-004
/// ```
#[derive(Debug, Args)]
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
    for waiting in &queue.waiting {
        let pairs = match waiting.kind {
            WaitingKind::Contradiction => &mut related.contradictions,
            _ => &mut related.duplicates,
        };
        let text = |name: &str| waiting.text(name).unwrap_or_default().to_owned();
        pairs.extend(waiting.other.clone().map(|other| RulePair {
            a: waiting.id.clone(),
            b: other,
            reason: waiting.reason.clone(),
            text_a: text("older"),
            text_b: text("newer"),
        }));
    }
    let of_skill = Selection::of(skill.as_ref());
    let found = workspace.store.list::<Reflexion>(&of_skill)?.records;
    let near = |(score, older, newer): (f64, &Reflexion, &Reflexion)| RulePair {
        a: older.reflexion_id.clone(),
        b: newer.reflexion_id.clone(),
        reason: format!("nearest to each other, similarity {score:.2}"),
        text_a: older.rule.clone(),
        text_b: newer.rule.clone(),
    };
    match rules::near_pairs(&found) {
        Ok(pairs) => related.near.extend(pairs.into_iter().map(near)),
        Err(error) => related
            .warnings
            .push(format!("near rules were not looked up: {error}")),
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
    /// Rules that are near in meaning, and that nobody has related: of the newest 300.
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

impl Report for Related {
    fn page(&self, page: &mut Page) {
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
        let Some(RulePair { a, b, .. }) = first else {
            return page.line("No related or near rules.");
        };
        // Of two that may say different things the newer correction wins.
        let is_same = self.contradictions.is_empty() && !self.duplicates.is_empty();
        let (keep, other) = if is_same { (a, b) } else { (b, a) };
        page.dim(format!(
            "to keep both: memctl memory conflicts --keep-both {a} {b}\n\
             to merge two rules: memctl memory conflicts --merge {keep} {other}"
        ));
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
        page.result("merged", &self.merged, self);
        page.dim(format!("to see its history: memctl why {}", self.merged));
    }
}

/// Resolve a merge conflict in a record
///
/// If both branches set a field to different values, the record keeps the value of the branch that
/// was merged into. The other value is in `merge_conflict`; `memctl doctor` lists it. Use
/// `memctl edit` to set a third value.
///
/// ```console
/// $ memctl memory resolve REFL-003 --theirs
/// $ memctl memory resolve MEM-007 --ours
/// ```
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("side").required(true))]
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

pub(crate) fn resolve(context: &Context, args: &ResolveArgs) -> Done<ResolveReport> {
    let side = if args.theirs {
        Side::Theirs
    } else {
        Side::Ours
    };
    Ok(merge::resolve(&context.workspace(None)?, &args.id, side)?)
}

impl Report for ResolveReport {
    fn page(&self, page: &mut Page) {
        page.result("resolved", &self.id, self);
        page.dim(format!(
            "if git reports a conflict: git add .agentura/{}",
            self.kind.file()
        ));
    }
}
