//! Rules that a rule contradicts, and rules that took another one's place.
//!
//! Both rules stay until a person says which holds. The one that is replaced stays in the file and
//! names its successor.

use serde::Serialize;
use serde_json::{Value, json};

use crate::learn::conflict::{Relation, Statement, relation};
use crate::model::{Kind, Reflexion, SkillPath};
use crate::store::Selection;
use crate::workspace::{Error, Workspace};

/// Older rule that contradicts a new one.
#[derive(Debug, Serialize)]
pub struct Conflict {
    /// Id of the older rule.
    pub id: String,
    /// Explanation of the contradiction.
    pub reason: String,
    /// Text of the older rule.
    pub rule: String,
    /// `true` if the new rule superseded it.
    pub superseded: bool,
}

/// Returns the rules of the same skill that a rule contradicts; `supersede` marks them as
/// superseded.
pub(crate) fn settle(
    workspace: &Workspace,
    rule: &Reflexion,
    supersede: bool,
) -> Result<Vec<Conflict>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let of_skill = Selection {
        skill: Some(&skill),
        newest: None,
    };
    let mut writer = workspace.writer()?;
    let rules = writer.store().list::<Reflexion>(&of_skill)?.records;
    let new = Statement::of(&rule.rule);
    let mut conflicts = Vec::new();
    for other in rules.into_iter().filter(Reflexion::is_in_use) {
        let found = relation(&Statement::of(&other.rule), &new, None);
        let Some(found) = found.filter(|found| found.relation == Relation::Contradiction) else {
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

/// Changes that mark a rule as superseded by rule `id`.
pub(crate) fn replaced_by(id: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("superseded_by", json!(id)),
        // The reference implementation has no other way to hide a rule.
        ("utility_score", json!(0.0)),
    ]
}
