//! Finds the fix of a failure: the difference that made it work, if it is worth a hint.
//!
//! A fix must be minimal, general, causal and safe. Steps between failure and success that have
//! nothing to do with the error are left out. A retry, a way around a check, a dangerous command
//! and an edit of one place teach nothing that another agent could use.
//!
//! - `change`: the difference in words for a reader.
//! - `difference`: words that two calls do not share. `script`: a shell line and its parts.
//! - `minimal`: the call without its bystanders. `dependence`: names that a fix needs.
//! - `contribution`: which steps contributed. `hazard`: what is never advice.
//! - `people`: what names a person. `subject`: what an error is about, and so what a fix depends on.

pub(crate) mod change;
mod contribution;
mod dependence;
pub(crate) mod difference;
pub(crate) mod hazard;
mod minimal;
mod one_off;
pub(crate) mod people;
mod project;
mod script;
pub(crate) mod subject;

use crate::model::Step;

use super::error_key::normalised;
use super::error_line::error_lines;
use super::goal::Goal;
use super::recover::Episode;
pub(crate) use dependence::INSTALLS;
use dependence::dependence;
use difference::Difference;
use minimal::{is_part_of, is_trivial, minimal, other_arguments, without_messages};

/// Fix of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFix {
    /// Indices of the steps before the success that contributed.
    pub(crate) changes: Vec<usize>,
    /// Failing call.
    pub(crate) failing: String,
    /// Working call without the parts that made no difference.
    pub(crate) working: String,
    /// Names in the error that the fix depends on; empty if it helps with any.
    pub(crate) subject: Vec<String>,
    /// The fix is knowledge of one project.
    pub(crate) is_local: bool,
}

/// Recovery that is no hint for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoFix {
    /// Reason.
    pub(crate) reason: NoHint,
    /// Fix that a person may want to read; `None` if nothing was fixed.
    pub(crate) fix: Option<FoundFix>,
}

impl From<NoHint> for NoFix {
    fn from(reason: NoHint) -> Self {
        Self { reason, fix: None }
    }
}

/// Reason why a recovery is no hint for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHint {
    /// The failing call printed no error.
    NoError,
    /// Nothing that was changed has to do with the error: the same call worked later.
    Retry,
    /// The later call reports the same error.
    StillFails,
    /// It destroys, takes rights, switches a check off or runs what the network sends.
    Dangerous,
    /// Code, data or a path of one place.
    OneOff,
    /// Knowledge of one project, from a session that does not name its project.
    NoProject,
}

impl NoHint {
    /// Name in JSON: `no_error`, `retry`, `still_fails`, `dangerous`, `one_off`, `no_project`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoError => "no_error",
            Self::Retry => "retry",
            Self::StillFails => "still_fails",
            Self::Dangerous => "dangerous",
            Self::OneOff => "one_off",
            Self::NoProject => "no_project",
        }
    }

    /// Returns the reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::NoError,
            Self::Retry,
            Self::StillFails,
            Self::Dangerous,
            Self::OneOff,
            Self::NoProject,
        ];
        all.into_iter().find(|reason| reason.name() == name)
    }

    /// Reason in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoError => "no error line",
            Self::Retry => "only a retry",
            Self::StillFails => "still fails",
            Self::Dangerous => "dangerous",
            Self::OneOff => "one-off",
            Self::NoProject => "of a project that the session does not name",
        }
    }
}

/// Finds the fix of an episode. `steps` must include those from the failure to the success;
/// `code` renders a call.
pub(crate) fn find(
    episode: &Episode,
    steps: &[Step],
    code: &dyn Fn(&Step) -> String,
) -> Result<FoundFix, NoFix> {
    let at = |index: usize| {
        let found = steps.binary_search_by_key(&index, |step| step.index);
        found.ok().map(|at| &steps[at])
    };
    let (Some(failed), Some(success)) = (at(episode.fail_step), at(episode.success_step)) else {
        return Err(NoHint::NoError.into());
    };
    if repeats_the_error(episode, success) {
        return Err(NoHint::StillFails.into());
    }
    let failing = code(failed);
    let call = match (failed.command(), success.command()) {
        (Some(before), Some(after)) if failed.tool == success.tool => {
            let call = minimal(&before, &after) + &other_arguments(failed, success);
            people::without_people(&call)
        }
        _ => code(success),
    };
    let own = Difference::between(&failing, &call);
    let error = Failure {
        line: &episode.error_line,
        output: &failed.output,
        call: &failing,
    };
    let is_same_call = is_trivial(&own) || is_part_of(&call, &failing);
    let changes: Vec<&Step> = episode.changes.iter().filter_map(|c| at(*c)).collect();
    let changes = contribution::contributing(&changes, &error, &own, is_same_call, code);
    if is_same_call && changes.is_empty() {
        return Err(NoHint::Retry.into());
    }
    let change_codes: Vec<String> = changes.iter().map(|step| code(step)).collect();
    let whole = [change_codes.join("\n"), call.clone()].join("\n");
    let reason = if !hazard::new_hazards(&failing, &whole).is_empty() {
        Some(NoHint::Dangerous)
    } else if one_off::is_one_off(failed, success, &own, is_same_call, &changes, &error) {
        Some(NoHint::OneOff)
    } else {
        None
    };
    let difference = Difference::between(&failing, whole.trim());
    let (subject, is_local) = dependence(&error, &difference, &failing, &whole);
    let found = FoundFix {
        changes: changes.iter().map(|step| step.index).collect(),
        failing: without_messages(&failing),
        working: without_messages(&call),
        subject,
        is_local,
    };
    match reason {
        None => Ok(found),
        Some(reason) => Err(NoFix {
            reason,
            fix: Some(found),
        }),
    }
}

/// Failing call and its error.
#[derive(Debug, Clone, Copy)]
struct Failure<'a> {
    /// Most specific line.
    line: &'a str,
    /// Whole output.
    output: &'a str,
    /// Call as text.
    call: &'a str,
}

/// Returns `true` if the working call printed the same error line.
fn repeats_the_error(episode: &Episode, success: &Step) -> bool {
    let line = normalised(&episode.error_line);
    !line.is_empty()
        && error_lines(&success.output)
            .iter()
            .any(|said| normalised(said) == line)
}

/// Goal of a step, for the rooms below.
fn goal(step: &Step) -> Goal {
    Goal::of(step)
}

#[cfg(test)]
mod tests;
