//! Rules that a new one contradicts or replaces.
//!
//! Both stay in their file. One that is superseded names its successor, and is told to nobody.

use serde::Serialize;

use super::changes::update_rule;
use crate::model::{Reflexion, RelatedRule, RuleRelation, SkillPath};
use crate::store::workspace::{Error, Workspace};
use crate::store::{Scoped, Selection};

/// Lets a rule take the place of another, which stays in its file and names it as its successor.
/// Returns the guardrail files that the other was removed from.
pub fn replace_rule(
    workspace: &Workspace,
    rule: &str,
    other: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let mut writer = workspace.writer()?;
    let other: Reflexion = writer.store().get(other)?;
    update_rule(&mut writer, &other, &mut superseded(&other, rule))?;
    Ok(workspace.change_guardrail(&mut writer, &other, None, warnings))
}

/// Older rule that contradicts a new one.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Conflict {
    /// Id of the older rule.
    pub id: String,
    /// Explanation of the contradiction.
    pub reason: String,
    /// Text of the older rule.
    pub rule: String,
}

/// Returns the rules of the same skill that a rule contradicts, by its last relation to them.
pub(crate) fn conflicts_of(store: &Scoped, rule: &Reflexion) -> Result<Vec<Conflict>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let rules = store.list::<Reflexion>(&Selection::of(&skill))?.records;
    let mut conflicts = Vec::new();
    for other in rules {
        let mut relations = rule.relations.iter().rev();
        let last = relations.find(|related| related.id == other.reflexion_id);
        let contradicts = |related: &&RelatedRule| related.relation == RuleRelation::Contradicts;
        if let Some(related) = last.filter(contradicts).filter(|_| other.is_in_use()) {
            conflicts.push(Conflict {
                id: other.reflexion_id,
                reason: related.reason.clone(),
                rule: other.rule,
            });
        }
    }
    Ok(conflicts)
}

/// Returns a rule as superseded by rule `id`.
pub(crate) fn superseded(rule: &Reflexion, id: &str) -> Reflexion {
    Reflexion {
        superseded_by: id.to_owned(),
        // The reference implementation has no other way to hide a rule.
        utility_score: Some(0.0),
        ..rule.clone()
    }
}
