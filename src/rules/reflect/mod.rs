//! Derives a rule from a correction, and relates it to the existing rules.
//!
//! With a model, [`ask`] builds the request and [`accept`] reads the reply. Without one,
//! [`offline()`] keeps the person's words unchanged. A correction that may be about one output only is
//! in doubt. Input and output are never treated as instructions.
//!
//! A model's words are checked against the person's: a condition that the person did not say is
//! dropped, and a rule that lost a number or a quoted name is replaced by the words of the person.
//!
//! Storage, and the comparison with existing rules without a model, happen elsewhere.

use std::collections::HashSet;

use memctl_llm::{Request, Schema};
use memctl_redact::Clean;
use memctl_search::words;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::text::{one_line, quoted_names};
use crate::model::{RelatedRule, SkillPath};
use crate::rules::correct::remark::is_about_one_output;
use crate::rules::regression::assertion;

/// Correction with its context.
#[derive(Debug, Clone, Copy)]
pub struct CorrectionContext<'a> {
    /// Corrected skill.
    pub skill: &'a SkillPath,
    /// Text of the correction.
    pub correction: &'a str,
    /// Input of the skill; `None` if no execution was corrected.
    pub input: Option<&'a RawValue>,
    /// Output of the skill; `None` if no execution was corrected.
    pub output: Option<&'a RawValue>,
    /// True if the person says that the correction is a lasting rule.
    pub is_rule: bool,
    /// Existing rules that a model compares with the correction, nearest first.
    pub neighbours: &'a [Neighbour],
}

/// Existing rule near a correction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    /// Id of the rule.
    pub id: String,
    /// Text of the rule.
    pub rule: String,
    /// Condition of the rule; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub applies_when: String,
}

/// Rule that is not stored yet. In an answer, one without a cause or a condition is no reason to ask, and pay, again.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// Description of the mistake.
    pub mistake: String,
    /// Category of the mistake.
    pub root_cause: String,
    /// Text of the rule, on one line.
    pub rule: String,
    /// Condition of the rule.
    pub applies_when: String,
    /// Specificity of the correction, from 0 to 1.
    #[serde(default = "unsure")]
    pub confidence: f64,
    /// Reason why a person has to say whether it is a rule; `None` if it is one.
    #[serde(skip)]
    pub doubt: Option<&'static str>,
    /// Assertions of a model in the short form.
    pub assertions: Vec<String>,
    /// `true` if they check all that the rule demands.
    pub assertions_suffice: bool,
}

/// Confidence of an answer that gives none.
fn unsure() -> f64 {
    0.5
}

/// Result of a reflection.
#[derive(Debug, Clone, PartialEq)]
pub enum Reflection {
    /// New rule.
    Rule(Draft),
    /// No rule.
    Nothing {
        /// Reason, and advice for a lasting correction.
        reason: String,
        /// Specificity of the correction, from 0 to 1.
        confidence: f64,
    },
}

/// Reason for a doubt.
pub(crate) const ONE_OUTPUT: &str = "it may be about this one output only";

/// The only cause that can be seen without a model.
const EMPTY_OUTPUT: &str = "Original output was empty or missing.";

/// Keeps the words of a correction as a rule.
pub fn offline(context: &CorrectionContext<'_>) -> Reflection {
    let words = one_line(context.correction);
    let is_remark = || {
        let input = context.input.map(parsed).unwrap_or_default();
        let output = context.output.map(parsed).unwrap_or_default();
        is_about_one_output(&words, &input, &output)
    };
    let has_none = context
        .output
        .is_some_and(|output| is_empty(&parsed(output)));
    Reflection::Rule(Draft {
        mistake: context.output.map_or_else(String::new, |_| {
            format!("Original output was incorrect. User correction: {words}")
        }),
        root_cause: if has_none { EMPTY_OUTPUT } else { "" }.to_owned(),
        confidence: confidence(&words),
        doubt: (!context.is_rule && is_remark()).then_some(ONE_OUTPUT),
        rule: words,
        ..Draft::default()
    })
}

fn parsed(json: &RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap_or_default()
}

/// Confidence in the words of a person, from 0.5 to 0.9: longer ones, numbers and names say more
/// exactly what is to change.
fn confidence(words: &str) -> f64 {
    let of_length = match words.split_whitespace().count() {
        0..=3 => 0.5,
        4..=7 => 0.6,
        8..=15 => 0.7,
        _ => 0.8,
    };
    let names = words.contains(|c: char| c.is_ascii_digit() || "`\"“_".contains(c));
    let sum: f64 = of_length + if names { 0.1 } else { 0.0 };
    (sum * 100.0).round() / 100.0
}

/// Returns true for values that Python treats as false: null, an empty list, zero.
fn is_empty(output: &Value) -> bool {
    let falsy = [json!(null), json!(false), json!(""), json!([]), json!({})];
    output.as_f64() == Some(0.0) || falsy.contains(output)
}

/// Default prompt; users can replace it.
pub const PROMPT: &str = include_str!("prompts/reflect.md");
/// Maximum length of a reply, in tokens.
const MAX_TOKENS: u32 = 1536;
/// Maximum length of an input or output in the prompt, in bytes.
const MAX_SHOWN: usize = 24_000;

/// Builds the request to a model. `system` is [`PROMPT`] or the user's replacement.
pub fn ask(context: &CorrectionContext<'_>, system: &str) -> Request {
    let mut user = format!("<skill>{}</skill>", context.skill);
    let mut add = |name: &str, text: &str| {
        user.extend(["\n<", name, ">\n", &fenced(text), "\n</", name, ">"]);
    };
    for (name, json) in [("input", context.input), ("output", context.output)] {
        if let Some(json) = json {
            add(name, json.get());
        }
    }
    add("correction", context.correction.trim());
    if !context.neighbours.is_empty() {
        user.push_str("\n<rules>\n");
        for rule in context.neighbours {
            user.extend([&*fenced(&json!(rule).to_string()), "\n"]);
        }
        user.push_str("</rules>");
    }
    Request {
        system: system.to_owned(),
        user,
        schema: Some(Schema {
            name: "reflexion".to_owned(),
            json: schema(context.neighbours),
        }),
        max_tokens: MAX_TOKENS,
    }
}

/// Redacted text, cut to a maximum length, that cannot close its enclosing tag.
pub(crate) fn fenced(text: &str) -> String {
    let text = Clean::of(text);
    let head = text.head(MAX_SHOWN);
    let cut = if head.len() < text.as_str().len() {
        "\n[cut]"
    } else {
        ""
    };
    head.replace("</", "<\\/") + cut
}

/// Schema of the reply. Without existing rules it has no field for their relations.
fn schema(neighbours: &[Neighbour]) -> Value {
    let file = include_str!("prompts/reflect.schema.json");
    let mut schema: Value = serde_json::from_str(file).unwrap_or_default();
    if !neighbours.is_empty() {
        let ids: Vec<&str> = neighbours.iter().map(|rule| rule.id.as_str()).collect();
        schema["properties"]["related"]["items"]["properties"]["id"]["enum"] = json!(ids);
    } else if let Some(properties) = schema["properties"].as_object_mut() {
        properties.shift_remove("related");
        let required = schema["required"].as_array_mut();
        required.and_then(Vec::pop);
    }
    schema
}

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

/// Reads a model's reply. Rejects an empty rule and clamps the confidence to 0 to 1. That nothing
/// lasting follows counts even if the rest of the reply is malformed.
///
/// # Errors
///
/// Returns a lower-case fragment that says what is wrong with the reply.
pub fn accept(context: &CorrectionContext<'_>, reply: &str) -> Result<Reply, String> {
    let mut value: Value = serde_json::from_str(reply).map_err(|error| error.to_string())?;
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
    if let Some(fields) = value.as_object_mut() {
        // Strict modes answer `null` for what is missing.
        fields.retain(|_, value| !value.is_null());
    }
    let answered: Option<Vec<RelatedRule>> =
        serde_json::from_value(value["related"].take()).map_err(|error| error.to_string())?;
    let mut draft: Draft = serde_json::from_value(value).map_err(|error| error.to_string())?;
    for text in [
        &mut draft.mistake, &mut draft.root_cause, &mut draft.rule, &mut draft.applies_when,
    ] {
        *text = one_line(text);
    }
    if draft.rule.is_empty() {
        return Err("the rule is empty".to_owned());
    }
    if draft.rule.len() > context.correction.len() * 4 + 2_000 {
        return Err("the rule is far longer than the correction".to_owned());
    }
    draft.confidence = draft.confidence.clamp(0.0, 1.0);
    let mut warnings = Vec::new();
    let given = draft.assertions.len();
    draft.assertions.retain(|text| {
        let read = assertion::read(text);
        warnings.extend(read.as_ref().err().cloned());
        read.is_ok()
    });
    draft.assertions_suffice &= given == draft.assertions.len();
    let related = judgements(context, answered.unwrap_or_default());
    keep_to_the_words(context, &mut draft, &mut warnings);
    Ok(Reply {
        reflection: Reflection::Rule(draft),
        related,
        warnings,
    })
}

fn nothing(value: &Value) -> Option<Reflection> {
    if value["learnable"].as_bool() != Some(false) {
        return None;
    }
    let reason = one_line(value["reason"].as_str().unwrap_or_default());
    let confidence = value["confidence"].as_f64().unwrap_or_else(unsure);
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
        if is_asked && !related.iter().any(|judged| judged.id == answer.id) {
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
    let draft_text = format!("{} {}", draft.rule, draft.applies_when);
    let run = [context.input, context.output];
    let run: Vec<&str> = run.iter().flatten().map(|json| json.get()).collect();
    if let Some(term) = dropped(context.correction, &draft_text, &run).first() {
        warnings.push(format!(
            "the model's rule left out `{term}`; the rule keeps the words of the correction"
        ));
        draft.rule = one_line(context.correction);
    }
}

/// Returns true if a condition has no content word that the correction lacks.
pub(crate) fn is_said(condition: &str, correction: &str) -> bool {
    let own_words: HashSet<String> = words(correction).into_iter().collect();
    words(condition).iter().all(|word| own_words.contains(word))
}

/// Numbers and quoted names of a correction that are missing in `reworded`, in order. A term that the
/// input or the output holds describes this run, and may be left out.
pub(crate) fn dropped<'a>(correction: &'a str, reworded: &str, run: &[&str]) -> Vec<&'a str> {
    let reworded = reworded.to_lowercase();
    let mut terms = quoted_names(correction);
    terms.extend(numbers(correction));
    terms.retain(|term| !reworded.contains(&term.to_lowercase()));
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
mod tests_of_offline {
    use super::*;

    #[test]
    fn exact_words_are_surer_than_vague_ones() {
        let exact = "When screening for senior backend roles, weigh system design experience \
                     separately. A candidate without it should score below 60.";
        for (correction, expected) in [
            ("this is wrong", 0.5),
            ("The score should be 55.", 0.7),
            ("Use pnpm here and never npm.", 0.6),
            (exact, 0.9),
        ] {
            assert!(
                (confidence(correction) - expected).abs() < 1e-9,
                "{correction}"
            );
        }
    }
}

#[cfg(test)]
mod tests_of_replies {
    use super::*;

    #[test]
    fn condition_of_other_words_is_not_said() {
        let correction = "Always name the rate if an invoice is in euros.";
        for (condition, expected) in [
            ("", true),
            ("When the invoice is in euros.", true),
            ("If invoices are in euros", true),
            ("When processing invoices in euros.", false),
            ("When the customer is in Berlin.", false),
        ] {
            assert_eq!(is_said(condition, correction), expected, "{condition}");
        }
    }

    #[test]
    fn numbers_and_quoted_names_of_the_demand_are_kept() {
        let check = |correction: &str, reworded: &str, run: &[&str], expected: &[&str]| {
            assert_eq!(dropped(correction, reworded, run), expected, "{correction}");
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
