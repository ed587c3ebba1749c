//! Append-only JSON Lines files: one object per line.
//!
//! A crash leaves a last line without a line break. It is skipped, and the next line starts after a
//! new break. Any other unreadable line is skipped too.
//!
//! The newest lines are read backwards from the end, so that they cost the same in a log of any
//! length.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use memctl_files::{Directory, PositionedFile as _};
use serde::de::DeserializeOwned;

use crate::store::files::directory;
use crate::store::{Error, Lock, atomic};

/// Block size of backward reads, in bytes.
const BLOCK: u64 = 64 << 10;

/// Durability of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Wait until the lines are on disk.
    Wait,
    /// Return once the operating system has the lines: they survive the process, not a power
    /// failure.
    Leave,
}

/// Appends objects, given as JSON texts without line breaks, in one write. Without the lock of the directory, a line
/// may be lost if another process takes lines out of the log at that moment.
pub(crate) fn append(
    directory: &Directory,
    name: &str,
    lines: &[String],
    sync: Sync,
) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut text = lines.join("\n");
    text.push('\n');
    let path = directory.join(name);
    let is_torn = ends_inside_a_line(directory, name);
    if is_torn.map_err(Error::io("read", &path))? {
        text.insert(0, '\n');
    }
    let appended = directory.append(name, text.as_bytes(), sync == Sync::Wait);
    appended.map_err(Error::io("append to", &path))
}

/// Visits the lines of a log, newest first, until `visit` breaks. Returns the number of bytes read.
pub(crate) fn backwards(
    directory: &Directory,
    name: &str,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<u64, Error> {
    let Some(file) = directory::open_data(directory, name)? else {
        return Ok(0);
    };
    read_backwards(&file, visit).map_err(Error::io("read", &directory.join(name)))
}

fn read_backwards(file: &File, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut at = length;
    // Pieces of a line whose start is not read yet, last piece first.
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    while at > 0 {
        let start = at.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(at - start).unwrap_or_default()];
        file.read_exact_at(&mut block, start)?;
        at = start;
        let mut end = block.len();
        while let Some(line_break) = memchr::memrchr(b'\n', &block[..end]) {
            pieces.push(block[line_break + 1..end].to_vec());
            if show(&mut pieces, visit).is_break() {
                return Ok(length - at);
            }
            end = line_break;
        }
        block.truncate(end);
        pieces.push(block);
    }
    // The file is read completely, so a break makes no difference.
    let _: ControlFlow<()> = show(&mut pieces, visit);
    Ok(length)
}

/// Visits the line that the pieces form, and clears them.
fn show(
    pieces: &mut Vec<Vec<u8>>,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let line = match pieces.len() {
        1 => pieces.pop().unwrap_or_default(),
        _ => pieces.drain(..).rev().flatten().collect(),
    };
    if line.is_empty() {
        ControlFlow::Continue(())
    } else {
        visit(&line)
    }
}

/// Returns `true` if the last line of a log has no line break.
pub(crate) fn ends_inside_a_line(directory: &Directory, name: &str) -> io::Result<bool> {
    let Some(file) = directory.open(name)? else {
        return Ok(false);
    };
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

/// Takes lines out of a log; the others keep their bytes. Returns the number of lines that went.
pub(crate) fn retain(
    lock: &Lock,
    name: &str,
    is_kept: &dyn Fn(&[u8]) -> bool,
) -> Result<u64, Error> {
    let bytes = whole(lock.directory(), name)?;
    let (mut retained, mut dropped) = (Vec::with_capacity(bytes.len()), 0);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.is_empty() || is_kept(text) {
            retained.extend_from_slice(line);
        } else {
            dropped += 1;
        }
    }
    if dropped > 0 {
        atomic::replace(lock.directory(), name, &retained)?;
    }
    Ok(dropped)
}

/// Returns the bytes of a log; empty if it does not exist.
pub(crate) fn whole(directory: &Directory, name: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(mut file) = directory::open_data(directory, name)? {
        io::Read::read_to_end(&mut file, &mut bytes)
            .map_err(Error::io("read", &directory.join(name)))?;
    }
    Ok(bytes)
}

/// Returns the non-empty lines of a log, unchanged; none if it does not exist.
pub(crate) fn lines(directory: &Directory, name: &str) -> Result<Vec<Vec<u8>>, Error> {
    let bytes = whole(directory, name)?;
    let lines = bytes.split(|b| *b == b'\n');
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// Returns the readable objects of a log; none if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(
    directory: &Directory,
    name: &str,
) -> Result<Vec<T>, Error> {
    let bytes = whole(directory, name)?;
    let lines = bytes.split(|b| *b == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use memctl_files::named;

    #[test]
    fn a_torn_line_costs_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        append(lock.directory(), "a.jsonl", &["1".to_owned()], Sync::Wait).unwrap();
        let path = dir.path().join("a.jsonl");
        named::append(&path, "{\"torn".as_bytes()).unwrap();
        append(lock.directory(), "a.jsonl", &["2".to_owned()], Sync::Wait).unwrap();
        assert_eq!(read::<u32>(&dir.path().into(), "a.jsonl").unwrap(), [1, 2]);
        assert_eq!(
            read::<u32>(&dir.path().into(), "none.jsonl").unwrap(),
            [0; 0]
        );
    }

    #[test]
    fn backwards_every_line_is_met_once_whatever_its_length() {
        let check = |text: &str, expected: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            named::replace(&dir.path().join("a.jsonl"), text.as_bytes()).unwrap();
            let mut met = Vec::new();
            let read = backwards(&dir.path().into(), "a.jsonl", &mut |line| {
                met.push(String::from_utf8(line.to_vec()).unwrap());
                ControlFlow::Continue(())
            });
            assert_eq!(met, expected);
            assert_eq!(read.unwrap(), text.len() as u64);
        };
        check("", &[]);
        check("\n\n", &[]);
        check("a\nb\n", &["b", "a"]);
        check("a\n\nb", &["b", "a"]);
        let block = usize::try_from(BLOCK).unwrap();
        for length in [block - 2, block - 1, block, block + 1, 3 * block] {
            let long = "x".repeat(length);
            check(&format!("a\n{long}\nb\n"), &["b", &long, "a"]);
            check(&format!("{long}\n{long}"), &[&long, &long]);
        }
    }

    #[test]
    fn the_newest_lines_of_a_long_log_are_read_alone() {
        let dir = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (0..100_000).map(|n| format!("{{\"n\": {n}}}\n")).collect();
        named::replace(&dir.path().join("a.jsonl"), lines.concat().as_bytes()).unwrap();
        let mut met = Vec::new();
        let read = backwards(&dir.path().into(), "a.jsonl", &mut |line| {
            met.push(line.to_vec());
            if met.len() < 20 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        assert_eq!(read.unwrap(), BLOCK);
        assert_eq!(met[0], b"{\"n\": 99999}");
        assert_eq!(met[19], b"{\"n\": 99980}");
    }
}
