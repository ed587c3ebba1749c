//! State of the view and its change by keys, which are listed at the end. Pure: nothing here draws,
//! reads or writes.

use std::collections::HashSet;

use crossterm::event::KeyCode;

use crate::cli::output::Style;
use crate::cli::review::view::record::Piece;
use crate::model::{CallAction, Kind};
use crate::review::queue::{Queue, Rest, Waiting, WaitingKind};
use crate::upkeep::merge::ResolveSide;

/// Input that the next keys belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Keys move and decide.
    List,
    /// Keys change the filter.
    Filter,
    /// Keys type the reason of a rejection.
    Reason(String),
    /// A key chooses the rule that stays: `1` or `2`.
    Merge([String; 2]),
    /// Any key closes the help.
    Help,
    /// Keys scroll the text that agents get; others close it.
    Seen(Vec<Piece>),
}

/// Decision about an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Approve; a rule with patterns then answers calls so.
    Approve(CallAction),
    Edit,
    Reject {
        reason: String,
    },
    Forget,
    Merge {
        keep: String,
        other: String,
    },
    KeepBoth,
    Pin,
    Resolve(ResolveSide),
}

/// Effect that a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Decide about the selected entry.
    Decide(Decision),
    /// Revert the change of this name.
    Undo(String),
    /// Show the text that agents get.
    Show,
    Reload,
    Quit,
}

/// Decision that was made, with the entries that it took out.
#[derive(Debug)]
struct Done {
    change: String,
    taken: Vec<Waiting>,
}

/// State of the view.
#[derive(Debug)]
pub(crate) struct State {
    entries: Vec<Waiting>,
    /// Text of each entry in lower case, for the filter.
    haystacks: Vec<String>,
    /// Places of the entries that match the filter.
    shown: Vec<usize>,
    at: usize,
    pub(crate) scroll: usize,
    pub(crate) filter: String,
    pub(crate) mode: Mode,
    pub(crate) status: (Style, String),
    /// `true` while more entries are looked for.
    pub(crate) is_searching: bool,
    /// `true` once a key was pressed.
    is_used: bool,
    done: Vec<Done>,
}

impl State {
    pub(crate) fn new(entries: Vec<Waiting>) -> Self {
        let mut state = Self {
            haystacks: Vec::new(),
            entries,
            shown: Vec::new(),
            at: 0,
            scroll: 0,
            filter: String::new(),
            mode: Mode::List,
            status: (Style::Plain, String::new()),
            is_searching: false,
            is_used: false,
            done: Vec::new(),
        };
        state.list_again();
        state
    }

    /// Takes a key, and returns what it asks for.
    pub(crate) fn update(&mut self, key: KeyCode) -> Action {
        self.is_used = true;
        match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::List => self.in_list(key),
            Mode::Help => Action::Nothing,
            Mode::Seen(lines) => {
                self.in_seen(key, lines);
                Action::Nothing
            }
            Mode::Filter => {
                self.in_filter(key);
                Action::Nothing
            }
            Mode::Reason(text) => self.in_reason(key, text),
            Mode::Merge([first, second]) => match key {
                KeyCode::Char('1') => merge(first, second),
                KeyCode::Char('2') => merge(second, first),
                KeyCode::Esc => Action::Nothing,
                _ => {
                    self.mode = Mode::Merge([first, second]);
                    Action::Nothing
                }
            },
        }
    }

    fn in_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Backspace => {
                self.filter.pop();
                self.mode = Mode::Filter;
            }
            KeyCode::Char(c) => {
                self.filter.push(c);
                self.mode = Mode::Filter;
            }
            _ => self.mode = Mode::Filter,
        }
        self.apply_filter();
        self.go(0);
    }

    fn in_seen(&mut self, key: KeyCode, lines: Vec<Piece>) {
        self.scroll = match key {
            KeyCode::Char('j') | KeyCode::Down => self.scroll.saturating_add(1),
            KeyCode::Char('k') | KeyCode::Up => self.scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll.saturating_sub(10),
            _ => {
                self.scroll = 0;
                return;
            }
        };
        self.mode = Mode::Seen(lines);
    }

    fn in_reason(&mut self, key: KeyCode, mut text: String) -> Action {
        match key {
            KeyCode::Enter if !text.trim().is_empty() => {
                return Action::Decide(Decision::Reject { reason: text });
            }
            KeyCode::Esc => return Action::Nothing,
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c) => text.push(c),
            _ => {}
        }
        self.mode = Mode::Reason(text);
        Action::Nothing
    }

    fn in_list(&mut self, key: KeyCode) -> Action {
        self.status = (Style::Plain, String::new());
        let last = self.shown.len().saturating_sub(1);
        match key {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.filter.is_empty() => {}
            KeyCode::Esc => self.in_filter(KeyCode::Esc),
            KeyCode::Char('j') | KeyCode::Down => self.go(self.at + 1),
            KeyCode::Char('k') | KeyCode::Up => self.go(self.at.saturating_sub(1)),
            KeyCode::Home => self.go(0),
            KeyCode::End => self.go(last),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(5),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(5),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('r') => return Action::Reload,
            KeyCode::Char('v') => return Action::Show,
            KeyCode::Char('u') => match self.done.last() {
                Some(done) => return Action::Undo(done.change.clone()),
                None => self.status = (Style::Warn, "nothing to undo on this screen".to_owned()),
            },
            KeyCode::Char(key) => return self.decide(key),
            _ => {}
        }
        Action::Nothing
    }

    fn decide(&mut self, key: char) -> Action {
        let Some(waiting) = self.selected() else {
            return Action::Nothing;
        };
        if !decisions(waiting).iter().any(|(known, _)| *known == key) {
            return Action::Nothing;
        }
        let decision = match key {
            'a' => Decision::Approve(CallAction::Note),
            'A' => Decision::Approve(CallAction::Ask),
            'D' => Decision::Approve(CallAction::Deny),
            'e' => Decision::Edit,
            'f' => Decision::Forget,
            'b' if waiting.kind == WaitingKind::Doubtful => Decision::Pin,
            'b' => Decision::KeepBoth,
            'o' => Decision::Resolve(ResolveSide::Ours),
            't' => Decision::Resolve(ResolveSide::Theirs),
            'x' => {
                self.mode = Mode::Reason(String::new());
                return Action::Nothing;
            }
            'm' => {
                let near = waiting.near.as_ref().map(|near| near.id.clone());
                if let Some(other) = waiting.other.clone().or(near) {
                    self.mode = Mode::Merge([waiting.id.clone(), other]);
                }
                return Action::Nothing;
            }
            _ => {
                self.go(self.at + 1);
                return Action::Nothing;
            }
        };
        Action::Decide(decision)
    }
}

fn merge(keep: String, other: String) -> Action {
    Action::Decide(Decision::Merge { keep, other })
}

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
    pub(crate) fn replace(&mut self, entries: Vec<Waiting>) {
        let selected = self.selected().cloned();
        self.entries = entries;
        self.list_again();
        self.select(selected.as_ref());
    }

    /// Adds entries that took longer to find, but for those about records that were decided about
    /// meanwhile.
    pub(crate) fn add(&mut self, mut rest: Rest) {
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
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.shown.len())
    }

    /// Place of the selected entry among those that match.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Entries that match, from a place on.
    pub(crate) fn from(&self, start: usize) -> impl Iterator<Item = &Waiting> {
        let shown = self.shown.get(start..).unwrap_or_default();
        shown.iter().map(|at| &self.entries[*at])
    }

    pub(crate) fn selected(&self) -> Option<&Waiting> {
        self.shown.get(self.at).map(|at| &self.entries[*at])
    }

    /// Looks for prompt injection in the selected entry.
    pub(crate) fn screen_selected(&mut self) {
        if let Some(at) = self.shown.get(self.at) {
            self.entries[*at].screen();
        }
    }

    /// Notes a decision, and takes out the entries that it settled.
    pub(crate) fn decided(&mut self, change: String, is_settled: impl Fn(&Waiting) -> bool) {
        let entries = std::mem::take(&mut self.entries).into_iter();
        let (taken, kept) = entries.partition(is_settled);
        self.entries = kept;
        self.done.push(Done { change, taken });
        self.list_again();
        self.go(self.at);
    }

    /// Puts the entries of the last decision back: it was undone. Returns `false` if the queue must
    /// be read again.
    pub(crate) fn undone(&mut self) -> bool {
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

    pub(crate) fn list_again(&mut self) {
        self.haystacks = self.entries.iter().map(haystack).collect();
        self.apply_filter();
    }

    /// Finds the entries that hold each word of the filter.
    pub(crate) fn apply_filter(&mut self) {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let matches = |text: &String| words.iter().all(|word| text.contains(word));
        let places = self.haystacks.iter().enumerate();
        let found = places.filter(|(_, text)| matches(text));
        self.shown = found.map(|(place, _)| place).collect();
        self.at = self.at.min(self.shown.len().saturating_sub(1));
    }

    pub(crate) fn go(&mut self, place: usize) {
        self.at = place.min(self.shown.len().saturating_sub(1));
        self.scroll = 0;
    }
}

/// Keys that decide about an entry, each with its name.
pub(super) fn decisions(waiting: &Waiting) -> Vec<(char, &'static str)> {
    let mut keys: Vec<(char, &'static str)> = Vec::new();
    if waiting.waits_for_approval() {
        keys.push(('a', "approve"));
    }
    let may_act = waiting.waits_for_approval() || waiting.kind == WaitingKind::Doubtful;
    if !waiting.patterns.is_empty() && may_act {
        keys.extend([('A', "approve, ask me"), ('D', "approve, refuse")]);
    }
    match waiting.kind {
        WaitingKind::Contradiction | WaitingKind::Similar => {
            keys.extend([('m', "merge"), ('b', "keep both")]);
        }
        WaitingKind::Doubtful if waiting.record == Kind::Reflexion => keys.push(('b', "keep")),
        WaitingKind::Merge => keys.extend([('o', "ours"), ('t', "theirs")]),
        _ => {}
    }
    if waiting.record != Kind::Session {
        keys.push(('e', "edit"));
    }
    if matches!(
        waiting.kind,
        WaitingKind::Candidate | WaitingKind::Quarantined | WaitingKind::Procedure
    ) {
        keys.push(('x', "reject"));
    }
    if waiting.near.is_some() {
        keys.push(('m', "merge"));
    }
    if waiting.kind != WaitingKind::Merge {
        keys.push(('f', "forget"));
    }
    keys.push(('s', "skip"));
    keys
}

/// Keys that every entry has.
pub(super) const COMMON: [(char, &str); 5] = [
    ('u', "undo"),
    ('/', "filter"),
    ('v', "view what agents get"),
    ('?', "help"),
    ('q', "quit"),
];

/// Lines of the help.
pub(super) const HELP: &[(&str, &str)] = &[
    (
        "j k ↓ ↑",
        "next and previous entry; Home and End: first and last",
    ),
    ("PgDn PgUp", "scroll the record"),
    ("/", "show only entries with a text; Esc shows all again"),
    ("a", "approve: agents are told the record as a fact"),
    (
        "A D",
        "approve a rule; calls that break it are asked about, or refused",
    ),
    ("e", "edit in $VISUAL or $EDITOR; of a pair, the newer rule"),
    (
        "x",
        "reject with a reason: it stays in its file and is not proposed again",
    ),
    (
        "f",
        "forget: delete it and do not learn it again; of a pair, the newer rule",
    ),
    ("m", "merge two rules: you choose the one that stays"),
    (
        "b",
        "keep both rules, or keep a doubtful rule whatever its evidence (pin)",
    ),
    ("o t", "decide a merge conflict: ours or theirs"),
    ("s", "skip: leave the entry for another time"),
    (
        "u",
        "undo the last decision of this screen; again: the one before",
    ),
    (
        "v",
        "view what agents get now: at the start of a session, and of the skill",
    ),
    ("r", "read the memory again"),
    (
        "q",
        "quit; decisions are stored one by one, nothing is lost",
    ),
];
