//! Keeps two rules as separate ones, at a person's request.

use serde::Serialize;
use serde_json::json;

use crate::model::{Kind, Reflexion, RelatedRule, RuleRelation};
use crate::store::workspace::locate::locate;
use crate::store::workspace::{Error, Workspace};

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
    Err(Error::NotARule { id, kind })
}
