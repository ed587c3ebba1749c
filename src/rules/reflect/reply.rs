//! Reply of a model: the rule, and its relations to the existing rules.

use std::collections::HashSet;

use memctl_search::words;
use serde::Deserialize;
use serde_json::Value;

use super::{CorrectionContext, Draft, Reflection};
use crate::model::RelatedRule;
use crate::model::text::{one_line, quoted_names};
use crate::rules::regression::assertion;

/// Reason if a model gives none.
const REMARK: &str =
    "it reads like a remark about this one output; say what should hold from now on";

/// Content of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Rule, or reason why there is none.
    pub reflection: Reflection,
    /// Judgements on existing rules, at most one for each. Without a rule there are none.
    pub related: Vec<RelatedRule>,
    /// Parts of the reply that gave way to the person's words, for the report.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    mistake: String,
    root_cause: String,
    rule: String,
    applies_when: String,
    confidence: f64,
    #[serde(default)]
    assertions: Vec<String>,
    #[serde(default)]
    assertions_suffice: bool,
    #[serde(default)]
    related: Vec<RelatedRule>,
}

/// Reads a model's reply. Rejects an empty rule and clamps the confidence to 0 to 1. That nothing
/// lasting follows counts even if the rest of the reply is malformed.
///
/// # Errors
///
/// Returns a lower-case fragment that says what is wrong with the reply.
pub fn accept(context: &CorrectionContext<'_>, reply: &str) -> Result<Reply, String> {
    let value: Value = serde_json::from_str(reply).map_err(|error| error.to_string())?;
    if let Some(reflection) = nothing(&value) {
        return Ok(Reply {
            reflection,
            related: Vec::new(),
            warnings: Vec::new(),
        });
    }
    value["learnable"]
        .as_bool()
        .ok_or("missing field `learnable`")?;
    let answer: Answer = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let rule = one_line(&answer.rule);
    if rule.is_empty() {
        return Err("the rule is empty".to_owned());
    }
    if rule.len() > context.correction.len() * 4 + 2_000 {
        return Err("the rule is far longer than the correction".to_owned());
    }
    let mut warnings = Vec::new();
    let given = answer.assertions.len();
    let mut assertions = answer.assertions;
    assertions.retain(|text| match assertion::read(text) {
        Ok(_) => true,
        Err(error) => {
            warnings.push(error);
            false
        }
    });
    let mut draft = Draft {
        mistake: one_line(&answer.mistake),
        root_cause: one_line(&answer.root_cause),
        rule,
        applies_when: one_line(&answer.applies_when),
        confidence: answer.confidence.clamp(0.0, 1.0),
        doubt: None,
        assertions_suffice: answer.assertions_suffice && given == assertions.len(),
        assertions,
    };
    let related = judgements(context, answer.related);
    keep_to_the_words(context, &mut draft, &mut warnings);
    Ok(Reply {
        reflection: Reflection::Rule(draft),
        related,
        warnings,
    })
}

/// Reads from a malformed reply that nothing lasting follows; `None` if it does not say so.
pub(crate) fn refusal(reply: &str) -> Option<Reflection> {
    let object = reply.get(reply.find('{')?..=reply.rfind('}')?)?;
    nothing(&serde_json::from_str(object).ok()?)
}

fn nothing(value: &Value) -> Option<Reflection> {
    if value["learnable"].as_bool() != Some(false) {
        return None;
    }
    let reason = one_line(value["reason"].as_str().unwrap_or_default());
    let confidence = value["confidence"].as_f64().unwrap_or(0.5);
    Some(Reflection::Nothing {
        reason: if reason.is_empty() {
            REMARK.to_owned()
        } else {
            reason
        },
        confidence: confidence.clamp(0.0, 1.0),
    })
}

/// Judgements on rules that were asked about, the first one for each.
fn judgements(context: &CorrectionContext<'_>, answered: Vec<RelatedRule>) -> Vec<RelatedRule> {
    let mut related: Vec<RelatedRule> = Vec::new();
    for answer in answered {
        let is_asked = context.neighbours.iter().any(|rule| rule.id == answer.id);
        if is_asked && !related.iter().any(|known| known.id == answer.id) {
            let reason = one_line(&answer.reason);
            related.push(RelatedRule { reason, ..answer });
        }
    }
    related
}

/// Drops a condition that the person did not say, and replaces a rule that lost a term of the
/// correction by the person's words.
fn keep_to_the_words(
    context: &CorrectionContext<'_>,
    draft: &mut Draft,
    warnings: &mut Vec<String>,
) {
    if !is_said(&draft.applies_when, context.correction) {
        draft.applies_when.clear();
    }
    let kept = format!("{} {}", draft.rule, draft.applies_when);
    let run = [context.input, context.output];
    let run: Vec<&str> = run.iter().flatten().map(|json| json.get()).collect();
    if let Some(term) = dropped(context.correction, &kept, &run).first() {
        warnings.push(format!(
            "the model's rule left out `{term}`; the rule keeps the words of the correction"
        ));
        draft.rule = one_line(context.correction);
    }
}

/// Returns true if a condition has no content word that the correction lacks.
pub(crate) fn is_said(condition: &str, correction: &str) -> bool {
    let said: HashSet<String> = words(correction).into_iter().collect();
    words(condition).iter().all(|word| said.contains(word))
}

/// Numbers and quoted names of a correction that are missing in `kept`, in order. A term that the
/// input or the output holds describes this run, and may be left out.
pub(crate) fn dropped<'a>(correction: &'a str, kept: &str, run: &[&str]) -> Vec<&'a str> {
    let kept = kept.to_lowercase();
    let mut terms = quoted_names(correction);
    terms.extend(numbers(correction));
    terms.retain(|term| !kept.contains(&term.to_lowercase()));
    terms.retain(|term| !run.iter().any(|text| text.contains(term)));
    terms
}

/// Words with a digit, without the punctuation around them.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let trimmed = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    trimmed.filter(|word| word.chars().any(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_of_other_words_is_not_said() {
        let said = "Always name the rate if an invoice is in euros.";
        for (condition, expected) in [
            ("", true),
            ("When the invoice is in euros.", true),
            ("If invoices are in euros", true),
            ("When processing invoices in euros.", false),
            ("When the customer is in Berlin.", false),
        ] {
            assert_eq!(is_said(condition, said), expected, "{condition}");
        }
    }

    #[test]
    fn numbers_and_quoted_names_of_the_demand_are_kept() {
        let check = |said: &str, kept: &str, run: &[&str], expected: &[&str]| {
            assert_eq!(dropped(said, kept, run), expected, "{said}");
        };
        check(
            "Score below 60 without `system design`.",
            "NEVER score high without \"system design\"",
            &[],
            &["60"],
        );
        check("Score below 60.", "ALWAYS score below 60", &[], &[]);
        check(
            "72 is too high, stay below 60",
            "stay below 60",
            &["{\"score\":72}"],
            &[],
        );
        check("Don't write \"Dear\"", "NEVER greet", &[], &["Dear"]);
    }
}
