//! Writes what has changed of a rule: only the fields that differ, so that what other programs added stays. And rules
//! that a new one contradicts or replaces, by what people and models have judged of the two.
//!
//! Both stay in their file. One that is superseded names its successor, and is told to nobody.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::model::{Kind, Reflexion, RelatedRule, RuleRelation, SkillPath};
use crate::store::workspace::{Error, Workspace};
use crate::store::{Scoped, Selection, Writer};

/// Adds to the receipts of a rule: told, heeded, recurred, overridden.
pub(crate) fn add_receipts(rule: &mut Reflexion, more: [f64; 4]) {
    let counts = [
        &mut rule.times_told,
        &mut rule.times_heeded,
        &mut rule.times_recurred,
        &mut rule.times_overridden,
    ];
    for (count, more) in counts.into_iter().zip(more) {
        if more != 0.0 {
            *count = Some((count.unwrap_or(0.0) + more).max(0.0));
        }
    }
}

/// Stores a changed rule, which may get the id of a shared one.
pub(crate) fn update_rule(
    writer: &mut Writer,
    before: &Reflexion,
    after: &mut Reflexion,
) -> Result<(), Error> {
    let changes = changed_fields(before, after);
    let changes: Vec<_> = changes
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    if !changes.is_empty() {
        after.reflexion_id = writer
            .update(Kind::Reflexion, &before.reflexion_id, &changes)?
            .id;
    }
    Ok(())
}

/// Stores changed rules in one write, each given as it was and as it is.
pub(crate) fn update_rules(
    writer: &mut Writer,
    rules: &[(Reflexion, Reflexion)],
) -> Result<(), Error> {
    let fields = rules
        .iter()
        .map(|(before, after)| changed_fields(before, after));
    let fields: Vec<Vec<(String, Value)>> = fields.collect();
    let changes = rules.iter().zip(&fields).map(|((before, _), fields)| {
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value));
        (before.reflexion_id.clone(), fields.collect())
    });
    let changes: Vec<(String, Vec<(&str, &Value)>)> = changes.collect();
    writer.update_all(Kind::Reflexion, &changes)
}

/// Returns the fields that differ. A list that is empty now is written as such.
fn changed_fields(before: &Reflexion, after: &Reflexion) -> Vec<(String, Value)> {
    let fields = |rule: &Reflexion| match json!(rule) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let (before, after) = (fields(before), fields(after));
    let emptied = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let emptied = emptied.map(|(name, old)| {
        let empty = if old.is_array() {
            json!([])
        } else {
            Value::Null
        };
        (name.clone(), empty)
    });
    let emptied: Vec<_> = emptied.collect();
    let changed = after
        .into_iter()
        .filter(|(name, value)| before.get(name) != Some(value));
    changed.chain(emptied).collect()
}

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
        let last = last_relation(rule, &other);
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

/// Newest judgement that a rule holds on another one.
fn last_relation<'r>(rule: &'r Reflexion, other: &Reflexion) -> Option<&'r RelatedRule> {
    let mut relations = rule.relations.iter().rev();
    relations.find(|related| related.id == other.reflexion_id)
}

/// Judgement of a person or a model on two rules; `None` if there is none.
pub(crate) fn judged_relation<'r>(a: &'r Reflexion, b: &'r Reflexion) -> Option<&'r RelatedRule> {
    let (newer, older) = (last_relation(b, a), last_relation(a, b));
    // A person decides, whichever rule they named first.
    let mut both = [newer, older].into_iter().flatten();
    both.find(|one| one.by == "user").or(newer).or(older)
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
