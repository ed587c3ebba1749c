//! Ranking: which fixes become hints for a failure, and in which order.
//!
//! The caller finds candidates by their [`search_terms`](super::search_terms). The exact
//! error key counts most, then the similarity of keys and commands. Candidates below `FLOOR` are
//! dropped, because a wrong hint costs more than none. Unspecific keys (`KeyError`, "no such file")
//! occur everywhere and also need a similar command.

use crate::model::{Evidence, Fix, Origin, Record as _, Trust};

use super::applies::applies;
use super::differing_name::DifferingNames;
use super::failure::{ErrorLine, Failure};
use super::hint::Hint;
use super::likeness::{is_generic, key_words, of_commands, same_program, telling_words};

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

/// Returns true if a fix has failed too often to be shown. An approved fix is still shown, ranked
/// lower and reported.
pub(crate) fn is_demoted(evidence: Evidence) -> bool {
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
            candidate.fix.trust() != Trust::Observed || !is_demoted(candidate.fix.evidence())
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
    let is_same = similarity >= 1.0;
    let likeness = failure
        .code
        .map(|code| of_commands(code, &fix.failing_code));
    let penalty = match (failure.code, likeness) {
        (Some(code), Some(likeness)) => penalty(&fix, similarity, line, code, likeness)?,
        _ => 0.0,
    };
    let score = similarity * (1.0 - penalty);
    if (!is_same && similarity < SIMILAR) || score < FLOOR {
        return None;
    }
    let why = reason(&fix, similarity, likeness, failure.project);
    let mut differing = DifferingNames::new(&fix.working_code);
    if is_same {
        differing.compare_errors(&fix.error_line, &line.text);
    }
    if let Some(code) = failure.code {
        differing.compare_calls(&fix.failing_code, code);
    }
    let differs = differing.found();
    Some(Hint::of(fix, score, why, differs))
}

/// Share of its score that a fix loses since the failing call is another one; `None` if it is no
/// fix for that call.
fn penalty(fix: &Fix, similarity: f64, line: &ErrorLine, code: &str, likeness: f64) -> Option<f64> {
    let is_same = similarity >= 1.0;
    let is_vague = telling_words(&line.key) < TELLING && fix.subject.is_empty();
    let is_akin = same_program(code, &fix.failing_code);
    let is_related = likeness >= ALIKE || is_akin;
    // Words in common say little if the commands have nothing to do with each other.
    if !is_same && !is_related && similarity < UNRELATED {
        return None;
    }
    let says_nothing = telling_words(&fix.error_key) == 0;
    if is_same && says_nothing && !is_akin && !share_a_name(fix, line, code) {
        return None;
    }
    // A fix of the first form has no error line to check the names of.
    let is_checked = is_same && !fix.error_line.is_empty();
    if is_vague && !is_checked && !is_related {
        return None;
    }
    let counts = is_same || is_vague;
    Some(if counts {
        COMMAND_SHARE * (1.0 - likeness)
    } else {
        0.0
    })
}

/// Why a fix is shown, as text. `likeness` is that of the commands, if the failing call is known.
fn reason(fix: &Fix, similarity: f64, likeness: Option<f64>, project: Option<&str>) -> String {
    let mut why = if similarity >= 1.0 {
        "same error".to_owned()
    } else {
        format!("similar error ({similarity:.2})")
    };
    if likeness.is_some_and(|likeness| likeness >= 0.5) {
        why.push_str(" of a similar command");
    }
    let elsewhere = |project: &str| {
        let known = |origin: &Origin| origin.workspace.is_empty() || origin.workspace == project;
        !fix.origins.is_empty() && !fix.origins.iter().any(known)
    };
    if project.is_some_and(elsewhere) {
        why.push_str(" in another project");
    }
    why
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
    fn names_that_the_error_has_otherwise_come_with_the_hint() {
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
        let differs = &hints[0].differs[0];
        assert_eq!((&*differs.then, &*differs.now), ("numpy", "pandas"));
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
}
