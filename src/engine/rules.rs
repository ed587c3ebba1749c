//! Puts a new rule among those that its skill has already.
//!
//! A rule that says what another says makes that one stronger, and is not stored a second time. One
//! that contradicts others is stored beside them, and both are told; only the person who corrects may
//! put it in their place. Compared are words and not vectors: nobody waits for a model to correct.

use serde::Serialize;
use serde_json::{Value, json};

use crate::learn::conflict::{Relation, Statement, adds_nothing, relation};
use crate::learn::reflect::Draft;
use crate::model::{AGENT, CANDIDATE, Correction, Kind, Reflexion, SkillPath};
use crate::store::{Scoped, Selection, Writer};

use super::passed_on::{UNUSED, adopt, count_again, same_words};
use super::shared::mark_observed;
use super::{Engine, Error, mended};

/// How much of what it lacks to certainty a rule gains when it is said again.
const SAID_AGAIN: f64 = 0.2;

/// A rule that says the opposite of a new one.
#[derive(Debug, Serialize)]
pub struct Conflict {
    /// The older rule.
    pub id: String,
    /// What contradicts what.
    pub reason: String,
    /// Its text.
    pub rule: String,
    /// Whether the new rule has taken its place.
    pub superseded: bool,
}

/// A rule in its place.
pub(super) struct Placed {
    /// The rule that holds now.
    pub(super) rule: Reflexion,
    /// Its id, where it was there before.
    pub(super) duplicate_of: Option<String>,
    /// Whether it was a candidate until now.
    pub(super) was_candidate: bool,
    /// What was mended on the way.
    pub(super) mended: Vec<String>,
}

impl Engine {
    /// Stores a rule, or makes the one stronger that says the same. One of an agent's is a candidate, and
    /// makes no rule stronger; one that a person gives in the words of a candidate takes its place.
    pub(super) fn place_rule(
        &self,
        correction: &Correction,
        draft: Draft,
        distilled_by: &str,
        by_agent: bool,
    ) -> Result<Placed, Error> {
        let skill: SkillPath = correction.skill.parse()?;
        let of_skill = Selection {
            skill: Some(&skill),
            newest: None,
        };
        let mut writer = self.writer()?;
        let rules = own_rules(writer.store(), &of_skill)?;
        let new = Statement::of(&draft.rule);
        let id = &correction.correction_id;
        let same = rules.iter().find(|rule| {
            rule.correction_id == *id
                || (rule.is_in_use() && says_it_all(&Statement::of(&rule.rule), &new))
        });
        let same = same.map(|rule| standing(&rules, rule));
        let candidate = rules
            .iter()
            .find(|rule| rule.is_candidate() && same_words(&rule.rule, &draft.rule));
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
                let mut rule = self.new_rule(correction, draft, distilled_by);
                if by_agent {
                    AGENT.clone_into(&mut rule.source);
                    CANDIDATE.clone_into(&mut rule.status);
                    rule.utility_score = Some(UNUSED);
                }
                (writer.append(rule, self.now)?, None)
            }
        };
        Ok(Placed {
            rule,
            duplicate_of,
            was_candidate,
            mended: mended(writer.take_mended()).collect(),
        })
    }

    /// The rules of the same skill that a rule contradicts; it takes their place, where that is said.
    pub(super) fn settle(&self, rule: &Reflexion, supersede: bool) -> Result<Vec<Conflict>, Error> {
        let skill: SkillPath = rule.skill.parse()?;
        let of_skill = Selection {
            skill: Some(&skill),
            newest: None,
        };
        let mut writer = self.writer()?;
        let rules = writer.store().list::<Reflexion>(&of_skill)?.records;
        let new = Statement::of(&rule.rule);
        let mut conflicts = Vec::new();
        for other in rules.into_iter().filter(Reflexion::is_in_use) {
            let found = relation(&Statement::of(&other.rule), &new, None);
            let Some(found) = found.filter(|found| found.relation == Relation::Contradiction)
            else {
                continue;
            };
            if supersede {
                let changes = replaced_by(&rule.reflexion_id);
                writer.update(Kind::Reflexion, &other.reflexion_id, &changes)?;
            }
            conflicts.push(Conflict {
                id: other.reflexion_id,
                reason: found.reason,
                rule: other.rule,
                superseded: supersede,
            });
        }
        Ok(conflicts)
    }

    fn new_rule(&self, correction: &Correction, draft: Draft, distilled_by: &str) -> Reflexion {
        Reflexion {
            reflexion_id: String::new(),
            skill: correction.skill.clone(),
            created_at: self.timestamp(),
            correction_id: correction.correction_id.clone(),
            mistake: draft.mistake,
            root_cause: draft.root_cause,
            rule: draft.rule,
            applies_when: draft.applies_when,
            confidence: Some(draft.confidence),
            validated_by_test: false,
            generated_test_ids: Vec::new(),
            breaks_test_ids: Vec::new(),
            distilled_by: distilled_by.to_owned(),
            utility_score: None,
            times_injected: None,
            times_helped: None,
            times_harmed: None,
            source: String::new(),
            also_corrected_by: Vec::new(),
            superseded_by: String::new(),
            observed: false,
            status: String::new(),
            guardrails_pending: Vec::new(),
        }
    }
}

/// The rules that somebody here stands behind. A rule that only claims to come of a person's correction
/// is no reason not to make the person's own.
pub(super) fn own_rules(
    store: &Scoped,
    selection: &Selection<'_>,
) -> Result<Vec<Reflexion>, Error> {
    let mut rules = store.list::<Reflexion>(selection)?.records;
    mark_observed(store, &mut rules);
    rules.retain(|rule| !rule.observed);
    Ok(rules)
}

/// What changes in a rule that another takes the place of.
pub(super) fn replaced_by(id: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("superseded_by", json!(id)),
        // The reference knows no other way to say that a rule is not to be shown.
        ("utility_score", json!(0.0)),
    ]
}

/// The rule itself; where it was merged into another, the one that holds now.
pub(super) fn standing<'r>(rules: &'r [Reflexion], rule: &'r Reflexion) -> &'r Reflexion {
    let mut rule = rule;
    // Links that were written by hand may go round.
    for _ in rules {
        match rules.iter().find(|kept| kept.has_taken_over(rule)) {
            Some(kept) => rule = kept,
            None => break,
        }
    }
    rule
}

/// Whether a rule says everything that a new one says. One that says more is a rule of its own:
/// nothing gets lost.
fn says_it_all(known: &Statement, new: &Statement) -> bool {
    let same =
        relation(known, new, None).is_some_and(|found| found.relation == Relation::Duplicate);
    same && adds_nothing(new, known)
}

/// Notes on a rule that a later correction says the same, once for each correction.
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

/// Makes a rule surer that a correction says again; false where it has said so before.
pub(super) fn said_again(rule: &mut Reflexion, correction: &str) -> bool {
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
