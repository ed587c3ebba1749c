//! Time limit of a command that an agent host waits for.
//!
//! The work stays on the main thread: every event of an agent would pay for handing the answer from one
//! thread to another. So the process ends when the limit is over, even if that thread is stuck.
//!
//! Invariant: either the main thread or the limit has the last word, decided by [`Deadline::end`]. So an
//! answer is whole, missing, or the one for a late event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Action of a limit that is over, before the process ends.
pub(crate) type OnLate = Box<dyn FnOnce() + Send>;

/// Running time limit; dropping it ends it.
pub(crate) struct Deadline {
    limits: Sender<(Duration, Option<OnLate>)>,
    ended: Arc<AtomicBool>,
    began: Instant,
}

impl Deadline {
    /// Starts the limit. `None` if the system refuses another thread.
    pub(crate) fn start(limit: Duration) -> Option<Self> {
        let (limits, receive) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        std::thread::Builder::new()
            .spawn(move || watch((limit, None), &receive, &seen))
            .ok()?;
        Some(Self {
            limits,
            ended,
            began: Instant::now(),
        })
    }

    /// Replaces the limit with one that begins now. `on_late` runs if it is over before the end.
    pub(crate) fn restart(&self, limit: Duration, on_late: Option<OnLate>) {
        // It fails only if the watching thread has ended the process.
        let _result = self.limits.send((limit, on_late));
    }

    /// Time since the first start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ends the limit. If it is over, this does not return: the process ends with its last words.
    pub(crate) fn end(self) {
        while self.ended.swap(true, Ordering::AcqRel) {
            std::thread::park();
        }
    }
}

#[expect(clippy::exit, reason = "the thread that works may be stuck")]
fn watch(
    (mut limit, mut on_late): (Duration, Option<OnLate>),
    receive: &Receiver<(Duration, Option<OnLate>)>,
    ended: &AtomicBool,
) {
    loop {
        match receive.recv_timeout(limit) {
            Ok(next) => (limit, on_late) = next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if ended.swap(true, Ordering::AcqRel) => return,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(on_late) = on_late {
                    on_late();
                }
                std::process::exit(0)
            }
        }
    }
}
