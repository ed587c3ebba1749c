//! Prompt of a skill: up to four layers, with a selection of learned records as layer 2.
//!
//! ```text
//! 0 WORKSPACE.md   1 DOMAIN.md   2 learned rules and procedures   3 SKILL.md
//! ```
//!
//! Layers are joined by a ruler and have no headings of their own, byte for byte as in the
//! reference implementation. A prompt without procedures has no trace of them.
//!
//! - `rule_layer`: selection and text of rules, within the token budget.
//! - `procedure_layer`: selection and text of procedures, within a budget of their own.
//!
//! Pure: layers, records and the time are arguments.

mod procedure_layer;
mod rule_layer;

pub(crate) use procedure_layer::FITS_ALONE;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::model::{Kind, Procedure, Record as _, Reflexion, Trust};
use crate::store::skill::Layer;

/// Separator between layers.
const RULER: &str = "\n\n---\n\n";

/// Assembled prompt with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Assembly {
    /// Text for the model.
    pub prompt: String,
    /// Non-empty layers in order.
    pub layers: Vec<LayerSize>,
    /// Rules in the prompt, in order, then procedures.
    pub injected: Vec<Injected>,
    /// Rules and procedures for this skill that are not in the prompt, with reasons.
    pub omitted: Vec<Omitted>,
}

/// One layer of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LayerSize {
    /// Number from 0 to 3.
    pub layer: u8,
    /// Source of the layer.
    pub source: String,
    /// Approximate number of tokens.
    pub tokens: usize,
}

/// Record in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Injected {
    /// Record id.
    pub id: String,
    /// Record kind.
    pub kind: Kind,
    /// Trust level; not serialised for records of users.
    #[serde(skip_serializing_if = "is_of_a_person")]
    pub trust: Trust,
    /// Source of the record; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Time of its creation.
    #[serde(skip)]
    pub created_at: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_of_a_person(trust: &Trust) -> bool {
    *trust == Trust::User
}

/// Returns the ids of the records of a kind in a prompt.
pub fn ids_of(injected: &[Injected], kind: Kind) -> Vec<String> {
    let of_kind = injected.iter().filter(|record| record.kind == kind);
    of_kind.map(|record| record.id.clone()).collect()
}

/// Record that was left out of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Omitted {
    /// Record id.
    pub id: String,
    /// Status: `active`, `candidate`, `superseded` or `retired`.
    pub status: &'static str,
    /// Reason for the omission.
    pub reason: String,
}

/// Parameters of the selection of rules and procedures.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Input of the skill; `None` if unknown.
    pub input: Option<&'a str>,
    /// Scores of approved procedures for the input, by id; those that are not listed do not fit.
    pub near: &'a [(String, f64)],
    /// Skill, as `domain/skill`.
    pub skill: &'a str,
    /// Name of the directory of the memory, for the sources of layer 2.
    pub memory: &'a str,
    /// Token budget for rules.
    pub budget: usize,
    /// Token budget for procedures.
    pub procedures_budget: usize,
    /// Current time, for the age of rules.
    pub now: DateTime<Utc>,
    /// Random word for the fence around observed rules.
    pub nonce: &'a str,
}

/// Assembles a prompt. `rules` are those of the skill, in file order; `procedures` are those that a user of
/// this machine has approved, oldest first.
pub fn assemble(
    layers: &[Layer],
    rules: &[Reflexion],
    procedures: &[Procedure],
    choice: &Choice<'_>,
) -> Assembly {
    let (chosen, mut omitted) = rule_layer::choose(rules, choice);
    let (steps, left) = procedure_layer::choose(procedures, choice);
    omitted.extend(left);
    let (observed, own): (Vec<_>, Vec<_>) = chosen.iter().partition(|rule| rule.observed);
    let source = |kind: Kind| format!("{}/{}", choice.memory, kind.file());
    let of_others = source(Kind::Reflexion) + " (observed)";
    let learned = [
        (source(Kind::Reflexion), rule_layer::render(&own)),
        (source(Kind::Procedure), procedure_layer::render(&steps)),
        (of_others, rule_layer::render_observed(&observed, choice)),
    ];
    let of_files = layers.iter().map(|layer| {
        let source = layer.source.display().to_string();
        (layer.number, source, layer.text.clone())
    });
    let learned = learned.into_iter().map(|(source, text)| (2, source, text));
    let mut parts: Vec<(u8, String, String)> = of_files.chain(learned).collect();
    parts.retain(|(_, _, text)| !text.is_empty());
    parts.sort_by_key(|(number, _, _)| *number);
    let injected = chosen.iter().map(|rule| Injected {
        id: rule.reflexion_id.clone(),
        kind: Kind::Reflexion,
        trust: if rule.observed {
            Trust::Observed
        } else {
            rule.trust()
        },
        source: rule.source.clone(),
        created_at: rule.created_at.clone(),
    });
    let steps = steps.iter().map(|procedure| Injected {
        id: procedure.procedure_id.clone(),
        kind: Kind::Procedure,
        trust: procedure.trust(),
        source: String::new(),
        created_at: procedure.created_at.clone(),
    });
    let texts: Vec<&str> = parts.iter().map(|(_, _, text)| text.as_str()).collect();
    Assembly {
        prompt: texts.join(RULER),
        injected: injected.chain(steps).collect(),
        omitted,
        layers: parts
            .into_iter()
            .map(|(layer, source, text)| LayerSize {
                layer,
                source,
                tokens: tokens(&text),
            })
            .collect(),
    }
}

/// Approximate number of tokens: a quarter of the ASCII characters, plus one per other character.
/// Within a fifth of real tokenizers for English prose and JSON, which is sufficient for budgets.
pub fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().count() - ascii;
    ascii.div_ceil(4) + other
}

#[cfg(test)]
impl Choice<'_> {
    /// Returns the parameters without an input, a skill and a budget.
    pub(crate) fn of(now: DateTime<Utc>) -> Self {
        Self {
            input: None,
            near: &[],
            skill: "",
            memory: ".agentura",
            budget: 0,
            procedures_budget: 0,
            now,
            nonce: "n0nce",
        }
    }
}

#[cfg(test)]
mod tests;
