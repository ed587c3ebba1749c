//! State of the view and its change by keys. Pure: nothing here draws, reads or writes.

mod list;

use crate::cli::output::Style;
use crate::model::CallAction;
use crate::review::queue::{Waiting, WaitingKind};
use crate::upkeep::merge::ResolveSide;

use super::key::{Key, decisions};
use super::text::Piece;

/// Input that the next keys belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
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
pub(super) enum Decision {
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
pub(super) enum Action {
    Nothing,
    /// Decide about the selected entry.
    Decide(Decision),
    /// Revert the change of this name.
    Undo(String),
    /// Show the text that agents get.
    Show,
    Reload,
    Quit,
    Interrupt,
}

/// Decision that was made, with the entries that it took out.
#[derive(Debug)]
struct Done {
    change: String,
    taken: Vec<Waiting>,
}

/// State of the view.
#[derive(Debug)]
pub(super) struct State {
    entries: Vec<Waiting>,
    /// Text of each entry in lower case, for the filter.
    haystacks: Vec<String>,
    /// Places of the entries that match the filter.
    shown: Vec<usize>,
    at: usize,
    pub(super) scroll: usize,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) status: (Style, String),
    /// `true` while more entries are looked for.
    pub(super) is_searching: bool,
    /// `true` once a key was pressed.
    is_used: bool,
    done: Vec<Done>,
}

impl State {
    pub(super) fn new(entries: Vec<Waiting>) -> Self {
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
    pub(super) fn update(&mut self, key: Key) -> Action {
        self.is_used = true;
        if key == Key::Interrupt {
            return Action::Interrupt;
        }
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
                Key::Char('1') => merge(first, second),
                Key::Char('2') => merge(second, first),
                Key::Esc => Action::Nothing,
                _ => {
                    self.mode = Mode::Merge([first, second]);
                    Action::Nothing
                }
            },
        }
    }

    fn in_filter(&mut self, key: Key) {
        match key {
            Key::Enter => return,
            Key::Esc => self.filter.clear(),
            Key::Backspace => {
                self.filter.pop();
                self.mode = Mode::Filter;
            }
            Key::Char(c) => {
                self.filter.push(c);
                self.mode = Mode::Filter;
            }
            _ => self.mode = Mode::Filter,
        }
        self.apply_filter();
        self.go(0);
    }

    fn in_seen(&mut self, key: Key, lines: Vec<Piece>) {
        self.scroll = match key {
            Key::Char('j') | Key::Down => self.scroll.saturating_add(1),
            Key::Char('k') | Key::Up => self.scroll.saturating_sub(1),
            Key::PageDown | Key::Char(' ') => self.scroll.saturating_add(10),
            Key::PageUp => self.scroll.saturating_sub(10),
            _ => {
                self.scroll = 0;
                return;
            }
        };
        self.mode = Mode::Seen(lines);
    }

    fn in_reason(&mut self, key: Key, mut text: String) -> Action {
        match key {
            Key::Enter if !text.trim().is_empty() => {
                return Action::Decide(Decision::Reject { reason: text });
            }
            Key::Esc => return Action::Nothing,
            Key::Backspace => {
                text.pop();
            }
            Key::Char(c) => text.push(c),
            _ => {}
        }
        self.mode = Mode::Reason(text);
        Action::Nothing
    }

    fn in_list(&mut self, key: Key) -> Action {
        self.status = (Style::Plain, String::new());
        let last = self.shown.len().saturating_sub(1);
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Esc if self.filter.is_empty() => {}
            Key::Esc => self.in_filter(Key::Esc),
            Key::Char('j') | Key::Down => self.go(self.at + 1),
            Key::Char('k') | Key::Up => self.go(self.at.saturating_sub(1)),
            Key::Home => self.go(0),
            Key::End => self.go(last),
            Key::PageDown => self.scroll = self.scroll.saturating_add(5),
            Key::PageUp => self.scroll = self.scroll.saturating_sub(5),
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('?') => self.mode = Mode::Help,
            Key::Char('r') => return Action::Reload,
            Key::Char('v') => return Action::Show,
            Key::Char('u') => match self.done.last() {
                Some(done) => return Action::Undo(done.change.clone()),
                None => self.status = (Style::Warn, "nothing to undo on this screen".to_owned()),
            },
            Key::Char(key) => return self.decide(key),
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
