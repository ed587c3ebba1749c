//! The audit, `audit.jsonl`: who read or wrote what, when, and why. Append-only and chained.
//!
//! Every line ends with a keyed hash of itself and of the hash before it, so that a line that was
//! changed, taken out or put in breaks the chain there. A chain that is cut off at its end is still a
//! chain; so the anchor, a small file beside it, knows how many lines there are and the last hash, under
//! a hash of its own.
//!
//! Invariants:
//! - A line is written before the write that it tells of, and before what was read is answered.
//! - A new line never covers up what is wrong: where the log does not go on from the anchor, the next
//!   line says so, and the check finds it for good.
//! - The log is locked for itself, and for microseconds: a reader does not wait for a long write. Who keeps
//!   the lock is not waited for without an end.
//!
//! Two branches of version control that both went on from the same log are joined by [`join()`].
//!
//! That a log was begun is also noted in the user's state directory (`trust`): one whose files are all
//! removed does not pass for one that never was.
//!
//! Who can read the key, which lies in `workspace.json`, can forge the whole chain. Against that helps
//! only a hash that was noted elsewhere; the check takes one.
//!
//! Deliberately absent: waiting for the disk (a power cut may cost the newest lines, and the check then
//! says so), and the texts of what was read or written.

mod chain;
mod join;
mod verify;

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Viewer;
use crate::platform::Directory;

use super::directory::Identity;
use super::error::Error;
use super::scoped::Scoped;
use super::{atomic, directory};

use chain::{Anchor, Chain};
pub use join::{Joined, join};
pub use verify::{Audited, Flaw};

/// The log.
pub(super) const FILE: &str = "audit.jsonl";
/// The anchor; it is also what is locked.
pub(super) const ANCHOR: &str = "audit.anchor";

/// Nobody needs the lock of the log for longer than a line takes. Who keeps it for so long is no writer of
/// this program.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// What was done with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Did {
    /// They were shown, or used in an answer.
    Read,
    /// They came.
    Added,
    /// They got other values.
    Edited,
    /// They went.
    Removed,
    /// They left the workspace as a file or over the network.
    Exported,
    /// Everything went.
    Purged,
    /// A log that went on elsewhere was joined to this one.
    Merged,
    /// The log did not go on from its anchor when the next line was written.
    Broken,
}

/// One line of the log, without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its number, from 1.
    pub seq: u64,
    /// When: RFC 3339, UTC.
    pub at: String,
    /// Who; empty is nobody known.
    pub who: String,
    /// What was done …
    pub did: Did,
    /// … with which records: their ids.
    pub records: Vec<String>,
    /// The users whose records they are, where that is somebody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Why: the command that did it.
    pub why: String,
}

impl Line {
    /// Whether somebody looked at, or changed, what belongs to another.
    pub fn is_foreign(&self) -> bool {
        !self.of.is_empty()
    }
}

/// A record that something was done with: its id, and whose it is.
pub type Touched<'a> = (&'a str, Option<&'a str>);

/// Writes a line. Whose key is missing has no memory that anybody could have read.
fn append(store: &Scoped, did: Did, touched: &[Touched<'_>]) -> Result<(), Error> {
    let (directory, act) = (store.directory(), store.act());
    let Some(identity) = directory::identity(directory) else {
        return Ok(());
    };
    let mut of: Vec<String> = Vec::new();
    for (_, user) in touched {
        let other = user.filter(|user| *user != act.who && !of.iter().any(|o| o == user));
        of.extend(other.map(str::to_owned));
    }
    let records = touched.iter().map(|(id, _)| (*id).to_owned()).collect();
    let mut chain = Chain::open(directory, store.lock_limit(), &identity.tombstone_key)?;
    // A purge takes the log away itself.
    let is_missed = did != Did::Purged && chain.is_blank();
    if is_missed && store.approvals().remembers_audit(&identity.origin) {
        chain.doubt();
    }
    chain.append(act, did, records, of)
}

/// Begins the audit of a workspace that has just got its identity: with an anchor and no line, so that from
/// here on a missing anchor is a removed one.
pub(super) fn begin(store: &Scoped, identity: &Identity) -> Result<(), Error> {
    let mut chain = Chain::open(
        store.directory(),
        store.lock_limit(),
        &identity.tombstone_key,
    )?;
    if chain.is_blank() {
        chain.begin()?;
    }
    // A note that cannot be kept costs that a removal is noticed, and nothing else.
    drop(store.approvals().remember_audit(&identity.origin));
    Ok(())
}

impl Scoped {
    /// Notes that something was done with records, where no writer has noted it.
    pub fn audit(&self, did: Did, touched: &[Touched<'_>]) -> Result<(), Error> {
        if touched.is_empty() {
            return Ok(());
        }
        append(self, did, touched)
    }

    /// Shows the lines of the log, oldest first; what cannot be read is passed over here, and found by
    /// [`Scoped::verify_audit`]. A user is shown what he did, and what others did with what is his; the
    /// log tells of everything, so that within a scope it tells nothing.
    pub fn audited(&self, visit: &mut dyn FnMut(Line)) -> Result<(), Error> {
        if !self.scope().allows(None) {
            return Ok(());
        }
        let Some(file) = directory::open_data(self.directory(), FILE)? else {
            return Ok(());
        };
        let lines = std::io::BufRead::split(std::io::BufReader::new(file), b'\n');
        for line in lines {
            let line = line.map_err(Error::io("read", &self.directory().join(FILE)))?;
            if let Ok(line) = serde_json::from_slice::<Line>(&line)
                && self.may_see(&line)
            {
                visit(line);
            }
        }
        Ok(())
    }

    fn may_see(&self, line: &Line) -> bool {
        match self.viewer() {
            Viewer::Owner => true,
            Viewer::Nobody => false,
            Viewer::User(id) => {
                line.who == id.as_str() || line.of.iter().any(|user| user == id.as_str())
            }
        }
    }

    /// Checks the whole log. `noted` is a hash that was noted elsewhere and must still stand in it.
    pub fn verify_audit(&self, noted: Option<&str>) -> Result<Audited, Error> {
        let mut audited = verify::verify(self.directory(), self.lock_limit(), noted)?;
        let origin = self.identity().map(|identity| identity.origin);
        let origin = origin.unwrap_or_default();
        if audited.is_begun {
            drop(self.approvals().remember_audit(&origin));
        } else if self.approvals().remembers_audit(&origin) {
            audited.flaws.push(Flaw {
                line: None,
                message:
                    "an audit was kept here, and it is gone: both `audit.jsonl` and `audit.anchor`"
                        .to_owned(),
            });
        }
        Ok(audited)
    }
}

/// Opens the file that the log is locked by, and waits for the lock, at most so long.
fn lock(directory: &Directory, limit: Duration) -> Result<File, Error> {
    let file = atomic::open_or_create(directory, ANCHOR)?;
    let path = directory.join(ANCHOR);
    directory::wait_for(&path, limit.min(LOCK_LIMIT), || file.try_lock())?;
    Ok(file)
}

fn read_anchor(file: &File, path: &Path) -> Result<Option<Anchor>, Error> {
    let mut bytes = Vec::new();
    let mut source = file;
    source
        .seek(SeekFrom::Start(0))
        .and_then(|_| source.take(4096).read_to_end(&mut bytes))
        .map_err(Error::io("read", path))?;
    Ok(serde_json::from_slice(&bytes).ok())
}

fn write_anchor(file: &File, path: &Path, anchor: &Anchor) -> Result<(), Error> {
    // One short write at the start; numbers are padded, so that the length never changes.
    let text = anchor.render()?;
    file.write_all_at(text.as_bytes(), 0)
        .and_then(|()| file.set_len(text.len() as u64))
        .map_err(Error::io("write", path))
}

fn open_log(directory: &Directory) -> Result<File, Error> {
    atomic::open_or_create(directory, FILE)
}

fn write_line(mut file: &File, path: &Path, at: u64, line: &str) -> Result<(), Error> {
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.write_all(line.as_bytes()))
        .map_err(Error::io("append to", path))
}

fn log_path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::platform::named;
    use crate::store::act::Act;

    /// A store with a log of so many lines.
    fn logged(lines: usize) -> (tempfile::TempDir, Scoped) {
        let dir = tempfile::tempdir().unwrap();
        let store = Scoped::new(dir.path(), Scope::All).acting(Act {
            who: "ann".to_owned(),
            why: "memory search".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            change: String::new(),
        });
        drop(store.write(&mut || "key".to_owned()).unwrap());
        for n in 1..=lines {
            store
                .audit(Did::Read, &[(&format!("MEM-{n:03}"), None)])
                .unwrap();
        }
        (dir, store)
    }

    fn flaws(store: &Scoped) -> Vec<Flaw> {
        store.verify_audit(None).unwrap().flaws
    }

    #[test]
    fn a_sound_log_is_sound() {
        for lines in [0, 1, 2, 7] {
            let (_dir, store) = logged(lines);
            let audited = store.verify_audit(None).unwrap();
            assert_eq!((audited.lines, audited.flaws), (lines as u64, Vec::new()));
            let mut seen = Vec::new();
            store.audited(&mut |line| seen.push(line.seq)).unwrap();
            assert_eq!(seen, (1..=lines as u64).collect::<Vec<_>>());
        }
    }

    /// Whatever is done to the lines, the check finds it; and it still does after the next line.
    #[test]
    fn every_change_of_the_lines_is_found() {
        type Change = fn(&mut Vec<String>);
        let changes: [(&str, Change); 9] = [
            ("changed", |l| l[2] = l[2].replace("MEM-003", "MEM-999")),
            ("deleted", |l| drop(l.remove(2))),
            ("first deleted", |l| drop(l.remove(0))),
            ("last deleted", |l| drop(l.pop())),
            ("all deleted", Vec::clear),
            ("inserted", |l| l.insert(2, l[2].clone())),
            ("appended", |l| l.push(l[2].clone())),
            ("swapped", |l| l.swap(1, 2)),
            ("cut off", |l| l.last_mut().unwrap().truncate(40)),
        ];
        for (name, change) in changes {
            let (dir, store) = logged(5);
            let path = log_path(dir.path());
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            change(&mut lines);
            named::replace(&path, lines.concat().as_bytes()).unwrap();
            assert!(!flaws(&store).is_empty(), "{name}");
            store.audit(Did::Read, &[("MEM-777", None)]).unwrap();
            assert!(!flaws(&store).is_empty(), "{name}, and a line more");
        }
    }

    #[test]
    fn who_keeps_the_lock_of_the_log_is_not_waited_for_without_an_end() {
        let (dir, store) = logged(1);
        let store = store.with_lock_limit(Duration::from_millis(20));
        let held = atomic::open_or_create(&Directory::at(dir.path()), ANCHOR).unwrap();
        held.lock().unwrap();
        let locked = |done: Result<(), Error>| match done {
            Err(Error::Locked { path, .. }) => path.ends_with(ANCHOR),
            _ => false,
        };
        assert!(locked(store.audit(Did::Read, &[("MEM-002", None)])));
        assert!(locked(store.verify_audit(None).map(drop)));
        drop(held);
        store.audit(Did::Read, &[("MEM-002", None)]).unwrap();
        assert_eq!(flaws(&store), []);
    }

    #[test]
    fn a_changed_or_missing_anchor_is_found_and_a_noted_hash_outlives_it() {
        let (dir, store) = logged(3);
        let head = store.verify_audit(None).unwrap().head.unwrap();
        assert_eq!(store.verify_audit(Some(&head)).unwrap().flaws, []);
        let anchor = dir.path().join(ANCHOR);
        let text = std::fs::read_to_string(&anchor).unwrap();
        named::replace(
            &anchor,
            text.replace("\"lines\":3", "\"lines\":2").as_bytes(),
        )
        .unwrap();
        assert!(!flaws(&store).is_empty());
        std::fs::remove_file(&anchor).unwrap();
        assert!(!flaws(&store).is_empty());
        std::fs::remove_file(log_path(dir.path())).unwrap();
        assert_eq!(flaws(&store), []);
        assert_eq!(store.verify_audit(Some(&head)).unwrap().flaws.len(), 1);
    }

    /// A process that is killed leaves a line without an anchor, or half a line: neither was
    /// acknowledged, and neither is somebody's deed.
    #[test]
    fn what_a_crash_leaves_is_no_flaw() {
        let (dir, store) = logged(3);
        let anchor = std::fs::read(dir.path().join(ANCHOR)).unwrap();
        store.audit(Did::Read, &[("MEM-004", None)]).unwrap();
        let full = std::fs::read(log_path(dir.path())).unwrap();
        let third = memchr::memchr_iter(b'\n', &full).nth(2).unwrap() + 1;
        for end in third..=full.len() {
            named::replace(&dir.path().join(ANCHOR), &anchor).unwrap();
            named::replace(&log_path(dir.path()), &full[..end]).unwrap();
            assert_eq!(flaws(&store), [], "cut at {end} of {}", full.len());
            store.audit(Did::Read, &[("MEM-005", None)]).unwrap();
            let audited = store.verify_audit(None).unwrap();
            let whole = if end == full.len() { 5 } else { 4 };
            assert_eq!((audited.lines, audited.flaws), (whole, Vec::new()), "{end}");
        }
    }
}
