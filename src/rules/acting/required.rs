//! Texts that every match of a pattern contains, as numbers that a table holds.
//!
//! A number stands for the part of the call and up to three trigrams of one text. The trigrams are hashed, so a
//! collision costs a comparison and loses no match. `^` counts as a character.
//!
//! Invariant: a text that matches a pattern has the trigrams of one of its numbers. Where that is not certain, the
//! pattern has a number that every call has.

use fancy_regex::{Assertion, Expr};

use crate::model::{CallPart, CallPattern};

/// Stands for the beginning of a text.
const START: u8 = 2;
/// Maximum number of alternatives; with more, the rule is always read.
const ALTERNATIVES: usize = 24;

/// Place of a pattern that a number is for: a [`CallPart`], or a successful call, for `after`.
pub(super) type Place = u64;
pub(super) const SUCCESS: Place = 3;

/// Returns the numbers of a pattern: a call that matches has one of them.
pub(super) fn numbers(pattern: &CallPattern) -> Vec<u64> {
    let mut all = of_text(pattern.on as Place, &pattern.matches);
    if !pattern.after.is_empty() {
        all.extend(of_text(SUCCESS, &pattern.after));
    }
    all
}

fn of_text(place: Place, pattern: &str) -> Vec<u64> {
    let place_bits = place << 62;
    match required(pattern, place == CallPart::Content as Place) {
        Some(texts) => texts
            .iter()
            .map(|text| place_bits | trigrams_of(text))
            .collect(),
        None => vec![place_bits],
    }
}

/// Three trigrams of a text: its first, middle and last.
fn trigrams_of(text: &[u8]) -> u64 {
    let last = text.len().saturating_sub(3);
    let at = |n: usize| text.get(n..n + 3).map_or(0, hash);
    at(0) | at(last / 2) << 16 | at(last) << 32
}

/// Hash of a trigram, from 1 to 65,535.
fn hash(trigram: &[u8]) -> u64 {
    let number = trigram.iter().fold(0_u64, |sum, byte| {
        (sum << 8 | u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (number >> 48).max(1)
}

/// Trigrams of the texts of a call.
pub(super) struct Trigrams(Vec<u64>);

impl Trigrams {
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut bits = vec![0_u64; 1024];
        let mut add = |trigram: &[u8]| {
            let number = hash(trigram);
            if let Some(word) = bits.get_mut(usize::try_from(number / 64).unwrap_or_default()) {
                *word |= 1 << (number % 64);
            }
        };
        for text in texts {
            let bytes = text.as_bytes();
            if let [first, second, ..] = bytes {
                add(&[START, *first, *second]);
            }
            bytes.windows(3).for_each(&mut add);
        }
        Self(bits)
    }

    /// Returns `true` if a text with these trigrams may match a pattern with this number.
    pub(super) fn may_match(&self, place: Place, number: u64) -> bool {
        let has = |shift: u32| {
            let one = number >> shift & 0xffff;
            let word = self.0.get(usize::try_from(one / 64).unwrap_or_default());
            one == 0 || word.is_some_and(|word| word >> (one % 64) & 1 == 1)
        };
        number >> 62 == place && has(0) && has(16) && has(32)
    }
}

/// Returns texts of which every match contains one; `None` if there are none.
fn required(pattern: &str, multi_line: bool) -> Option<Vec<Vec<u8>>> {
    // The two parsers read a quantifier of a quantifier in other ways.
    let is_twice = |two: &[u8]| matches!(two, [b'?' | b'*' | b'+' | b'}', b'{']);
    if pattern.as_bytes().windows(2).any(is_twice) {
        return None;
    }
    let tree = Expr::parse_tree(pattern).ok()?;
    best_of(&tree.expr, multi_line)
}

fn best_of(expression: &Expr, multi_line: bool) -> Option<Vec<Vec<u8>>> {
    let mut sequence = Sequence {
        multi_line,
        ..Sequence::default()
    };
    sequence.add(expression);
    sequence.end_run();
    sequence.best
}

/// Parts of an expression that follow each other in every match.
#[derive(Default)]
struct Sequence {
    /// `^` is the beginning of any line, which is no beginning of a text.
    multi_line: bool,
    /// Characters that follow each other without a gap, in lower case.
    run: Vec<u8>,
    /// The longest texts so far, of which every match contains one.
    best: Option<Vec<Vec<u8>>>,
}

impl Sequence {
    fn add(&mut self, expression: &Expr) {
        match expression {
            Expr::Literal { val, .. } => val.chars().for_each(|c| match u8::try_from(c) {
                Ok(byte) if byte.is_ascii() => self.run.push(byte.to_ascii_lowercase()),
                _ => self.end_run(),
            }),
            Expr::Assertion(Assertion::StartText) if !self.multi_line => self.run.push(START),
            // Text around a match need not be part of it.
            Expr::Empty | Expr::Assertion(_) | Expr::LookAround(..) => {}
            Expr::Concat(parts) => parts.iter().for_each(|part| self.add(part)),
            Expr::Group(inside) => self.add(inside),
            Expr::Repeat { child, lo, hi, .. } if *lo > 0 => {
                self.add(child);
                if *hi > 1 {
                    self.end_run();
                }
            }
            Expr::Alt(all) => {
                self.end_run();
                let texts = all.iter().map(|one| best_of(one, self.multi_line));
                if let Some(texts) = texts.collect::<Option<Vec<_>>>() {
                    self.offer(texts.concat());
                }
            }
            _ => self.end_run(),
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        self.offer(vec![run]);
    }

    fn offer(&mut self, texts: Vec<Vec<u8>>) {
        let weight = |texts: &[Vec<u8>]| texts.iter().map(Vec::len).min().unwrap_or(0);
        let so_far = self.best.as_deref().map_or(2, weight);
        if weight(&texts) > so_far && texts.len() <= ALTERNATIVES {
            self.best = Some(texts);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn required_texts_of_a_pattern_are_found() {
        let check = |pattern: &str, expected: &[&str]| {
            let found = required(pattern, false).unwrap_or_default();
            let found: Vec<String> = found
                .into_iter()
                .map(|text| String::from_utf8_lossy(&text).replace('\u{2}', "^"))
                .collect();
            assert_eq!(found, expected, "{pattern}");
        };
        check(r"^npm\b", &["^npm"]);
        check(r"^rm\b", &["^rm"]);
        check(r"^(?:npm|yarn)\s+install", &["install"]);
        check(r"^(npm|yarn)\b", &["npm", "yarn"]);
        check(r"git push.*--force", &["git push"]);
        check(r"colou?r", &["colo"]);
        check(r"(?i)^NPM\b", &["^npm"]);
        check(r"^\S+$", &[]);
        check(r"npm|\d+", &[]);
        check(r"(npm)?", &[]);
        check(r"[npm]+", &[]);
        check(r"\x6epm install", &["npm install"]);
        check(r"(?x) n p m", &["npm"]);
        check("über", &["ber"]);
        check(r"(?<![\w.])print\s*\(", &["print"]);
        check(r"^npm i(?!.*(--dry-run|-n))", &["^npm i"]);
        check(r"(?=.*install)^npm\b", &["^npm"]);
        check(r"(?<name>npm)", &["npm"]);
        check(r"a(bc)+d", &["abc"]);
        check(r"(?m)^npm", &["npm"]);
        check(r"git\b push", &["git push"]);
    }

    proptest! {
        /// A text that matches is never ruled out.
        #[test]
        fn no_match_is_lost(pattern in "[\\^]?(npm|git|\\\\b|\\\\s|a|b|c|[(]?:?ab[)]?|[|]|[*+?]|[.]|\\[ab\\]| |[{]2[}]){1,8}",
            text in "(npm|git|a|b|c|ab| |bb){0,8}") {
            if let Ok(regex) = regex_lite::Regex::new(&pattern)
                && regex.is_match(&text)
            {
                let pattern = CallPattern { matches: pattern, ..CallPattern::default() };
                let place = CallPart::Command as Place;
                let trigrams = Trigrams::of(std::iter::once(text.as_str()));
                let numbers = numbers(&pattern);
                prop_assert!(numbers.iter().any(|n| trigrams.may_match(place, *n)));
            }
        }
    }
}
