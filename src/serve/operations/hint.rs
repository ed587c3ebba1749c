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
use crate::model::{Kind, Trust};
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
    #[serde(default)]
    pub command: Option<String>,
    /// Project, by name or path
    #[serde(default)]
    pub project: Option<String>,
    /// Tokens of the answer; default 1500
    #[serde(default)]
    pub max_tokens: Option<u32>,
}

/// Hints for a failure.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Hints {
    /// Notice that observed hints are data; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Key of the error; `None` if the text has none.
    pub error_key: Option<String>,
    /// Lessons, best first, then patterns and procedures without a lesson.
    pub hints: Vec<Hinted>,
    /// Rules for this class of errors.
    pub pitfalls: Vec<String>,
    /// Number of hints above the token budget.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// Lesson or pattern for an error.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Hinted {
    /// Id of the record.
    pub id: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Lesson in one line; empty if nobody has worded it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lesson: String,
    /// Trust level of the record.
    pub trust: Trust,
    /// Key of the error.
    pub error_key: String,
    /// Code that failed; empty for a procedure.
    pub wrong: String,
    /// Code that worked; the numbered steps of a procedure.
    pub correct: String,
    /// Output of the working code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// Similarity of the error, from 0 to 1.
    pub score: f64,
    /// Reason why it is shown.
    pub why: String,
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
        hints: report.hints.into_iter().map(hinted).collect(),
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

fn hinted(hint: Hint) -> Hinted {
    Hinted {
        id: token_budget::name(&hint.id),
        kind: hint.kind,
        lesson: token_budget::sanitize(&hint.lesson),
        trust: hint.trust,
        error_key: token_budget::name(&hint.error_key),
        wrong: token_budget::sanitize(&hint.failing_code),
        correct: token_budget::sanitize(&hint.working_code),
        printed: token_budget::sanitize(&hint.success_output),
        score: hint.score,
        why: hint.why,
    }
}

impl Hinted {
    fn is_data(&self) -> bool {
        is_data(self.kind, self.trust)
    }
}

impl Hints {
    /// Shortens the hints to the token budget. Removes the printed output first, then the last
    /// hints; the best hint is shortened, and removed only if even its beginning is too long.
    fn within(mut self, budget: usize) -> Self {
        let mut most = usize::MAX;
        loop {
            self.notice = self.hints.iter().any(Hinted::is_data).then_some(NOTICE);
            if token_budget::fits(&self, budget) {
                return self;
            }
            if let Some(hint) = self.hints.iter_mut().find(|hint| !hint.printed.is_empty()) {
                hint.printed.clear();
            } else if self.hints.len() > 1 {
                self.hints.pop();
                self.left_out += 1;
            } else if let Some(hint) = self.hints.first_mut().filter(|_| most > LEAST) {
                let longest = hint
                    .wrong
                    .len()
                    .max(hint.correct.len())
                    .max(hint.lesson.len());
                most = (longest.max(hint.error_key.len()).min(most) / 2).max(LEAST);
                let texts = [
                    &mut hint.wrong, &mut hint.correct, &mut hint.error_key, &mut hint.lesson,
                ];
                for text in texts {
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
        text.push_str(&apart(&self.hints, Hinted::is_data, blocks, nonce));
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
fn blocks(hints: &[&Hinted]) -> String {
    let mut text = String::new();
    for hint in hints {
        text.extend(["\n", &hint.id, " (", &hint.why, ")"]);
        let (failing, working) = (&hint.wrong, &hint.correct);
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

    proptest! {
        #[test]
        fn hints_fit_their_budget_in_closed_fences(
            texts in proptest::collection::vec((token_budget::tests::text(), token_budget::tests::text(), any::<bool>()), 0..4),
            budget in 200_usize..2_000,
        ) {
            let hinted = |(wrong, right, is_approved): &(String, String, bool)| Hinted {
                id: token_budget::name(right),
                kind: Kind::Procedure,
                lesson: String::new(),
                trust: if *is_approved { Trust::Approved } else { Trust::Observed },
                error_key: token_budget::name(wrong),
                wrong: token_budget::sanitize(wrong),
                correct: token_budget::sanitize(right),
                printed: token_budget::sanitize(wrong),
                score: 1.0,
                why: "the same error".to_owned(),
            };
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
