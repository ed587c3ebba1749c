//! Adds a new rule to the rules of its skill.
//!
//! A rule that duplicates another strengthens it, and is not stored. A rule that contradicts others
//! is stored beside them, and the report names them; only the person who corrects may supersede
//! them. A model that was asked about a rule decides; otherwise only the same words are the same.

pub(crate) mod merge_rules;
pub(crate) mod passed_on;
pub(crate) mod similar;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::model::{
    AGENT, CANDIDATE, Correction, Kind, Reflexion, RelatedRule, RuleRelation, SkillPath,
};
use crate::rules::reflect::{Draft, Judged};
use crate::store::{Scoped, Selection, Writer};

use crate::rules::in_use::mark_observed;
use crate::store::workspace::{Error, Workspace, repair_warnings, stamp};
use passed_on::{UNUSED, adopt, count_again, same_words};

/// Share of the missing confidence that a rule gains from a repetition.
const SAID_AGAIN: f64 = 0.2;

/// Outcome of placing a rule.
pub(crate) struct Placed {
    /// Rule in force.
    pub(crate) rule: Reflexion,
    /// Id of the known rule that the new one repeats; `None` for a new or activated rule.
    pub(crate) duplicate_of: Option<String>,
    /// `true` if the rule was a candidate until now.
    pub(crate) was_candidate: bool,
    /// Repairs made by the writer, as warnings.
    pub(crate) mended: Vec<String>,
}

/// Stores a rule, or strengthens the rule that it duplicates. An agent's rule becomes a
/// candidate and strengthens no rule; so does a person's doubtful one. A person's rule activates the
/// candidate that it repeats. A model's judgement in `related` decides before the comparison of words.
pub(crate) fn place_rule(
    workspace: &Workspace,
    correction: &Correction,
    draft: Draft,
    distilled_by: &str,
    related: &[Judged],
    by_agent: bool,
) -> Result<Placed, Error> {
    let skill: SkillPath = correction.skill.parse()?;
    let of_skill = Selection::of(&skill);
    let mut writer = workspace.writer()?;
    let rules = own_rules(writer.store(), &of_skill)?;
    let id = &correction.correction_id;
    let is_same = |rule: &Reflexion, without_model: &dyn Fn() -> bool| {
        let judged = related.iter().find(|judged| judged.id == rule.reflexion_id);
        judged.map_or_else(without_model, |judged| {
            judged.relation == RuleRelation::Same
        })
    };
    let same = rules.iter().find(|rule| {
        let has_same_words = || same_words(&rule.rule, &draft.rule);
        rule.correction_id == *id || (rule.is_in_use() && is_same(rule, &has_same_words))
    });
    let same = same.map(|rule| rule_in_force(&rules, rule));
    let candidate = rules.iter().find(|rule| {
        let has_same_words = || same_words(&rule.rule, &draft.rule);
        rule.is_candidate() && is_same(rule, &has_same_words)
    });
    let mut was_candidate = false;
    let (rule, duplicate_of) = match (same.cloned(), candidate.cloned()) {
        (Some(rule), _) if by_agent && !rule.is_candidate() => {
            let id = rule.reflexion_id.clone();
            (rule, Some(id))
        }
        (Some(mut rule), _) if !rule.is_candidate() => {
            strengthen(&mut writer, &mut rule, correction)?;
            let id = rule.reflexion_id.clone();
            (rule, Some(id))
        }
        (Some(mut rule), _) | (None, Some(mut rule)) if by_agent => {
            count_again(&mut writer, &mut rule, id)?;
            let id = rule.reflexion_id.clone();
            (rule, Some(id))
        }
        (Some(mut rule), _) | (None, Some(mut rule)) => {
            was_candidate = true;
            let own = Some((draft, distilled_by));
            adopt(&mut writer, &mut rule, correction, own)?;
            (rule, None)
        }
        (None, None) => {
            let is_unsure = draft.doubt.is_some();
            let mut rule = new_rule(workspace.now, correction, draft, distilled_by);
            rule.relations = lasting_relations(related, distilled_by);
            if by_agent {
                AGENT.clone_into(&mut rule.source);
            }
            if by_agent || is_unsure {
                CANDIDATE.clone_into(&mut rule.status);
                rule.utility_score = Some(UNUSED);
            }
            (writer.append(rule, workspace.now)?, None)
        }
    };
    Ok(Placed {
        rule,
        duplicate_of,
        was_candidate,
        mended: repair_warnings(writer.take_repairs()).collect(),
    })
}

fn new_rule(
    now: DateTime<Utc>,
    correction: &Correction,
    draft: Draft,
    distilled_by: &str,
) -> Reflexion {
    Reflexion {
        skill: correction.skill.clone(),
        created_at: stamp(now),
        correction_id: correction.correction_id.clone(),
        mistake: draft.mistake,
        root_cause: draft.root_cause,
        rule: draft.rule,
        applies_when: draft.applies_when,
        confidence: Some(draft.confidence),
        distilled_by: distilled_by.to_owned(),
        ..Reflexion::default()
    }
}

/// Relations that are worth storing: those that a comparison of words may miss.
fn lasting_relations(related: &[Judged], by: &str) -> Vec<RelatedRule> {
    let is_lasting = |judged: &&Judged| {
        matches!(
            judged.relation,
            RuleRelation::Contradicts | RuleRelation::Narrows
        )
    };
    let related = related.iter().filter(is_lasting);
    let stored = related.map(|judged| RelatedRule {
        id: judged.id.clone(),
        relation: judged.relation,
        reason: judged.reason.clone(),
        by: by.to_owned(),
    });
    stored.collect()
}

/// Rules that a person here vouches for. A rule that only claims to come from a person's correction
/// must not block the person's own rule.
pub(crate) fn own_rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<Vec<Reflexion>, Error> {
    let mut rules = store.list::<Reflexion>(selection)?.records;
    mark_observed(store, &mut rules);
    rules.retain(|rule| !rule.observed);
    Ok(rules)
}

/// Returns the rule itself, or the rule in force that it was merged into.
pub(crate) fn rule_in_force<'r>(rules: &'r [Reflexion], rule: &'r Reflexion) -> &'r Reflexion {
    let mut rule = rule;
    // Links that were written by hand may form a cycle.
    for _ in rules {
        match rules.iter().find(|kept| kept.has_taken_over(rule)) {
            Some(kept) => rule = kept,
            None => break,
        }
    }
    rule
}

/// Strengthens a rule that a later correction repeats, once per correction.
fn strengthen(
    writer: &mut Writer,
    rule: &mut Reflexion,
    correction: &Correction,
) -> Result<(), Error> {
    if !said_again(rule, &correction.correction_id) {
        return Ok(());
    }
    let changes: [(&str, Value); 2] = [
        ("also_corrected_by", json!(rule.also_corrected_by)),
        ("confidence", json!(rule.confidence)),
    ];
    writer.update(Kind::Reflexion, &rule.reflexion_id, &changes)?;
    Ok(())
}

/// Raises the confidence of a rule that a correction repeats; `false` if it was counted before.
pub(crate) fn said_again(rule: &mut Reflexion, correction: &str) -> bool {
    let is_known = rule.correction_id == correction
        || rule.also_corrected_by.iter().any(|id| id == correction);
    if correction.is_empty() || is_known {
        return false;
    }
    rule.also_corrected_by.push(correction.to_owned());
    let before = rule.confidence.unwrap_or(0.5);
    let after = before + (1.0 - before) * SAID_AGAIN;
    rule.confidence = Some((after * 100.0).round() / 100.0);
    true
}
