//! Decisions of a person about rules: two are merged or kept apart.
//!
//! In a merge, the kept rule takes over the evidence, corrections and tests of the other one. The result is
//! the same as if each correction had been recognised as a repetition. A merge that would lose patterns is refused.
//! The other rule stays in the file and names the kept rule as its successor. One write changes both.
//!
//! Out of scope: merging texts. A user who wants parts of both edits the kept rule.

use serde::Serialize;
use serde_json::json;

use crate::model::{CallPattern, Evidence, Kind, Reflexion, RelatedRule, RuleRelation};
use crate::rules::in_use::why_unused;
use crate::rules::place::changes::{add_receipts, judged_relation, superseded, update_rules};
use crate::rules::place::corrected_again;
use crate::store::workspace::{Error, Workspace, locate, repair_warnings};

/// Outcome of [`merge()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct MergeReport {
    /// Id of the rule that stays in force.
    pub kept: String,
    /// Id of the rule that it replaces.
    pub merged: String,
    /// Combined evidence of both rules.
    pub evidence: Evidence,
    /// Guardrail files that the merged rule was removed from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
    /// Points for a person to review, and non-fatal problems.
    pub warnings: Vec<String>,
}

/// Merges a rule into another of the same skill, both given by id or id prefix.
pub fn merge(workspace: &Workspace, keep: &str, other: &str) -> Result<MergeReport, Error> {
    let keep = rule_id(workspace, keep)?;
    let other = rule_id(workspace, other)?;
    let refused = |reason: String| {
        let message = format!("`{other}` cannot be merged into `{keep}`: {reason}");
        Error::input(message, "memctl memory conflicts")
    };
    if keep == other {
        return Err(refused("it is the same rule".to_owned()));
    }
    let mut writer = workspace.writer()?;
    let before: Reflexion = writer.store().get(&keep)?;
    let mut kept = before.clone();
    let merged: Reflexion = writer.store().get(&other)?;
    if kept.skill != merged.skill {
        return Err(refused(format!(
            "one is a rule of `{}`, the other of `{}`",
            merged.skill, kept.skill
        )));
    }
    for rule in [&kept, &merged] {
        if let Some(reason) = why_unused(rule) {
            return Err(refused(format!(
                "`{}` is not in use: {reason}",
                rule.reflexion_id
            )));
        }
    }
    let mut warnings = Vec::new();
    let found = judged_relation(&kept, &merged);
    let found = found.filter(|found| found.relation == RuleRelation::Contradicts);
    let agrees = found.is_none();
    if let Some(found) = found {
        warnings.push(format!(
            "`{keep}` and `{other}` contradict each other: {}; `{keep}` holds now",
            found.reason
        ));
    }
    // Patterns of a rule that it contradicts would speak where the kept one is obeyed. Others would be lost.
    if agrees && !covers_calls(&kept, &merged) {
        let message = format!(
            "`{keep}` has not all patterns and the answer of `{other}`, which would act at no call"
        );
        let hint = if covers_calls(&merged, &kept) {
            format!("memctl memory conflicts --merge {other} {keep}")
        } else {
            format!("memctl memory conflicts --keep-both {keep} {other}")
        };
        return Err(Error::input(message, hint));
    }
    let counts = [
        merged.times_told, merged.times_heeded, merged.times_recurred, merged.times_overridden,
    ];
    add_receipts(&mut kept, counts.map(Option::unwrap_or_default));
    kept.take_over(&merged);
    for correction in std::iter::once(&merged.correction_id).chain(&merged.also_corrected_by) {
        corrected_again(&mut kept, correction, true);
    }
    let replaced = superseded(&merged, &keep);
    update_rules(
        &mut writer,
        &[(before, kept.clone()), (merged.clone(), replaced)],
    )?;
    warnings.extend(repair_warnings(writer.take_repairs()));
    let guardrails = workspace.change_guardrail(&mut writer, &merged, None, &mut warnings);
    Ok(MergeReport {
        evidence: kept.evidence(),
        kept: keep,
        merged: other,
        guardrails,
        warnings,
    })
}

/// Returns `true` if a rule acts at all calls that another one acts at, with an answer as strict.
fn covers_calls(rule: &Reflexion, other: &Reflexion) -> bool {
    let has = |pattern: &CallPattern| rule.seen_by.contains(pattern);
    other.seen_by.is_empty() || other.seen_by.iter().all(has) && rule.action >= other.action
}

/// Outcome of [`keep_both()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Separated {
    /// Id of the rule that holds the decision.
    pub rule: String,
    /// Id of the other rule.
    pub other: String,
}

/// Notes that two rules are separate, both given by id or id prefix. They are no longer listed as a
/// duplicate or a contradiction.
pub fn keep_both(workspace: &Workspace, rule: &str, other: &str) -> Result<Separated, Error> {
    let rule = rule_id(workspace, rule)?;
    let other = rule_id(workspace, other)?;
    let mut writer = workspace.writer()?;
    let mut record: Reflexion = writer.store().get(&rule)?;
    record.relations.retain(|related| related.id != other);
    record.relations.push(RelatedRule {
        id: other.clone(),
        relation: RuleRelation::Unrelated,
        reason: String::new(),
        by: "user".to_owned(),
    });
    let changes = [("relations", json!(record.relations))];
    writer.update(Kind::Reflexion, &rule, &changes)?;
    Ok(Separated { rule, other })
}

/// Returns the id of a rule, given by id or id prefix.
pub(crate) fn rule_id(workspace: &Workspace, id: &str) -> Result<String, Error> {
    let (kind, id) = locate(&workspace.store, id)?;
    if kind == Kind::Reflexion {
        return Ok(id);
    }
    let message = format!("`{id}` is a {}, not a rule", kind.noun());
    Err(Error::input(message, "memctl list rules"))
}
