//! Third stage: adds the rule to those of its skill, with its guardrail and its tests.

use serde::Serialize;
use serde_json::json;

use super::reflection::Worded;
use super::storage::Stored;
use crate::model::error::message as chain;
use crate::model::{
    AGENT, Correction, Kind, Record as _, Reflexion, RelatedRule, RuleRelation, SkillPath, Trust,
};
use crate::rules::RuleFiles;
use crate::rules::in_use::suspicion;
use crate::rules::place::activation::{adopt, write_files};
use crate::rules::place::changes::{Conflict, conflicts_of};
use crate::rules::place::neighbours::{FLOOR, SimilarRule, nearest};
use crate::rules::place::{Placed, place_rule};
use crate::rules::reflect::{Draft, ONE_OUTPUT, Reflection};
use crate::store::workspace::{Error, Workspace, dollars};
use crate::store::{Scoped, Selection};

/// Adds the rule, unless there is none or it was deleted on purpose.
pub(super) fn place(
    workspace: &Workspace,
    stored: Stored,
    worded: Worded,
) -> Result<CorrectReport, Error> {
    let cost_usd = worded.cost_usd.map(dollars);
    let by = worded.by.clone();
    let (confidence, not_learned) = match worded.reflection {
        Reflection::Rule(draft) => match refused(&workspace.store, &draft)?
            .filter(|_| stored.options.by_agent || !stored.options.is_rule)
        {
            None => {
                let report = place_draft(workspace, stored, draft, &by, &worded.related)?;
                return Ok(CorrectReport { cost_usd, ..report });
            }
            Some(reason) => (draft.confidence, reason),
        },
        Reflection::Nothing { reason, confidence } => (confidence, reason),
    };
    Ok(CorrectReport {
        confidence,
        distilled_by: by,
        not_learned: Some(not_learned),
        cost_usd,
        ..report(&stored.correction, None, stored.warnings)
    })
}

fn place_draft(
    workspace: &Workspace,
    mut stored: Stored,
    draft: Draft,
    by: &str,
    related: &[RelatedRule],
) -> Result<CorrectReport, Error> {
    let doubt = draft.doubt;
    add_assertions(workspace, &mut stored.correction, &draft)?;
    let (mut rule, placed) = place_rule(
        workspace, &stored.correction, draft, by, related, stored.options.by_agent,
        &mut stored.warnings,
    )?;
    stored.warnings.extend(suspicion(&rule));
    // The verdict of the model also holds for a rule that was there before.
    rule.relations.extend_from_slice(related);
    let is_repeated = placed == Placed::Repeated;
    let mut report = finish(workspace, stored, &rule, !is_repeated)?;
    report.similar = similar(workspace, &rule, related, &mut report);
    Ok(CorrectReport {
        duplicate_of: is_repeated.then(|| rule.reflexion_id.clone()),
        was_candidate: placed == Placed::Activated,
        doubt: doubt.filter(|_| rule.is_candidate()),
        related: relations(&workspace.store, related)?,
        ..report
    })
}

/// Handles a repeated correction that already has a rule. From an agent it changes nothing; from a
/// person it approves the agent's correction. A correction that may be about one output only waits until
/// the person says that it is a rule.
pub(super) fn place_again(
    workspace: &Workspace,
    stored: Stored,
    mut rule: Reflexion,
) -> Result<CorrectReport, Error> {
    let by_agent = stored.options.by_agent;
    let is_said = stored.options.is_rule || rule.source == AGENT;
    let was_candidate = rule.is_candidate() && !by_agent && is_said;
    if was_candidate {
        let mut writer = workspace.writer()?;
        adopt(&mut writer, &mut rule, &stored.correction, None)?;
    }
    Ok(CorrectReport {
        was_candidate,
        duplicate_of: (!was_candidate && !by_agent).then(|| rule.reflexion_id.clone()),
        doubt: (rule.is_candidate() && !by_agent).then_some(ONE_OUTPUT),
        ..finish(workspace, stored, &rule, was_candidate)?
    })
}

/// Writes the files of a rule in force, and finds what it contradicts.
fn finish(
    workspace: &Workspace,
    stored: Stored,
    rule: &Reflexion,
    is_new: bool,
) -> Result<CorrectReport, Error> {
    let Stored {
        options,
        execution,
        correction,
        mut warnings,
    } = stored;
    let mut files = RuleFiles::default();
    if !rule.is_candidate() && !options.by_agent {
        let example = execution.as_ref().map(|execution| (&correction, execution));
        files = write_files(workspace, rule, example, is_new, &mut warnings);
    }
    Ok(CorrectReport {
        tests: files.tests,
        needs_judge: files.needs_judge,
        guardrails: files.guardrails,
        conflicts: conflicts_of(&workspace.store, rule)?,
        ..report(&correction, Some(rule), warnings)
    })
}

/// Stores the assertions of a model with the correction, unless the person gave some.
fn add_assertions(
    workspace: &Workspace,
    correction: &mut Correction,
    draft: &Draft,
) -> Result<(), Error> {
    if draft.assertions.is_empty() || !correction.assertions.is_empty() {
        return Ok(());
    }
    correction.assertions.clone_from(&draft.assertions);
    correction.assertions_suffice = draft.assertions_suffice;
    let changes = [
        ("assertions", json!(correction.assertions)),
        ("assertions_suffice", json!(correction.assertions_suffice)),
    ];
    let id = &correction.correction_id;
    workspace.writer()?.update(Kind::Correction, id, &changes)?;
    Ok(())
}

/// Maximum number of similar rules to show.
const SHOWN: usize = 3;

/// Returns the rules of the skill that are nearest to a rule, without those that a model has judged. A search
/// that fails is a warning: the rule is stored.
fn similar(
    workspace: &Workspace,
    rule: &Reflexion,
    related: &[RelatedRule],
    report: &mut CorrectReport,
) -> Vec<SimilarRule> {
    let is_named = |id: &String| {
        *id == rule.reflexion_id
            || related.iter().any(|judged| judged.id == *id)
            || report.conflicts.iter().any(|other| other.id == *id)
    };
    let near = (|| {
        let skill: SkillPath = rule.skill.parse()?;
        let of_skill = Selection::of(&skill);
        let mut rules = workspace.store.list::<Reflexion>(&of_skill)?.records;
        rules.retain(|other| {
            (other.is_in_use() || other.is_candidate()) && !is_named(&other.reflexion_id)
        });
        nearest(&rule.rule, rules, SHOWN)
    })();
    let near = near.unwrap_or_else(|error: Error| {
        let why = chain(&error);
        let warning = format!("similar rules were not looked up: {why}");
        report.warnings.push(warning);
        Vec::new()
    });
    let near = near.into_iter().filter(|(score, _)| *score >= FLOOR);
    near.map(SimilarRule::from).collect()
}

/// Judgements of a model that say more than "unrelated", each with the text of the other rule.
fn relations(store: &Scoped, related: &[RelatedRule]) -> Result<Vec<RelationReport>, Error> {
    let mut found = Vec::new();
    for judged in related {
        if judged.relation == RuleRelation::Unrelated {
            continue;
        }
        if let Some(entry) = store.find(Kind::Reflexion, &judged.id)? {
            let other = entry.parse::<Reflexion>();
            found.push(RelationReport {
                id: judged.id.clone(),
                rule: other.map(|other| other.rule).unwrap_or_default(),
                relation: judged.relation,
                reason: judged.reason.clone(),
            });
        }
    }
    Ok(found)
}

/// Returns the reason if the rule was deleted on purpose and may not be learned again.
fn refused(store: &Scoped, draft: &Draft) -> Result<Option<String>, Error> {
    let tombstone = store.tombstone_of(Kind::Reflexion, &draft.rule)?;
    Ok(tombstone.map(|tombstone| {
        let day = tombstone.at.split('T').next().unwrap_or_default();
        format!(
            "this rule was removed on purpose ({} on {day})",
            tombstone.id
        )
    }))
}

/// Result of a correction.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct CorrectReport {
    /// Id of the correction.
    pub correction_id: String,
    /// Id of the corrected execution; `None` without one.
    pub execution_id: Option<String>,
    /// Id of the rule: a new one, or an existing one with the same meaning. `None` if none was
    /// learned.
    pub reflexion_id: Option<String>,
    /// Text of the rule.
    pub rule: Option<String>,
    /// Status of the rule: `active`, or `candidate` if an agent supplied it or it is in doubt.
    pub status: Option<&'static str>,
    /// Trust level of the rule.
    pub trust: Option<Trust>,
    /// True if a person repeated the correction and so turned a candidate into a rule.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_candidate: bool,
    /// Condition under which the rule applies.
    pub applies_when: Option<String>,
    /// Cause of the mistake.
    pub root_cause: Option<String>,
    /// Score from 0 to 1 for how specific and actionable the correction is.
    pub confidence: f64,
    /// Files that hold the regression test.
    pub tests: Vec<String>,
    /// `true` if only a judge decides the test.
    #[serde(skip)]
    pub needs_judge: bool,
    /// Guardrail files that the rule was added to.
    pub guardrails: Vec<String>,
    /// Rules that contradict the new one.
    pub conflicts: Vec<Conflict>,
    /// Rules near the new one, at most three, nearest first: it may repeat, narrow or contradict
    /// them, and a person has to say so. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarRule>,
    /// Existing rules that a model related to the new one, with its reasons. Absent if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelationReport>,
    /// Id of the existing rule with the same meaning.
    pub duplicate_of: Option<String>,
    /// Source of the rule's text: `offline`, or `provider/model`.
    pub distilled_by: String,
    /// Price in US dollars; `None` if the price is not known.
    pub cost_usd: Option<f64>,
    /// Reason why no rule was learned, and how to get one.
    pub not_learned: Option<String>,
    /// Reason why the rule is a candidate until a person says that it is one; absent for a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Existing rule that a model related to the new one.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RelationReport {
    /// Id of the existing rule.
    pub id: String,
    /// Text of the existing rule.
    pub rule: String,
    /// Relation of the new rule to it.
    pub relation: RuleRelation,
    /// Reason of the model.
    pub reason: String,
}

/// Report of a stored correction, with its rule if there is one.
pub(crate) fn report(
    correction: &Correction,
    rule: Option<&Reflexion>,
    warnings: Vec<String>,
) -> CorrectReport {
    CorrectReport {
        correction_id: correction.correction_id.clone(),
        execution_id: Some(correction.execution_id.clone()).filter(|id| !id.is_empty()),
        reflexion_id: rule.map(|rule| rule.reflexion_id.clone()),
        rule: rule.map(|rule| rule.rule.clone()),
        status: rule.map(Reflexion::state),
        trust: rule.map(Reflexion::trust),
        applies_when: rule.map(|rule| rule.applies_when.clone()),
        root_cause: rule.map(|rule| rule.root_cause.clone()),
        confidence: rule.and_then(|rule| rule.confidence).unwrap_or(0.5),
        distilled_by: rule
            .map(|rule| rule.distilled_by.clone())
            .unwrap_or_default(),
        cost_usd: Some(0.0),
        warnings,
        ..CorrectReport::default()
    }
}
