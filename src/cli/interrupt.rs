//! Interrupts: end of the process at once, unless a command waits for a future or an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use crate::model::error::UserError;
use memctl_files::signals;

/// Runs a future on a runtime of one thread. An interrupt drops the future, and with it a program
/// that it has started.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> Result<T, UserError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|task| {
            if interrupt.as_mut().poll(task).is_ready() {
                return std::task::Poll::Ready(None);
            }
            // From here on the runtime handles the interrupt.
            END_AT_ONCE.store(false, Ordering::SeqCst);
            future.as_mut().poll(task).map(Some)
        })
        .await
    });
    END_AT_ONCE.store(true, Ordering::SeqCst);
    ended.ok_or_else(UserError::interrupted)
}

/// Restores the terminal with this function if the process is told to end (SIGTERM), and ends it.
#[expect(clippy::exit, reason = "the signal ends the process")]
pub(super) fn restore_at_termination(restore: fn()) -> Result<(), UserError> {
    let end = move || {
        restore();
        std::process::exit(signals::TERMINATED);
    };
    Ok(signals::at_termination(end)?)
}

/// `true` while an interrupt ends the process at once.
pub(super) static END_AT_ONCE: LazyLock<Arc<AtomicBool>> =
    LazyLock::new(|| Arc::new(AtomicBool::new(true)));
