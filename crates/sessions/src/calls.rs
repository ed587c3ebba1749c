//! Queue of tool calls that matches answers to calls and emits them in call order.

use std::collections::VecDeque;

use crate::{BrokenLine, Event, Remark, Speaker, Step};
use memctl_redact::{Clean, composed};

use super::own_words;
use super::text;

/// Begin of an answer that says that a tool refused its call, in hosts without an error flag too.
const REFUSED: &str = "<tool_use_error>";

/// Maximum number of queued calls, since a call without an answer would block all later ones.
const MAX_WAITING: usize = 256;

/// Queue of calls that were not emitted yet.
pub(super) struct Calls<'a> {
    sink: &'a mut dyn FnMut(Event),
    waiting: VecDeque<Step>,
    made: usize,
}

impl<'a> Calls<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(Event)) -> Self {
        Self {
            sink,
            waiting: VecDeque::new(),
            made: 0,
        }
    }

    /// Adds a call and sets its ordinal.
    pub(super) fn call(&mut self, mut step: Step) {
        settle(&mut step);
        step.index = self.made;
        self.made += 1;
        text::cut_values(&mut step.input);
        self.waiting.push_back(step);
        if self.waiting.len() > MAX_WAITING {
            self.emit_next();
        }
        self.emit_answered();
    }

    /// Returns `true` if a call with this id is queued.
    pub(super) fn is_waiting(&self, id: &str) -> bool {
        self.waiting
            .iter()
            .any(|s| s.native_id.as_deref() == Some(id))
    }

    /// Updates a call that stays queued until its answer.
    pub(super) fn amend(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.find(id) {
            change(step);
        }
    }

    /// Updates a call with its answer and marks it as answered.
    pub(super) fn answer(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.find(id) {
            change(step);
            settle(step);
            step.answered = true;
            self.emit_answered();
        }
    }

    /// Updates the oldest unanswered call, for hosts without ids.
    pub(super) fn answer_next(&mut self, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.waiting.iter_mut().find(|step| !step.answered) {
            change(step);
            settle(step);
            step.answered = true;
            self.emit_answered();
        }
    }

    /// Emits a remark, without text that hosts inject. What a person did not type of a message is
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
            (self.sink)(Event::Remark(Remark {
                before: self.made,
                by,
                text: text::cut(&Clean::of(&composed(words)), text::MAX_REMARK),
            }));
        }
    }

    pub(super) fn session(&mut self, id: &str) {
        (self.sink)(Event::Session(id.to_owned()));
    }

    pub(super) fn broken(&mut self, line: BrokenLine) {
        (self.sink)(Event::Broken(line));
    }

    /// Emits all queued calls at the end of the session.
    pub(super) fn finish(&mut self) {
        while !self.waiting.is_empty() {
            self.emit_next();
        }
    }

    /// Searches backwards, since answers follow their calls closely.
    fn find(&mut self, id: &str) -> Option<&mut Step> {
        self.waiting
            .iter_mut()
            .rev()
            .find(|step| step.native_id.as_deref() == Some(id))
    }

    fn emit_answered(&mut self) {
        while self.waiting.front().is_some_and(|step| step.answered) {
            self.emit_next();
        }
    }

    fn emit_next(&mut self) {
        if let Some(step) = self.waiting.pop_front() {
            (self.sink)(Event::Step(Box::new(step)));
        }
    }
}

/// Sets the error flag of an answer that states an error itself.
fn settle(step: &mut Step) {
    if step.output.trim_start().starts_with(REFUSED) {
        step.is_error = Some(true);
    }
}
