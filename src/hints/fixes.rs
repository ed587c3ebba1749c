//! Finds fixes for an error by the words of its error key.
//!
//! A derived table maps words to fixes, so that only a few entries are read. `learn::hint` scores
//! the candidates, and each hint is screened again before it is shown: an older store may hold text
//! that would be rejected today. A fix that may not be shown has no words in the table and is never
//! found.
//!
//! Deliberately absent: sessions, and the outcome of hints.

use std::collections::HashMap;

use crate::guard;
use crate::hints::comparison::{Weights, abstracted, differ_in_details};
use crate::hints::failure::Failure;
use crate::hints::hint::Hint;
use crate::hints::lookup::Fixes;
use crate::hints::procedure_hints;
use crate::hints::ranking::{Candidate, is_demoted, is_told_before, select_hints};
use crate::hints::search_terms::{
    SCHEME, abstract_term, approved_term, call_term, exact_term, subject_term, terms,
};
use crate::learn::error_key::{error_key, normalised};
use crate::learn::fix::subject::subjects;
use crate::model::{Fix, Kind, Record as _, Trust};
use crate::store::{Entry, Scoped, Terms, Writer};

use crate::workspace::Error;

/// Maximum number of fixes with the same key to score: the newest, and the newest approved ones.
const SAME: usize = 32;
/// Number of a failure's lines that are compared with similar keys: the most specific ones.
const COMPARED: usize = 3;

/// Status of a fix that a person has to review first.
pub(crate) const QUARANTINED: &str = "quarantined";

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
    Ok(store.terms(Kind::Fix, SCHEME, &terms_in)?)
}

/// Terms of a fix as text.
fn terms_in(entry: &[u8]) -> Vec<u64> {
    let fix = serde_json::from_slice::<Fix>(entry);
    fix.as_ref().map(terms_of).unwrap_or_default()
}

/// Rebuilds the tables after fixes or procedures have changed, so that no later lookup has to.
pub(crate) fn prepare(store: &Scoped) -> Result<(), Error> {
    procedure_hints::table(store)?;
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
    terms.extend(fix.subject.iter().map(|name| subject_term(&key, name)));
    let plain = abstracted(&fix.error_line, &fix.failing_code);
    if !plain.is_empty() {
        terms.push(abstract_term(&plain));
    }
    if is_told_before(fix) {
        terms.push(call_term(&fix.failing_code));
    }
    terms
}

/// Returns the hint for a call that has not run yet: the newest fix of exactly this call that worked
/// in this project.
pub(crate) fn before(
    store: &Scoped,
    code: &str,
    project: Option<&str>,
    withheld: &[String],
) -> Result<Option<Hint>, Error> {
    let terms = store.terms_on_disk(Kind::Fix, SCHEME, &terms_in)?;
    let (numbers, _) = terms.holding(call_term(code), SAME);
    let fixes = numbers.into_iter().rev().filter_map(|n| terms.fix(n));
    let is_here = |fix: &Fix| {
        let mut origins = fix.origins.iter();
        fix.origins.is_empty() || origins.any(|origin| project == Some(&*origin.workspace))
    };
    let mut known = fixes.filter(|fix| {
        fix.failing_code.trim() == code.trim()
            && is_shown(fix)
            && is_told_before(fix)
            && is_here(fix)
            && !withheld.contains(&fix.fix_id)
            && (fix.trust() != Trust::Observed || !is_demoted(fix.evidence()))
    });
    Ok(known.find_map(|fix| admitted(Hint::before(fix))))
}

/// Describes approved fixes with evidence against them, one sentence each. Sessions do not retire
/// an approved fix, so a person has to decide.
pub(crate) fn doubts<'f>(fixes: impl IntoIterator<Item = &'f Fix>) -> Vec<String> {
    let doubt = |fix: &Fix| {
        let (id, evidence) = (&fix.fix_id, fix.evidence());
        let outcomes = evidence.helped.saturating_add(evidence.harmed);
        let said = if fix.trust() == Trust::Observed || fix.is_episode() {
            return None;
        } else if !fix.is_active() {
            "retired, and no hint any more".to_owned()
        } else if is_demoted(evidence) {
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

/// Returns true if a fix may be shown: it is active, not quarantined, no mere episode, and more than
/// a retry of the failing call.
pub(crate) fn is_shown(fix: &Fix) -> bool {
    !fix.error_key.is_empty()
        && fix.is_active()
        && fix.status != QUARANTINED
        && !fix.is_episode()
        && fix.failing_code.trim() != fix.working_code.trim()
}

/// Candidate fixes: those with the key of one of the failure's lines, and those whose keys share
/// rare words with its most specific ones.
fn candidates(terms: &dyn Fixes, failure: &Failure<'_>) -> Vec<Candidate> {
    let mut numbers: Vec<(u32, usize)> = Vec::new();
    for (place, line) in failure.lines.iter().enumerate() {
        let mut exact = vec![exact_term(&line.key), approved_term(&line.key)];
        let about = subjects(&line.text);
        exact.extend(about.iter().map(|name| subject_term(&line.key, name)));
        if place < COMPARED {
            let plain = abstracted(&line.text, failure.code.unwrap_or_default());
            exact.push(abstract_term(&plain));
        }
        for term in exact {
            let (same, _) = terms.holding(term, SAME);
            numbers.extend(same.into_iter().map(|number| (number, place)));
        }
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

    #[test]
    fn a_subject_is_found_among_many_fixes_of_the_same_key() {
        let missing = |id: usize, name: &str, package: &str| {
            let call = format!("python3 {name}.py");
            let mut known = fix(id, "ModuleNotFoundError: No module named <name>", &call, "");
            known["error_line"] = json!(format!("ModuleNotFoundError: No module named '{name}'"));
            known["working_code"] = json!(format!("pip install {package} && {call}"));
            known["subject"] = json!([name]);
            known
        };
        let mut fixes = vec![missing(1, "cv2", "opencv-python")];
        fixes.extend((2..200).map(|i| missing(i, &format!("mod{i}"), &format!("package{i}"))));
        let (_dir, store) = store(&fixes);
        let found = |error: &str| {
            let failure = Failure::of(error, Some("python3 train.py"), None).unwrap();
            let hints = known(&table(&store).unwrap(), &failure, &[], 3);
            hints.into_iter().map(|hint| hint.id).collect::<Vec<_>>()
        };
        let missing = |name: &str| found(&format!("ModuleNotFoundError: No module named '{name}'"));
        assert_eq!(missing("cv2"), ["FIX-001"]);
        assert_eq!(missing("mod77"), ["FIX-077"]);
        assert_eq!(missing("absent"), [""; 0]);
    }

    #[test]
    fn an_error_that_says_nothing_but_names_needs_one_of_them() {
        let mut crlf = fix(
            1,
            "<path>: <name>: No such file or directory",
            "./a.sh",
            "sed -i 's/\\r$//' a.sh && ./a.sh",
        );
        crlf["error_line"] = json!("/usr/bin/env: ‘bash\\r’: No such file or directory");
        let (_dir, store) = store(&[crlf]);
        let found = |error: &str, code: &str| {
            let failure = Failure::of(error, Some(code), None).unwrap();
            !known(&table(&store).unwrap(), &failure, &[], 3).is_empty()
        };
        assert!(found(
            "/usr/bin/env: ‘python3\\r’: No such file or directory",
            "./b.py"
        ));
        assert!(!found("cat: b.yml: No such file or directory", "cat b.yml"));
    }

    #[test]
    fn a_name_that_the_caller_chose_fails_for_another_reason() {
        let line = |name: &str| format!("psql: error: FATAL: database \"{name}\" does not exist");
        let mut default = fix(
            1,
            "psql: error: FATAL: database <name> does not exist",
            "psql",
            "psql -d postgres",
        );
        default["error_line"] = json!(line("runner"));
        let (_dir, store) = store(&[default]);
        let found = |name: &str, code: &str| {
            let failure = Failure::of(&line(name), Some(code), None)?;
            known(&table(&store).unwrap(), &failure, &[], 3).pop()
        };
        assert!(found("ubuntu", "psql -c '\\dt'").is_some());
        assert_eq!(found("crm", "psql crm -f schema.sql"), None);
    }
}
