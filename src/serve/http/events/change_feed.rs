//! Detection of changes in a data file since the last read, by any writer.
//!
//! Every version of every entry has a key. Appended entries are found without reading the earlier
//! ones; after any other change, old and new keys are compared. Deleted entries are read from the
//! old file, which stays open.
//!
//! Watcher thread that reads data files after file system events.
//!
//! The watch is on the directory, not on its files: a rewrite replaces them, and they may not exist
//! yet.

use std::collections::HashMap;
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use serde_json::{Value, json};

use crate::model::Kind;
use crate::serve::http::state::Log;
use crate::store::{DataFile, Entry, Error, Positions, Scoped};

/// Maximum number of consecutive reads of a half-written file before it is accepted as it is.
const PATIENCE: u8 = 5;

/// Kind of change to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Update,
    Delete,
}

/// Changed entry.
#[derive(Debug)]
pub(crate) struct Change {
    /// Kind, id and the fields that the access filter needs.
    pub(crate) entry: Entry,
    operation: Operation,
}

impl Change {
    /// Returns the skill and the user, which decide the access.
    fn belongs(&self) -> (Value, Option<String>) {
        let fields: Value = serde_json::from_slice(&self.entry.text).unwrap_or_default();
        let user = self.entry.user_id().map(std::borrow::Cow::into_owned);
        (fields["skill"].clone(), user)
    }

    /// Returns the data of the event for clients.
    pub(crate) fn data(&self) -> Value {
        let fields: Value = serde_json::from_slice(&self.entry.text).unwrap_or_default();
        json!({
            "kind": self.entry.kind,
            "id": self.entry.id,
            "skill": fields["skill"],
            "user_id": self.entry.user_id(),
            "memory_type": fields["memory_type"],
            "operation": match self.operation {
                Operation::Insert => "INSERT",
                Operation::Update => "UPDATE",
                Operation::Delete => "DELETE",
            },
        })
    }
}

/// Files as they were at the last read.
pub(crate) struct Known {
    store: Scoped,
    files: Vec<(Kind, Option<Seen>)>,
}

struct Seen {
    positions: Positions,
    /// Places and versions of the entries.
    keys: Vec<(u32, u64)>,
    /// Number of reads since then that found it half-written.
    doubts: u8,
}

impl Known {
    /// Reads the current state. A file that cannot be read is read again when it changes.
    pub(crate) fn of(store: Scoped) -> Self {
        let see = |kind| (kind, Seen::of(&store, kind).ok());
        let files = Kind::ALL.into_iter().map(see).collect();
        Self { store, files }
    }

    /// Returns the changes in a file; `None` if it seems half-written and has to be read again.
    pub(crate) fn look(&mut self, kind: Kind) -> Result<Option<Vec<Change>>, Error> {
        let now = Seen::of(&self.store, kind)?;
        let Some((_, slot)) = self.files.iter_mut().find(|(of, _)| *of == kind) else {
            return Ok(Some(Vec::new()));
        };
        let Some(before) = slot else {
            *slot = Some(now);
            return Ok(Some(Vec::new()));
        };
        let is_less = now.keys.len() < before.keys.len();
        let is_torn = now.keys.is_empty() || now.positions.problems().next().is_some();
        if is_less && is_torn && before.doubts < PATIENCE {
            // Some programs rewrite a file from its beginning.
            before.doubts += 1;
            return Ok(None);
        }
        let changes = now.since(before)?;
        *slot = Some(now);
        Ok(Some(changes))
    }
}

impl Seen {
    fn of(store: &Scoped, kind: Kind) -> Result<Self, Error> {
        let positions = store.positions(kind)?;
        let keys = positions.keys()?;
        Ok(Self {
            positions,
            keys,
            doubts: 0,
        })
    }

    fn since(&self, before: &Self) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        if self.keys.starts_with(&before.keys) {
            for (place, _) in &self.keys[before.keys.len()..] {
                changes.extend(self.change(*place, Operation::Insert)?);
            }
            return Ok(changes);
        }
        // Equal entries have equal keys: each old one matches one new one.
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for (_, key) in &before.keys {
            *counts.entry(*key).or_default() += 1;
        }
        let mut came = Vec::new();
        for (place, key) in &self.keys {
            match counts.get_mut(key).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => came.push(*place),
            }
        }
        let mut gone = HashMap::new();
        for (place, key) in before.keys.iter().rev() {
            if let Some(count) = counts.get_mut(key).filter(|count| **count > 0) {
                *count -= 1;
                if let Some(entry) = before.change(*place, Operation::Delete)? {
                    gone.insert(entry.entry.id.clone(), (*place, entry));
                }
            }
        }
        for place in came {
            let Some(one) = self.change(place, Operation::Insert)? else {
                continue;
            };
            let operation = match gone.remove(&one.entry.id) {
                // A change of user or skill is a deletion for viewers of the old version.
                Some((_, was)) if was.belongs() != one.belongs() => {
                    changes.push(was);
                    Operation::Insert
                }
                Some(_) => Operation::Update,
                None => Operation::Insert,
            };
            changes.push(Change { operation, ..one });
        }
        let mut gone: Vec<_> = gone.into_values().collect();
        gone.sort_by_key(|(place, _)| *place);
        changes.extend(gone.into_iter().map(|(_, change)| change));
        Ok(changes)
    }

    fn change(&self, place: u32, operation: Operation) -> Result<Option<Change>, Error> {
        let entry = self.positions.any_entry(place)?;
        Ok(entry.map(|(_, entry)| Change {
            entry: entry.outline(),
            operation,
        }))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use memctl_files::named;

    #[test]
    fn what_others_do_to_a_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let write = |entries: &[&str]| {
            let text = format!("{{\"entries\": [{}]}}", entries.join(", "));
            named::replace(&dir.path().join("memories.json"), text.as_bytes()).unwrap();
        };
        let a =
            r#"{"id": "MEM-1", "user_id": "ann", "memory_type": "brand_memory", "content": "a"}"#;
        let b = r#"{"id": "MEM-2", "user_id": "bob", "content": "b"}"#;
        let changed = a.replace("\"a\"", "\"c\"");
        let given = a.replace("ann", "bob");
        write(&[a]);
        let mut known = Known::of(Scoped::new(dir.path(), Scope::All));
        let mut check = |entries: &[&str], expected: &[&str]| {
            write(entries);
            let found = known.look(Kind::Memory).unwrap().unwrap();
            let updates: Vec<String> = found
                .iter()
                .map(|change| {
                    let data = change.data();
                    let text = |name: &str| data[name].as_str().unwrap_or("-").to_owned();
                    format!("{} {} {}", text("operation"), text("id"), text("user_id"))
                })
                .collect();
            assert_eq!(updates, expected, "{entries:?}");
        };
        check(&[a], &[]);
        check(&[a, b], &["INSERT MEM-2 bob"]);
        check(&[&changed, b], &["UPDATE MEM-1 ann"]);
        check(&[b, &changed], &[]);
        check(&[b], &["DELETE MEM-1 ann"]);
        check(&[b, b, a], &["INSERT MEM-2 bob", "INSERT MEM-1 ann"]);
        check(&[b, a], &["DELETE MEM-2 bob"]);
        check(&[b, &given], &["DELETE MEM-1 ann", "INSERT MEM-1 bob"]);
    }

    #[test]
    fn a_file_that_is_just_being_written_is_no_news() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memories.json");
        let whole = r#"{"entries": [{"id": "MEM-1"}, {"id": "MEM-2"}]}"#;
        named::replace(&path, whole.as_bytes()).unwrap();
        let mut known = Known::of(Scoped::new(dir.path(), Scope::All));
        named::replace(&path, b"").unwrap();
        assert!(known.look(Kind::Memory).unwrap().is_none());
        named::replace(&path, whole.as_bytes()).unwrap();
        assert!(known.look(Kind::Memory).unwrap().unwrap().is_empty());
    }
}
