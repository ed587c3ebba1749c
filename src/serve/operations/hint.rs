//! `hint`: lessons and patterns for an error.
//!
//! This operation only reads. Agent hooks count the outcome of a hint; a caller of this operation
//! does not report its next step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::is_zero;
use super::token_budget::{self, apart, is_data};
use super::{NOTICE, Report, user_error};
use crate::lessons::telling::hint::{Hint, render_block};
use crate::lessons::{HintOptions, HintService};
use crate::model::error::UserError;
use crate::rules::forbids_advice;
use crate::serve::arguments::{HINTS, LONGEST_TEXT, text};
use crate::store::Here;
use crate::store::project::project_named;
use crate::store::workspace::Workspace;

/// Minimum length of shortened code, in characters.
const LEAST: usize = 40;

/// Failure to find hints for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HintArgs {
    /// Output of the failing call
    pub error: String,
    /// Command or code that failed
    pub command: Option<String>,
    /// Project, by name or path
    pub project: Option<String>,
    /// Tokens of the answer; default 1500
    pub max_tokens: Option<u32>,
}

/// Hints for a failure.
#[derive(Debug, Serialize)]
pub struct Hints {
    /// Notice that observed hints are data; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Key of the error; `None` if the text has none.
    pub error_key: Option<String>,
    /// Lessons, best first, then patterns and procedures without a lesson.
    pub hints: Vec<Hint>,
    /// Rules for this class of errors.
    pub pitfalls: Vec<String>,
    /// Number of hints above the token budget.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

pub(super) fn hint(workspace: &Workspace, args: HintArgs) -> Result<Hints, UserError> {
    let error = text("error", args.error, LONGEST_TEXT)?;
    let project = args.project.as_deref().and_then(project_named);
    let hint_service = hint_service(workspace, project.as_deref());
    let report = hint_service
        .hint(&HintOptions {
            error,
            command: args.command,
            max_hints: HINTS.usual as usize,
            ..HintOptions::default()
        })
        .map_err(user_error)?;
    let hints = Hints {
        notice: None,
        error_key: report.error_key.as_deref().map(token_budget::name),
        hints: report.hints.into_iter().map(sanitized).collect(),
        pitfalls: report.pitfalls,
        left_out: 0,
    };
    Ok(hints.within(token_budget::of(args.max_tokens)))
}

/// Returns the hint service of a workspace, for calls in a project if the client names one.
pub(crate) fn hint_service<'a>(
    workspace: &'a Workspace,
    project: Option<&'a str>,
) -> HintService<'a> {
    HintService {
        here: Here {
            named: project,
            ..Here::default()
        },
        store: &workspace.store,
        now: workspace.now,
        random: workspace.random,
        forbids: forbids_advice,
    }
}

/// Removes from a hint what is no reader's.
fn sanitized(mut hint: Hint) -> Hint {
    for name in [&mut hint.id, &mut hint.error_key] {
        *name = token_budget::name(name);
    }
    for text in [
        &mut hint.lesson, &mut hint.failing_code, &mut hint.working_code, &mut hint.success_output,
    ] {
        *text = token_budget::sanitize(text);
    }
    hint
}

fn is_of_nobody(hint: &Hint) -> bool {
    is_data(hint.kind, hint.trust)
}

impl Hints {
    /// Shortens the hints to the token budget. Removes the printed output first, then the last
    /// hints; the best hint is shortened, and removed only if even its beginning is too long.
    fn within(mut self, budget: usize) -> Self {
        // More characters than a token budget ever lets in.
        let mut most = 8 * budget;
        loop {
            self.notice = self.hints.iter().any(is_of_nobody).then_some(NOTICE);
            if token_budget::fits(&self, budget) {
                return self;
            }
            let mut hints = self.hints.iter_mut();
            if let Some(hint) = hints.find(|hint| !hint.success_output.is_empty()) {
                hint.success_output.clear();
            } else if self.hints.len() > 1 {
                self.hints.pop();
                self.left_out += 1;
            } else if let Some(hint) = self.hints.first_mut().filter(|_| most > LEAST) {
                most = (most / 2).max(LEAST);
                for text in [
                    &mut hint.failing_code, &mut hint.working_code, &mut hint.error_key,
                    &mut hint.lesson,
                ] {
                    *text = token_budget::beginning(text, most).into_owned();
                }
            } else if self.pitfalls.pop().is_none() {
                if self.hints.pop().is_none() {
                    // Only the key of the error remains.
                    let key = self.error_key.take();
                    self.error_key =
                        key.map(|key| token_budget::beginning(&key, LEAST).into_owned());
                    return self;
                }
                self.left_out += 1;
            }
        }
    }
}

impl Report for Hints {
    fn text(&self, nonce: &str) -> String {
        let mut text = String::new();
        if self.hints.is_empty() && self.pitfalls.is_empty() && self.left_out == 0 {
            text.push_str("No hints for this error.\n");
        }
        text.push_str(&apart(&self.hints, is_of_nobody, blocks, nonce));
        for rule in &self.pitfalls {
            text.extend(["Pitfall: ", rule, "\n"]);
        }
        if self.left_out > 0 {
            let more = self.left_out.to_string();
            text.extend([&more, " more did not fit: raise `max_tokens`.\n"]);
        }
        text
    }
}

/// Formats each hint as the hooks do, below its id.
fn blocks(hints: &[&Hint]) -> String {
    let mut text = String::new();
    for hint in hints {
        text.extend(["\n", &hint.id, " (", &hint.why, ")"]);
        let (failing, working) = (&hint.failing_code, &hint.working_code);
        text.push_str(&render_block(
            &hint.lesson, &hint.error_key, failing, working,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Trust;

    proptest! {
        #[test]
        fn hints_fit_their_budget_in_closed_fences(
            texts in proptest::collection::vec((token_budget::tests::text(), token_budget::tests::text(), any::<bool>()), 0..4),
            budget in 200_usize..2_000,
        ) {
            let hinted = |(wrong, right, is_approved): &(String, String, bool)| sanitized(Hint {
                trust: if *is_approved { Trust::Approved } else { Trust::Observed },
                error_key: wrong.clone(),
                success_output: wrong.clone(),
                why: "the same error".to_owned(),
                ..Hint::of_calls(right, wrong, right)
            });
            let hints = Hints {
                notice: None,
                error_key: texts.first().map(|(wrong, ..)| token_budget::name(wrong)),
                hints: texts.iter().map(hinted).collect(),
                pitfalls: vec!["Check the key first.".to_owned()],
                left_out: 0,
            };
            token_budget::tests::check(&hints.within(budget), budget);
        }
    }
}
