//! Keeps a rule from being retired by its evidence, at a person's request.

use serde::Serialize;
use serde_json::{Value, json};

use super::place::merge_rules::rule_id;
use crate::model::{Kind, Reflexion};
use crate::store::workspace::{Error, Workspace, repair_warnings};

/// Outcome of [`pin()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PinReport {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// `true` if the rule is pinned now.
    pub pinned: bool,
    /// State of the rule now: `active`, `candidate`, `superseded` or `retired`.
    pub status: &'static str,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Pins a rule, given by id or id prefix, or removes the pin. A retired rule is active again once it
/// is pinned.
pub fn pin(workspace: &Workspace, id: &str, pinned: bool) -> Result<PinReport, Error> {
    let id = rule_id(workspace, id)?;
    let mut writer = workspace.writer()?;
    let mut rule: Reflexion = writer.store().get(&id)?;
    if rule.pinned != pinned {
        rule.pinned = pinned;
        if pinned {
            writer.update(Kind::Reflexion, &id, &[("pinned", json!(true))])?;
        } else {
            let changes: [(&str, Value); 0] = [];
            writer.update_without(Kind::Reflexion, &id, &changes, &["pinned"])?;
        }
    }
    Ok(PinReport {
        status: rule.state(),
        rule: rule.rule,
        pinned,
        warnings: repair_warnings(writer.take_repairs()).collect(),
        id,
    })
}
