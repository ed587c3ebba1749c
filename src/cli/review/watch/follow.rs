//! Changes of files in a memory directory, and keys of the screen that follows them.
//!
//! The watch is on the directory, not on the file: a rewrite replaces the file, and it may not exist
//! yet. Every watch starts before the caller reads, so that no change is missed.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crossterm::event;
use crossterm::event::KeyCode;
use memctl_files::{named, process};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::cli::screen::Pressed;
use crate::model::error::{Explain, Explanation, Kind, UserError};

/// Time within which events count as one: a single write causes several.
const BURST_GAP: Duration = Duration::from_millis(15);
/// Maximum length of a burst: with many writers it never ends.
const LONGEST_BURST: Duration = Duration::from_millis(100);

/// Reason why a wait ended.
pub(crate) enum Event {
    /// A file may have changed.
    Changed,
    /// The time limit passed without a change.
    Nothing,
    /// The user interrupted.
    Interrupted,
    /// The user pressed a key that quits. Only after [`Follower::read_keys`].
    Quit,
    /// The file system cannot report changes any more.
    Failed(String),
}

/// Message of the watching threads.
enum Signal {
    File,
    OtherPath,
    Interrupted,
    Quit,
    Resized,
    Failed(String),
}

/// Watcher of files in a memory directory.
pub(crate) struct Follower {
    watcher: RecommendedWatcher,
    memory: PathBuf,
    watched: Option<PathBuf>,
    sender: Sender<Signal>,
    signals: Receiver<Signal>,
}

impl Follower {
    /// Starts to watch. From now on interrupts are events, so that the caller can restore the
    /// screen.
    pub(crate) fn new(memory: &Path, files: &[&'static str]) -> Result<Self, UserError> {
        let (sender, signals) = mpsc::channel();
        report_interrupts(sender.clone())?;
        let files = files.to_vec();
        let of_watcher = sender.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_followed = |path: &PathBuf| files.iter().any(|file| path.ends_with(file));
            let signal = match event {
                Ok(event) if event.kind.is_access() => return,
                Ok(event) if event.need_rescan() => Signal::File,
                Ok(event) if event.paths.iter().any(is_followed) => Signal::File,
                Ok(_) => Signal::OtherPath,
                Err(error) => Signal::Failed(error.to_string()),
            };
            drop(of_watcher.send(signal));
        })?;
        let mut follower = Self {
            watcher,
            memory: memory.to_owned(),
            watched: None,
            sender,
            signals,
        };
        follower.come_nearer()?;
        Ok(follower)
    }

    /// Starts to read keys and changes of the size. The terminal is in raw mode, where Ctrl-C is a
    /// key.
    pub(crate) fn read_keys(&self) {
        let sender = self.sender.clone();
        // Ends with the process, or when the terminal is gone.
        std::thread::spawn(move || {
            while let Ok(event) = event::read() {
                let signal = match Pressed::of(&event) {
                    Some(Pressed::Interrupt) => Signal::Interrupted,
                    Some(Pressed::Key(KeyCode::Char('q') | KeyCode::Esc)) => Signal::Quit,
                    None if matches!(event, event::Event::Resize(..)) => Signal::Resized,
                    _ => continue,
                };
                if sender.send(signal).is_err() {
                    return;
                }
            }
        });
    }

    /// Waits for the next event, without end if there is no limit.
    pub(crate) fn next(&mut self, limit: Option<Duration>) -> Result<Event, UserError> {
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
                Ok(Signal::Quit) => return Ok(Event::Quit),
                Ok(Signal::Failed(reason)) => return Ok(Event::Failed(reason)),
                Ok(Signal::Resized) | Err(RecvTimeoutError::Timeout) => return Ok(Event::Nothing),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(notify::Error::generic("the file watcher has stopped").into());
                }
                Ok(Signal::File) => return Ok(self.finish_burst().unwrap_or(Event::Changed)),
                // A new directory may already hold the file, so a closer watch counts as a change.
                Ok(Signal::OtherPath) if self.come_nearer()? => return Ok(Event::Changed),
                Ok(Signal::OtherPath) => {}
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

    /// Waits until a burst of changes is over. Returns the interrupt or failure that ended it
    /// early.
    fn finish_burst(&self) -> Option<Event> {
        let start = Instant::now();
        while start.elapsed() < LONGEST_BURST {
            match self.signals.recv_timeout(BURST_GAP) {
                Ok(Signal::File | Signal::OtherPath | Signal::Resized) => {}
                Ok(Signal::Interrupted) => return Some(Event::Interrupted),
                Ok(Signal::Quit) => return Some(Event::Quit),
                Ok(Signal::Failed(reason)) => return Some(Event::Failed(reason)),
                Err(_) => return None,
            }
        }
        None
    }
}

fn report_interrupts(sender: Sender<Signal>) -> Result<(), UserError> {
    let report = move || drop(sender.send(Signal::Interrupted));
    Ok(process::at_interrupt(report)?)
}

impl Explain for notify::Error {
    fn explain(&self) -> Explanation {
        let hint = "check the limit of watched files: sysctl fs.inotify";
        (Kind::Io, Some(hint.to_owned()))
    }
}
