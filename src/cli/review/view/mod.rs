//! Full-screen view of the queue.
//!
//! - `state` changes by keys and is pure; `draw` shows it; `decide` carries decisions out.
//! - `record`, `difference`, `text`: an entry as lines of styled text.
//! - `key`: keys and their names.
//!
//! The terminal is restored at the end, on errors, on a panic, and while an editor runs.

mod decide;
mod difference;
mod draw;
mod key;
mod record;
mod state;
mod text;

use ratatui::crossterm::event::{self, Event};

use crate::cli::context::Context;
use crate::cli::output::Style;
use crate::error::{Kind, UserError};
use crate::review::queue::Queue;

use draw::Theme;
use key::Key;
use state::{Action, Decision, State};

/// Restores the terminal when dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the queue until the user ends it. `read` reads it again.
pub(super) fn show(
    context: &Context,
    queue: Queue,
    read: &dyn Fn() -> Result<Queue, UserError>,
) -> Result<u8, UserError> {
    let mut state = State::new(queue.waiting);
    if let Some(warning) = queue.warnings.first() {
        state.status = (Style::Warn, warning.clone());
    }
    let theme = Theme {
        has_colour: context.printer.page_has_colour(),
        now: context.environment.now,
    };
    let mut terminal = ratatui::try_init()?;
    let _restored = Restored;
    loop {
        state.screen_selected();
        terminal.draw(|frame| draw::draw(frame, &state, theme))?;
        let Event::Key(event) = event::read()? else {
            continue;
        };
        let Some(key) = Key::of(&event) else {
            continue;
        };
        let done = match state.update(key) {
            Action::Nothing => Ok(()),
            Action::Quit => return Ok(0),
            Action::Interrupt => return Ok(Kind::Interrupted.code()),
            Action::Reload => read().map(|queue| state.replace(queue.waiting)),
            Action::Undo(change) => decide::undo(context, &change, &mut state, read),
            Action::Decide(Decision::Edit) => {
                ratatui::restore();
                let done = decide::decide(context, Decision::Edit, &mut state, read);
                terminal = ratatui::try_init()?;
                done
            }
            Action::Decide(decision) => decide::decide(context, decision, &mut state, read),
        };
        if let Err(error) = done {
            state.status = (Style::Bad, error.message);
        }
    }
}

#[cfg(test)]
mod tests;
