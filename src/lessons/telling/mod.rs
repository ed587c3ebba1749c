//! Texts that tell an agent lessons: at the start of a session, before a call, at a failing call.
//!
//! An approved lesson is plain text; everything else is fenced as data to be checked. Each text has a length
//! limit and consists of whole lines.

pub(crate) mod hint;
pub(crate) mod matching;
pub(crate) mod scratch;
pub(crate) mod service;

use std::path::Path;

use memctl_redact::{fence, length};

use crate::lessons::storage::new_lesson::changed_file;
use crate::lessons::telling::hint::{Hint, render_blocks};
use crate::model::text::told_line;
use crate::model::{Kind, LONGEST_LESSON, Procedure, Record as _, Trust};
use crate::store::Here;
use crate::store::workspace::Error;
use crate::store::{Scoped, Selection};

/// Maximum number of newest procedures that a session start looks at.
const LOOKED_AT: usize = 500;
/// Length of the lines of one kind at a session start from which no further one is looked at, in bytes: twice
/// the room that there is, since a rule may forbid some of them.
const ENOUGH: usize = 4_000;
/// Maximum length of a line, in characters.
const LINE: usize = LONGEST_LESSON;
/// Maximum length of the text before a call, in UTF-16 units, without its fence: two lessons.
const BEFORE: usize = 2 * LINE;

/// Lessons for the start of a session: id and line, most useful first.
#[derive(Debug, Default)]
pub(crate) struct StartLessons {
    /// Lessons that a person approved: id and text.
    pub(crate) approved: Vec<(String, String)>,
    /// Lessons that nobody approved: id and text.
    pub(crate) observed: Vec<(String, String)>,
}

/// Returns the lessons of the project that a session works in. A procedure that nobody has worded
/// is told only if a person approved it, by its name and steps.
pub(crate) fn at_start(store: &Scoped, here: &Here<'_>) -> Result<StartLessons, Error> {
    let newest = Selection::newest(None, LOOKED_AT);
    let trust_snapshot = store.trust_snapshot();
    let mut found: Vec<(f64, Procedure)> = Vec::new();
    store.each_entry(Kind::Procedure, &newest, &mut |entry| {
        let Ok(procedure) = entry.parse::<Procedure>() else {
            return;
        };
        let trust = trust_snapshot.level(&procedure);
        let is_told = procedure.is_active()
            && (!procedure.lesson.is_empty()
                || trust != Trust::Observed && !procedure.is_episode())
            && procedure.is_of(&|name| here.has_project(name));
        if is_told {
            let weight = weight(&procedure);
            found.push((weight, procedure.with_trust(trust)));
        }
    })?;
    // The sort is stable, and the newest come first.
    found.reverse();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lessons = StartLessons::default();
    let mut used = (0, 0);
    for (_, procedure) in found {
        let is_approved = procedure.trust() != Trust::Observed;
        let (list, used) = if is_approved {
            (&mut lessons.approved, &mut used.0)
        } else {
            (&mut lessons.observed, &mut used.1)
        };
        let is_admitted =
            |line: &String| is_approved || memctl_redact::admit(line).quarantine.is_none();
        let is_wanted = *used <= ENOUGH;
        let line = is_wanted.then(|| line_of(&procedure, here.root)).flatten();
        if let Some(line) = line.filter(is_admitted) {
            *used += line.len();
            list.push((procedure.procedure_id, line));
        }
    }
    Ok(lessons)
}

/// Weight at a session start: evidence, then how often it was seen.
fn weight(procedure: &Procedure) -> f64 {
    procedure.evidence().posterior() + procedure.occurrences.unwrap_or(1.0).min(10.0) / 20.0
}

/// One line about a procedure: its lesson, else the calls of its pattern, else its name and steps; `None` if it has
/// none of them.
fn line_of(procedure: &Procedure, root: Option<&Path>) -> Option<String> {
    let pattern = procedure.pattern.as_ref();
    let of_pattern = pattern.filter(|_| procedure.lesson.is_empty());
    let line =
        of_pattern.and_then(|of| line_of_calls(&of.failing_code, &of.working_code, of.line()));
    let text = if let Some(line) = line {
        line
    } else if procedure.lesson.is_empty() {
        let fields = procedure.fields();
        let steps = (1..).zip(fields.steps());
        let steps: Vec<String> = steps.map(|(n, step)| format!("{n}. {step}")).collect();
        (!steps.is_empty()).then(|| format!("{}: {}", fields.name, steps.join(" ")))?
    } else {
        procedure.lesson.clone()
    };
    let text = told_line(&text, LINE);
    let changed = root.and_then(|root| changed_file(root, &procedure.files));
    let changed = changed.as_deref().map(has_changed).unwrap_or_default();
    Some(format!("  - {text}{changed}"))
}

/// Remark behind a lesson whose file has changed.
fn has_changed(path: &str) -> String {
    format!(" (`{}` has changed since)", told_line(path, LINE))
}

/// One line before a call: a lesson, or the two calls of a pattern; `None` for what is no such line.
pub(crate) fn line_before(hint: &Hint) -> Option<String> {
    if !hint.lesson.is_empty() {
        let changed = hint.changed_file.as_deref().map(has_changed);
        return Some(told_line(&hint.lesson, LINE) + &changed.unwrap_or_default());
    }
    line_of_calls(&hint.failing_code, &hint.working_code, &hint.error_line)
}

/// Returns the calls of a pattern with the line of the error; `None` if a call is missing, or too long for a line.
fn line_of_calls(failing: &str, working: &str, line: &str) -> Option<String> {
    let (failing, working) = (failing.trim(), working.trim());
    let calls = format!("`{working}` worked here where `{failing}` failed");
    // Half of a command is none.
    let is_line = !failing.is_empty() && !calls.contains('\n') && calls.chars().count() <= LINE;
    is_line.then(|| told_line(&format!("{calls}: {line}"), LINE))
}

/// Text before a call: as many lessons as fit.
pub(crate) fn before_call(lessons: &[Hint], nonce: &str) -> (String, usize) {
    let is_observed = |hint: &Hint| hint.trust == Trust::Observed;
    let mut text = String::new();
    let mut count = 0;
    // Unapproved text is told in a fence of its own, or not with the rest.
    for hint in lessons
        .iter()
        .take_while(|hint| is_observed(hint) == is_observed(&lessons[0]))
    {
        let line = format!("- {}\n", line_before(hint).unwrap_or_default());
        if count > 0 && length(&text) + length(&line) > BEFORE {
            break;
        }
        text.push_str(&line);
        count += 1;
    }
    if lessons.first().is_some_and(is_observed) {
        text = fence(&[text], nonce);
    }
    (text, count)
}

/// Text at a failing call, in at most `limit` UTF-16 units: what a person approved as it is, the
/// rest as notes.
pub(crate) fn at_failure(hints: &[Hint], nonce: &str) -> String {
    let is_observed = |hint: &Hint| hint.trust == Trust::Observed;
    let (observed, approved): (Vec<Hint>, _) = hints.iter().cloned().partition(is_observed);
    let mut text = String::new();
    if !approved.is_empty() {
        text.push_str(INTRODUCTION);
        text.push_str(&memctl_redact::unfenced(&render_blocks(&approved)));
    }
    if !observed.is_empty() {
        text.push_str(&fence(&[render_blocks(&observed)], nonce));
    }
    text
}

/// Introduction of what a person approved: a statement of fact, because models distrust orders from
/// memory.
const INTRODUCTION: &str = "Lessons from earlier sessions for this error, approved by a person:\n";

/// Line about a failure that came several times in the same way.
pub(crate) fn repeated(times: u64) -> String {
    format!("This call has failed {times} times in the same way in this session.\n")
}
