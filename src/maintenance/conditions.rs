//! Conditions of rules that nobody said, as the first version wrote them: "When executing hr/x", or the
//! values of one input.
//!
//! A condition counts as said if each of its words occurs in a correction of its rule. Rules without a
//! correction, and those that a person has edited, are left alone.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::learn::reflect::is_said;
use crate::model::{Correction, Kind, Reflexion, Trust};
use crate::store::Selection;
use crate::workspace::{Error, Workspace, repair_warnings};

/// Author of a rule that a person has edited.
const EDITED: &str = "user";

/// Rules whose condition nobody said.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ConditionsReport {
    /// Rules with their condition.
    pub rules: Vec<MadeCondition>,
    /// `true` if the conditions were emptied.
    pub emptied: bool,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Condition that nobody said.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct MadeCondition {
    /// Id of the rule.
    pub id: String,
    /// Condition.
    pub applies_when: String,
}

/// Empties the conditions that nobody said.
pub fn empty_conditions(workspace: &Workspace) -> Result<ConditionsReport, Error> {
    let mut writer = workspace.writer()?;
    let rules = made_conditions(workspace)?;
    let trust_snapshot = writer.store().trust_snapshot();
    let mut vouched = Vec::new();
    let mut changes: Vec<(String, Vec<(&str, Value)>)> = Vec::new();
    for rule in &rules {
        let record: Reflexion = writer.store().get(&rule.id)?;
        // The text changes by this program only: who vouched for it still does.
        if trust_snapshot.level(&record) > Trust::Observed {
            vouched.push(rule.id.clone());
        }
        changes.push((rule.id.clone(), vec![("applies_when", json!(""))]));
    }
    writer.update_all(Kind::Reflexion, &changes)?;
    for id in &vouched {
        writer.vouch(Kind::Reflexion, id)?;
    }
    Ok(ConditionsReport {
        rules,
        emptied: true,
        warnings: repair_warnings(writer.take_repairs()).collect(),
    })
}

/// Returns the rules in use whose condition nobody said, oldest first.
pub(crate) fn made_conditions(workspace: &Workspace) -> Result<Vec<MadeCondition>, Error> {
    let all = Selection::default();
    let corrections = workspace.store.list::<Correction>(&all)?.records;
    let said: HashMap<&str, &str> = corrections
        .iter()
        .map(|one| (one.correction_id.as_str(), one.user_correction.as_str()))
        .collect();
    let rules = workspace.store.list::<Reflexion>(&all)?.records;
    let made = rules.into_iter().filter(|rule| {
        let own = std::iter::once(&rule.correction_id).chain(&rule.also_corrected_by);
        let mut texts = own.filter_map(|id| said.get(id.as_str())).peekable();
        !rule.applies_when.trim().is_empty()
            && rule.distilled_by != EDITED
            && texts.peek().is_some()
            && !texts.any(|text| is_said(&rule.applies_when, text))
    });
    let made = made.map(|rule| MadeCondition {
        id: rule.reflexion_id,
        applies_when: rule.applies_when,
    });
    Ok(made.collect())
}
