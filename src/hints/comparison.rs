//! Compares the key of an error with that of a fix, from 0 to 1.
//!
//! Programs repeat the errors of others behind words of their own, so keys are compared clause by
//! clause. The last clause says the cause and counts for itself. Codes of errors must agree, and
//! words of the call that failed are details.

use std::collections::{BTreeSet, HashMap};

use crate::learn::error_key::normalised;
use crate::learn::fix::difference::words as code_words;
use crate::learn::fix::subject::names;
use crate::model::Fix;
use crate::search::words;

use super::likeness::{key_words, similarity, telling_words, weight};
use super::lookup::Fixes;
use super::search_terms::word_term;

/// Maximum number of fixes with similar keys to score: those with the highest shared word weight.
const SIMILAR: usize = 8;
/// Maximum number of fixes with a word; a more common word selects no candidates.
const COMMON: usize = 512;
/// Number of words from which on a clause says something, however common its words are.
const SENTENCE: usize = 6;

/// Weights of words in a store, each looked up once.
pub(super) struct Weights<'t> {
    pub(super) terms: &'t dyn Fixes,
    pub(super) known: HashMap<String, f64>,
}

impl Weights<'_> {
    fn of(&mut self, word: &str) -> f64 {
        if let Some(weight) = self.known.get(word) {
            return *weight;
        }
        let (_, count) = self.terms.holding(word_term(word), 0);
        let found = weight(word, count, self.terms.entries());
        self.known.insert(word.to_owned(), found);
        found
    }

    /// Fixes that share rare words with a key, best first, without those that are found already.
    pub(super) fn sharing(&mut self, key: &str, found: &[(u32, usize)]) -> Vec<u32> {
        let mut shared: HashMap<u32, f64> = HashMap::new();
        for word in key_words(key) {
            let (numbers, count) = self.terms.holding(word_term(&word), COMMON);
            let weight = weight(&word, count, self.terms.entries());
            self.known.insert(word, weight);
            if count <= COMMON as u64 {
                for number in numbers {
                    *shared.entry(number).or_default() += weight;
                }
            }
        }
        let mut similar: Vec<(u32, f64)> = shared
            .into_iter()
            .filter(|(number, _)| !found.iter().any(|(known, _)| known == number))
            .collect();
        similar.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        similar
            .into_iter()
            .take(SIMILAR)
            .map(|(number, _)| number)
            .collect()
    }

    /// Similarity of two keys, from 0 to 1; 1 if they say the same behind what the program says
    /// first. The last clause counts for itself, since it says the cause.
    pub(super) fn alike(
        &mut self,
        asked: &str,
        own: &str,
        may_differ: bool,
        is_bound: bool,
    ) -> f64 {
        if asked == own {
            return 1.0;
        }
        if codes(asked).iter().any(|code| !codes(own).contains(code)) && !codes(own).is_empty() {
            return 0.0;
        }
        let (asked, own) = (clauses(asked), clauses(own));
        // Most lines of an output are no errors, so only the main ones are worth the words' weights.
        let whole = if may_differ {
            self.dice(
                asked.first().map_or("", |c| c),
                own.first().map_or("", |c| c),
            )
        } else {
            0.0
        };
        let enough = if is_bound || whole >= 0.5 { 1 } else { 2 };
        let tells = |clause: &str, enough: usize| {
            telling_words(clause) >= enough || clause.split_whitespace().count() >= SENTENCE
        };
        if asked
            .iter()
            .any(|a| tells(a, enough) && own.iter().any(|b| a == b))
        {
            return 1.0;
        }
        // The cause may be in the middle of a longer message.
        let cause = own.last().map_or("", |c| c);
        let segments = asked.iter().filter_map(|clause| clause.split(": ").next());
        if tells(cause, 3) && segments.into_iter().any(|segment| segment == cause) {
            return 1.0;
        }
        if !may_differ {
            return 0.0;
        }
        let last = |clauses: &[&str]| {
            let telling = clauses
                .iter()
                .rev()
                .find(|clause| telling_words(clause) >= 1);
            telling
                .or(clauses.first())
                .map_or("", |clause| *clause)
                .to_owned()
        };
        let (asked, own) = (last(&asked), last(&own));
        let alike = self.dice(&asked, &own);
        let cause = if asked.split_whitespace().count() < SENTENCE {
            alike
        } else {
            f64::midpoint(alike, pairs(&asked, &own))
        };
        // A similar key scores below an equal one.
        whole.min(cause).min(0.99)
    }

    fn dice(&mut self, a: &str, b: &str) -> f64 {
        let (a, b): (BTreeSet<String>, BTreeSet<String>) = (key_words(a), key_words(b));
        for word in a.union(&b) {
            self.of(word);
        }
        let weight = |word: &str| self.known.get(word).copied().unwrap_or_default();
        similarity(&a, &b, &weight)
    }
}

/// Share of the pairs of neighbouring words that two texts have in common, from 0 to 1.
fn pairs(a: &str, b: &str) -> f64 {
    let of = |text: &str| -> BTreeSet<(String, String)> {
        let words = words(text);
        words
            .windows(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect()
    };
    let (a, b) = (of(a), of(b));
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    2.0 * count(a.intersection(&b).count()) / count(a.len() + b.len())
}

/// Error codes in a key: `TS2304`, `E0463`, `EACCES`.
fn codes(key: &str) -> BTreeSet<&str> {
    key.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            let digits = word.bytes().filter(u8::is_ascii_digit).count();
            let capitals = word.bytes().filter(u8::is_ascii_uppercase).count();
            word.len() >= 4
                && word.starts_with(|c: char| c.is_ascii_uppercase())
                && digits + capitals == word.len()
                && (digits > 1 || word.starts_with('E') && word.len() > 4)
        })
        .filter(|word| !matches!(*word, "ERROR" | "ERRORS"))
        .collect()
}

/// Returns `true` if two keys are the same sentence, apart from words that are details of the fix:
/// names with marks or digits, and words of its own code.
pub(super) fn differ_in_details(asked: &str, own: &str, fix: &Fix) -> bool {
    let (asked, own): (Vec<&str>, Vec<&str>) =
        (asked.split(' ').collect(), own.split(' ').collect());
    if asked.len() != own.len() || own.len() < SENTENCE {
        return false;
    }
    let different: Vec<&str> = asked
        .iter()
        .zip(&own)
        .filter(|(a, b)| a != b)
        .map(|(_, b)| *b)
        .collect();
    let is_detail = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.contains(|c: char| c == '_' || c == '-' || c.is_ascii_digit())
            || [&fix.failing_code, &fix.working_code]
                .iter()
                .any(|code| names(code, word))
    };
    different.len() <= 2 && different.iter().all(is_detail)
}

/// Key of an error line without the words of the call that failed, which are details of it.
pub(super) fn abstracted(line: &str, code: &str) -> String {
    if line.is_empty() {
        return String::new();
    }
    let mut text = line.to_owned();
    let mut operands: Vec<String> = code_words(code)
        .into_iter()
        .filter(|word| word.len() > 2 && !word.starts_with('-'))
        .filter(|word| word.contains(|c: char| !c.is_ascii_lowercase()))
        .collect();
    operands.sort_by_key(|word| std::cmp::Reverse(word.len()));
    for word in operands {
        text = text.replace(&word, "<name>");
    }
    let key = normalised(&text);
    // A clause of one word is a detail.
    match key.rsplit_once(": ") {
        Some((before, last)) if !last.contains(' ') => before.to_owned(),
        _ => key,
    }
}

/// A key, and what is left of it behind each of its first colons.
fn clauses(key: &str) -> Vec<&str> {
    let mut all = vec![key];
    let mut rest = key;
    while let Some(at) = [": ", " - ", ") "]
        .iter()
        .filter_map(|mark| Some((rest.find(mark)?, mark.len())))
        .min()
    {
        rest = rest[at.0 + at.1..].trim_start();
        all.push(rest);
        if all.len() > 10 {
            break;
        }
    }
    all
}
