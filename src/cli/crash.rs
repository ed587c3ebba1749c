//! Panics of the main thread: reports them as internal errors.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use super::output::Printer;
use crate::model::error::UserError;

/// Message and place of the last panic of the main thread.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program. A panic becomes an internal error on the usual output; for an agent host it is
/// silent and the exit code is 0. Threads of servers report their own panics.
pub(super) fn guarded(
    arguments: &[OsString],
    is_hook: bool,
    run: impl FnOnce() -> ExitCode,
) -> ExitCode {
    let main = std::thread::current().id();
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_hook {
            return;
        }
        if std::thread::current().id() != main {
            report(info);
            return;
        }
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(described(info));
    }));
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        if is_hook {
            return ExitCode::SUCCESS;
        }
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let error = failure(last.as_deref());
        Printer::new(arguments.iter().any(|a| a == "--json"), false, true).error(&error);
        ExitCode::from(error.kind.code())
    })
}

/// Returns the error for a panic.
fn failure(described: Option<&str>) -> UserError {
    UserError::internal(format!(
        "internal error: {}",
        described.unwrap_or("the cause is unknown")
    ))
}

/// Message and place of a panic on one line.
fn described(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("no message");
    let message = message.replace('\n', " ");
    match info.location() {
        Some(at) => format!("{message} ({}:{})", at.file(), at.line()),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Kind;

    #[test]
    fn panic_is_an_internal_error() {
        let error = failure(Some("index out of bounds (src/a.rs:3)"));
        assert_eq!((error.kind, error.kind.code()), (Kind::Internal, 70));
        assert!(error.message.contains("src/a.rs:3"));
        assert!(error.hint.unwrap().contains("memctl --version"));
        assert!(failure(None).message.contains("unknown"));
    }
}
