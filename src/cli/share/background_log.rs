//! Log of a server, written to standard error by a thread of its own.
//!
//! Invariant: logging never waits. If nobody reads standard error, lines are dropped and counted;
//! otherwise a full pipe would stop every request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::cli::output::Printer;
use crate::serve::http::Log;

/// Maximum number of lines that wait to be written.
const WAITING: usize = 1_024;

/// Importance of a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Level {
    Warning,
    Note,
}

/// Thread that writes the lines.
pub(super) struct BackgroundLog {
    lines: SyncSender<(Level, String)>,
    dropped: Arc<AtomicU64>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl BackgroundLog {
    pub(super) fn start(printer: Printer) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let (alive, ended) = channel();
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                let _alive = alive;
                write(&printer, &waiting, &lost);
            })?;
        Ok(Self {
            lines,
            dropped,
            ended,
        })
    }

    /// Receiver of lines of one level.
    pub(super) fn at(&self, level: Level) -> Log {
        let (lines, dropped) = (self.lines.clone(), Arc::clone(&self.dropped));
        Arc::new(move |line| {
            if lines.try_send((level, line.to_owned())).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Waits until all lines are written, at most this long. Other receivers must be gone.
    pub(super) fn finish(self, longest: Duration) {
        drop(self.lines);
        let _timed_out = self.ended.recv_timeout(longest);
    }
}

fn write(printer: &Printer, lines: &Receiver<(Level, String)>, dropped: &AtomicU64) {
    for (level, line) in lines {
        match level {
            Level::Warning => printer.warn(&line),
            Level::Note => printer.note(&line),
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            printer.warn(&format!(
                "dropped log lines, since standard error was not read: {lost}"
            ));
        }
    }
}
