//! Watcher thread that reads data files after file system events.
//!
//! The watch is on the directory, not on its files: a rewrite replaces them, and they may not exist
//! yet.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::model::Kind;
use crate::store::{DataFile, Scoped};

use super::super::log::Log;
use super::change_feed::{Change, Known};

/// Time within which events count as one: a single write causes several.
const SETTLE: Duration = Duration::from_millis(10);
/// Maximum length of a burst: with many writers it never ends.
const LONGEST_BURST: Duration = Duration::from_millis(60);
/// Delay before a half-written file is read again.
const AGAIN: Duration = Duration::from_millis(40);

/// Message of the file system watcher.
enum Signal {
    Changed(Kind),
    /// An unknown file may have changed.
    Anything,
    Failed(String),
}

/// Publishes the changes of every data file, until the watcher is dropped.
pub(super) fn follow(
    store: Scoped,
    publish: impl Fn(Vec<Change>) + Send + 'static,
    log: Log,
) -> Result<RecommendedWatcher, notify::Error> {
    let (sender, signals) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                drop(sender.send(Signal::Failed(error.to_string())));
                return;
            }
        };
        if event.need_rescan() {
            drop(sender.send(Signal::Anything));
        } else if !event.kind.is_access() {
            for file in DataFile::ALL {
                if event.paths.iter().any(|path| path.ends_with(file.name())) {
                    drop(sender.send(Signal::Changed(file.kind)));
                }
            }
        }
    })?;
    // The watch starts before the first read, so that no change is missed.
    watcher.watch(store.directory(), RecursiveMode::NonRecursive)?;
    let known = Known::of(store);
    std::thread::Builder::new()
        .name("events".to_owned())
        .spawn(move || watch(known, &signals, &publish, &log))
        .map_err(notify::Error::io)?;
    Ok(watcher)
}

fn watch(mut known: Known, signals: &Receiver<Signal>, publish: &dyn Fn(Vec<Change>), log: &Log) {
    let mut unsettled = false;
    loop {
        let first = if unsettled {
            match signals.recv_timeout(AGAIN) {
                Err(RecvTimeoutError::Timeout) => Ok(Signal::Anything),
                other => other.map_err(drop),
            }
        } else {
            signals.recv().map_err(drop)
        };
        let Ok(first) = first else {
            return;
        };
        let mut changed = [false; Kind::ALL.len()];
        let mut take = |signal| match signal {
            Signal::Changed(kind) => mark(&mut changed, kind),
            Signal::Anything => changed = [true; Kind::ALL.len()],
            Signal::Failed(reason) => log(&format!("events: {reason}")),
        };
        take(first);
        let start = Instant::now();
        while start.elapsed() < LONGEST_BURST {
            match signals.recv_timeout(SETTLE) {
                Ok(signal) => take(signal),
                Err(_) => break,
            }
        }
        unsettled = false;
        let kinds = Kind::ALL.into_iter().zip(changed);
        for (kind, _) in kinds.filter(|(_, changed)| *changed) {
            match known.look(kind) {
                Ok(Some(records)) => publish(records),
                Ok(None) => unsettled = true,
                Err(error) => log(&format!("events: {error}")),
            }
        }
    }
}

fn mark(changed: &mut [bool; Kind::ALL.len()], kind: Kind) {
    for (mark, of) in changed.iter_mut().zip(Kind::ALL) {
        *mark |= of == kind;
    }
}
