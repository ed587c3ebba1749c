//! Keys of the screen, and those that apply to an entry.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::model::Kind;
use crate::review::queue::{Waiting, WaitingKind};

/// Key that the screen understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C: a terminal in raw mode sends no signal.
    Interrupt,
}

impl Key {
    /// Returns the key of a terminal event; `None` for keys without a meaning.
    pub(crate) fn of(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
        Some(match event.code {
            KeyCode::Char('c' | 'd') if is_control => Self::Interrupt,
            KeyCode::Char(_) if is_control || event.modifiers.contains(KeyModifiers::ALT) => {
                return None;
            }
            KeyCode::Char(c) => Self::Char(c),
            KeyCode::Enter => Self::Enter,
            KeyCode::Esc => Self::Esc,
            KeyCode::Backspace => Self::Backspace,
            KeyCode::Up => Self::Up,
            KeyCode::Down => Self::Down,
            KeyCode::PageUp => Self::PageUp,
            KeyCode::PageDown => Self::PageDown,
            KeyCode::Home => Self::Home,
            KeyCode::End => Self::End,
            _ => return None,
        })
    }
}

/// Keys that decide about an entry, each with its name.
pub(crate) fn decisions(waiting: &Waiting) -> Vec<(char, &'static str)> {
    use WaitingKind as Of;
    let mut keys: Vec<(char, &'static str)> = Vec::new();
    if waiting.waits_for_approval() {
        keys.push(('a', "approve"));
    }
    if !waiting.patterns.is_empty()
        && (waiting.waits_for_approval() || waiting.kind == Of::Doubtful)
    {
        keys.extend([('A', "approve, ask me"), ('D', "approve, refuse")]);
    }
    match waiting.kind {
        Of::Contradiction | Of::Similar => keys.extend([('m', "merge"), ('b', "keep both")]),
        Of::Doubtful if waiting.record == Kind::Reflexion => keys.push(('b', "keep")),
        Of::Merge => keys.extend([('o', "ours"), ('t', "theirs")]),
        _ => {}
    }
    if waiting.record != Kind::Session {
        keys.push(('e', "edit"));
    }
    if matches!(
        waiting.kind,
        Of::Candidate | Of::Quarantined | Of::Procedure
    ) {
        keys.push(('x', "reject"));
    }
    if waiting.near.is_some() {
        keys.push(('m', "merge"));
    }
    if waiting.kind != Of::Merge {
        keys.push(('f', "forget"));
    }
    keys.push(('s', "skip"));
    keys
}

/// Keys that every entry has.
pub(crate) const COMMON: [(char, &str); 5] = [
    ('u', "undo"),
    ('/', "filter"),
    ('v', "view what agents get"),
    ('?', "help"),
    ('q', "quit"),
];

/// Lines of the help.
pub(crate) const HELP: &[(&str, &str)] = &[
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
