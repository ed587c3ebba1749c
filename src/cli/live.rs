//! Screen that redraws in place until it is interrupted.
//!
//! It redraws on changes of files; in between it only updates ages.

use std::time::{Duration, Instant};

use console::Term;

use crate::error::{self, UserError};

use super::context::Context;
use super::follow::{Event, Follower};

/// Interval at which ages are updated on a quiet screen.
const TICK: Duration = Duration::from_secs(5);

/// Content of a live screen.
pub(super) trait Live {
    /// Reads what may have changed.
    fn look(&mut self);

    /// Returns the text for a screen of `rows` × `columns`, `since` after the start. It has at most
    /// `rows - 1` lines: the cursor rests on the last row.
    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String;

    /// Returns `true` once nothing can change any more.
    fn is_over(&self) -> bool {
        false
    }
}

/// Redraws in place until interrupted, or until nothing can change any more.
pub(super) fn redraw(
    context: &Context,
    follower: &mut Follower,
    screen: &mut dyn Live,
) -> Result<u8, UserError> {
    let terminal = Term::stdout();
    let start = Instant::now();
    let mut drawn = 0;
    screen.look();
    terminal.hide_cursor()?;
    let code = loop {
        let (rows, columns) = terminal.size();
        let columns = usize::from(columns);
        let frame = screen.frame(usize::from(rows), columns, start.elapsed());
        // A wrapped line takes two rows, and the next frame would clear too few.
        let frame = crate::guard::redact(&frame).text;
        let lines = frame.lines();
        let frame: String = lines
            .map(|line| console::truncate_str(line, columns, "…") + "\n")
            .collect();
        terminal.clear_last_lines(drawn)?;
        terminal.write_str(&frame)?;
        drawn = frame.lines().count();
        if screen.is_over() {
            break 0;
        }
        match follower.next(Some(TICK))? {
            Event::Changed => screen.look(),
            Event::Nothing => {}
            Event::Interrupted => break error::Kind::Interrupted.code(),
            Event::Failed(reason) => context.printer.warn(&reason),
        }
    };
    terminal.show_cursor()?;
    Ok(code)
}
