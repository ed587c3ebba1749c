//! Time limit of a command that an agent host waits for.
//!
//! The work stays on the main thread: every event of an agent would pay for handing the answer from one
//! thread to another. So the process ends silently when the limit is over, even if that thread is stuck.
//!
//! Invariant: [`Deadline`] is dropped before anything is printed, so an answer is whole or missing.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Running time limit; dropping it ends it.
pub(in crate::cli) struct Deadline(Sender<Duration>);

impl Deadline {
    /// Starts the limit. `None` if the system refuses another thread.
    pub(in crate::cli) fn start(limit: Duration) -> Option<Self> {
        let (send, receive) = mpsc::channel();
        std::thread::Builder::new()
            .spawn(move || watch(limit, &receive))
            .ok()?;
        Some(Self(send))
    }

    /// Replaces the limit with one that begins now.
    pub(in crate::cli) fn restart(&self, limit: Duration) {
        // It fails only if the watching thread has ended the process.
        let _result = self.0.send(limit);
    }
}

#[expect(clippy::exit, reason = "the thread that works may be stuck")]
fn watch(mut limit: Duration, receive: &Receiver<Duration>) {
    loop {
        match receive.recv_timeout(limit) {
            Ok(next) => limit = next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => std::process::exit(0),
        }
    }
}
