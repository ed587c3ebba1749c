//! Hints: fixes that worked for the same error before.
//!
//! The caller finds candidates by their [`terms`]; this module scores and formats them. The exact
//! error key counts most, then the similarity of keys and commands. Candidates below `FLOOR` are
//! dropped, because a wrong hint costs more than none. Unspecific keys (`KeyError`, "no such file")
//! occur everywhere and also need a similar command.

use serde::Serialize;

use crate::guard::lines;
use crate::model::{Evidence, Fix, Kind, Record as _, Trust};

use super::applies::applies;
use super::differing_name::{self, DifferingName, differing_names};
use super::failure::{ErrorLine, Failure};
use super::likeness::{is_generic, key_words, of_commands, same_program, telling_words};

/// Version of the search terms. A change invalidates saved tables.
pub(crate) const SCHEME: u64 = 6;
/// Default number of hints.
pub(crate) const MAX_HINTS: usize = 3;
/// Minimum score of a hint, as in the source document.
const FLOOR: f64 = 0.55;
/// Minimum similarity of an error that is not the same.
const SIMILAR: f64 = 0.6;
/// Minimum similarity of an error of another program that is not the same.
const UNRELATED: f64 = 0.8;
/// Share of the score that an unrelated command costs.
const COMMAND_SHARE: f64 = 0.25;
/// A key with fewer specific words than this is unspecific.
const TELLING: usize = 3;
/// Minimum similarity of commands for an unspecific key.
const ALIKE: f64 = 0.3;
/// Posterior below which a fix is retired after [`TRIALS`] outcomes, unless a person has approved
/// it.
const SUNK: f64 = 0.3;
const TRIALS: u64 = 3;
/// Maximum length of displayed code or output, in characters.
const SHOWN: usize = 1_200;

/// Fix that may apply to a failure.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Stored fix.
    pub fix: Fix,
    /// Similarity of the error keys, from 0 to 1; 1 for equal keys.
    pub similarity: f64,
    /// Number of the matching line of the failure.
    pub line: usize,
}

/// Hint for a failure.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Hint {
    /// Record id.
    pub id: String,
    /// Record kind.
    pub kind: Kind,
    /// Error key of the fix.
    pub error_key: String,
    /// Failing code; empty for a procedure.
    pub failing_code: String,
    /// Working code; the numbered steps of a procedure.
    pub working_code: String,
    /// Output of the working code.
    pub success_output: String,
    /// Match score, from 0 to 1.
    pub score: f64,
    /// Mean of the posterior, from 0 to 1.
    pub confidence: f64,
    /// Outcomes of earlier uses.
    pub evidence: Evidence,
    /// Trust level.
    pub trust: Trust,
    /// Reason for the match.
    pub why: String,
    /// Names in the working code that the present error has otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<DifferingName>,
}

/// Search terms of an error key: the term of the whole key, then those of its words.
pub(crate) fn terms(key: &str) -> Vec<u64> {
    let mut terms = vec![exact_term(key)];
    terms.extend(key_words(key).iter().map(|word| word_term(word)));
    terms
}

/// Term of entries with exactly this key.
pub(crate) fn exact_term(key: &str) -> u64 {
    hash(b"=", key)
}

/// Term of approved entries with exactly this key, so that they are found among any number of
/// others.
pub(crate) fn approved_term(key: &str) -> u64 {
    hash(b"!", key)
}

/// Term of entries whose key contains a word.
pub(crate) fn word_term(word: &str) -> u64 {
    hash(b"~", word)
}

/// Term of entries with this key that are about a subject, so that a missing module is found among
/// any number of other missing modules.
pub(crate) fn subject_term(key: &str, subject: &str) -> u64 {
    hash(b"@", &format!("{key}\n{}", subject.to_lowercase()))
}

/// Term of entries whose error line is this one without the words of the failing call.
pub(crate) fn abstract_term(line: &str) -> u64 {
    hash(b"#", line)
}

/// Term of entries whose failing call is exactly this one.
pub(crate) fn call_term(call: &str) -> u64 {
    hash(b"$", call.trim())
}

/// FNV-1a hash. A collision only costs one comparison.
fn hash(space: &[u8], text: &str) -> u64 {
    space
        .iter()
        .chain(text.as_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |sum, b| {
            (sum ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Returns true if a fix has failed too often to be shown. An approved fix is still shown, ranked
/// lower and reported.
pub(crate) fn is_sunk(evidence: Evidence) -> bool {
    evidence.helped.saturating_add(evidence.harmed) >= TRIALS && evidence.posterior() < SUNK
}

/// Best hints among the candidates, best first, without duplicates and without `withheld`.
/// Unreviewed outcomes can retire an observed fix, but not an approved one.
pub(crate) fn select_hints(
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
    // Of two fixes that match equally, the one that has helped comes first.
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

/// Keeps the first `max_hints`, but always the best approved one, so that others cannot displace
/// it.
pub(crate) fn truncate(hints: &mut Vec<Hint>, max_hints: usize) {
    let is_approved = |hint: &Hint| hint.trust != Trust::Observed;
    if let Some(at) = hints.iter().position(is_approved)
        && at >= max_hints
        && max_hints > 0
    {
        hints.swap(max_hints - 1, at);
    }
    hints.truncate(max_hints);
}

/// Returns `true` if a fix may be told before the call that it is for: it has helped more often than
/// it failed or was not needed.
pub(crate) fn is_told_before(fix: &Fix) -> bool {
    let evidence = fix.evidence();
    let against = fix.evidence_of_needless().saturating_add(evidence.harmed);
    evidence.helped > against && !fix.working_code.trim().is_empty()
}

/// Returns the hint for a call that has not run yet.
pub(crate) fn hint_before(fix: Fix) -> Hint {
    let (evidence, trust) = (fix.evidence(), fix.trust());
    Hint {
        id: fix.fix_id,
        kind: Kind::Fix,
        error_key: fix.error_key,
        failing_code: cut(&fix.failing_code),
        working_code: cut(&fix.working_code),
        success_output: cut(&fix.success_output),
        score: 1.0,
        confidence: (evidence.posterior() * 1e4).round() / 1e4,
        evidence,
        trust,
        why: "same call".to_owned(),
        differs: Vec::new(),
    }
}

fn judge(failure: &Failure<'_>, candidate: Candidate) -> Option<Hint> {
    let Candidate {
        fix,
        similarity,
        line,
    } = candidate;
    let line = failure.lines.get(line)?;
    if !applies(&fix, line, failure) {
        return None;
    }
    let (evidence, trust) = (fix.evidence(), fix.trust());
    let is_same = similarity >= 1.0;
    let differs = if is_same {
        differing_names(&fix.error_line, &line.text, &fix.working_code)
    } else {
        Vec::new()
    };
    if !is_same && similarity < SIMILAR {
        return None;
    }
    let mut score = similarity;
    let mut alike = None;
    if let Some(code) = failure.code {
        let likeness = of_commands(code, &fix.failing_code);
        let is_vague = telling_words(&line.key) < TELLING && fix.subject.is_empty();
        // A fix of the first form has no error line to check the names of.
        // Words in common say little if the commands have nothing to do with each other.
        let is_related = likeness >= ALIKE || same_program(code, &fix.failing_code);
        if !is_same && !is_related && similarity < UNRELATED {
            return None;
        }
        let is_checked = is_same && !fix.error_line.is_empty();
        let says_nothing = telling_words(&fix.error_key) == 0;
        let is_akin = same_program(code, &fix.failing_code);
        if is_same && says_nothing && !is_akin && !share_a_name(&fix, line, code) {
            return None;
        }
        if is_vague && !is_checked && likeness < ALIKE && !same_program(code, &fix.failing_code) {
            return None;
        }
        if is_same || is_vague {
            score *= 1.0 - COMMAND_SHARE * (1.0 - likeness);
        }
        alike = Some(likeness);
    }
    if score < FLOOR {
        return None;
    }
    let mut why = if is_same {
        "same error".to_owned()
    } else {
        format!("similar error ({similarity:.2})")
    };
    if alike.is_some_and(|likeness| likeness >= 0.5) {
        why.push_str(" of a similar command");
    }
    let elsewhere = |project: &str| {
        let known = |origin: &crate::model::Origin| {
            origin.workspace.is_empty() || origin.workspace == project
        };
        !fix.origins.is_empty() && !fix.origins.iter().any(known)
    };
    if failure.project.is_some_and(elsewhere) {
        why.push_str(" in another project");
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
        differs,
    })
}

/// Returns `true` if an error that says nothing but names has one in common with that of a fix,
/// other than a word of the call: `'bash\r'` of `env: 'bash\r': No such file or directory`.
fn share_a_name(fix: &Fix, line: &ErrorLine, code: &str) -> bool {
    if fix.error_line.is_empty() || !fix.subject.is_empty() {
        return true;
    }
    let own = key_words(&fix.error_line);
    let calls: Vec<_> = [code, &fix.failing_code].map(key_words).into();
    let said = key_words(&line.text);
    let mut shared = own.intersection(&said);
    shared.any(|word| !is_generic(word) && !calls.iter().any(|call| call.contains(word)))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Hints in the source document's format; empty if there are none.
pub(crate) fn render_hints(hints: &[Hint]) -> String {
    if hints.is_empty() {
        return String::new();
    }
    "CODE HINTS (learned from prior errors -- use these patterns):\n".to_owned()
        + &render_blocks(hints)
}

/// Introduction of hints for a model: a statement of fact, because models distrust orders from
/// memory.
const STATEMENT: &str =
    "An agent met this error before. WRONG is what failed then, CORRECT is what worked.\n";

/// Hints in the source document's format, without a heading; empty if there are none.
pub(crate) fn render_blocks(hints: &[Hint]) -> String {
    let block = |hint: &Hint| {
        if hint.kind == Kind::Procedure {
            return render_steps(&hint.error_key, &hint.working_code);
        }
        let code = (hint.failing_code.as_str(), hint.working_code.as_str());
        render_block(&hint.error_key, code, &hint.differs)
    };
    hints.iter().map(block).collect()
}

/// Introduction of a hint before a call.
pub(crate) const STATEMENT_BEFORE: &str =
    "This call failed before in this project. WRONG is what failed then, CORRECT is what worked.\n";

/// Introduction of the steps of procedures.
const STEPS: &str = "WHAT HELPED are the steps that solved it.\n";

/// Introduction of hints of these kinds.
pub(crate) fn statement(kinds: impl IntoIterator<Item = Kind>) -> String {
    let (mut fixes, mut procedures) = (false, false);
    for kind in kinds {
        procedures |= kind == Kind::Procedure;
        fixes |= kind != Kind::Procedure;
    }
    match (fixes, procedures) {
        (false, false) => String::new(),
        (true, false) => STATEMENT.to_owned(),
        (true, true) => STATEMENT.to_owned() + STEPS,
        (false, true) => format!("An agent met this error before. {STEPS}"),
    }
}

/// Steps of a procedure in the form of a hint.
pub(crate) fn render_steps(error_key: &str, steps: &str) -> String {
    let mut text = error_line(error_key) + "  WHAT HELPED:\n";
    push_lines(&mut text, steps);
    text
}

fn error_line(error_key: &str) -> String {
    let key = lines(error_key).collect::<Vec<_>>().join(" ");
    format!("\n  ERROR: {key}\n")
}

fn push_lines(text: &mut String, code: &str) {
    for line in lines(code) {
        text.extend(["    ", line, "\n"]);
    }
}

/// One hint in that format, for failing and working code.
pub(crate) fn render_block(
    error_key: &str,
    (failing, working): (&str, &str),
    differs: &[DifferingName],
) -> String {
    let mut text = error_line(error_key);
    for (name, code) in [("WRONG", failing), ("CORRECT", working)] {
        text.extend(["  ", name, ":\n"]);
        push_lines(&mut text, code);
    }
    text + &differing_name::render(differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, key: &str, failing: &str, working: &str) -> Candidate {
        let json = serde_json::json!({"fix_id": id, "error_key": key, "failing_code": failing,
            "working_code": working});
        Candidate {
            fix: serde_json::from_value(json).unwrap(),
            similarity: 1.0,
            line: 0,
        }
    }

    fn failure<'a>(key: &str, code: Option<&'a str>) -> Failure<'a> {
        let line = ErrorLine {
            key: key.to_owned(),
            text: key.to_owned(),
        };
        Failure {
            lines: vec![line],
            code,
            project: None,
        }
    }

    const INDICES: &str = "TypeError: string indices must be integers";
    const WRONG: &str = "print(drugs[\"mechanism\"])";
    const RIGHT: &str = "for row in await drugs.search(\"kinase\"): print(row[\"mechanism\"])";

    #[test]
    fn hints_look_as_the_source_document_shows_them() {
        let failure = failure(INDICES, None);
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
    fn names_that_differ_from_those_of_the_fix_are_told_below_it() {
        let mut known = candidate("FIX-001", "no module <name>", "pytest", "pip install numpy");
        known.fix.error_line = "no module 'numpy'".to_owned();
        let line = ErrorLine {
            key: "no module <name>".to_owned(),
            text: "no module 'pandas'".to_owned(),
        };
        let failure = Failure {
            lines: vec![line],
            ..Failure::default()
        };
        let hints = select_hints(&failure, vec![known], &[], 1);
        let told = "  HERE: the error names `pandas` where that one named `numpy`\n";
        assert!(render_blocks(&hints).ends_with(told), "{hints:?}");
    }

    #[test]
    fn what_fits_less_is_no_hint() {
        let check = |key: &str, code: Option<&str>, known: Candidate, expected: bool| {
            let failure = failure(key, code);
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
        // An unspecific key needs the same kind of command.
        check("TypeError: other", Some("ls"), like(0.7), false);
        check("TypeError: other", Some(WRONG), like(0.7), true);
        let key = || {
            candidate(
                "FIX-001", "KeyError: <name>", "python3 a.py", "python3 b.py",
            )
        };
        check("KeyError: <name>", Some("cargo test"), key(), false);
        check("KeyError: <name>", Some("python3 c.py"), key(), true);
        check("KeyError: <name>", None, key(), true);
        // A fix without content, and one that has stopped working.
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
        let failure = failure(INDICES, None);
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
