//! Rule from a correction without a model: the person's words, unchanged.
//!
//! Nothing is guessed: no condition, no cause, no emphasis. What may be about one output only is in
//! doubt until a person says that it is a rule.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{CorrectionContext, Draft, Reflection};
use crate::model::text::one_line;
use crate::rules::correct::remark::is_about_one_output;

/// Reason for a doubt.
pub(crate) const ONE_OUTPUT: &str = "it may be about this one output only";

/// The only cause that can be seen without a model.
pub(super) const EMPTY_OUTPUT: &str = "Original output was empty or missing.";

/// Keeps the words of a correction as a rule.
pub fn offline(context: &CorrectionContext<'_>) -> Reflection {
    let said = one_line(context.correction);
    let is_remark = || {
        let input = context.input.map(parsed).unwrap_or_default();
        let output = context.output.map(parsed).unwrap_or_default();
        is_about_one_output(&said, &input, &output)
    };
    Reflection::Rule(Draft {
        mistake: context.output.map_or_else(String::new, |_| {
            format!("Original output was incorrect. User correction: {said}")
        }),
        root_cause: if context
            .output
            .is_some_and(|output| is_empty(&parsed(output)))
        {
            EMPTY_OUTPUT.to_owned()
        } else {
            String::new()
        },
        applies_when: String::new(),
        confidence: confidence(&said),
        doubt: (!context.is_rule && is_remark()).then_some(ONE_OUTPUT),
        rule: said,
        assertions: Vec::new(),
        assertions_suffice: false,
    })
}

fn parsed(json: &RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap_or_default()
}

/// Confidence in the words of a person, from 0.5 to 0.9: longer ones, numbers and names say more
/// exactly what is to change.
fn confidence(said: &str) -> f64 {
    let of_length = match said.split_whitespace().count() {
        0..=3 => 0.5,
        4..=7 => 0.6,
        8..=15 => 0.7,
        _ => 0.8,
    };
    let names = said.contains(|c: char| c.is_ascii_digit() || "`\"“_".contains(c));
    let sum: f64 = of_length + if names { 0.1 } else { 0.0 };
    (sum * 100.0).round() / 100.0
}

/// Returns true for values that Python treats as false: null, an empty list, zero.
fn is_empty(output: &Value) -> bool {
    match output {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_words_are_surer_than_vague_ones() {
        let exact = "When screening for senior backend roles, weigh system design experience \
                     separately. A candidate without it should score below 60.";
        for (said, expected) in [
            ("this is wrong", 0.5),
            ("The score should be 55.", 0.7),
            ("Use pnpm here and never npm.", 0.6),
            (exact, 0.9),
        ] {
            assert!((confidence(said) - expected).abs() < 1e-9, "{said}");
        }
    }
}
