//! Full screen that redraws in place until the user quits.
//!
//! It redraws on changes of files and of its size; in between it only updates ages. The terminal is
//! restored at the end, on errors and on a panic.

use std::io::Write as _;
use std::time::{Duration, Instant};

use console::Term;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{execute, queue};

use crate::model::error::{self, UserError};

use super::context::Context;
use super::follow::{Event, Follower};
use super::interrupt::restore_at_termination;

/// Interval at which ages are updated on a quiet screen.
const TICK: Duration = Duration::from_secs(5);

/// Content of a live screen.
pub(super) trait Live {
    /// Reads what may have changed.
    fn look(&mut self);

    /// Returns the text for a screen of `rows` × `columns`, `since` after the start. It has at most
    /// `rows - 1` lines: the cursor rests on the last row.
    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String;
}

/// Redraws in place until the user quits or interrupts.
pub(super) fn redraw(
    context: &Context,
    follower: &mut Follower,
    screen: &mut dyn Live,
) -> Result<u8, UserError> {
    let mut terminal = Term::stdout();
    let start = Instant::now();
    screen.look();
    restore_at_termination(|| leave(&mut Term::stdout()))?;
    let full = FullScreen::enter(&terminal)?;
    follower.read_keys();
    let mut warnings = Vec::new();
    let code = loop {
        let (rows, columns) = terminal.size();
        let columns = usize::from(columns);
        let frame = screen.frame(usize::from(rows), columns, start.elapsed());
        let frame = memctl_redact::redact(&frame).text;
        let lines = frame.lines();
        let lines: Vec<_> = lines
            .map(|line| console::truncate_str(line, columns, "…"))
            .collect();
        draw(&mut terminal, &lines)?;
        match follower.next(Some(TICK))? {
            Event::Changed => screen.look(),
            Event::Nothing => {}
            Event::Quit => break 0,
            Event::Interrupted => break error::Kind::Interrupted.code(),
            Event::Failed(reason) => warnings.push(reason),
        }
    };
    drop(full);
    warnings.dedup();
    for reason in warnings {
        context.printer.warn(&reason);
    }
    Ok(code)
}

/// Draws lines over the ones before. Clearing each line, not the screen, avoids flicker.
pub(super) fn draw<L: AsRef<str>>(terminal: &mut Term, lines: &[L]) -> std::io::Result<()> {
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
pub(super) struct FullScreen(Term);

impl FullScreen {
    pub(super) fn enter(terminal: &Term) -> std::io::Result<Self> {
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

pub(super) fn leave(terminal: &mut Term) {
    drop(execute!(terminal, Show, terminal::LeaveAlternateScreen));
    drop(terminal::disable_raw_mode());
}
