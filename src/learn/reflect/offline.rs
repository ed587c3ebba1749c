//! Rule from a correction without a model: the person's words, with the demand marked.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{CorrectionContext, Draft, Reflection};
use crate::learn::lasting::{self, Verdict};
use crate::learn::{correction_quality, wording};

/// Rule that [`offline`] derives from a correction; `None` if it states nothing lasting.
pub fn rule_of(correction: &str) -> Option<String> {
    let said = wording::one_line(correction);
    let is_remark = matches!(lasting::judge(&said), Verdict::Remark(_));
    (!is_remark).then(|| wording::as_rule(&said))
}

/// Derives a rule without a model. A correction that reads like a remark becomes none, unless the
/// person said that it is a rule.
pub fn offline(context: &CorrectionContext<'_>) -> Reflection {
    let said = wording::one_line(context.correction);
    let doubt = match lasting::judge(&said) {
        _ if context.is_rule => None,
        Verdict::Lasting => None,
        Verdict::Unsure(reason) => Some(reason),
        Verdict::Remark(reason) => {
            return Reflection::Nothing {
                reason: reason.to_owned(),
                confidence: correction_quality::REMARK,
            };
        }
    };
    Reflection::Rule(Draft {
        mistake: context.output.map_or_else(String::new, |_| {
            format!("Original output was incorrect. User correction: {said}")
        }),
        root_cause: if context.output.is_some_and(is_empty) {
            EMPTY_OUTPUT.to_owned()
        } else {
            String::new()
        },
        applies_when: applies_when(&said),
        confidence: correction_quality::confidence(&said),
        rule: wording::as_rule(&said),
        doubt,
    })
}

/// The only cause that can be seen without a model.
pub(super) const EMPTY_OUTPUT: &str = "Original output was empty or missing.";

/// Returns true for values that Python treats as false: null, an empty list, zero.
fn is_empty(output: &RawValue) -> bool {
    match serde_json::from_str(output.get()) {
        Ok(Value::Null) => true,
        Ok(Value::Bool(is)) => !is,
        Ok(Value::Number(number)) => number.as_f64() == Some(0.0),
        Ok(Value::String(text)) => text.is_empty(),
        Ok(Value::Array(items)) => items.is_empty(),
        Ok(Value::Object(fields)) => fields.is_empty(),
        Err(_) => false,
    }
}

/// Condition that the person said, in the first sentence; empty if there is none.
pub(super) fn applies_when(said: &str) -> String {
    let (sentence, _) = wording::first_sentence(said);
    match wording::said_condition(sentence) {
        Some(condition) => format!("{}.", wording::capitalised(condition)),
        None => String::new(),
    }
}
