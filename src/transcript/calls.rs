//! Calls that wait for their answers, handed out in the order in which they were made.

use std::collections::VecDeque;

use crate::guard::Clean;
use crate::model::{BrokenLine, Event, Remark, Speaker, Step};

use super::text;

/// How many calls may wait. One that never gets an answer would hold up all others.
const MAX_WAITING: usize = 256;

/// What has been called and not yet handed out.
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

    /// A call was made; its ordinal is set here.
    pub(super) fn call(&mut self, mut step: Step) {
        step.index = self.made;
        self.made += 1;
        text::cut_values(&mut step.input);
        self.waiting.push_back(step);
        if self.waiting.len() > MAX_WAITING {
            self.hand_out();
        }
        self.hand_out_answered();
    }

    /// Whether a call of this id waits.
    pub(super) fn is_waiting(&self, id: &str) -> bool {
        self.waiting
            .iter()
            .any(|s| s.native_id.as_deref() == Some(id))
    }

    /// Adds to a call. The call waits on until it is answered.
    pub(super) fn amend(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.find(id) {
            change(step);
        }
    }

    /// A call has its answer.
    pub(super) fn answer(&mut self, id: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.find(id) {
            change(step);
            step.answered = true;
            self.hand_out_answered();
        }
    }

    /// The last call has its answer, where the host gives no ids.
    pub(super) fn answer_next(&mut self, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.waiting.iter_mut().find(|step| !step.answered) {
            change(step);
            step.answered = true;
            self.hand_out_answered();
        }
    }

    /// Something was said. What only hosts say is dropped.
    pub(super) fn said(&mut self, by: Speaker, words: &str) {
        let words = text::without_injected(words);
        let words = words.trim();
        if !words.is_empty() {
            (self.sink)(Event::Remark(Remark {
                before: self.made,
                by,
                text: text::cut(&Clean::of(words), text::MAX_REMARK),
            }));
        }
    }

    pub(super) fn session(&mut self, id: &str) {
        (self.sink)(Event::Session(id.to_owned()));
    }

    pub(super) fn broken(&mut self, line: BrokenLine) {
        (self.sink)(Event::Broken(line));
    }

    /// Hands out what still waits: the session ended before the answers came.
    pub(super) fn finish(&mut self) {
        while !self.waiting.is_empty() {
            self.hand_out();
        }
    }

    /// Answers come soon after their calls, so the search begins at the newest.
    fn find(&mut self, id: &str) -> Option<&mut Step> {
        self.waiting
            .iter_mut()
            .rev()
            .find(|step| step.native_id.as_deref() == Some(id))
    }

    fn hand_out_answered(&mut self) {
        while self.waiting.front().is_some_and(|step| step.answered) {
            self.hand_out();
        }
    }

    fn hand_out(&mut self) {
        if let Some(step) = self.waiting.pop_front() {
            (self.sink)(Event::Step(Box::new(step)));
        }
    }
}
