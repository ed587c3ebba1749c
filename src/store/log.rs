//! Append-only JSON Lines: one object a line, never rewritten.
//!
//! A last line without a line break is what a crash leaves: it is passed over, and the next line
//! starts on its own. Any other line that cannot be read is passed over too; all others count.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::atomic;
use super::directory::{self, Lock};
use super::error::Error;

/// Appends one object to the log of this name and waits until it is on the disk.
pub(super) fn append(lock: &Lock, name: &str, line: &impl Serialize) -> Result<(), Error> {
    let path = lock.directory().join(name);
    atomic::append_line(&path, &line_for(&path, line)?)
}

/// The same without waiting for the disk; answers how long the log is now, in bytes.
pub(super) fn append_unsynced(
    lock: &Lock,
    name: &str,
    line: &impl Serialize,
) -> Result<u64, Error> {
    let path = lock.directory().join(name);
    atomic::append_unsynced(&path, &line_for(&path, line)?)
}

fn line_for(path: &Path, line: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    if ends_inside_a_line(path).map_err(Error::io("read", path))? {
        text.insert(0, '\n');
    }
    Ok(text)
}

fn ends_inside_a_line(path: &Path) -> io::Result<bool> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

/// Every object of the log of this name that can be read; none where it is missing.
pub(super) fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> Result<Vec<T>, Error> {
    let Some(mut file) = directory::open_data(directory, name)? else {
        return Ok(Vec::new());
    };
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)
        .map_err(Error::io("read", &directory.join(name)))?;
    let lines = bytes.split(|b| *b == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_torn_line_costs_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::ZERO).unwrap();
        append(&lock, "a.jsonl", &1).unwrap();
        let path = dir.path().join("a.jsonl");
        atomic::append_line(&path, "{\"torn").unwrap();
        append(&lock, "a.jsonl", &2).unwrap();
        assert_eq!(read::<u32>(dir.path(), "a.jsonl").unwrap(), [1, 2]);
        assert_eq!(read::<u32>(dir.path(), "none.jsonl").unwrap(), [0; 0]);
    }
}
