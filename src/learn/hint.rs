//! Hints: what worked the last time when this error came.
//!
//! Which fixes are candidates, the caller finds by their [`terms`]; here they are judged and worded.
//! The exact error key counts most, then how alike the keys are and how alike the commands; below
//! `FLOOR` nothing is a hint, for a wrong one costs more than none. A key that says little
//! (`KeyError`, "no such file") is met everywhere, so there the command must be alike too.

use serde::Serialize;

use crate::guard::lines;
use crate::model::{Evidence, Fix, Kind, Record as _, Trust};

use super::likeness::{key_words, of_commands, telling_words};

/// Changed whenever the words of the search change, or which fixes are found by them, so that saved
/// tables are made again.
pub const SCHEME: u64 = 3;
/// So many hints are shown where nobody says how many.
pub const MAX_HINTS: usize = 3;
/// What a hint's score must reach, as the source document's cache has it.
const FLOOR: f64 = 0.55;
/// How much of the score a foreign command costs.
const COMMAND_SHARE: f64 = 0.25;
/// A key with fewer telling words than this is met everywhere.
const TELLING: usize = 3;
/// How alike commands must be where the key says little.
const ALIKE: f64 = 0.3;
/// A fix whose posterior has sunk below this after [`TRIALS`] outcomes is retired, unless a person has
/// approved it.
const SUNK: f64 = 0.3;
const TRIALS: u64 = 3;
/// The longest code or output that is shown, in characters.
const SHOWN: usize = 1_200;

/// What failed, as it is looked up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Failure<'a> {
    /// The key of its error.
    pub error_key: &'a str,
    /// The command or code that failed, where it is known.
    pub code: Option<&'a str>,
}

/// A fix that may apply to what failed.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The fix.
    pub fix: Fix,
    /// How like its error key is to the one that is looked up, from 0 to 1; 1 is the same key.
    pub similarity: f64,
}

/// What worked before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hint {
    /// The record's id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The key of the error that it is about.
    pub error_key: String,
    /// What failed then.
    pub failing_code: String,
    /// What worked then.
    pub working_code: String,
    /// What it printed when it worked.
    pub success_output: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// How far use has borne it out: the mean of the posterior.
    pub confidence: f64,
    /// What use has shown.
    pub evidence: Evidence,
    /// How far it may be believed.
    pub trust: Trust,
    /// Why it is shown.
    pub why: String,
}

/// The terms of an error key: first the one of the whole key, then those of its words.
pub fn terms(key: &str) -> Vec<u64> {
    let mut terms = vec![exact_term(key)];
    terms.extend(key_words(key).iter().map(|word| word_term(word)));
    terms
}

/// The term that only entries with exactly this key hold.
pub fn exact_term(key: &str) -> u64 {
    hash(b"=", key)
}

/// The term that only approved entries with exactly this key hold: however many others of that key
/// there are, these are found.
pub fn approved_term(key: &str) -> u64 {
    hash(b"!", key)
}

/// The term of entries whose key holds a word.
pub fn word_term(word: &str) -> u64 {
    hash(b"~", word)
}

/// FNV-1a. A collision costs a look at an entry, which is then compared.
fn hash(space: &[u8], text: &str) -> u64 {
    space
        .iter()
        .chain(text.as_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |sum, b| {
            (sum ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Whether a fix has failed so often that it is shown no more; one that a person has approved is shown
/// on, behind others, and reported.
pub fn is_sunk(evidence: Evidence) -> bool {
    evidence.helped.saturating_add(evidence.harmed) >= TRIALS && evidence.posterior() < SUNK
}

/// The best hints among the candidates, best first, none twice and none of `withheld`. Sessions that
/// nobody has looked at may sink a fix, but none that a person has approved.
pub fn select_hints(
    failure: &Failure<'_>,
    candidates: Vec<Candidate>,
    withheld: &[String],
    max_hints: usize,
) -> Vec<Hint> {
    let mut hints: Vec<Hint> = candidates
        .into_iter()
        .filter(|candidate| !withheld.contains(&candidate.fix.fix_id))
        .filter(|candidate| {
            candidate.fix.trust() != Trust::Observed || !is_sunk(candidate.fix.evidence())
        })
        .filter(|candidate| !candidate.fix.working_code.trim().is_empty())
        .filter_map(|candidate| judge(failure, candidate))
        .collect();
    // A fix that has helped comes before one that only fits as well.
    let order = |hint: &Hint| hint.score * (0.5 + hint.confidence);
    hints.sort_by(|a, b| order(b).total_cmp(&order(a)).then(b.id.cmp(&a.id)));
    let mut seen: Vec<(String, String)> = Vec::new();
    hints.retain(|hint| {
        let way = (hint.error_key.clone(), hint.working_code.clone());
        let is_new = !seen.contains(&way);
        seen.push(way);
        is_new
    });
    truncate(&mut hints, max_hints);
    hints
}

/// The first `max_hints`. The best one that a person has approved is among them: others cannot crowd
/// it out.
pub fn truncate(hints: &mut Vec<Hint>, max_hints: usize) {
    let is_approved = |hint: &Hint| hint.trust != Trust::Observed;
    if let Some(at) = hints.iter().position(is_approved)
        && at >= max_hints
        && max_hints > 0
    {
        hints.swap(max_hints - 1, at);
    }
    hints.truncate(max_hints);
}

fn judge(failure: &Failure<'_>, candidate: Candidate) -> Option<Hint> {
    let Candidate { fix, similarity } = candidate;
    let (evidence, trust) = (fix.evidence(), fix.trust());
    let is_same = similarity >= 1.0 || fix.error_key == failure.error_key;
    let similarity = if is_same { 1.0 } else { similarity };
    let mut score = similarity;
    let mut alike = None;
    if let Some(code) = failure.code.filter(|code| !code.trim().is_empty()) {
        let likeness = of_commands(code, &fix.failing_code);
        if telling_words(failure.error_key) < TELLING && likeness < ALIKE {
            return None;
        }
        score *= 1.0 - COMMAND_SHARE * (1.0 - likeness);
        alike = Some(likeness);
    }
    if score < FLOOR {
        return None;
    }
    let mut why = if is_same {
        "the same error".to_owned()
    } else {
        format!("a similar error ({similarity:.2})")
    };
    if alike.is_some_and(|likeness| likeness >= 0.5) {
        why.push_str(" of a similar command");
    }
    Some(Hint {
        id: fix.fix_id,
        kind: Kind::Fix,
        error_key: fix.error_key,
        failing_code: cut(&fix.failing_code),
        working_code: cut(&fix.working_code),
        success_output: cut(&fix.success_output),
        score: (score * 1e4).round() / 1e4,
        confidence: (evidence.posterior() * 1e4).round() / 1e4,
        evidence,
        trust,
        why,
    })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The hints as the source document renders them; empty where there are none.
pub fn render_hints(hints: &[Hint]) -> String {
    if hints.is_empty() {
        return String::new();
    }
    "CODE HINTS (learned from prior errors -- use these patterns):\n".to_owned()
        + &render_blocks(hints)
}

/// What is said of hints to a model, which distrusts orders from memory: a fact.
pub const STATEMENT: &str = "This error was met before in this project. What failed then stands under WRONG, \
     what worked stands under CORRECT.\n";

/// The hints without a heading, in the source document's form; empty where there are none.
pub fn render_blocks(hints: &[Hint]) -> String {
    let block = |hint: &Hint| render_block(&hint.error_key, &hint.failing_code, &hint.working_code);
    hints.iter().map(block).collect()
}

/// One hint in that form.
pub fn render_block(error_key: &str, failing_code: &str, working_code: &str) -> String {
    let key = lines(error_key).collect::<Vec<_>>().join(" ");
    let mut text = format!("\n  ERROR: {key}\n");
    for (name, code) in [("WRONG", failing_code), ("CORRECT", working_code)] {
        text.extend(["  ", name, ":\n"]);
        for line in lines(code) {
            text.extend(["    ", line, "\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, key: &str, failing: &str, working: &str) -> Candidate {
        let json = serde_json::json!({"fix_id": id, "error_key": key, "failing_code": failing,
            "working_code": working});
        Candidate {
            fix: serde_json::from_value(json).unwrap(),
            similarity: 0.0,
        }
    }

    const INDICES: &str = "TypeError: string indices must be integers";
    const WRONG: &str = "print(drugs[\"mechanism\"])";
    const RIGHT: &str = "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])";

    #[test]
    fn hints_look_as_the_source_document_shows_them() {
        let failure = Failure {
            error_key: INDICES,
            code: None,
        };
        let known = candidate("FIX-001", INDICES, WRONG, RIGHT);
        let hints = select_hints(&failure, vec![known], &[], 5);
        let expected = "CODE HINTS (learned from prior errors -- use these patterns):\n\n  \
            ERROR: TypeError: string indices must be integers\n  WRONG:\n    \
            print(drugs[\"mechanism\"])\n  CORRECT:\n    \
            for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])\n";
        assert_eq!(render_hints(&hints), expected);
        assert!(expected.ends_with(&render_blocks(&hints)));
        assert_eq!(render_hints(&[]), "");
    }

    #[test]
    fn what_fits_less_is_no_hint() {
        let check = |key: &str, code: Option<&str>, known: Candidate, expected: bool| {
            let failure = Failure {
                error_key: key,
                code,
            };
            let hints = select_hints(&failure, vec![known.clone()], &[], 3);
            assert_eq!(!hints.is_empty(), expected, "{key} {code:?} {known:?}");
        };
        let fix = || candidate("FIX-001", INDICES, WRONG, RIGHT);
        let like = |similarity| Candidate {
            similarity,
            ..fix()
        };
        check(INDICES, Some("ls"), fix(), true);
        check("TypeError: other", None, like(0.6), true);
        check("TypeError: other", None, like(0.5), false);
        check("TypeError: other", Some("ls"), like(0.7), false);
        check("TypeError: other", Some(WRONG), like(0.7), true);
        // What says little needs the same kind of command.
        let key = || {
            candidate(
                "FIX-001", "KeyError: <name>", "python3 a.py", "python3 b.py",
            )
        };
        check("KeyError: <name>", Some("cargo test"), key(), false);
        check("KeyError: <name>", Some("python3 c.py"), key(), true);
        check("KeyError: <name>", None, key(), true);
        // A fix that says nothing, and one that has stopped working.
        check(
            INDICES,
            None,
            candidate("FIX-001", INDICES, WRONG, " "),
            false,
        );
        let mut sunk = fix();
        sunk.fix.harmed = Some(3.0);
        check(INDICES, None, sunk, false);
    }

    #[test]
    fn what_has_helped_comes_first_and_nothing_comes_twice() {
        let failure = Failure {
            error_key: INDICES,
            code: None,
        };
        let mut good = candidate("FIX-001", INDICES, WRONG, RIGHT);
        good.fix.helped = Some(4.0);
        let fresh = candidate("FIX-002", INDICES, WRONG, "another way");
        let same = candidate("FIX-003", INDICES, "x", RIGHT);
        let all = || vec![fresh.clone(), good.clone(), same.clone()];
        let ids = |withheld: &[String], max| -> Vec<String> {
            let hints = select_hints(&failure, all(), withheld, max);
            hints.into_iter().map(|hint| hint.id).collect()
        };
        assert_eq!(ids(&[], 3), ["FIX-001", "FIX-002"]);
        assert_eq!(ids(&[], 1), ["FIX-001"]);
        assert_eq!(ids(&["FIX-001".to_owned()], 3), ["FIX-003", "FIX-002"]);
    }

    #[test]
    fn terms_tell_keys_from_words() {
        assert_eq!(terms("disk")[0], exact_term("disk"));
        assert!(terms("disk full").contains(&word_term("disk")));
        assert_ne!(exact_term("disk"), word_term("disk"));
    }
}
