//! Comparisons of numbers, lengths and counts.

use serde_json::{Number, Value};

use super::super::clause::{Sentence, Token, number};
use super::super::fields::{meant, parts};
use super::super::{Check, Operator, Path, Unit};
use super::{FILLERS, Found, Reader, is_word, negated};

/// Comparison phrases, longer ones first.
const COMPARISONS: &[(&[&str], Operator)] = &[
    (&["less", "than", "or", "equal", "to"], Operator::AtMost),
    (&["greater", "than", "or", "equal", "to"], Operator::AtLeast),
    (&["no", "more", "than"], Operator::AtMost),
    (&["no", "less", "than"], Operator::AtLeast),
    (&["no", "fewer", "than"], Operator::AtLeast),
    (&["no", "higher", "than"], Operator::AtMost),
    (&["no", "greater", "than"], Operator::AtMost),
    (&["no", "lower", "than"], Operator::AtLeast),
    (&["no", "longer", "than"], Operator::AtMost),
    (&["no", "shorter", "than"], Operator::AtLeast),
    (&["maximum", "of"], Operator::AtMost),
    (&["minimum", "of"], Operator::AtLeast),
    (&["more", "than"], Operator::Above),
    (&["greater", "than"], Operator::Above),
    (&["higher", "than"], Operator::Above),
    (&["larger", "than"], Operator::Above),
    (&["longer", "than"], Operator::Above),
    (&["less", "than"], Operator::Below),
    (&["lower", "than"], Operator::Below),
    (&["fewer", "than"], Operator::Below),
    (&["smaller", "than"], Operator::Below),
    (&["shorter", "than"], Operator::Below),
    (&["at", "most"], Operator::AtMost),
    (&["at", "least"], Operator::AtLeast),
    (&["up", "to"], Operator::AtMost),
    (&["equal", "to"], Operator::Exactly),
    (&["below"], Operator::Below),
    (&["under"], Operator::Below),
    (&["above"], Operator::Above),
    (&["over"], Operator::Above),
    (&["exceed"], Operator::Above),
    (&["exceeds"], Operator::Above),
    (&["within"], Operator::AtMost),
    (&["exactly"], Operator::Exactly),
    (&["<"], Operator::Below),
    (&["<="], Operator::AtMost),
    (&["≤"], Operator::AtMost),
    (&[">"], Operator::Above),
    (&[">="], Operator::AtLeast),
    (&["≥"], Operator::AtLeast),
    (&["=="], Operator::Exactly),
    (&["="], Operator::Exactly),
];

/// Units and scales that change the meaning of a number.
const SCALES: &[&str] = &[
    "million", "billion", "thousand", "hundred", "k", "m", "percent", "times", "percentage",
    "years", "year", "days", "day", "hours", "hour", "minutes", "minute", "seconds", "second",
    "weeks", "months", "ms",
];

/// Words for the whole output; `THINGS` are words for the items of its list.
const OUTPUT: &[&str] = &[
    "it", "answer", "output", "response", "reply", "result", "text", "message", "everything",
];

const THINGS: &[&str] = &[
    "item", "entry", "result", "element", "thing", "row", "record", "object",
];

impl Reader<'_> {
    /// "should score below 60", "never more than 3 items", "under 100 words", "between 0 and 1".
    pub(super) fn comparisons(&self, sentence: &Sentence) -> Vec<Found> {
        let tokens = &sentence.tokens;
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let (is, length) = match comparison(&tokens[at..]) {
                Some(comparison) => comparison,
                None if is_word(&tokens[at], "between") => {
                    let numbers = (number_at(tokens, at + 1), number_at(tokens, at + 3));
                    if let (Some(from), Some(to)) = numbers
                        && tokens.get(at + 2).is_some_and(|t| is_word(t, "and"))
                        && !negated(tokens, at)
                    {
                        found.extend(self.bound(tokens, at, Operator::AtLeast, &from, at + 4));
                        found.extend(self.bound(tokens, at, Operator::AtMost, &to, at + 4));
                    }
                    at += 1;
                    continue;
                }
                None => {
                    at += 1;
                    continue;
                }
            };
            if let Some(value) = number_at(tokens, at + length) {
                let is = if negated(tokens, at) {
                    is.negated()
                } else {
                    is
                };
                found.extend(self.bound(tokens, at, is, &value, at + length + 1));
            }
            at += length;
        }
        found.extend(self.limits(tokens));
        found
    }

    /// Demands like "in 100 words or less", "limit it to 3 items".
    fn limits(&self, tokens: &[Token]) -> Vec<Found> {
        let mut found = Vec::new();
        for at in 0..tokens.len() {
            let Some(value) = number_at(tokens, at) else {
                continue;
            };
            let or_less = tokens.get(at + 2).is_some_and(|t| is_word(t, "or"))
                && tokens
                    .get(at + 3)
                    .is_some_and(|t| ["less", "fewer"].contains(&t.lower.as_str()));
            let limited = at > 0
                && is_word(&tokens[at - 1], "to")
                && tokens[..at - 1].iter().rev().take(4).any(|t| {
                    [
                        "limit", "limited", "cap", "capped", "restrict", "keep", "cut",
                    ]
                    .contains(&t.lower.as_str())
                });
            // Only lengths and counts: "keep the score to 60" is ambiguous.
            let counted = tokens.get(at + 1).is_some();
            if (or_less || limited) && counted && !negated(tokens, at) {
                let all = self.bound(tokens, at, Operator::AtMost, &value, at + 1);
                found.extend(all.filter(|f| !matches!(f.check, Check::Compare { .. })));
            }
        }
        found
    }

    /// Demand of a comparison: the subject precedes it, and the counted noun, if any, follows the
    /// number.
    fn bound(
        &self,
        tokens: &[Token],
        at: usize,
        is: Operator,
        value: &Number,
        behind: usize,
    ) -> Option<Found> {
        let certain = |check| Found {
            check,
            needs_witness: false,
        };
        // "is over 10 words too long" is a statement, not a demand.
        let tells = |token: &Token| ["is", "was", "are", "were"].contains(&token.lower.as_str());
        if at > 0 && tells(&tokens[at - 1]) {
            return None;
        }
        let ended = tokens[behind - 1].pauses;
        let noun = tokens.get(behind).filter(|_| !ended);
        if let (Some(noun), Some(count)) = (noun, value.as_u64()) {
            let unit = match noun.lower.as_str() {
                "word" | "words" => Some(Unit::Words),
                "character" | "characters" | "chars" => Some(Unit::Characters),
                _ => None,
            };
            if let Some(unit) = unit {
                let path = self.prose(tokens, at)?;
                return Some(certain(Check::Length {
                    path,
                    unit,
                    is,
                    value: count,
                }));
            }
            if let Some(path) = self.list(&tokens[behind..]) {
                return Some(certain(Check::Count {
                    path,
                    is,
                    value: count,
                }));
            }
        }
        if noun.is_some_and(|noun| !goes_on(&noun.lower)) {
            return None;
        }
        let field = self.compared(tokens, at, Value::is_number)?;
        let named_percent = tokens[behind - 1].text.ends_with('%');
        let is_share = field.value.as_f64().is_some_and(|v| v.abs() <= 1.0);
        if named_percent && is_share {
            return None;
        }
        Some(certain(Check::Compare {
            path: field.path.clone(),
            is,
            value: value.clone(),
        }))
    }

    /// Path of the text whose length is limited.
    fn prose(&self, tokens: &[Token], at: usize) -> Option<Path> {
        if self.output.is_string() {
            return Some(Path::root());
        }
        if let Some(field) = self.compared(tokens, at, Value::is_string) {
            return Some(field.path.clone());
        }
        let before = tokens[..at].iter().rev();
        let last = before
            .clone()
            .find(|t| t.quoted || !FILLERS.contains(&t.lower.as_str()));
        if last.is_some_and(|t| {
            !OUTPUT.contains(&t.lower.as_str())
                && !["limit", "write", "answer", "use"].contains(&t.lower.as_str())
        }) {
            return None;
        }
        let mut texts = self
            .fields
            .iter()
            .filter(|f| f.value.as_str().is_some_and(|text| text.contains(' ')));
        let only = texts.next()?;
        texts.next().is_none().then(|| only.path.clone())
    }

    /// Path of the array whose items are counted.
    pub(super) fn list(&self, noun: &[Token]) -> Option<Path> {
        let first = noun.first()?;
        let named = noun
            .get(1)
            .filter(|_| !first.pauses)
            .and_then(|second| {
                meant(
                    &self.fields,
                    &format!("{} {}", first.text, second.text),
                    Value::is_array,
                )
            })
            .or_else(|| meant(&self.fields, &first.text, Value::is_array));
        if let Some(field) = named {
            return Some(field.path.clone());
        }
        let words = parts(&first.text);
        if first.quoted || words.len() != 1 || !THINGS.contains(&words[0].as_str()) {
            return None;
        }
        if self.output.is_array() {
            return Some(Path::root());
        }
        let mut arrays = self.fields.iter().filter(|f| f.value.is_array());
        let only = arrays.next()?;
        arrays.next().is_none().then(|| only.path.clone())
    }
}

/// Returns true if a plain number can be followed by this word.
fn goes_on(word: &str) -> bool {
    [
        "for", "when", "if", "in", "or", "and", "unless", "whenever", "where", "points", "until",
        "on", "so", "because", "as", "since", "here", "then", "but", "out",
    ]
    .contains(&word)
        && !SCALES.contains(&word)
}

fn comparison(tokens: &[Token]) -> Option<(Operator, usize)> {
    COMPARISONS.iter().find_map(|(words, is)| {
        let here = tokens.len() >= words.len()
            && words
                .iter()
                .zip(tokens)
                .all(|(word, token)| is_word(token, word));
        here.then_some((*is, words.len()))
    })
}

fn number_at(tokens: &[Token], at: usize) -> Option<Number> {
    tokens
        .get(at)
        .filter(|token| !token.quoted)
        .and_then(number)
}
