//! Decides if a fix applies to a failure, beyond the similarity of the errors.
//!
//! An error of the same class with another subject needs another fix. A fix with subjects applies
//! where one of them occurs. A fix that acts on the program that failed applies where the error is
//! about the program that was called. A call that already does what the fix says is not helped by
//! it, and knowledge of one project is of no use in another.
//!
//! Fixes of the first form have no error line. They apply by their key alone.

use crate::learn::fix::difference::{Difference, words};
use crate::learn::fix::hazard::new_hazards;
use crate::learn::fix::subject::{names, subjects};
use crate::model::{Fix, PROJECT_SCOPE, Record as _, Trust};

use super::failure::{ErrorLine, Failure};

/// Returns `true` if a fix may be shown for this line of a failure.
pub(crate) fn applies(fix: &Fix, line: &ErrorLine, failure: &Failure<'_>) -> bool {
    if fix.scope == PROJECT_SCOPE && !is_of_project(fix, failure.project) {
        return false;
    }
    if fix.trust() == Trust::Observed
        && !new_hazards(&fix.failing_code, &fix.working_code).is_empty()
    {
        return false;
    }
    if !fix.subject.is_empty() && !is_about(&fix.subject, line, failure.code) {
        return false;
    }
    let Some(code) = failure.code else {
        return true;
    };
    if !fix.error_line.is_empty()
        && is_about_its_program(&fix.error_line, &fix.failing_code)
        && !is_about_its_program(&line.text, code)
    {
        return false;
    }
    if fix.subject.is_empty()
        && is_named_by_call(&fix.error_line, &fix.failing_code) == Some(false)
        && is_named_by_call(&line.text, code) == Some(true)
    {
        return false;
    }
    !is_done_already(fix, code) && !is_typo(line, failure)
}

/// Returns whether a call itself says the names that its error is about; `None` if the error is
/// about none. A database that the caller named does not exist for another reason than one that the
/// program chose.
fn is_named_by_call(line: &str, code: &str) -> Option<bool> {
    let about = subjects(line);
    (!about.is_empty()).then(|| about.iter().any(|name| names(code, name)))
}

/// Returns `true` if the output suggests a word that is almost the one that failed: `build` for
/// `buidl`. The agent needs no memory then.
fn is_typo(line: &ErrorLine, failure: &Failure<'_>) -> bool {
    let wrong = subjects(&line.text);
    let suggested = failure.lines.iter().filter(|other| other.text != line.text);
    suggested
        .flat_map(|other| subjects(&other.text))
        .any(|word| {
            wrong.iter().any(|wrong| {
                wrong != &word
                    && wrong.len() > 3
                    && strsim::osa_distance(wrong, &word) <= 1 + usize::from(wrong.len() > 7)
            })
        })
}

fn is_of_project(fix: &Fix, project: Option<&str>) -> bool {
    let project = project.unwrap_or_default();
    !project.is_empty() && fix.origins.iter().any(|origin| origin.workspace == project)
}

/// Returns `true` if the error or the call names one of the subjects.
fn is_about(subject: &[String], line: &ErrorLine, code: Option<&str>) -> bool {
    subject.iter().any(|name| {
        names(&line.text, name)
            || code.is_some_and(|code| {
                words(code)
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(name))
            })
    })
}

/// Returns `true` if an error names the file that was called: `./run.sh: Permission denied`.
fn is_about_its_program(line: &str, code: &str) -> bool {
    words(code)
        .iter()
        .find(|word| !word.contains('='))
        .is_some_and(|program| {
            program.contains('/') && line.contains(program.trim_start_matches("./"))
        })
}

/// Returns `true` if a call has all options that a fix adds, and the fix adds nothing else.
fn is_done_already(fix: &Fix, code: &str) -> bool {
    let difference = Difference::between(&fix.failing_code, &fix.working_code);
    let call = words(code);
    let options: Vec<&str> = difference
        .added
        .iter()
        .filter(|word| word.starts_with('-') && word.len() > 1)
        .map(|word| word.split('=').next().unwrap_or(word))
        .collect();
    let has = |option: &&str| {
        call.iter()
            .any(|word| word.split('=').next() == Some(*option))
    };
    let adds_more = difference
        .added
        .iter()
        .filter(|word| !word.starts_with('-'))
        .count()
        > options.len();
    !options.is_empty() && !adds_more && options.iter().all(has)
}
