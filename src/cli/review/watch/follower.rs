//! Watcher of files in a memory directory, and of interrupts.
//!
//! The watch is on the directory, not on the files: a rewrite replaces them, and they may not exist yet. It starts
//! before the first read, so that no change is missed.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use memctl_files::{named, process};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::model::error::{self, Explain, Explanation, UserError};

/// Time within which events count as one: a single write causes several.
const BURST: Duration = Duration::from_millis(15);

/// Message of the watching threads. Of several at once, the last in this order counts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    OtherPath,
    /// A file that is followed may have changed.
    File,
    /// The file system cannot report changes any more.
    Failed(String),
    Interrupted,
}

/// Watcher of files in a memory directory.
pub(super) struct Follower {
    watcher: RecommendedWatcher,
    memory: PathBuf,
    watched: Option<PathBuf>,
    signals: Receiver<Signal>,
}

impl Follower {
    /// Starts to watch. From now on an interrupt is a signal.
    pub(super) fn new(memory: &Path, files: Vec<&'static str>) -> Result<Self, UserError> {
        let (sender, signals): (Sender<Signal>, _) = mpsc::channel();
        let of_interrupt = sender.clone();
        process::at_interrupt(move || drop(of_interrupt.send(Signal::Interrupted)))?;
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_followed = |path: &PathBuf| files.iter().any(|file| path.ends_with(file));
            let signal = match event {
                Ok(event) if event.kind.is_access() => return,
                Ok(event) if event.need_rescan() => Signal::File,
                Ok(event) if event.paths.iter().any(is_followed) => Signal::File,
                Ok(_) => Signal::OtherPath,
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

    /// Waits for the next signal, and for those of the same burst.
    pub(super) fn next(&mut self) -> Result<Signal, UserError> {
        loop {
            let stopped = |_| notify::Error::generic("the file watcher has stopped");
            let mut signal = self.signals.recv().map_err(stopped)?;
            if signal <= Signal::File {
                std::thread::sleep(BURST);
                signal = self.signals.try_iter().fold(signal, Signal::max);
            }
            // A new directory may already hold the file, so a closer watch counts as a change.
            if self.come_nearer()? || signal != Signal::OtherPath {
                return Ok(signal);
            }
        }
    }

    /// Watches the memory directory, or its nearest existing ancestor. Returns `true` if the watch
    /// moved.
    fn come_nearer(&mut self) -> Result<bool, UserError> {
        let mut moved = false;
        loop {
            let nearest = self.memory.ancestors().find(|path| named::is_dir(path));
            let nearest = nearest.unwrap_or(Path::new(".")).to_owned();
            if self.watched.as_ref() == Some(&nearest) {
                return Ok(moved);
            }
            match self.watcher.watch(&nearest, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // The directory is gone again; the next round looks for another ancestor.
                Err(_) if !named::is_dir(&nearest) => continue,
                Err(error) => return Err(error.into()),
            }
            if let Some(before) = self.watched.replace(nearest) {
                drop(self.watcher.unwatch(&before));
            }
            moved = true;
        }
    }
}

impl Explain for notify::Error {
    fn explain(&self) -> Explanation {
        let hint = "check the limit of watched files: sysctl fs.inotify";
        (error::Kind::Io, Some(hint.to_owned()))
    }
}
