//! `lesson`: stores a finding of a session, in the agent's words.
//!
//! It is checked against the calls of the session first. A refusal names the field, the reason, and a form that
//! would pass.

use serde::Serialize;

use crate::lessons::{Asking, LessonArgs, Neighbour, PROMPT};
use crate::model::error::UserError;
use crate::store::workspace::Workspace;

use super::{Report, token_budget, user_error, with_warnings};

/// Maximum length of a neighbour in an answer, in characters.
const LONGEST: usize = 240;

/// Stored lesson.
#[derive(Debug, Serialize)]
pub struct Recorded {
    /// Id of the lesson.
    pub id: String,
    /// `true` if it is new, `false` if a known one was seen again.
    pub added: bool,
    /// Trust level until a person approves it.
    pub trust: &'static str,
    /// Lessons that say nearly the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Neighbour>,
    /// Problems that did not stop the operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

pub(super) fn lesson(workspace: &Workspace, args: &LessonArgs) -> Result<Recorded, UserError> {
    let asking = Asking {
        records: workspace.records(),
        words: PROMPT,
        person: &workspace.settings.person,
        root: workspace.store.directory().path().parent(),
    };
    let session = asking
        .session(args.session.as_deref(), None)
        .ok_or_else(|| {
            UserError::input(
                "no session is known here, and its calls are what a lesson is checked against",
                "the hooks of memctl must be installed in this agent host; do not use it now",
            )
        })?;
    let stored = asking.add(&session, args).map_err(user_error)?;
    let near = stored.near.into_iter().map(|near| Neighbour {
        lesson: token_budget::beginning(&token_budget::sanitize(&near.lesson), LONGEST)
            .into_owned(),
        ..near
    });
    Ok(Recorded {
        id: stored.id,
        added: stored.added,
        trust: stored.trust,
        near: near.collect(),
        warnings: stored.warnings,
    })
}

impl Report for Recorded {
    fn text(&self, nonce: &str) -> String {
        let mut text = if self.added {
            format!("Stored as {}, {}.\n", self.id, self.trust)
        } else {
            format!("{} already says this; counted.\n", self.id)
        };
        if !self.near.is_empty() {
            let lines: Vec<String> = self
                .near
                .iter()
                .map(|near| format!("{}: {}", near.id, near.lesson))
                .collect();
            text.push_str("Near it; if one says the same, send it again with `same`, if one is outdated with `replaces`:\n");
            text.push_str(&memctl_redact::fence(&lines, nonce));
        }
        with_warnings(text, &self.warnings)
    }
}
