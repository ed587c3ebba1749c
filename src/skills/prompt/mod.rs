//! Prompt of a skill: up to four layers, with a selection of what was learned as layer 2.
//!
//! ```text
//! 0 WORKSPACE.md   1 DOMAIN.md   2 learned rules and procedures   3 SKILL.md
//! ```
//!
//! Layers are joined by a ruler and have no headings of their own, byte for byte as in the
//! reference implementation. A prompt without procedures has no trace of them.
//!
//! - `choice`: parameters of the selection. `choose`: selects rules within the token budget.
//! - `render`: text of the rules.
//! - `procedure_layer`: selection and text of procedures, within a budget of their own.
//!
//! Pure: layers, records and the time are arguments.

mod choose;
mod procedure_layer;
mod render;

use serde::Serialize;

use crate::model::{Kind, Procedure, Record as _, Reflexion, Trust};
use crate::store::skill::Layer;

pub use choose::{Choice, Omitted, tokens};

use choose::choose;
use render::{render, render_observed};

/// Separator between layers.
const RULER: &str = "\n\n---\n\n";

/// Assembled prompt with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Assembly {
    /// Text for the model.
    pub prompt: String,
    /// Part of the text that was learned: layer 2.
    #[serde(skip)]
    pub learned: String,
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

/// Records for layer 2, in file order, oldest first.
#[derive(Debug)]
pub struct Learned<'a, R> {
    /// The records.
    pub records: &'a [R],
    /// Display name of their source.
    pub source: &'a str,
}

/// Assembles a prompt. `rules` are those of the skill; `procedures` are those that a user of this
/// machine has approved.
pub fn assemble(
    layers: &[Layer],
    rules: &Learned<'_, Reflexion>,
    procedures: &Learned<'_, Procedure>,
    choice: &Choice<'_>,
) -> Assembly {
    let (chosen, mut omitted) = choose_rules(rules.records, choice);
    let (steps, left) = procedure_layer::choose(procedures.records, choice);
    omitted.extend(left);
    let (shown, own): (Vec<&Reflexion>, Vec<&Reflexion>) =
        chosen.iter().partition(|rule| rule.observed);
    let learned = [
        (rules.source.to_owned(), render(&own)),
        (
            procedures.source.to_owned(),
            procedure_layer::render(&steps),
        ),
        (
            format!("{} (observed)", rules.source),
            render_observed(&shown, choice),
        ),
    ];
    let mut parts: Vec<(u8, String, &str)> = layers
        .iter()
        .map(|layer| {
            (
                layer.number,
                layer.source.display().to_string(),
                layer.text.as_str(),
            )
        })
        .collect();
    let learned = learned.iter();
    parts.extend(learned.map(|(source, text)| (2, source.clone(), text.as_str())));
    parts.retain(|(_, _, text)| !text.is_empty());
    parts.sort_by_key(|(number, _, _)| *number);
    let texts: Vec<&str> = parts.iter().map(|(_, _, text)| *text).collect();
    let of_memory = parts.iter().filter(|(number, _, _)| *number == 2);
    let of_memory: Vec<&str> = of_memory.map(|(_, _, text)| *text).collect();
    let rules = chosen.iter().map(|rule| injected_rule(rule));
    let steps = steps.iter().map(|procedure| Injected {
        id: procedure.procedure_id.clone(),
        kind: Kind::Procedure,
        trust: procedure.trust(),
        source: String::new(),
    });
    Assembly {
        prompt: texts.join(RULER),
        learned: of_memory.join(RULER),
        layers: parts
            .iter()
            .map(|(number, source, text)| LayerSize {
                layer: *number,
                source: source.clone(),
                tokens: tokens(text),
            })
            .collect(),
        injected: rules.chain(steps).collect(),
        omitted,
    }
}

/// Returns the rules of the prompt, and the omitted ones.
fn choose_rules<'r>(
    rules: &'r [Reflexion],
    choice: &Choice<'_>,
) -> (Vec<&'r Reflexion>, Vec<Omitted>) {
    let (observed, own): (Vec<&Reflexion>, Vec<&Reflexion>) =
        rules.iter().partition(|rule| rule.observed);
    let (mut chosen, mut omitted) = choose(&own, choice);
    let room = choice.budget.saturating_sub(tokens(&render(&chosen)));
    if room > 0 {
        let choice = Choice {
            budget: room,
            ..*choice
        };
        let (shown, left) = choose(&observed, &choice);
        omitted.extend(left);
        chosen.extend(shown);
    }
    (chosen, omitted)
}

fn injected_rule(rule: &Reflexion) -> Injected {
    Injected {
        id: rule.reflexion_id.clone(),
        kind: Kind::Reflexion,
        trust: if rule.observed {
            Trust::Observed
        } else {
            rule.trust()
        },
        source: rule.source.clone(),
    }
}

#[cfg(test)]
mod tests;
