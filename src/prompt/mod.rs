//! Prompt of a skill: up to four layers, with a selection of learned rules as layer 2.
//!
//! ```text
//! 0 WORKSPACE.md   1 DOMAIN.md   2 learned rules   3 SKILL.md
//! ```
//!
//! Layers are joined by a ruler and have no headings of their own, byte for byte as in the
//! reference implementation.
//!
//! - `choice`: parameters of the selection. `choose`: selects rules within the token budget.
//! - `render`: text of the rules.
//!
//! Pure: layers, rules and the time are arguments.

mod choice;
mod choose;
mod render;

use serde::Serialize;

use crate::model::{Kind, Record as _, Reflexion, Trust};
use crate::skill::Layer;

pub use choice::{Choice, Omitted, tokens};

use choose::choose;
use render::{render, render_observed};

/// Separator between layers.
const RULER: &str = "\n\n---\n\n";

/// Assembled prompt with its parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assembly {
    /// Text for the model.
    pub prompt: String,
    /// Non-empty layers in order.
    pub layers: Vec<LayerSize>,
    /// Rules in the prompt, in order.
    pub injected: Vec<Injected>,
    /// Rules of this skill that are not in the prompt, with reasons.
    pub omitted: Vec<Omitted>,
    /// Ids of the omitted rules that only the experiment withheld.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

/// One layer of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerSize {
    /// Number from 0 to 3.
    pub layer: u8,
    /// Source of the layer.
    pub source: String,
    /// Approximate number of tokens.
    pub tokens: usize,
}

/// Record in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// Assembles a prompt. `rules` are those of the skill in file order, oldest first; `rules_source`
/// is the display name of their source.
pub fn assemble(
    layers: &[Layer],
    rules: &[Reflexion],
    rules_source: &str,
    choice: &Choice<'_>,
) -> Assembly {
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
    let mut withheld = Vec::new();
    chosen.retain(|rule| {
        let is_withheld = choice.withheld.contains(&rule.reflexion_id);
        if is_withheld {
            withheld.push(rule.reflexion_id.clone());
            omitted.push(Omitted {
                id: rule.reflexion_id.clone(),
                status: rule.state(),
                reason: "withheld at random (`experiment.withhold`)".to_owned(),
            });
        }
        !is_withheld
    });
    let (shown, own): (Vec<&Reflexion>, Vec<&Reflexion>) =
        chosen.iter().partition(|rule| rule.observed);
    let learned = render(&own);
    let observed = render_observed(&shown, choice);
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
    parts.push((2, rules_source.to_owned(), &learned));
    parts.push((2, format!("{rules_source} (observed)"), &observed));
    parts.retain(|(_, _, text)| !text.is_empty());
    parts.sort_by_key(|(number, _, _)| *number);
    let texts: Vec<&str> = parts.iter().map(|(_, _, text)| *text).collect();
    Assembly {
        prompt: texts.join(RULER),
        layers: parts
            .iter()
            .map(|(number, source, text)| LayerSize {
                layer: *number,
                source: source.clone(),
                tokens: tokens(text),
            })
            .collect(),
        injected: chosen
            .iter()
            .map(|rule| Injected {
                id: rule.reflexion_id.clone(),
                kind: Kind::Reflexion,
                trust: if rule.observed {
                    Trust::Observed
                } else {
                    rule.trust()
                },
                source: rule.source.clone(),
            })
            .collect(),
        omitted,
        withheld,
    }
}

#[cfg(test)]
mod tests;
