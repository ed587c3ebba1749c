//! Rules that a rule contradicts, and rules that took another one's place.
//!
//! Both rules stay until a person says which holds. The one that is replaced stays in the file and
//! names its successor.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Kind, Reflexion, RuleRelation, SkillPath};
use crate::rules::reflect::Judged;
use crate::store::Selection;
use crate::store::workspace::{Error, Workspace};

/// Older rule that contradicts a new one.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Conflict {
    /// Id of the older rule.
    pub id: String,
    /// Explanation of the contradiction.
    pub reason: String,
    /// Text of the older rule.
    pub rule: String,
    /// `true` if the new rule superseded it.
    pub superseded: bool,
    /// Guardrail files that it was removed from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<String>,
}

/// Returns the rules of the same skill that a rule contradicts, as a model judged now (`related`) or
/// before; `supersede` marks them as superseded.
pub(crate) fn resolve_conflicts(
    workspace: &Workspace,
    rule: &Reflexion,
    related: &[Judged],
    supersede: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<Conflict>, Error> {
    let skill: SkillPath = rule.skill.parse()?;
    let of_skill = Selection {
        skill: Some(&skill),
        newest: None,
    };
    let mut writer = workspace.writer()?;
    let rules = writer.store().list::<Reflexion>(&of_skill)?.records;
    let mut conflicts = Vec::new();
    let others = rules
        .into_iter()
        .filter(|other| other.is_in_use() && other.reflexion_id != rule.reflexion_id);
    for other in others {
        let judged = related
            .iter()
            .find(|judged| judged.id == other.reflexion_id);
        let stored = || {
            rule.relations
                .iter()
                .rev()
                .find(|r| r.id == other.reflexion_id)
        };
        let judged = judged.map(|judged| (judged.relation, &judged.reason));
        let judged = judged.or_else(|| stored().map(|stored| (stored.relation, &stored.reason)));
        let Some((RuleRelation::Contradicts, reason)) = judged else {
            continue;
        };
        let reason = reason.clone();
        let mut guardrails = Vec::new();
        if supersede {
            let changes = replaced_by(&rule.reflexion_id);
            writer.update(Kind::Reflexion, &other.reflexion_id, &changes)?;
            guardrails = workspace.change_guardrail(&mut writer, &other, None, warnings);
        }
        conflicts.push(Conflict {
            id: other.reflexion_id,
            reason,
            rule: other.rule,
            superseded: supersede,
            guardrails,
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
