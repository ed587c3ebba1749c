//! Adds a new rule to the rules of its skill.
//!
//! `neighbours` finds the rules that are near it, `activation` puts it in force with its files, `changes` writes what
//! became of a rule and finds those that it contradicts. `decisions` are those of a person about near rules. A rule in
//! the words of another program ([`add_rule`]) is stored unchanged.
//!
//! A rule that duplicates another strengthens it, and is not stored. A rule that contradicts others
//! is stored beside them, and the report names them; only a person says that it replaces one. A model that was asked about a rule decides; otherwise only the same words are the same.

pub(crate) mod activation;
pub(crate) mod changes;
pub(crate) mod decisions;
pub(crate) mod neighbours;

use activation::{UNUSED, adopt};
use changes::update_rule;
use chrono::{DateTime, Utc};
use neighbours::same_words;
use serde::Serialize;

use crate::model::{AGENT, CANDIDATE, Correction, Reflexion, RelatedRule, RuleRelation, SkillPath};
use crate::rules::in_use::{mark_observed, suspicion};
use crate::rules::reflect::Draft;
use crate::store::workspace::{Error, Workspace, repair_warnings, stamp, warnings_of};
use crate::store::{Scoped, Selection};

/// Share of the missing confidence that a rule gains from a repetition.
const SAID_AGAIN: f64 = 0.2;

/// Outcome of placing a rule.
#[derive(PartialEq, Eq)]
pub(crate) enum Placed {
    New,
    /// It was a candidate until now.
    Activated,
    /// It is the known rule that the new one repeats.
    Repeated,
}

/// Stores a rule, or strengthens the rule that it duplicates. Returns the rule in force. An agent's rule becomes a
/// candidate and strengthens no rule; so does a person's doubtful one. A person's rule activates the
/// candidate that it repeats. A model's judgement in `related` decides before the comparison of words.
pub(crate) fn place_rule(
    workspace: &Workspace,
    correction: &Correction,
    draft: Draft,
    distilled_by: &str,
    related: &[RelatedRule],
    by_agent: bool,
    warnings: &mut Vec<String>,
) -> Result<(Reflexion, Placed), Error> {
    let skill: SkillPath = correction.skill.parse()?;
    let mut writer = workspace.writer()?;
    let rules = own_rules(writer.store(), &Selection::of(&skill))?;
    let id = &correction.correction_id;
    let is_same = |rule: &Reflexion| match related.iter().find(|one| one.id == rule.reflexion_id) {
        Some(judged) => judged.relation == RuleRelation::Same,
        None => same_words(&rule.rule, &draft.rule),
    };
    let same = rules
        .iter()
        .find(|rule| stems_from(rule, correction) || (rule.is_in_use() && is_same(rule)))
        .map(|rule| rule_in_force(&rules, rule));
    let is_candidate = |rule: &&Reflexion| rule.is_candidate() && is_same(rule);
    let existing = same.or_else(|| rules.iter().find(is_candidate));
    let placed = match existing.cloned() {
        Some(before) if by_agent || !before.is_candidate() => {
            let mut rule = before.clone();
            if rule.is_candidate() || !by_agent {
                corrected_again(&mut rule, id, !by_agent);
                update_rule(&mut writer, &before, &mut rule)?;
            }
            (rule, Placed::Repeated)
        }
        Some(mut rule) => {
            let words = Some((draft, distilled_by));
            adopt(&mut writer, &mut rule, correction, words)?;
            (rule, Placed::Activated)
        }
        None => {
            let is_unsure = draft.doubt.is_some();
            let mut rule = new_rule(workspace.now, correction, draft, distilled_by);
            // Verdicts that a comparison of words may miss are worth storing.
            rule.relations = related.to_vec();
            rule.relations.retain(|judged| {
                matches!(
                    judged.relation,
                    RuleRelation::Contradicts | RuleRelation::Narrows
                )
            });
            if by_agent {
                AGENT.clone_into(&mut rule.source);
            }
            if by_agent || is_unsure {
                CANDIDATE.clone_into(&mut rule.status);
                rule.utility_score = Some(UNUSED);
            }
            (writer.append(rule, workspace.now)?, Placed::New)
        }
    };
    warnings.extend(repair_warnings(writer.take_repairs()));
    Ok(placed)
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

/// Returns true if a rule was made from a correction. A rule that is older than the correction only names its id:
/// it came from another memory, or its own correction is lost.
pub(crate) fn stems_from(rule: &Reflexion, correction: &Correction) -> bool {
    let time = |text: &str| DateTime::parse_from_rfc3339(text).ok();
    let (made, said) = (time(&rule.created_at), time(&correction.timestamp));
    let is_older = made.zip(said).is_some_and(|(made, said)| made < said);
    rule.correction_id == correction.correction_id && !is_older
}

/// Returns the rule itself, or the rule in force that it was merged into.
pub(crate) fn rule_in_force<'r>(rules: &'r [Reflexion], rule: &'r Reflexion) -> &'r Reflexion {
    let mut rule = rule;
    // Links that were written by hand may form a cycle.
    for _ in rules {
        match rules
            .iter()
            .find(|successor| successor.has_taken_over(rule))
        {
            Some(successor) => rule = successor,
            None => break,
        }
    }
    rule
}

/// Notes that a correction repeats a rule, unless it was counted before. A person's word raises the
/// confidence; that of an agent, which can repeat itself at will, does not.
pub(crate) fn corrected_again(rule: &mut Reflexion, correction: &str, raises: bool) {
    let is_known = rule.correction_id == correction
        || rule.also_corrected_by.iter().any(|id| id == correction);
    if correction.is_empty() || is_known {
        return;
    }
    rule.also_corrected_by.push(correction.to_owned());
    if raises {
        let before = rule.confidence.unwrap_or(0.5);
        let after = before + (1.0 - before) * SAID_AGAIN;
        rule.confidence = Some((after * 100.0).round() / 100.0);
    }
}

/// Rule that was added.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AddedRule {
    /// Id of the rule.
    pub reflexion_id: String,
    /// Path of the skill.
    pub skill: String,
    /// Time of storage: RFC 3339, UTC.
    pub created_at: String,
    /// `candidate` if it waits for a person's approval; else empty.
    pub status: String,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Adds a rule; its skill need not exist here. An agent's rule becomes a candidate, and what it says of tests does not
/// count.
pub fn add_rule(
    workspace: &Workspace,
    mut rule: Reflexion,
    by_agent: bool,
) -> Result<AddedRule, Error> {
    workspace.permit(&rule.skill.parse()?)?;
    rule.created_at = workspace.timestamp();
    if by_agent {
        AGENT.clone_into(&mut rule.source);
        CANDIDATE.clone_into(&mut rule.status);
        rule.utility_score = Some(UNUSED);
        rule.validated_by_test = false;
        rule.generated_test_ids.clear();
    }
    let mut writer = workspace.writer()?;
    let rule = writer.append(rule, workspace.now)?;
    let mut warnings: Vec<String> = warnings_of(&mut writer).collect();
    warnings.extend(suspicion(&rule));
    Ok(AddedRule {
        reflexion_id: rule.reflexion_id,
        skill: rule.skill,
        created_at: rule.created_at,
        status: rule.status,
        warnings,
    })
}
