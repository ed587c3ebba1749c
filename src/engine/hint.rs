//! Looks up what worked before when something fails, and watches what comes of it.
//!
//! The hot path of the program: a host calls it at every failing call of a tool. It reads a derived
//! table, the few entries that the table points at, and the notes of the session; no model, no
//! network, no runtime. What is written at a failing call are the notes; the fixes themselves, and
//! the log of hints, are written when an outcome is known, which is rare.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;

use crate::guard;
use crate::learn::error_key::{error_key, normalised};
use crate::learn::hint::{
    Candidate, Failure, Hint, SCHEME, exact_term, is_sunk, select_hints, terms, word_term,
};
use crate::learn::likeness::{key_words, similarity, weight};
use crate::learn::pitfall::{self, MAX_RULES, Pitfall};
use crate::learn::session::{Credit, Outcome, SessionNotes};
use crate::model::{Fix, Kind, Trial, Trust};
use crate::store::{Entry, Scoped, Terms, Writer};

use super::{Error, Share, door, milliseconds};

/// So many fixes of the same key are judged, the newest.
const SAME: usize = 32;
/// So many fixes of another key are judged, those that share the most telling words.
const SIMILAR: usize = 8;
/// A word that more fixes hold than this tells nothing apart.
const COMMON: usize = 512;

/// Looks things up in a store, and keeps watch.
#[derive(Debug)]
pub struct Adviser<'a> {
    /// The records.
    pub store: &'a Scoped,
    /// Now.
    pub now: DateTime<Utc>,
    /// Makes a random name.
    pub random: fn() -> String,
    /// The share of hints that is withheld at random.
    pub withhold: Share,
}

/// What failed.
#[derive(Debug, Clone, Default)]
pub struct HintOptions {
    /// What the failing call printed.
    pub error: String,
    /// The tool, as its host names it; `None` for code that an agent runs itself.
    pub tool: Option<String>,
    /// The command or code that failed.
    pub command: Option<String>,
    /// The session in which it happens. Without one nothing is noted, and nothing is watched for.
    pub session: Option<String>,
    /// How many hints at most.
    pub max_hints: usize,
}

/// What is known about it.
#[derive(Debug, Default, Serialize)]
pub struct HintReport {
    /// The key of the error; `None` where the text names none.
    pub error_key: Option<String>,
    /// What worked before, best first.
    pub hints: Vec<Hint>,
    /// The rules of the classes of errors that were met, at most eight.
    pub pitfalls: Vec<String>,
    /// The fixes that would have been hints and were withheld by the experiment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Milliseconds.
    pub took_ms: f64,
}

/// Where a fix is that a person has to look at first.
pub(super) const QUARANTINED: &str = "quarantined";

impl Adviser<'_> {
    /// What is known about a failure. With a session it is noted there, what it says of earlier
    /// hints is credited, and the same hint is not shown again.
    pub fn hint(&self, options: &HintOptions) -> Result<HintReport, Error> {
        let start = Instant::now();
        let key = key_of(&options.error);
        let mut report = HintReport {
            error_key: key.clone(),
            ..HintReport::default()
        };
        let tool = options.tool.as_deref();
        let own = pitfall::of_error(&options.error, tool);
        // The table is opened before the notes, and with them the lock: making it anew waits for
        // whoever writes, and must not wait for itself.
        let terms = key.is_some().then(|| table(self.store)).transpose()?;
        let key = key.zip(terms);
        let Some(session) = &options.session else {
            if let Some((key, terms)) = key {
                report.hints = look_up(&terms, &key, options, &[]);
            }
            report.pitfalls = rules(own.as_slice());
            report.took_ms = milliseconds(start.elapsed());
            return Ok(report);
        };
        let notes = self.store.notes(session)?;
        let mut known = SessionNotes::read(&notes.read());
        let code = guard::redact(options.command.as_deref().unwrap_or_default()).text;
        let (mut credits, mut trials) = (Vec::new(), Vec::new());
        if let Some((key, terms)) = key {
            credits = known.failed(&key, &options.error, &code, tool);
            trials = known.trials.failed(&key);
            let hints = look_up(&terms, &key, options, &known.withheld());
            let ids: Vec<String> = hints.iter().map(|hint| hint.id.clone()).collect();
            let withheld = self.withhold.withholds(self.store, &key, session);
            if !ids.is_empty() {
                let trial = Trial {
                    at: self.now.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string(),
                    session: guard::redact(session).text.into_owned(),
                    error_key: key.clone(),
                    hints: ids.clone(),
                    withheld,
                    share: self.withhold.get(),
                    ..Trial::default()
                };
                trials.extend(known.trials.begin(trial, tool, &code));
            }
            if withheld {
                report.withheld = ids;
            } else {
                known.showed(&key, &hints);
                report.hints = hints;
            }
        }
        notes.save(&serde_json::to_vec(&known).map_err(crate::store::Error::from)?)?;
        drop(notes);
        self.settle(&credits, &trials)?;
        report.pitfalls = rules(&known.pitfalls);
        report.took_ms = milliseconds(start.elapsed());
        Ok(report)
    }

    /// Takes in that something worked in a session, and credits the hints that said so.
    pub fn succeeded(
        &self,
        session: &str,
        tool: Option<&str>,
        code: &str,
    ) -> Result<Vec<Credit>, Error> {
        // Most successes are of no interest, and those must not even wait for the lock.
        if !SessionNotes::read(&self.store.read_notes(session)).is_watching() {
            return Ok(Vec::new());
        }
        // No secret goes into what is compared with the notes, which have none.
        let code = guard::redact(code).text;
        self.note(session, |known| {
            let credits = known.succeeded(&code);
            let helped: Vec<String> = credits.iter().map(|credit| credit.id.clone()).collect();
            (credits, known.trials.succeeded(tool, &code, &helped))
        })
    }

    /// Takes in that a session has ended.
    pub fn ended(&self, session: &str) -> Result<(), Error> {
        let known = SessionNotes::read(&self.store.read_notes(session));
        if known.shown.is_empty() && !known.trials.are_open() {
            return Ok(());
        }
        let end = |known: &mut SessionNotes| (known.ended(), known.trials.ended());
        self.note(session, end).map(drop)
    }

    /// The pitfalls that a session has met so far.
    pub fn pitfalls(&self, session: &str) -> Vec<Pitfall> {
        SessionNotes::read(&self.store.read_notes(session)).pitfalls
    }

    fn note(
        &self,
        session: &str,
        change: impl FnOnce(&mut SessionNotes) -> (Vec<Credit>, Vec<Trial>),
    ) -> Result<Vec<Credit>, Error> {
        let notes = self.store.notes(session)?;
        let mut known = SessionNotes::read(&notes.read());
        let (credits, trials) = change(&mut known);
        notes.save(&serde_json::to_vec(&known).map_err(crate::store::Error::from)?)?;
        drop(notes);
        self.settle(&credits, &trials)?;
        Ok(credits)
    }

    /// Writes down what is known now: outcomes in the evidence of fixes, and trials that have ended in
    /// the log of hints. A fix that has failed too often is retired: it stays in its file, and is
    /// shown no more.
    pub(super) fn settle(&self, credits: &[Credit], trials: &[Trial]) -> Result<(), Error> {
        if credits.is_empty() && trials.is_empty() {
            return Ok(());
        }
        let mut writer = door::open(self.store, &mut || (self.random)())?;
        for trial in trials {
            writer.append_trial(trial)?;
        }
        if credits.is_empty() {
            return Ok(());
        }
        for credit in credits {
            let Some(entry) = writer.store().find(Kind::Fix, &credit.id)? else {
                // It was forgotten in the meantime.
                continue;
            };
            let Ok(fix) = entry.parse::<Fix>() else {
                continue;
            };
            let mut evidence = fix.evidence();
            evidence.shown += u64::from(credit.shown);
            match credit.outcome {
                Some(Outcome::Helped) => evidence.helped += 1,
                Some(Outcome::Harmed) => evidence.harmed += 1,
                None => {}
            }
            let mut changes = vec![
                ("shown", json!(evidence.shown)),
                ("helped", json!(evidence.helped)),
                ("harmed", json!(evidence.harmed)),
            ];
            if is_sunk(evidence) {
                changes.push(("status", json!("retired")));
            }
            writer.update(Kind::Fix, &credit.id, &changes)?;
        }
        // The table is made anew now, while nobody waits for an answer.
        table(writer.store()).map(drop)
    }
}

/// The hints for an error key. Reads only.
fn look_up(terms: &Terms, key: &str, options: &HintOptions, withheld: &[String]) -> Vec<Hint> {
    let failure = Failure {
        error_key: key,
        code: options.command.as_deref(),
    };
    known(terms, &failure, withheld, options.max_hints)
}

/// Fixes that can be found by the terms of their keys, wherever they are.
pub(super) trait Fixes {
    /// How many there are.
    fn entries(&self) -> u64;
    /// The numbers of those that hold a term, the newest `limit` of them, and how many there are.
    fn holding(&self, term: u64, limit: usize) -> (Vec<u32>, u64);
    /// One by its number.
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
        self.entry(number)?.parse().ok()
    }
}

/// The key of what a failing call printed. What this program has told an agent itself is no error,
/// and no secret goes into notes.
pub(super) fn key_of(error: &str) -> Option<String> {
    let key = error_key(&guard::strip_fenced(error))?;
    Some(guard::redact(&key).text.into_owned())
}

/// The hints for a failure, as they may be shown.
pub(super) fn known(
    fixes: &dyn Fixes,
    failure: &Failure<'_>,
    withheld: &[String],
    max_hints: usize,
) -> Vec<Hint> {
    let candidates = candidates(fixes, failure.error_key);
    let hints = select_hints(failure, candidates, withheld, max_hints);
    hints.into_iter().filter_map(admitted).collect()
}

/// A hint as it may be shown: without secrets that an older store holds, and not at all where it
/// speaks to the model instead of showing code.
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

/// The fixes with exactly this key in a store that is being written to.
pub(super) fn fixes_of(writer: &Writer, key: &str) -> Result<Vec<(Entry, Fix)>, Error> {
    let terms = table(writer.store())?;
    let (numbers, _) = terms.holding(exact_term(key), usize::MAX);
    let entries = numbers.into_iter().filter_map(|n| terms.entry(n));
    Ok(entries
        .filter_map(|entry| entry.parse::<Fix>().ok().map(|fix| (entry, fix)))
        .filter(|(_, fix)| fix.error_key == key)
        .collect())
}

/// The fixes by the terms of their keys. A fix that is not shown has none.
fn table(store: &Scoped) -> Result<Terms, Error> {
    Ok(store.terms(
        Kind::Fix,
        SCHEME,
        &|entry| match serde_json::from_slice::<Fix>(entry) {
            Ok(fix) => terms_of(&fix),
            Err(_) => Vec::new(),
        },
    )?)
}

/// Makes the table anew after fixes were changed, while nobody waits for an answer.
pub(super) fn prepare(store: &Scoped) -> Result<(), Error> {
    table(store).map(drop)
}

/// The terms that a fix is found by: none where it is not to be found.
pub(super) fn terms_of(fix: &Fix) -> Vec<u64> {
    if is_shown(fix) {
        terms(&normalised(&fix.error_key))
    } else {
        Vec::new()
    }
}

/// Whether a fix may be shown: it works, waits for nobody, and says what to do otherwise. What merely
/// worked the second time is counted where it was learnt, and is no advice.
pub(super) fn is_shown(fix: &Fix) -> bool {
    !fix.error_key.is_empty()
        && fix.is_active()
        && fix.status != QUARANTINED
        && fix.failing_code.trim() != fix.working_code.trim()
}

/// Fixes that may apply: those of the same key, and those whose keys share telling words with it.
fn candidates(terms: &dyn Fixes, key: &str) -> Vec<Candidate> {
    let (same, _) = terms.holding(exact_term(key), SAME);
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
            // What is only like it stays below what is the same.
            similarity(&asked, &words, &weight).min(0.99)
        };
        found.push(Candidate { fix, similarity });
    }
    found
}

fn rules(pitfalls: &[Pitfall]) -> Vec<String> {
    let rules = pitfalls.iter().map(|pitfall| pitfall.rule.clone());
    rules.take(MAX_RULES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Evidence, Scope};
    use crate::store::atomic;
    use serde_json::Value;

    fn store(fixes: &[Value]) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string_pretty(&json!({"entries": fixes})).unwrap();
        atomic::replace(&dir.path().join(Kind::Fix.file()), text.as_bytes()).unwrap();
        let store = Scoped::new(dir.path(), Scope::All);
        (dir, store)
    }

    fn fix(id: usize, key: &str, failing: &str, working: &str) -> Value {
        json!({"fix_id": format!("FIX-{id:03}"), "created_at": "", "error_key": key,
            "failing_code": failing, "working_code": working, "success_output": "ok"})
    }

    fn adviser(store: &Scoped) -> Adviser<'_> {
        Adviser {
            store,
            now: DateTime::UNIX_EPOCH,
            random: || "r".to_owned(),
            withhold: Share::NONE,
        }
    }

    fn failure(error: &str, command: &str, session: Option<&str>) -> HintOptions {
        HintOptions {
            error: error.to_owned(),
            tool: Some("Bash".to_owned()),
            command: Some(command.to_owned()),
            session: session.map(str::to_owned),
            max_hints: 3,
        }
    }

    const ERROR: &str = "error: externally-managed-environment";

    fn evidence(store: &Scoped) -> (u64, u64, u64) {
        let Evidence {
            shown,
            helped,
            harmed,
        } = store.get::<Fix>("FIX-001").unwrap().evidence();
        (shown, helped, harmed)
    }

    #[test]
    fn a_hint_is_found_shown_once_and_credited() {
        let key = error_key(ERROR).unwrap();
        let known = fix(1, &key, "pip install x", "pip install --user x");
        let (_dir, store) = store(&[known, fix(2, "other", "a", "b")]);
        let adviser = adviser(&store);
        let at = |session| {
            adviser
                .hint(&failure(ERROR, "pip install y", session))
                .unwrap()
        };
        let ids = |report: &HintReport| -> Vec<String> {
            report.hints.iter().map(|hint| hint.id.clone()).collect()
        };
        // Without a session nothing is noted.
        for _ in 0..2 {
            assert_eq!(ids(&at(None)), ["FIX-001"]);
        }
        assert_eq!(ids(&at(Some("s"))), ["FIX-001"]);
        assert!(adviser.succeeded("s", None, "ls").unwrap().is_empty());
        assert_eq!(
            adviser
                .succeeded("s", None, "pip install --user y")
                .unwrap()
                .len(),
            1
        );
        assert_eq!(evidence(&store), (1, 1, 0));
        assert_eq!(ids(&at(Some("s"))), ["FIX-001"]);
        // The same error again: no second showing, and a mark against the fix.
        assert_eq!(ids(&at(Some("s"))), [""; 0]);
        assert_eq!(evidence(&store), (2, 1, 1));
        assert_eq!(ids(&at(Some("t"))), ["FIX-001"]);
        adviser.ended("t").unwrap();
        adviser.ended("t").unwrap();
        assert_eq!(evidence(&store), (3, 1, 1));
    }

    #[test]
    fn a_fix_that_stops_working_retires() {
        let key = error_key(ERROR).unwrap();
        let (_dir, store) = store(&[fix(1, &key, "pip install x", "pip install --user x")]);
        let adviser = adviser(&store);
        let at = |session: &str| {
            let options = failure(ERROR, "pip install x", Some(session));
            adviser.hint(&options).unwrap().hints.len()
        };
        for session in ["a", "b", "c"] {
            assert_eq!((at(session), at(session)), (1, 0), "{session}");
        }
        assert_eq!(at("d"), 0);
        assert!(!store.get::<Fix>("FIX-001").unwrap().is_active());
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
            let options = HintOptions {
                error: error.to_owned(),
                max_hints: 3,
                ..HintOptions::default()
            };
            let report = adviser(&store).hint(&options).unwrap();
            report.hints.into_iter().map(|h| (h.id, h.why)).next()
        };
        let (id, why) = found("TypeError: string indices must be integers, not 'str'").unwrap();
        assert_eq!(id, "FIX-001");
        assert!(why.starts_with("a similar error (0."), "{why}");
        assert_eq!(found("TypeError: unsupported operand type(s) for +"), None);
        assert_eq!(found("error: disk quota exceeded"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn pitfalls_accumulate_over_a_session() {
        let (_dir, store) = store(&[]);
        let adviser = adviser(&store);
        for error in [
            "KeyError: 'a'",
            "bash: foo: command not found",
            "KeyError: 'b'",
        ] {
            adviser.hint(&failure(error, "x", Some("s"))).unwrap();
        }
        assert_eq!(adviser.pitfalls("s").len(), 2);
        assert_eq!(adviser.pitfalls("t").len(), 0);
    }
}
