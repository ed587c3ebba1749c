//! Finds fixes for an error by the words of its error key.
//!
//! A derived table maps words to fixes, so that only a few entries are read. `learn::hint` scores
//! the candidates, and each hint is screened again before it is shown: an older store may hold text
//! that would be rejected today. A fix that may not be shown has no words in the table and is never
//! found.
//!
//! Deliberately absent: sessions, and the outcome of hints.

use std::collections::{BTreeSet, HashMap};

use crate::guard;
use crate::hints::failure::Failure;
use crate::hints::likeness::{key_words, similarity, telling_words, weight};
use crate::hints::ranking::{
    Candidate, Hint, SCHEME, approved_term, exact_term, is_sunk, select_hints, terms, word_term,
};
use crate::learn::cure::difference::words as code_words;
use crate::learn::cure::subject::names;
use crate::learn::error_key::{error_key, normalised};
use crate::model::{Fix, Kind, Record as _, Trust};
use crate::search::words;
use crate::store::{Entry, Scoped, Terms, Writer};

use crate::workspace::Error;

/// Maximum number of fixes with the same key to score: the newest, and the newest approved ones.
const SAME: usize = 32;
/// Maximum number of fixes with similar keys to score: those with the highest shared word weight.
const SIMILAR: usize = 8;
/// Maximum number of fixes with a word; a more common word selects no candidates.
const COMMON: usize = 512;

/// Number of words from which on a clause says something, however common its words are.
const SENTENCE: usize = 6;
/// Number of a failure's lines that are compared with similar keys: the most specific ones.
const COMPARED: usize = 3;

/// Status of a fix that a person has to review first.
pub(crate) const QUARANTINED: &str = "quarantined";

/// Fixes that can be looked up by the terms of their keys, in a store or in memory.
pub(crate) trait Fixes {
    /// Returns the number of fixes.
    fn entries(&self) -> u64;
    /// Returns the newest `limit` fixes with a term, and the number of all with it.
    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64);
    /// Returns a fix by its number.
    fn fix(&self, number: u32) -> Option<Fix>;
}

impl Fixes for Terms {
    fn entries(&self) -> u64 {
        self.entries()
    }

    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64) {
        self.holding(term, limit)
    }

    fn fix(&self, number: u32) -> Option<Fix> {
        let fix: Fix = self.entry(number)?.parse().ok()?;
        let trust = self.standing().level(&fix);
        Some(fix.believed(trust))
    }
}

/// Error key of a failing call's output. Hints of this program in the output are ignored, and
/// secrets are redacted.
pub(crate) fn key_of(error: &str) -> Option<String> {
    // Redaction comes first, because a key is one truncated line of the output.
    let error = guard::redact(error).text;
    error_key(&guard::strip_fenced(&error))
}

/// Returns the hints for a failure, ready to show.
pub(crate) fn known(
    fixes: &dyn Fixes,
    failure: &Failure<'_>,
    withheld: &[String],
    max_hints: usize,
) -> Vec<Hint> {
    let candidates = candidates(fixes, failure);
    let hints = select_hints(failure, candidates, withheld, max_hints);
    hints.into_iter().filter_map(admitted).collect()
}

/// Screens a hint: redacts secrets that an older store may hold, and drops observed text that looks
/// like a prompt injection.
fn admitted(hint: Hint) -> Option<Hint> {
    if hint.trust == Trust::Observed {
        let said = [&hint.error_key, &hint.failing_code, &hint.working_code];
        if said
            .iter()
            .any(|text| guard::admit(text).quarantine.is_some())
        {
            return None;
        }
    }
    let clean = |text: String| guard::redact(&text).text.into_owned();
    Some(Hint {
        error_key: clean(hint.error_key),
        failing_code: clean(hint.failing_code),
        working_code: clean(hint.working_code),
        success_output: clean(hint.success_output),
        ..hint
    })
}

/// Returns the fixes with exactly this key, in a store that is open for writing.
pub(crate) fn fixes_of(writer: &Writer, key: &str) -> Result<Vec<(Entry, Fix)>, Error> {
    let terms = table(writer.store())?;
    let (numbers, _) = terms.holding(exact_term(key), usize::MAX);
    let entries = numbers.into_iter().filter_map(|n| terms.entry(n));
    Ok(entries
        .filter_map(|entry| entry.parse::<Fix>().ok().map(|fix| (entry, fix)))
        .filter(|(_, fix)| fix.error_key == key)
        .collect())
}

/// Table of fixes by the terms of their keys, without fixes that may not be shown.
pub(crate) fn table(store: &Scoped) -> Result<Terms, Error> {
    Ok(store.terms(
        Kind::Fix,
        SCHEME,
        &|entry| match serde_json::from_slice::<Fix>(entry) {
            Ok(fix) => terms_of(&fix),
            Err(_) => Vec::new(),
        },
    )?)
}

/// Rebuilds the table after fixes have changed, so that no later lookup has to.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    table(store).map(drop)
}

/// Terms of a fix's key; empty if it may not be shown.
pub(crate) fn terms_of(fix: &Fix) -> Vec<u64> {
    if !is_shown(fix) {
        return Vec::new();
    }
    let key = normalised(&fix.error_key);
    let mut terms = terms(&key);
    if fix.trust() != Trust::Observed {
        terms.push(approved_term(&key));
    }
    terms
}

/// Describes approved fixes with evidence against them, one sentence each. Sessions do not retire
/// an approved fix, so a person has to decide.
pub(crate) fn doubts<'f>(fixes: impl IntoIterator<Item = &'f Fix>) -> Vec<String> {
    let doubt = |fix: &Fix| {
        let (id, evidence) = (&fix.fix_id, fix.evidence());
        let outcomes = evidence.helped.saturating_add(evidence.harmed);
        let said = if fix.trust() == Trust::Observed {
            return None;
        } else if !fix.is_active() {
            "retired, and no hint any more".to_owned()
        } else if is_sunk(evidence) {
            let of = if outcomes == 1 { "session" } else { "sessions" };
            format!("harmful in {} of {outcomes} {of}", evidence.harmed)
        } else {
            return None;
        };
        Some(format!(
            "`{id}` is approved and was {said}: memctl memory show {id}"
        ))
    };
    fixes.into_iter().filter_map(doubt).collect()
}

/// Returns true if a fix may be shown: it is active, not quarantined, and more than a retry of the
/// failing call.
pub(crate) fn is_shown(fix: &Fix) -> bool {
    !fix.error_key.is_empty()
        && fix.is_active()
        && fix.status != QUARANTINED
        && fix.failing_code.trim() != fix.working_code.trim()
}

/// Candidate fixes: those with the key of one of the failure's lines, and those whose keys share
/// rare words with its most specific ones.
fn candidates(terms: &dyn Fixes, failure: &Failure<'_>) -> Vec<Candidate> {
    let mut numbers: Vec<(u32, usize)> = Vec::new();
    for (place, line) in failure.lines.iter().enumerate() {
        let (same, _) = terms.holding(exact_term(&line.key), SAME);
        let (approved, _) = terms.holding(approved_term(&line.key), SAME);
        numbers.extend(
            same.into_iter()
                .chain(approved)
                .map(|number| (number, place)),
        );
    }
    let mut weights = Weights {
        terms,
        known: HashMap::new(),
    };
    for (place, line) in failure.lines.iter().enumerate().take(COMPARED) {
        let similar = weights.sharing(&line.key, &numbers);
        numbers.extend(similar.into_iter().map(|number| (number, place)));
    }
    let mut found: Vec<Candidate> = Vec::new();
    let mut seen: Vec<u32> = Vec::new();
    for (number, _) in &numbers {
        if seen.contains(number) {
            continue;
        }
        seen.push(*number);
        let Some(fix) = terms.fix(*number) else {
            continue;
        };
        let own = normalised(&fix.error_key);
        let plain = abstracted(&fix.error_line, &fix.failing_code);
        let is_bound = !fix.subject.is_empty();
        let best = failure
            .lines
            .iter()
            .enumerate()
            .map(|(place, line)| {
                let is_main = place < COMPARED;
                let of_key = weights.alike(&line.key, &own, is_main, is_bound);
                let of_line = if plain.is_empty() || !is_main || of_key >= 1.0 {
                    0.0
                } else {
                    let asked = abstracted(&line.text, failure.code.unwrap_or_default());
                    if differ_in_details(&asked, &plain, &fix) {
                        1.0
                    } else {
                        weights.alike(&asked, &plain, is_main, is_bound)
                    }
                };
                (of_key.max(of_line), place)
            })
            .reduce(|best, now| if now.0 > best.0 { now } else { best });
        if let Some((similarity, line)) = best {
            found.push(Candidate {
                fix,
                similarity,
                line,
            });
        }
    }
    found
}

/// Weights of words in a store, each looked up once.
struct Weights<'t> {
    terms: &'t dyn Fixes,
    known: HashMap<String, f64>,
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
    fn sharing(&mut self, key: &str, found: &[(u32, usize)]) -> Vec<u32> {
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
    fn alike(&mut self, asked: &str, own: &str, may_differ: bool, is_bound: bool) -> f64 {
        if asked == own {
            return 1.0;
        }
        if codes(asked).iter().any(|code| !codes(own).contains(code)) && !codes(own).is_empty() {
            return 0.0;
        }
        let (asked, own) = (clauses(asked), clauses(own));
        let whole = self.dice(
            asked.first().map_or("", |c| c),
            own.first().map_or("", |c| c),
        );
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
        // The cause may stand in the middle of a longer message.
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
fn differ_in_details(asked: &str, own: &str, fix: &Fix) -> bool {
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
fn abstracted(line: &str, code: &str) -> String {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::platform::named;
    use serde_json::{Value, json};

    /// Store that holds these fixes.
    pub(crate) fn store(fixes: &[Value]) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string_pretty(&json!({"entries": fixes})).unwrap();
        named::replace(&dir.path().join(Kind::Fix.file()), text.as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        (dir, store)
    }

    pub(crate) fn fix(id: usize, key: &str, failing: &str, working: &str) -> Value {
        json!({"fix_id": format!("FIX-{id:03}"), "created_at": "", "error_key": key,
            "failing_code": failing, "working_code": working, "success_output": "ok"})
    }

    #[test]
    fn a_similar_error_is_found_among_many() {
        let mut fixes: Vec<Value> = (0..300)
            .map(|i| {
                fix(
                    i + 2,
                    &format!("error: widget {i} of kind zeta{i} rejected"),
                    "w",
                    "v",
                )
            })
            .collect();
        fixes.push(fix(
            1,
            "TypeError: string indices must be integers",
            "print(a['b'])",
            "print(a[0]['b'])",
        ));
        let (_dir, store) = store(&fixes);
        let found = |error: &str| {
            let failure = Failure::of(error, None, None)?;
            let hints = known(&table(&store).unwrap(), &failure, &[], 3);
            hints.into_iter().map(|h| (h.id, h.why)).next()
        };
        let (id, why) = found("TypeError: string indices must be integers, not 'str'").unwrap();
        assert_eq!(id, "FIX-001");
        assert!(why.starts_with("similar error (0."), "{why}");
        assert_eq!(found("TypeError: unsupported operand type(s) for +"), None);
        assert_eq!(found("error: disk quota exceeded"), None);
        assert_eq!(found(""), None);
    }
}
