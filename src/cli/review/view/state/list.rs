//! Entries of the view: those that match the filter, the selection, and those taken out by decisions.

use std::collections::HashSet;

use crate::cli::output::Style;
use crate::review::queue::{Queue, Rest, Waiting};

use super::{Done, State};

/// Text of an entry in lower case, for the filter.
fn haystack(waiting: &Waiting) -> String {
    let texts = waiting.parts.iter().map(|part| part.text.as_str());
    let names = [waiting.kind.name(), &waiting.id, &waiting.title];
    let skill = waiting.skill.as_deref();
    let all: Vec<&str> = names.into_iter().chain(skill).chain(texts).collect();
    all.join("\n").to_lowercase()
}

impl State {
    /// Replaces all entries, and keeps the selection, the filter and the decisions.
    pub(in super::super) fn replace(&mut self, entries: Vec<Waiting>) {
        let selected = self.selected().cloned();
        self.entries = entries;
        self.list_again();
        self.select(selected.as_ref());
    }

    /// Adds entries that took longer to find, but for those about records that were decided about
    /// meanwhile.
    pub(in super::super) fn add(&mut self, mut rest: Rest) {
        let taken = self.done.iter().flat_map(|done| &done.taken);
        let ids = taken.flat_map(|one| [Some(&one.id), one.other.as_ref()]);
        rest.leave_out(&ids.flatten().cloned().collect::<HashSet<String>>());
        let mut queue = Queue {
            waiting: self.entries.clone(),
            ..Queue::default()
        };
        queue.add(rest);
        if let Some(warning) = queue.warnings.first() {
            self.status = (Style::Warn, warning.clone());
        }
        self.is_searching = false;
        let scroll = self.scroll;
        self.replace(queue.waiting);
        self.scroll = scroll;
        if !self.is_used {
            self.go(0);
        }
    }

    fn select(&mut self, entry: Option<&Waiting>) {
        let is_entry = |at: &usize| {
            let one = &self.entries[*at];
            entry.is_some_and(|entry| entry.kind == one.kind && entry.id == one.id)
        };
        let place = self.shown.iter().position(is_entry);
        self.go(place.unwrap_or(self.at));
    }

    /// Number of entries, and of those that match the filter.
    pub(in super::super) fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.shown.len())
    }

    /// Place of the selected entry among those that match.
    pub(in super::super) fn at(&self) -> usize {
        self.at
    }

    /// Entries that match, from a place on.
    pub(in super::super) fn from(&self, start: usize) -> impl Iterator<Item = &Waiting> {
        let shown = self.shown.get(start..).unwrap_or_default();
        shown.iter().map(|at| &self.entries[*at])
    }

    pub(in super::super) fn selected(&self) -> Option<&Waiting> {
        self.shown.get(self.at).map(|at| &self.entries[*at])
    }

    /// Looks for prompt injection in the selected entry.
    pub(in super::super) fn screen_selected(&mut self) {
        if let Some(at) = self.shown.get(self.at) {
            self.entries[*at].screen();
        }
    }

    /// Notes a decision, and takes out the entries that it settled.
    pub(in super::super) fn decided(
        &mut self,
        change: String,
        is_settled: impl Fn(&Waiting) -> bool,
    ) {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let (taken, kept) = entries.partition(is_settled);
        self.entries = kept;
        self.done.push(Done { change, taken });
        self.list_again();
        self.go(self.at);
    }

    /// Puts the entries of the last decision back: it was undone. Returns `false` if the queue must
    /// be read again.
    pub(in super::super) fn undone(&mut self) -> bool {
        let Some(done) = self.done.pop() else {
            return false;
        };
        let Some(first) = done.taken.first().cloned() else {
            return false;
        };
        self.entries.extend(done.taken);
        self.entries.sort_by(Waiting::place);
        self.list_again();
        self.select(Some(&first));
        true
    }

    pub(super) fn list_again(&mut self) {
        self.haystacks = self.entries.iter().map(haystack).collect();
        self.apply_filter();
    }

    /// Finds the entries that hold each word of the filter.
    pub(super) fn apply_filter(&mut self) {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let matches = |text: &String| words.iter().all(|word| text.contains(word));
        let places = self.haystacks.iter().enumerate();
        let found = places.filter(|(_, text)| matches(text));
        self.shown = found.map(|(place, _)| place).collect();
        self.at = self.at.min(self.shown.len().saturating_sub(1));
    }

    pub(super) fn go(&mut self, place: usize) {
        self.at = place.min(self.shown.len().saturating_sub(1));
        self.scroll = 0;
    }
}
