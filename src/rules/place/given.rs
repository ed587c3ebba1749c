//! Rules that another program has worded: stored unchanged, beside those that come from corrections.

use serde::Serialize;

use super::activation::UNUSED;
use crate::model::{AGENT, CANDIDATE, Reflexion};
use crate::rules::in_use::suspicion;
use crate::store::workspace::redacting_writer::redaction_warning;
use crate::store::workspace::{Error, Workspace, repair_warnings};

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
    let mut warnings: Vec<String> = repair_warnings(writer.take_repairs()).collect();
    warnings.extend(redaction_warning(writer.take_left_out()));
    warnings.extend(suspicion(&rule));
    Ok(AddedRule {
        reflexion_id: rule.reflexion_id,
        skill: rule.skill,
        created_at: rule.created_at,
        status: rule.status,
        warnings,
    })
}
