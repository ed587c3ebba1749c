//! Full-screen view of the queue.
//!
//! - `state` changes by keys and is pure; `draw` shows it; `decide` carries decisions out.
//! - `record`, `difference`, `text`: an entry as lines of styled text.
//! - `seen`: the text that agents get from the memory.
//! - `key`: keys and their names.
//!
//! Entries that single records tell are shown at once. Another thread compares the rules meanwhile.
//!
//! The terminal is restored at the end, on errors, on a panic, and while an editor runs.

mod decide;
mod difference;
mod draw;
mod key;
mod record;
mod seen;
mod state;
mod text;

use std::cell::RefCell;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use console::Term;
use crossterm::event::{self, Event};

use crate::cli::context::Context;
use crate::cli::interrupt::restore_at_termination;
use crate::cli::live::{self, FullScreen};
use crate::cli::output::Style;
use crate::model::error::{Kind, UserError};
use crate::model::{Reflexion, SkillPath};
use crate::review::queue::{Queue, Rest};
use crate::store::workspace::{Error, Workspace};

use draw::Theme;
use key::Key;
use state::{Action, Decision, State};

/// Time between two looks for entries that are still searched.
const LOOK: Duration = Duration::from_millis(50);

/// Channel of the entries that take longer to find; `None` if they are there.
type Searching = RefCell<Option<Receiver<Result<Rest, Error>>>>;

/// Shows the queue until the user ends it. `queue` is without [`Rest`].
pub(super) fn show(
    context: &Context,
    workspace: Workspace,
    skill: Option<&SkillPath>,
    queue: Queue,
) -> Result<u8, UserError> {
    let mut state = State::new(queue.waiting);
    if let Some(warning) = queue.warnings.first() {
        state.status = (Style::Warn, warning.clone());
    }
    let searching = RefCell::new(Some(search(workspace, skill.cloned(), queue.rules)?));
    state.is_searching = true;
    let read = || {
        // A queue that is read again is whole.
        searching.take();
        super::whole(context, &context.workspace(None)?, skill)
    };
    let theme = Theme {
        has_colour: context.printer.page_has_colour(),
        now: context.environment.now,
    };
    restore_at_termination(|| live::leave(&mut Term::stdout()))?;
    let mut terminal = Term::stdout();
    let mut full = FullScreen::enter(&terminal)?;
    loop {
        state.screen_selected();
        let (rows, columns) = terminal.size();
        let lines = draw::frame(&state, theme, columns.into(), rows.into());
        live::draw(&mut terminal, &lines)?;
        if searching.borrow().is_some() && !event::poll(LOOK)? {
            look(&searching, &mut state);
            continue;
        }
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
            Action::Show => show_seen(context, &mut state),
            Action::Undo(change) => decide::undo(context, &change, &mut state, &read),
            Action::Decide(Decision::Edit) => {
                drop(full);
                let done = decide::decide(context, Decision::Edit, &mut state, &read);
                full = FullScreen::enter(&terminal)?;
                done
            }
            Action::Decide(decision) => decide::decide(context, decision, &mut state, &read),
        };
        if let Err(error) = done {
            state.status = (Style::Bad, error.message);
        }
        state.is_searching = searching.borrow().is_some();
    }
}

/// Starts to look for the entries that take longer to find. The thread ends with the process.
fn search(
    workspace: Workspace,
    skill: Option<SkillPath>,
    rules: Vec<Reflexion>,
) -> std::io::Result<Receiver<Result<Rest, Error>>> {
    let (send, receive) = mpsc::channel();
    let search = move || {
        let rest = Rest::read(&workspace, skill.as_ref(), &rules, &mut |_, _| {});
        drop(send.send(rest));
    };
    std::thread::Builder::new().spawn(search)?;
    Ok(receive)
}

/// Adds the entries of the search, if it has ended.
fn look(searching: &Searching, state: &mut State) {
    let found = searching.borrow().as_ref().map(Receiver::try_recv);
    match found {
        None | Some(Err(TryRecvError::Empty)) => return,
        Some(Ok(Ok(rest))) => state.add(rest),
        Some(Ok(Err(error))) => state.status = (Style::Bad, error.to_string()),
        Some(Err(TryRecvError::Disconnected)) => {
            state.status = (Style::Bad, "rules could not be compared".to_owned());
        }
    }
    searching.take();
    state.is_searching = false;
}

/// Shows the text that agents get now.
fn show_seen(context: &Context, state: &mut State) -> Result<(), UserError> {
    let workspace = context.workspace(None)?;
    let skill = state.selected().and_then(|one| one.skill.clone());
    state.mode = state::Mode::Seen(seen::seen(&workspace, skill.as_deref())?);
    state.scroll = 0;
    Ok(())
}

#[cfg(test)]
mod tests;
