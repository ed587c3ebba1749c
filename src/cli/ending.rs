//! Early ends of a command: an interrupt, a crash, or a deadline.

use std::ffi::OsString;
use std::io;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use memctl_files::process::Stop;

use crate::cli::output::Printer;
use crate::model::error::UserError;

/// Runs a future on a runtime of one thread. An interrupt, a request to end, or the end of the terminal
/// drops the future, and with it a program that it has started.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> Result<T, UserError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(async {
        let stop = Stop::new()?;
        let mut stop = std::pin::pin!(stop.wait());
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|task| {
            if stop.as_mut().poll(task).is_ready() {
                return std::task::Poll::Ready(Ok(None));
            }
            // From here on the runtime handles the interrupt.
            END_AT_ONCE.store(false, Ordering::SeqCst);
            future.as_mut().poll(task).map(|done| Ok(Some(done)))
        })
        .await
    });
    END_AT_ONCE.store(true, Ordering::SeqCst);
    let ended: io::Result<Option<T>> = ended;
    ended?.ok_or_else(UserError::interrupted)
}

/// `true` while an interrupt ends the process at once.
pub(crate) static END_AT_ONCE: LazyLock<Arc<AtomicBool>> =
    LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Message and place of the last panic of the main thread.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Runs the program. A panic becomes an internal error on the usual output; for an agent host it is
/// silent and the exit code is 0. Threads of servers report their own panics.
pub(crate) fn guarded(
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

/// Action of a limit that is over, before the process ends.
pub(crate) type OnLate = Box<dyn FnOnce() + Send>;

/// Time limit, and what to do when it is over.
struct Limit {
    after: Duration,
    on_late: Option<OnLate>,
}

/// Running time limit; dropping it ends it.
pub(crate) struct Deadline {
    limits: Sender<Limit>,
    ended: Arc<AtomicBool>,
    began: Instant,
}

impl Deadline {
    /// Starts the limit. `None` if the system refuses another thread.
    pub(crate) fn start(limit: Duration) -> Option<Self> {
        let (limits, receive) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let first = Limit {
            after: limit,
            on_late: None,
        };
        std::thread::Builder::new()
            .spawn(move || watch(first, &receive, &seen))
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
        let _result = self.limits.send(Limit {
            after: limit,
            on_late,
        });
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
fn watch(mut limit: Limit, receive: &Receiver<Limit>, ended: &AtomicBool) {
    loop {
        match receive.recv_timeout(limit.after) {
            Ok(next) => limit = next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if ended.swap(true, Ordering::AcqRel) => return,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(on_late) = limit.on_late {
                    on_late();
                }
                std::process::exit(0)
            }
        }
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
