//! Calls and messages of a session as a reader finds them: answers find their calls.

use crate::{BrokenLine, Remark, Session, Speaker, Step};
use memctl_redact::{Clean, composed};

use super::own_words;
use super::text;

/// Begin of an answer that says that a tool refused its call, in hosts without an error flag too.
const REFUSED: &str = "<tool_use_error>";

/// Number of last calls that an answer may be for.
const RECENT: usize = 256;
/// Maximum number of broken lines of a file.
const MAX_BROKEN: usize = 100;

/// Session that is being read.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) session: Session,
}

impl Calls {
    /// Adds a call and sets its ordinal.
    pub(super) fn call(&mut self, mut step: Step) {
        settle(&mut step);
        step.index = self.session.steps.len();
        text::cut_values(&mut step.input);
        self.session.steps.push(step);
    }

    /// Last calls without an answer, in their order.
    fn waiting(&mut self) -> impl DoubleEndedIterator<Item = &mut Step> {
        let steps = &mut self.session.steps;
        let from = steps.len().saturating_sub(RECENT);
        steps[from..].iter_mut().filter(|step| !step.answered)
    }

    /// Last call with this id, if it has no answer.
    fn find(&mut self, id: &str) -> Option<&mut Step> {
        let mut waiting = self.waiting();
        waiting.rfind(|step| step.native_id.as_deref() == Some(id))
    }

    /// Returns `true` if a call with this id has no answer.
    pub(super) fn is_waiting(&mut self, id: &str) -> bool {
        self.find(id).is_some()
    }

    /// Updates a call before its answer.
    pub(super) fn amend(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.find(id) {
            change(step);
        }
    }

    /// Updates a call with its answer and marks it as answered.
    pub(super) fn answer(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        answered(self.find(id), change);
    }

    /// Updates the oldest unanswered call, for hosts without ids.
    pub(super) fn answer_next(&mut self, change: impl FnOnce(&mut Step)) {
        answered(self.waiting().next(), change);
    }

    /// Adds a remark, without text that hosts inject. What a person did not type of a message is
    /// said by somebody else.
    pub(super) fn said(&mut self, by: Speaker, words: &str) {
        let words = text::without_injected(words);
        let words = words.trim();
        if by != Speaker::User {
            return self.remark(by, words);
        }
        let own = own_words(words);
        if own.len() < words.len() {
            self.remark(Speaker::Other, words);
        }
        self.remark(by, &own);
    }

    fn remark(&mut self, by: Speaker, words: &str) {
        if !words.is_empty() {
            self.session.remarks.push(Remark {
                before: self.session.steps.len(),
                by,
                text: text::cut(&Clean::of(&composed(words)), text::MAX_REMARK),
            });
        }
    }

    pub(super) fn session(&mut self, id: &str) {
        id.clone_into(&mut self.session.id);
    }

    /// Sets the id of the session, unless it is known.
    pub(super) fn session_once(&mut self, id: &str) {
        if self.session.id.is_empty() {
            self.session(id);
        }
    }

    pub(super) fn broken(&mut self, line: u64, message: String) {
        if self.session.broken.len() < MAX_BROKEN {
            self.session.broken.push(BrokenLine { line, message });
        }
    }
}

fn answered(step: Option<&mut Step>, change: impl FnOnce(&mut Step)) {
    if let Some(step) = step {
        change(step);
        settle(step);
        step.answered = true;
    }
}

/// Sets the error flag of an answer that states an error itself.
fn settle(step: &mut Step) {
    if step.output.trim_start().starts_with(REFUSED) {
        step.is_error = Some(true);
    }
}
