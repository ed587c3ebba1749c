//! Full screen of a terminal, and the keys that it gets.
//!
//! The terminal is restored at the end, on errors and on a panic.

use std::io::Write as _;

use console::Term;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{Clear, ClearType};
use crossterm::{execute, queue, terminal};

/// Key that a person pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pressed {
    Key(KeyCode),
    /// Ctrl-C: a terminal in raw mode sends no signal.
    Interrupt,
}

impl Pressed {
    /// Returns the key of a terminal event; `None` for other events, and for keys with a modifier.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let key = event.as_key_event()?;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            _ if key.kind == KeyEventKind::Release => None,
            KeyCode::Char('c' | 'd') if is_control => Some(Self::Interrupt),
            KeyCode::Char(_) if is_control || key.modifiers.contains(KeyModifiers::ALT) => None,
            code => Some(Self::Key(code)),
        }
    }
}

/// Draws lines over the ones before. Clearing each line, not the screen, avoids flicker.
pub(crate) fn draw<L: AsRef<str>>(terminal: &mut Term, lines: &[L]) -> std::io::Result<()> {
    let (rows, _) = terminal.size();
    let mut frame = Vec::new();
    for (row, line) in (0..rows).zip(lines) {
        queue!(frame, MoveTo(0, row), Clear(ClearType::UntilNewLine))?;
        frame.extend_from_slice(line.as_ref().as_bytes());
    }
    if let Some(below) = u16::try_from(lines.len())
        .ok()
        .filter(|below| *below < rows)
    {
        queue!(frame, MoveTo(0, below), Clear(ClearType::FromCursorDown))?;
    }
    terminal.write_all(&frame)?;
    terminal.flush()
}

/// Alternate screen without a cursor, with keys that are not echoed; ends when dropped.
pub(crate) struct FullScreen(Term);

impl FullScreen {
    pub(crate) fn enter(terminal: &Term) -> std::io::Result<Self> {
        let screen = Self(terminal.clone());
        // Without keys the screen still shows, and an interrupt ends it.
        drop(terminal::enable_raw_mode());
        execute!(&screen.0, terminal::EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave(&mut self.0);
    }
}

pub(crate) fn leave(terminal: &mut Term) {
    drop(execute!(terminal, Show, terminal::LeaveAlternateScreen));
    drop(terminal::disable_raw_mode());
}
