//! Derived files of running sessions: `log` has the calls of a session, `scratch` what a room remembers of it
//! from one event to the next.
//!
//! Files are named by a hash, because a session's name is untrusted. Those of the oldest sessions are removed.
//! Each begins with [`BINARY`], so that an agent that searches the project with `grep -r` does not read its own
//! calls again.
//!
//! Deliberately absent: the meaning of lines and scratch files, redaction (the caller's), and syncing to disk.

pub(crate) mod log;
pub(crate) mod scratch;

use std::io;

use memctl_files::{Directory, hex};
use sha2::{Digest as _, Sha256};

use crate::store::Error;

/// Maximum size that is read; a larger file is not ours.
const LARGEST: u64 = 1 << 20;

pub(super) fn must_exist(memory: &Directory) -> Result<(), Error> {
    let failed = || Error::io("read", memory);
    if memory.check().map_err(failed())? {
        return Ok(());
    }
    Err(failed()(io::ErrorKind::NotFound.into()))
}

pub(super) fn stem(session: &str) -> String {
    hex(&Sha256::digest(session.as_bytes()))
}

/// First bytes of a file: `grep` takes a file with a zero byte for binary, and prints no line of it.
pub(super) const BINARY: &[u8] = b"\0\n";

/// Reads what follows [`BINARY`]; empty if there is nothing.
pub(super) fn read(directory: &Directory, name: &str) -> Vec<u8> {
    let mut bytes = directory
        .read(name, LARGEST)
        .ok()
        .flatten()
        .unwrap_or_default();
    if bytes.starts_with(BINARY) {
        bytes.drain(..BINARY.len());
    }
    bytes
}

/// Makes room for one more file. If there is none, a quarter of the files is removed, the least recently changed
/// first. So the age of all files is read once in many sessions, not at the first event of each.
pub(super) fn forget_oldest(directory: &Directory, most: usize) {
    if directory.list().map_or(0, |found| found.len()) < most {
        return;
    }
    let files = by_age(directory, "");
    let surplus = files.len().saturating_sub(most - most / 4);
    for name in files.into_iter().take(surplus) {
        drop(directory.remove(name));
    }
}

/// Names of the files with this ending, least recently changed first.
pub(super) fn by_age(directory: &Directory, ending: &str) -> Vec<String> {
    let found = directory.list().unwrap_or_default().into_iter();
    let mut files: Vec<_> = found
        .filter_map(|found| {
            let name = found.name.into_string().ok()?;
            let state = directory.state(&name).ok()??;
            name.ends_with(ending).then_some((state.modified, name))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, name)| name).collect()
}
