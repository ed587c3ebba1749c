//! A screen that redraws in place until it is interrupted.
//!
//! The file system says when to look; in between nothing is done but counting ages anew.

use std::time::{Duration, Instant};

use console::Term;

use super::context::Context;
use super::error::{self, CliError};
use super::follow::{Event, Follower};

/// How often ages are counted anew on a quiet screen.
const TICK: Duration = Duration::from_secs(5);

/// What is shown.
pub(super) trait Live {
    /// Looks again at what may have changed.
    fn look(&mut self);

    /// What stands on a screen of so many rows and columns, so long after the start. It may have at most
    /// as many lines as rows but one, on which the cursor rests.
    fn frame(&self, rows: usize, columns: usize, since: Duration) -> String;

    /// Whether nothing can change any more.
    fn is_over(&self) -> bool {
        false
    }
}

/// Redraws in place until interrupted, or until nothing can change any more.
pub(super) fn redraw(
    context: &Context,
    follower: &mut Follower,
    screen: &mut dyn Live,
) -> Result<u8, CliError> {
    let terminal = Term::stdout();
    let start = Instant::now();
    let mut drawn = 0;
    screen.look();
    terminal.hide_cursor()?;
    let code = loop {
        let (rows, columns) = terminal.size();
        let columns = usize::from(columns);
        let frame = screen.frame(usize::from(rows), columns, start.elapsed());
        // A line that wraps would be two lines on the screen, and the next frame would miss one.
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
