//! Reply of a model: the rule, and its relations to the existing rules.

use serde::Deserialize;

use super::offline::{applies_when, offline};
use super::{CorrectionContext, Draft, Judged, Reflection, dropped, is_said};
use crate::learn::{lasting, wording};
use crate::model::RuleRelation;

/// Content of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Rule, or reason why there is none.
    pub reflection: Reflection,
    /// Judgements on existing rules, at most one for each. Without a rule there are none.
    pub related: Vec<Judged>,
    /// Parts of the reply that gave way to the person's words, for the report.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    learnable: bool,
    reason: String,
    mistake: String,
    root_cause: String,
    rule: String,
    applies_when: String,
    confidence: f64,
    #[serde(default)]
    related: Vec<AnsweredRelation>,
}

#[derive(Deserialize)]
struct AnsweredRelation {
    id: String,
    relation: RuleRelation,
    #[serde(default)]
    reason: String,
}

/// Reads a model's reply. Rejects an empty rule and clamps the confidence to 0 to 1.
///
/// # Errors
///
/// Returns a lower-case fragment that says what is wrong with the reply.
pub fn accept(context: &CorrectionContext<'_>, reply: &str) -> Result<Reply, String> {
    let answer: Answer = serde_json::from_str(reply).map_err(|error| error.to_string())?;
    let confidence = answer.confidence.clamp(0.0, 1.0);
    if !answer.learnable {
        let reason = wording::one_line(&answer.reason);
        return Ok(Reply {
            reflection: Reflection::Nothing {
                reason: if reason.is_empty() {
                    lasting::REMARK.to_owned()
                } else {
                    reason
                },
                confidence,
            },
            related: Vec::new(),
            warnings: Vec::new(),
        });
    }
    let rule = wording::one_line(&answer.rule);
    if rule.is_empty() {
        return Err("the rule is empty".to_owned());
    }
    if rule.len() > context.correction.len() * 4 + 2_000 {
        return Err("the rule is far longer than the correction".to_owned());
    }
    let mut draft = Draft {
        mistake: wording::one_line(&answer.mistake),
        root_cause: wording::one_line(&answer.root_cause),
        rule,
        applies_when: wording::one_line(&answer.applies_when),
        confidence,
        doubt: None,
    };
    let related = judgements(context, answer.related);
    let warnings = keep_to_the_words(context, &mut draft);
    Ok(Reply {
        reflection: Reflection::Rule(draft),
        related,
        warnings,
    })
}

/// Judgements on rules that were asked about, the first one for each.
fn judgements(context: &CorrectionContext<'_>, answered: Vec<AnsweredRelation>) -> Vec<Judged> {
    let mut related: Vec<Judged> = Vec::new();
    for answer in answered {
        let is_asked = context.neighbours.iter().any(|rule| rule.id == answer.id);
        if is_asked && !related.iter().any(|known| known.id == answer.id) {
            related.push(Judged {
                id: answer.id,
                relation: answer.relation,
                reason: wording::one_line(&answer.reason),
            });
        }
    }
    related
}

/// Replaces a condition that the person did not say, and a rule that lost a term of the correction.
fn keep_to_the_words(context: &CorrectionContext<'_>, draft: &mut Draft) -> Vec<String> {
    let mut warnings = Vec::new();
    if !is_said(&draft.applies_when, context.correction) {
        draft.applies_when = applies_when(&wording::one_line(context.correction));
    }
    let kept = format!("{} {}", draft.rule, draft.applies_when);
    let run = [context.input, context.output];
    let run: Vec<&str> = run.iter().flatten().map(|json| json.get()).collect();
    let lost = dropped(context.correction, &kept, &run);
    if let Some(term) = lost.first() {
        let own = offline(&CorrectionContext {
            is_rule: true,
            ..*context
        });
        if let Reflection::Rule(own) = own {
            warnings.push(format!(
                "the model's rule left out `{term}`; the rule keeps the words of the correction"
            ));
            draft.rule = own.rule;
        }
    }
    warnings
}
