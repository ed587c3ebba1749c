//! Derives assertions from the text of a correction.
//!
//! Precision comes first. A sentence yields no assertion if it is ambiguous, if it hedges
//! ("unless", "preferably"), or if it names nothing in the output. A judge then decides the case, as
//! it does if an assertion covers a part of its sentence only: [`Derived::is_whole`] is false.
//! Text must be English, except inside quotation marks.
//!
//! Two outputs serve as evidence. An assertion that the expected output fails is dropped. A limited
//! or ambiguous assertion counts only if the corrected output fails it. A condition ("if the
//! customer is new") holds for the corrected output only if its sentence is the whole correction; in
//! longer ones it may speak of other inputs, and is left to the judge.

mod comparisons;
mod texts;
mod values;

use serde_json::{Value, json};

use super::super::wording;
use super::clause::{Sentence, Token, sentences};
use super::fields::{Field, fields, meant};
use super::{Assertion, Check, Operator, Path, expected, whole};

/// Assertion candidate from one sentence.
struct Found {
    check: Check,
    /// Counts only if the corrected output fails it.
    needs_witness: bool,
}

/// Assertions of a correction.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// Assertions, in the order of the text, then those of the expected output.
    pub assertions: Vec<Assertion>,
    /// True if the assertions surely cover every demand of the text.
    pub is_whole: bool,
}

/// Derives assertions from a correction of `output`. `expected` is the correct output, if known.
pub fn derive(correction: &str, output: &Value, expected: Option<&Value>) -> Derived {
    let output = whole(output);
    let expected = expected.map(whole);
    let reader = Reader {
        output,
        fields: fields(output),
        expected,
    };
    let sentences = sentences(wording::without_interjections(correction));
    let is_only = sentences.len() == 1;
    let mut found: Vec<(Assertion, bool)> = Vec::new();
    for sentence in &sentences {
        if sentence.is_hedged() || (sentence.is_conditional() && !is_only) {
            continue;
        }
        for demand in reader.read(sentence) {
            let needs_witness = demand.needs_witness || sentence.is_limited();
            let assertion = Assertion {
                check: demand.check,
                said: sentence.text.clone(),
            };
            let right = expected.is_none_or(|expected| assertion.check(expected).is_ok());
            let known = found
                .iter()
                .any(|(other, _)| other.check == assertion.check);
            if right && !known {
                found.push((assertion, needs_witness));
            }
        }
    }
    without_contradictions(&mut found);
    let mut assertions: Vec<Assertion> = found
        .into_iter()
        .filter(|(assertion, needs_witness)| !needs_witness || assertion.check(output).is_err())
        .map(|(assertion, _)| assertion)
        .collect();
    let is_whole = !assertions.is_empty()
        && sentences
            .iter()
            .all(|sentence| reader.is_covered(sentence, &assertions));
    if let Some(expected) = expected {
        let covered: Vec<Path> = assertions
            .iter()
            .map(|assertion| assertion.check.path().clone())
            .collect();
        assertions.extend(expected::derive(output, expected, &covered));
    }
    Derived {
        assertions,
        is_whole,
    }
}

/// Sentences of a correction that may demand something: all but questions and interjections.
pub fn demands(correction: &str) -> Vec<String> {
    let sentences = sentences(wording::without_interjections(correction));
    sentences
        .into_iter()
        .map(|sentence| sentence.text)
        .collect()
}

/// Removes contradictory demands on one field. Each applies to other inputs, and the text does not
/// say which applies here.
fn without_contradictions(found: &mut Vec<(Assertion, bool)>) {
    let bounds = |check: &Check| -> Option<(f64, f64)> {
        let Check::Compare { is, value, .. } = check else {
            return None;
        };
        let value = value.as_f64()?;
        Some(match is {
            Operator::Below | Operator::AtMost => (f64::NEG_INFINITY, value),
            Operator::Above | Operator::AtLeast => (value, f64::INFINITY),
            Operator::Exactly => (value, value),
            Operator::Not => return None,
        })
    };
    let clash = |a: &Check, b: &Check| {
        if a.path() != b.path() || a == b {
            return false;
        }
        match (a, b) {
            (Check::Compare { .. }, Check::Compare { .. }) => bounds(a)
                .zip(bounds(b))
                .is_some_and(|(a, b)| a.0.max(b.0) >= a.1.min(b.1)),
            (
                Check::Equals { .. } | Check::OneOf { .. },
                Check::Equals { .. } | Check::OneOf { .. },
            ) => true,
            _ => false,
        }
    };
    let all: Vec<Check> = found.iter().map(|(a, _)| a.check.clone()).collect();
    found.retain(|(assertion, _)| !all.iter().any(|other| clash(&assertion.check, other)));
}

const NEGATIONS: &[&str] = &[
    "never", "not", "don't", "dont", "shouldn't", "mustn't", "cannot", "can't", "won't", "doesn't",
];
const MODALS: &[&str] = &[
    "should", "must", "shall", "has", "have", "need", "needs", "will", "can", "may",
];
/// Words allowed between a field and its comparison.
const FILLERS: &[&str] = &[
    "be", "is", "are", "was", "been", "stay", "stays", "remain", "remains", "keep", "kept", "come",
    "get", "gets", "a", "an", "the", "of", "to", "value", "always", "never", "not", "set",
    "should", "must", "shall", "has", "have", "need", "needs", "will", "can", "may", "only",
    "don't", "do", "ever", "cannot", "can't", "shouldn't", "mustn't", "in", "go", "either", "lie",
    "at", "any",
];

struct Reader<'v> {
    output: &'v Value,
    fields: Vec<Field<'v>>,
    expected: Option<&'v Value>,
}

impl Reader<'_> {
    /// Returns true if assertions cover a sentence: each of its clauses gives one of them, holds
    /// nothing but words of them, or says what they apply to. In doubt it is false, and a judge is
    /// asked, too.
    fn is_covered(&self, sentence: &Sentence, assertions: &[Assertion]) -> bool {
        let checks: Vec<&Check> = assertions
            .iter()
            .filter(|assertion| assertion.said == sentence.text)
            .map(|assertion| &assertion.check)
            .collect();
        let words = json!(checks).to_string().to_lowercase();
        let is_explained = |token: &Token| {
            FILLERS.contains(&token.lower.as_str())
                || is_word(token, "or")
                || words.contains(&token.lower)
        };
        let gives_one = |clause: &Sentence| {
            let mut found = self.read(clause).into_iter();
            let mut quoted = clause.tokens.iter().filter(|token| token.quoted);
            quoted.all(is_explained) && found.any(|demand| checks.contains(&&demand.check))
        };
        let clauses = sentence.clauses();
        let first = clauses.iter().position(gives_one);
        let is_contrast = |clause: &Sentence| {
            let first = clause.tokens.first();
            first.is_some_and(|first| is_word(first, "not"))
        };
        !checks.is_empty()
            && clauses.iter().enumerate().all(|(at, clause)| {
                gives_one(clause)
                    || is_contrast(clause)
                    || clause.is_conditional()
                    || (first.is_some_and(|first| at < first) && clause.is_subject())
                    || clause.tokens.iter().all(is_explained)
            })
    }

    fn read(&self, sentence: &Sentence) -> Vec<Found> {
        let sentence = &sentence.without_conditions();
        let mut found = self.comparisons(sentence);
        found.extend(self.values(sentence));
        found.extend(self.required(sentence));
        found.extend(self.said(sentence));
        found.extend(self.instead(sentence));
        found.extend(self.dates(sentence));
        found
    }

    /// Field mentioned right before a position, otherwise at the start of its sentence.
    fn compared(
        &self,
        tokens: &[Token],
        at: usize,
        fits: impl Fn(&Value) -> bool + Copy,
    ) -> Option<&Field<'_>> {
        let before: Vec<&Token> = tokens[..at]
            .iter()
            .rev()
            .skip_while(|t| !t.quoted && FILLERS.contains(&t.lower.as_str()))
            .collect();
        let last = before.first()?;
        if last.pauses && !last.quoted {
            return None;
        }
        let pair = before
            .get(1)
            .map(|first| format!("{} {}", first.text, last.text));
        let near = pair
            .and_then(|pair| meant(&self.fields, &pair, fits))
            .or_else(|| meant(&self.fields, &last.text, fits));
        // "Score candidates without a degree below 60": the verb names the field.
        near.or_else(|| {
            let first = tokens[..at]
                .iter()
                .find(|t| !["always", "please", "never"].contains(&t.lower.as_str()))?;
            let is_verb = ["score", "rate", "rank", "price", "weigh", "weight"]
                .contains(&first.lower.as_str());
            is_verb
                .then(|| meant(&self.fields, &first.lower, fits))
                .flatten()
        })
    }
}

fn is_word(token: &Token, word: &str) -> bool {
    !token.quoted && token.lower == word
}

/// Returns true if a negation applies at a position: "should not score above", "never return more
/// than". A negation before the modal verb does not apply.
fn negated(tokens: &[Token], at: usize) -> bool {
    for token in tokens[..at].iter().rev().take(4) {
        if NEGATIONS.contains(&token.lower.as_str()) && !token.quoted {
            return true;
        }
        if MODALS.contains(&token.lower.as_str()) || token.pauses {
            return false;
        }
    }
    false
}

fn is_identifier(token: &Token) -> bool {
    let mut chars = token.text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests;
