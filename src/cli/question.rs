//! A question to a person at the terminal.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use super::context::END_AT_ONCE;
use super::error::CliError;

/// Asks, and waits for the answer. An interrupt ends the program as anywhere else, but with the cursor
/// shown again: for that it has to come back from the question as an error.
pub(super) fn ask<T>(question: impl FnOnce() -> dialoguer::Result<T>) -> Result<T, CliError> {
    END_AT_ONCE.store(false, Ordering::SeqCst);
    let answer = question();
    END_AT_ONCE.store(true, Ordering::SeqCst);
    console::Term::stderr().show_cursor()?;
    match answer {
        Err(dialoguer::Error::IO(error)) if error.kind() == ErrorKind::Interrupted => {
            Err(CliError::interrupted())
        }
        answer => Ok(answer?),
    }
}
