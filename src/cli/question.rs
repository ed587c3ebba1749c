//! Questions to the user at the terminal.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use dialoguer::Editor;

use crate::cli::config::Environment;
use crate::model::error::UserError;
use memctl_files::process::USUAL_EDITOR;

use super::interrupt::END_AT_ONCE;

/// Asks, and waits for the answer. An interrupt returns an error here, so that the cursor is shown
/// again before the program ends.
pub(super) fn ask<T>(question: impl FnOnce() -> dialoguer::Result<T>) -> Result<T, UserError> {
    END_AT_ONCE.store(false, Ordering::SeqCst);
    let answer = question();
    END_AT_ONCE.store(true, Ordering::SeqCst);
    console::Term::stderr().show_cursor()?;
    match answer {
        Err(dialoguer::Error::IO(error)) if error.kind() == ErrorKind::Interrupted => {
            Err(UserError::interrupted())
        }
        answer => Ok(answer?),
    }
}

/// Editor of the user: `VISUAL`, or `EDITOR`, unless it is blank.
pub(super) fn editor(environment: &Environment) -> Editor {
    let mut editor = Editor::new();
    let named = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| environment.var(name))
        .find(|value| !value.trim().is_empty());
    editor.executable(named.as_deref().unwrap_or(USUAL_EDITOR));
    editor
}
