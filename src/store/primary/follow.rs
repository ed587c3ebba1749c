//! Brings the files of a copy up to date with the database.
//!
//! A derived file stores the progress; if it is lost, changes are fetched again without harm.

use memctl_files::{Directory, json};

use crate::model::Kind;
use crate::store::access::disabled_users::keep_disabled_users;
use crate::store::files::data::apply;
use crate::store::files::directory::{EXECUTION_LOGS, JOURNAL, RECOVERED};
use crate::store::files::log;
use crate::store::files::tombstones::{self, Removal};
use crate::store::{
    DERIVED, DataFile, Error, Lock, Primary, PrimaryChange, PulledChange, Reached, SMALL_FILE,
    Scoped, Tombstone, atomic,
};

/// Name of the progress file, among the derived files.
const REACHED: &str = "primary.json";

impl Scoped {
    /// Fetches changes of other writers, so that later reads include everything written before this
    /// call. Does nothing if the files are the primary store. Returns `true` if there were changes. Fails
    /// if the memory is disabled.
    pub fn catch_up(&self) -> Result<bool, Error> {
        self.must_be_enabled_for_all()?;
        let changed = self.fetch_changes()?;
        // The list of users may have come with the changes.
        self.must_be_enabled()?;
        Ok(changed)
    }

    fn fetch_changes(&self) -> Result<bool, Error> {
        let Some(primary) = &self.primary else {
            return match self.primary_name()? {
                Some(_) => Err(Error::NoPrimary {
                    path: self.directory().to_path_buf(),
                }),
                None => Ok(false),
            };
        };
        let clock = primary.clock().map_err(Error::Primary)?;
        let before = reached(self.directory());
        if before.is_some_and(|before| before.clock == clock) {
            return Ok(false);
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        // Another thread or process may have brought the changes, or made them. Nothing is asked
        // then, because writers wait for the lock.
        let now = reached(self.directory());
        if now != before && now.is_some_and(|now| now.clock >= clock) {
            return Ok(true);
        }
        fetch(self, &lock, primary.as_ref())?;
        Ok(true)
    }
}

/// Returns the progress of the files; `None` if unknown.
pub(super) fn reached(directory: &Directory) -> Option<Reached> {
    let bytes = directory.below(DERIVED).read(REACHED, SMALL_FILE).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// Saves the progress of the files. Ignores failure, because changes can be fetched again.
pub(super) fn keep(directory: &Directory, reached: Reached) {
    let derived = directory.below(DERIVED);
    let Ok(bytes) = serde_json::to_vec(&reached) else {
        return;
    };
    if derived.create().is_ok() {
        drop(derived.replace_derived(REACHED, &[&bytes]));
    }
}

/// Brings the files up to date with the database.
pub(super) fn fetch(store: &Scoped, lock: &Lock, primary: &dyn Primary) -> Result<Reached, Error> {
    let clock = primary.clock().map_err(Error::Primary)?;
    let known = reached(store.directory()).unwrap_or_default();
    if known.clock == clock && clock > 0 {
        return Ok(known);
    }
    // A lower clock means that the database was restored to an earlier state.
    let after = if clock < known.clock {
        set_aside(store.directory(), known)?;
        0
    } else {
        known.seq
    };
    let store = store.held();
    let mut take = |batch: Vec<PrimaryChange>| take_over(&store, lock, &batch);
    let fetched = primary.changes(after, &mut take)?;
    keep_disabled_users(lock, &fetched.disabled_users)?;
    let now = Reached {
        clock,
        seq: fetched.seq,
    };
    keep(store.directory(), now);
    Ok(now)
}

/// Deletes the file of a kind and fetches everything again.
pub(crate) fn fetch_anew(store: &Scoped, lock: &Lock, kind: Kind) -> Result<(), Error> {
    let Some(primary) = store.primary() else {
        let path = store.directory().to_path_buf();
        return Err(Error::NoPrimary { path });
    };
    // Check first: without the database, the damaged file is better than none.
    primary.clock().map_err(Error::Primary)?;
    forget(store.directory())?;
    for file in DataFile::of(kind) {
        atomic::remove(store.directory(), file.name())?;
    }
    fetch(store, lock, primary.as_ref()).map(drop)
}

/// Moves the files aside before a copy is rebuilt, so that nothing is lost.
fn set_aside(directory: &Directory, known: Reached) -> Result<(), Error> {
    let aside = directory.below(RECOVERED);
    atomic::create_dir(&aside)?;
    let files = DataFile::ALL.into_iter().map(DataFile::name);
    for name in files.chain([tombstones::FILE]) {
        let to = aside.join(format!("{name}.until-{}.txt", known.seq));
        atomic::set_aside(directory, name, &to)?;
    }
    atomic::sync(directory)
}

/// Writes a batch of changes to the files.
fn take_over(store: &Scoped, lock: &Lock, batch: &[PrimaryChange]) -> Result<(), Error> {
    for kind in Kind::ALL {
        let of_kind = || batch.iter().filter(|change| change.kind == kind);
        let changes: Vec<PulledChange> = of_kind()
            .map(|change| PulledChange {
                id: change.id.clone(),
                text: change.text.clone(),
            })
            .collect();
        if changes.is_empty() {
            continue;
        }
        let removed = tombstones::ids(lock.directory(), kind)?;
        // Tombstones come first, as in every removal.
        let mut tombstones = Vec::new();
        for change in of_kind().filter(|c| c.text.is_none() && !removed.contains(&c.id)) {
            tombstones.push(tombstone(kind, change)?);
        }
        tombstones::append(lock, &tombstones)?;
        place(store, lock, kind, &changes)?;
        forget_traces(lock, &tombstones)?;
        let back: Vec<&str> = of_kind()
            .filter(|change| change.text.is_some() && removed.contains(&change.id))
            .map(|change| change.id.as_str())
            .collect();
        tombstones::lift(lock, kind, &back, "")?;
    }
    Ok(())
}

/// Applies changes to the files of a kind: each record goes to its own file, and leaves the other.
fn place(store: &Scoped, lock: &Lock, kind: Kind, changes: &[PulledChange]) -> Result<(), Error> {
    for file in DataFile::of(kind) {
        let is_here = |text: &String| DataFile::for_record(kind, text.as_bytes()) == file;
        let here: Vec<PulledChange> = changes
            .iter()
            .map(|change| PulledChange {
                id: change.id.clone(),
                text: change.text.clone().filter(is_here),
            })
            .collect();
        apply::apply(store.file(file), lock, &here)?;
    }
    Ok(())
}

/// Removes the lines of the journal and of the log of agents that name a record which is removed for
/// good. A tombstone without a digest says so: no undo brings the record back, and no copy may keep
/// its text.
fn forget_traces(lock: &Lock, tombstones: &[String]) -> Result<(), Error> {
    let tombstones = tombstones
        .iter()
        .filter_map(|line| serde_json::from_str::<Tombstone>(line).ok());
    let gone = tombstones.filter(|tombstone| tombstone.digest.is_empty());
    let names: Vec<String> = gone
        .map(|tombstone| format!("\"{}\"", tombstone.id))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let names_none = |line: &[u8]| {
        let mut names = names.iter();
        names.all(|name| memchr::memmem::find(line, name.as_bytes()).is_none())
    };
    for file in [JOURNAL, EXECUTION_LOGS] {
        log::retain(lock, file, &names_none)?;
    }
    Ok(())
}

/// Returns the tombstone line of a removed record.
fn tombstone(kind: Kind, change: &PrimaryChange) -> Result<String, Error> {
    let given = change.tombstone.as_deref();
    let given = given.filter(|line| {
        let tombstone = serde_json::from_str::<Tombstone>(line);
        tombstone.is_ok_and(|tombstone| {
            tombstone.kind == kind && tombstone.id == change.id && !tombstone.lifted
        })
    });
    if let Some(line) = given {
        return Ok(json::compact(line));
    }
    let at = change.gone_at.as_deref().unwrap_or_default();
    let removal = Removal {
        id: &change.id,
        user_id: None,
        content: None,
    };
    tombstones::line("", kind, at, &removal)
}

/// Forgets the progress of the files.
pub(crate) fn forget(directory: &Directory) -> Result<(), Error> {
    atomic::remove(&directory.below(DERIVED), REACHED)
}
