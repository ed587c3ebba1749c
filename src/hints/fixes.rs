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
use crate::hints::likeness::{key_words, similarity, weight};
use crate::hints::ranking::{
    Candidate, Failure, Hint, SCHEME, approved_term, exact_term, is_sunk, select_hints, terms,
    word_term,
};
use crate::learn::error_key::{error_key, normalised};
use crate::model::{Fix, Kind, Record as _, Trust};
use crate::store::{Entry, Scoped, Terms, Writer};

use crate::workspace::Error;

/// Maximum number of fixes with the same key to score: the newest, and the newest approved ones.
const SAME: usize = 32;
/// Maximum number of fixes with similar keys to score: those with the highest shared word weight.
const SIMILAR: usize = 8;
/// Maximum number of fixes with a word; a more common word selects no candidates.
const COMMON: usize = 512;

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
    let candidates = candidates(fixes, failure.error_key);
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

/// Candidate fixes: those with the same key, and those whose keys share rare words with it.
fn candidates(terms: &dyn Fixes, key: &str) -> Vec<Candidate> {
    let (mut same, _) = terms.holding(exact_term(key), SAME);
    let (approved, _) = terms.holding(approved_term(key), SAME);
    same.extend(approved);
    same.sort_unstable();
    same.dedup();
    let asked = key_words(key);
    let mut weights: HashMap<String, f64> = HashMap::new();
    let mut shared: HashMap<u32, f64> = HashMap::new();
    for word in &asked {
        let (numbers, count) = terms.holding(word_term(word), COMMON);
        let weight = weight(word, count, terms.entries());
        weights.insert(word.clone(), weight);
        if count <= COMMON as u64 {
            for number in numbers {
                *shared.entry(number).or_default() += weight;
            }
        }
    }
    let mut similar: Vec<(u32, f64)> = shared
        .into_iter()
        .filter(|(number, _)| !same.contains(number))
        .collect();
    similar.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    let similar = similar.into_iter().take(SIMILAR).map(|(number, _)| number);
    let numbers: Vec<u32> = same.into_iter().chain(similar).collect();
    let mut found = Vec::new();
    for fix in numbers.into_iter().filter_map(|n| terms.fix(n)) {
        let own = normalised(&fix.error_key);
        let similarity = if own == key {
            1.0
        } else {
            let words: BTreeSet<String> = key_words(&own);
            for word in &words {
                if !weights.contains_key(word) {
                    let (_, count) = terms.holding(word_term(word), 0);
                    weights.insert(word.clone(), weight(word, count, terms.entries()));
                }
            }
            let weight = |word: &str| weights.get(word).copied().unwrap_or_default();
            // A similar key scores below an equal one.
            similarity(&asked, &words, &weight).min(0.99)
        };
        found.push(Candidate { fix, similarity });
    }
    found
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
            let failure = Failure {
                error_key: &key_of(error)?,
                code: None,
            };
            let hints = known(&table(&store).unwrap(), &failure, &[], 3);
            hints.into_iter().map(|h| (h.id, h.why)).next()
        };
        let (id, why) = found("TypeError: string indices must be integers, not 'str'").unwrap();
        assert_eq!(id, "FIX-001");
        assert!(why.starts_with("a similar error (0."), "{why}");
        assert_eq!(found("TypeError: unsupported operand type(s) for +"), None);
        assert_eq!(found("error: disk quota exceeded"), None);
        assert_eq!(found(""), None);
    }
}
