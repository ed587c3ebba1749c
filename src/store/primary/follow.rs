//! Bringing the files of a copy to what is in the database.
//!
//! How far they are is a derived file: what is lost of it is fetched again, and changes nothing.

use crate::model::Kind;
use crate::platform::Directory;

use super::super::directory::{DERIVED, Lock, SMALL_FILE};
use super::super::error::Error;
use super::super::json_write::RECOVERED;
use super::super::pulled::PulledChange;
use super::super::scoped::Scoped;
use super::super::tombstones::{self, Tombstone};
use super::super::{apply, atomic, json_text};
use super::{Primary, PrimaryChange, Reached};

/// How far the files are, among the derived ones.
const REACHED: &str = "primary.json";

impl Scoped {
    /// Fetches what others have written, so that what is read next holds all that was there before this
    /// call. Does nothing where the memory lies in its files. Answers whether there was something.
    pub fn catch_up(&self) -> Result<bool, Error> {
        let Some(primary) = &self.primary else {
            return match self.primary_name()? {
                Some(_) => Err(Error::NoPrimary {
                    path: self.directory().to_path_buf(),
                }),
                None => Ok(false),
            };
        };
        if !self.regardless {
            self.must_be_enabled()?;
        }
        let clock = primary.clock().map_err(Error::Primary)?;
        if reached(self.directory()).is_some_and(|reached| reached.clock == clock) {
            return Ok(false);
        }
        let lock = Lock::take(self.directory(), self.lock_limit())?;
        fetch(self, &lock, primary.as_ref())?;
        Ok(true)
    }
}

/// How far the files are; `None` where nobody knows.
pub(super) fn reached(directory: &Directory) -> Option<Reached> {
    let bytes = directory.below(DERIVED).read(REACHED, SMALL_FILE).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// Remembers how far the files are. Failure is no error: what is there is fetched again.
pub(super) fn keep(directory: &Directory, reached: Reached) {
    let derived = directory.below(DERIVED);
    let Ok(bytes) = serde_json::to_vec(&reached) else {
        return;
    };
    if derived.create().is_ok() {
        drop(derived.replace_derived(REACHED, &[&bytes]));
    }
}

/// Brings the files to what is in the database.
pub(super) fn fetch(store: &Scoped, lock: &Lock, primary: &dyn Primary) -> Result<Reached, Error> {
    let clock = primary.clock().map_err(Error::Primary)?;
    let known = reached(store.directory()).unwrap_or_default();
    if known.clock == clock && clock > 0 {
        return Ok(known);
    }
    // A clock that went back is that of a database which was put back to an earlier state.
    let after = if clock < known.clock {
        set_aside(store.directory(), known)?;
        0
    } else {
        known.seq
    };
    let store = store.held();
    let mut take = |batch: Vec<PrimaryChange>| take_over(&store, lock, &batch);
    let seq = primary.changes(after, &mut take)?;
    let now = Reached { clock, seq };
    keep(store.directory(), now);
    Ok(now)
}

/// Fetches everything again, and the file of a kind as if it had never been there.
pub(in super::super) fn fetch_anew(store: &Scoped, lock: &Lock, kind: Kind) -> Result<(), Error> {
    let Some(primary) = store.primary() else {
        let path = store.directory().to_path_buf();
        return Err(Error::NoPrimary { path });
    };
    // Before anything is removed: without the database the damaged file is better than none.
    primary.clock().map_err(Error::Primary)?;
    forget(store.directory())?;
    atomic::remove(store.directory(), kind.file())?;
    fetch(store, lock, primary.as_ref()).map(drop)
}

/// Puts the files aside, for a copy that is made anew: nothing of it is thrown away.
fn set_aside(directory: &Directory, known: Reached) -> Result<(), Error> {
    let aside = directory.below(RECOVERED);
    atomic::create_dir(&aside)?;
    let files = Kind::ALL.into_iter().map(Kind::file);
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
        let buried = tombstones::ids(lock.directory(), kind)?;
        // The tombstones come first, as in every removal.
        let mut stones = Vec::new();
        for change in of_kind().filter(|c| c.text.is_none() && !buried.contains(&c.id)) {
            stones.push(stone(kind, change)?);
        }
        tombstones::bury(lock, &stones)?;
        apply::apply(store, lock, kind, &changes)?;
        let back: Vec<&str> = of_kind()
            .filter(|change| change.text.is_some() && buried.contains(&change.id))
            .map(|change| change.id.as_str())
            .collect();
        tombstones::lift(lock, kind, &back, "")?;
    }
    Ok(())
}

/// The line that stands for a removed record among the tombstones.
fn stone(kind: Kind, change: &PrimaryChange) -> Result<String, Error> {
    let given = change.tombstone.as_deref();
    let given = given.filter(|line| {
        let stone = serde_json::from_str::<Tombstone>(line);
        stone.is_ok_and(|stone| stone.kind == kind && stone.id == change.id && !stone.lifted)
    });
    if let Some(line) = given {
        return Ok(json_text::compact(line));
    }
    let at = change.gone_at.as_deref().unwrap_or_default();
    tombstones::line_of_id(kind, &change.id, at)
}

/// Forgets how far the files are.
pub(super) fn forget(directory: &Directory) -> Result<(), Error> {
    atomic::remove(&directory.below(DERIVED), REACHED)
}
