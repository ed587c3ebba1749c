//! The prompt of a skill: up to four layers, and the choice of rules that fit into the second.
//!
//! ```text
//! 0 WORKSPACE.md   1 DOMAIN.md   2 learned rules   3 SKILL.md
//! ```
//!
//! Layers are joined by a ruler and carry no headings of their own, byte for byte as the reference
//! implementation writes them.
//!
//! - `choose`: which of the rules there is room for.
//! - `render`: how they are written down.
//!
//! Pure: the layers and rules are arguments, and so is the time.

mod choose;
mod render;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::model::{Kind, Record as _, Reflexion, Trust};
use crate::skill::Layer;

use choose::choose;
use render::{render, render_observed};

/// What stands between two layers.
const RULER: &str = "\n\n---\n\n";

/// A prompt, and what it is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assembly {
    /// The text that goes to the model.
    pub prompt: String,
    /// Its layers, from the first.
    pub layers: Vec<LayerSize>,
    /// The rules that stand in it, in their order.
    pub injected: Vec<Injected>,
    /// The rules of this skill that do not, and why.
    pub omitted: Vec<Omitted>,
    /// Those of them that would stand in it, were it not for the experiment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

/// One layer of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerSize {
    /// 0 to 3.
    pub layer: u8,
    /// Where it came from.
    pub source: String,
    /// About how many tokens it has.
    pub tokens: usize,
}

/// A record that stands in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Injected {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// How far it may be believed; left out of what people have said.
    #[serde(skip_serializing_if = "is_of_a_person")]
    pub trust: Trust,
    /// Who brought it, where the record says so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_of_a_person(trust: &Trust) -> bool {
    *trust == Trust::User
}

/// A record that could have stood in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Its id.
    pub id: String,
    /// How it stands: `active`, `candidate`, `superseded` or `retired`.
    pub status: &'static str,
    /// Why it does not.
    pub reason: String,
}

/// How rules are chosen.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// What the skill is about to be given; `None` where that is not known.
    pub input: Option<&'a str>,
    /// The room for rules, in tokens.
    pub budget: usize,
    /// Now, for what is new.
    pub now: DateTime<Utc>,
    /// The ids of rules that the experiment withholds this time. Their room stays empty.
    pub withheld: &'a [String],
    /// Sets rules that nobody here stands behind apart as data, with a random word.
    pub fence: fn(&str, &str) -> String,
    /// The random word.
    pub nonce: &'a str,
}

/// Puts a prompt together. `rules` are those of the skill, oldest first, as they stand in the file;
/// `rules_source` names where they came from.
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

/// One half where nothing is said.
fn confidence(rule: &Reflexion) -> f64 {
    rule.confidence.unwrap_or(0.5)
}

/// About how many tokens a text has: a quarter of its bytes in Latin script, and one for each
/// character of scripts that tokenizers know less well. Within a fifth of real tokenizers on
/// English prose and on JSON, which is what budgets need.
pub fn tokens(text: &str) -> usize {
    let (ascii, other) = text.chars().fold((0, 0), |(ascii, other), c| {
        if c.is_ascii() {
            (ascii + 1, other)
        } else {
            (ascii, other + 1)
        }
    });
    usize::div_ceil(ascii, 4) + other
}

#[cfg(test)]
mod tests;
