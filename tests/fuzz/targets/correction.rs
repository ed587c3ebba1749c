//! Any text as a correction, as an input, and as what a model answers.

use memctl::rules::reflect::{CorrectionContext, Reflection, accept, offline};
use memctl_llm::json_object;
use memctl_search::{snippet, words};
use serde_json::value::RawValue;

pub(crate) fn run(text: &str) {
    let skill = "hr/x".parse().unwrap();
    let input = serde_json::from_str(text).unwrap_or(RawValue::NULL);
    let context = CorrectionContext {
        skill: &skill,
        correction: text,
        input: Some(input),
        output: (text.len() % 3 == 0).then_some(input),
        is_rule: text.len() % 2 == 0,
        neighbours: &[],
    };
    if let Reflection::Rule(draft) = offline(&context) {
        assert!(!draft.rule.contains('\n') && !draft.applies_when.contains('\n'));
        assert!((0.0..=1.0).contains(&draft.confidence));
    }
    drop(accept(&context, text));
    if let Some(object) = json_object(text) {
        assert!(text.contains(object));
    }
    assert!(snippet(text, &words(text), 40).chars().count() <= 41);
}
