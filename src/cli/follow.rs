//! Waiting for files of the memory to change, without looking at it in between.
//!
//! The file system says when to look. The directory is watched, not the file: that is replaced on a
//! rewrite, and may not exist yet. Where the directory does not exist either, the nearest one above
//! it is watched until it does. A watch is always set before the caller looks, so that nothing
//! falls between the two.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::platform::named;

use super::error::CliError;

/// Events that follow each other within this time are one: one write is several of them.
const SETTLE: Duration = Duration::from_millis(15);
/// A burst is not waited for longer than this: in a crowd of writers it never ends.
const LONGEST_BURST: Duration = Duration::from_millis(100);

/// What ended the waiting.
pub(super) enum Event {
    /// A file may have changed.
    Changed,
    /// Nothing, for as long as the caller wanted to wait.
    Nothing,
    /// The user interrupted.
    Interrupted,
    /// The file system cannot say any more when to look.
    Failed(String),
}

/// What the watching threads report.
enum Signal {
    File,
    Elsewhere,
    Interrupted,
    Failed(String),
}

/// Follows files in a memory directory.
pub(super) struct Follower {
    watcher: RecommendedWatcher,
    memory: PathBuf,
    watched: Option<PathBuf>,
    signals: Receiver<Signal>,
}

impl Follower {
    /// Begins to follow. From now on interrupts are events, so that the screen can be left as it
    /// was found.
    pub(super) fn new(memory: &Path, files: &'static [&'static str]) -> Result<Self, CliError> {
        let (sender, signals) = mpsc::channel();
        report_interrupts(sender.clone())?;
        let is_followed = |path: &PathBuf| files.iter().any(|file| path.ends_with(file));
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let signal = match event {
                Ok(event) if event.kind.is_access() => return,
                Ok(event) if event.need_rescan() => Signal::File,
                Ok(event) if event.paths.iter().any(is_followed) => Signal::File,
                Ok(_) => Signal::Elsewhere,
                Err(error) => Signal::Failed(error.to_string()),
            };
            drop(sender.send(signal));
        })?;
        let mut follower = Self {
            watcher,
            memory: memory.to_owned(),
            watched: None,
            signals,
        };
        follower.come_nearer()?;
        Ok(follower)
    }

    /// Waits for the next event, for ever where no limit is given.
    pub(super) fn next(&mut self, limit: Option<Duration>) -> Result<Event, CliError> {
        loop {
            let signal = match limit {
                Some(limit) => self.signals.recv_timeout(limit),
                None => self
                    .signals
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
            };
            match signal {
                Ok(Signal::Interrupted) => return Ok(Event::Interrupted),
                Ok(Signal::Failed(reason)) => return Ok(Event::Failed(reason)),
                Err(RecvTimeoutError::Timeout) => return Ok(Event::Nothing),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(notify::Error::generic("nothing is watched any more").into());
                }
                Ok(Signal::File) => return Ok(self.settle().unwrap_or(Event::Changed)),
                // A new directory may hold the file already: whoever comes nearer has to look.
                Ok(Signal::Elsewhere) if self.come_nearer()? => return Ok(Event::Changed),
                Ok(Signal::Elsewhere) => {}
            }
        }
    }

    /// Watches the memory directory, or as near to it as there is anything. Answers whether that is
    /// nearer than before.
    fn come_nearer(&mut self) -> Result<bool, CliError> {
        let mut moved = false;
        loop {
            let nearest = self.memory.ancestors().find(|path| named::is_dir(path));
            let nearest = nearest.unwrap_or(Path::new(".")).to_owned();
            if self.watched.as_ref() == Some(&nearest) {
                return Ok(moved);
            }
            match self.watcher.watch(&nearest, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // It has gone again since; the next round finds what is there now.
                Err(_) if !named::is_dir(&nearest) => continue,
                Err(error) => return Err(error.into()),
            }
            if let Some(before) = self.watched.replace(nearest) {
                drop(self.watcher.unwatch(&before));
            }
            moved = true;
        }
    }

    /// Waits until a burst of changes is over. Answers what else came.
    fn settle(&self) -> Option<Event> {
        let start = std::time::Instant::now();
        while start.elapsed() < LONGEST_BURST {
            match self.signals.recv_timeout(SETTLE) {
                Ok(Signal::File | Signal::Elsewhere) => {}
                Ok(Signal::Interrupted) => return Some(Event::Interrupted),
                Ok(Signal::Failed(reason)) => return Some(Event::Failed(reason)),
                Err(_) => return None,
            }
        }
        None
    }
}

fn report_interrupts(sender: Sender<Signal>) -> Result<(), CliError> {
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            drop(sender.send(Signal::Interrupted));
        }
    });
    Ok(())
}
