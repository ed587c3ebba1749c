//! Evidence of lessons: decides if a call follows a lesson that the agent was told.
//!
//! A call follows a lesson if it runs one of the commands in its backticks, and a pattern if it has its change.
//! The call that failed must not have had it. A lesson without a command has no outcome.

use crate::lessons::storage::advice::is_followed;
use crate::lessons::storage::tidy::is_demoted;
use crate::lessons::storage::words::code_spans;
use crate::lessons::telling::hint::Shown;
use crate::model::text::of_commands;
use crate::model::{Pattern, Procedure, Record as _, Trust};

use crate::lessons::recovery::change::Change;

/// Minimum likeness of a call to a recorded piece of code that it follows.
const LIKE: f64 = 0.5;

/// Returns `true` if a call does what was told, and the call that failed did not.
pub(crate) fn adopts(code: &str, shown: &Shown) -> bool {
    if shown.is_lesson {
        return is_followed(code, &shown.advice) && !is_followed(&shown.call, &shown.advice);
    }
    if shown.failing_code.is_empty() {
        let advice: Vec<String> = code_spans(&shown.working_code)
            .map(|(_, code)| code.to_owned())
            .collect();
        return is_followed(code, &advice);
    }
    let pattern = Pattern {
        error_line: shown.error_key.clone(),
        failing_code: shown.failing_code.clone(),
        working_code: shown.working_code.clone(),
        ..Pattern::default()
    };
    match Change::of(&pattern) {
        Some(change) if !change.added.is_empty() || !change.dropped.is_empty() => {
            !change.is_in(&shown.call) && change.is_in(code) || change.is_made(&shown.call, code)
        }
        // It is like the working code, and more so than the failing call.
        _ => {
            let likeness = |code: &str| of_commands(code, &shown.working_code);
            likeness(code) >= LIKE && likeness(code) > likeness(&shown.call)
        }
    }
}

/// Describes the evidence against an approved lesson; `None` if there is none. Sessions do not retire such a lesson, so
/// a person has to decide.
pub(crate) fn doubt(procedure: &Procedure) -> Option<String> {
    let (id, evidence) = (&procedure.procedure_id, procedure.evidence());
    let outcomes = evidence.helped.saturating_add(evidence.harmed);
    let state = if procedure.trust() == Trust::Observed || procedure.is_episode() {
        return None;
    } else if !procedure.is_active() {
        "retired, and is not told any more".to_owned()
    } else if is_demoted(evidence) {
        let of = if outcomes == 1 { "session" } else { "sessions" };
        format!("harmful in {} of {outcomes} {of}", evidence.harmed)
    } else {
        return None;
    };
    Some(format!("`{id}` is approved and was {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_code_is_followed_in_other_words() {
        let shown = Shown {
            failing_code: "print(drugs['mechanism'])".to_owned(),
            working_code: "for row in await drugs.search('kinase'): print(row['mechanism'])"
                .to_owned(),
            call: "print(drugs['target'])".to_owned(),
            ..Shown::default()
        };
        assert!(adopts(
            "for row in await drugs.search('x'): print(row['target'])",
            &shown
        ));
        assert!(!adopts("print(drugs.get('target'))", &shown));
    }
}
