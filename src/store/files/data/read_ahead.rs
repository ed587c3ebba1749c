//! Reading ahead: entries that are read in the order of the file come from few large reads of it.
//!
//! Only bytes before the tail are kept, because those change only when the file is replaced. A thread
//! that finds another one reading does not wait, and reads for itself.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError, TryLockError};

use memctl_files::PositionedFile as _;

/// Bytes of the first read ahead, and of each after several.
const LEAST: usize = 16 << 10;
const MOST: usize = 256 << 10;
/// Largest gap between two entries that follow each other.
const GAP: u64 = 64;

/// Bytes that were read ahead.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    /// Offset of the bytes.
    start: u64,
    bytes: Vec<u8>,
    /// End of the last entry that was read; `None` before the first.
    last: Option<u64>,
}

impl ReadAhead {
    /// Reads the bytes at an offset. `tail` is the offset up to which the file does not change.
    pub(crate) fn read(
        &self,
        file: &File,
        at: u64,
        length: usize,
        tail: u64,
    ) -> io::Result<Vec<u8>> {
        let window = match self.0.try_lock() {
            Ok(window) => Some(window),
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut window) = window
            && let Some(bytes) = window.read(file, at, length, tail)?
        {
            return Ok(bytes);
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

impl Window {
    /// `None` if the entry does not follow the last one.
    fn read(
        &mut self,
        file: &File,
        at: u64,
        length: usize,
        tail: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let last = self.last.replace(at.saturating_add(length as u64));
        if let Some(range) = self.range(at, length) {
            return Ok(Some(self.bytes[range].to_vec()));
        }
        let follows = last.is_some_and(|last| at >= last && at - last <= GAP);
        let left = usize::try_from(tail.saturating_sub(at)).unwrap_or(usize::MAX);
        let size = (self.bytes.len() * 2).clamp(LEAST, MOST).min(left);
        if !follows || size < length {
            self.bytes.clear();
            return Ok(None);
        }
        self.bytes.resize(size, 0);
        self.start = at;
        if let Err(error) = file.read_exact_at(&mut self.bytes, at) {
            self.bytes.clear();
            return Err(error);
        }
        Ok(Some(self.bytes[..length].to_vec()))
    }

    fn range(&self, at: u64, length: usize) -> Option<Range<usize>> {
        let start = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_read_ahead_is_what_the_file_holds(
            entries in prop::collection::vec((0usize..40_000, 0usize..90), 1..30),
            order in prop::collection::vec((0usize..30, 1usize..20), 1..12),
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut at = 0;
            let mut places = Vec::new();
            for (n, (length, gap)) in entries.iter().enumerate() {
                let bytes: Vec<u8> = (0..length + gap).map(|i| (i * 7 + n).to_le_bytes()[0]).collect();
                file.write_all(&bytes).unwrap();
                places.push((at, *length));
                at += bytes.len() as u64;
            }
            let ahead = ReadAhead::default();
            for (first, count) in order {
                for (at, length) in places.iter().skip(first).take(count) {
                    let tail = places.last().map(|(at, length)| at + *length as u64).unwrap();
                    let mut expected = vec![0; *length];
                    file.read_exact_at(&mut expected, *at).unwrap();
                    prop_assert_eq!(ahead.read(&file, *at, *length, tail).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn nothing_behind_the_tail_is_kept() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"aaabbbccc").unwrap();
        let ahead = ReadAhead::default();
        for (at, expected) in [(0, b"aaa"), (3, b"bbb")] {
            assert_eq!(ahead.read(&file, at, 3, 6).unwrap(), expected);
        }
        file.write_all_at(b"ddd", 6).unwrap();
        assert_eq!(ahead.read(&file, 6, 3, 9).unwrap(), b"ddd");
        assert!(ahead.read(&file, 9, 3, 9).is_err());
    }
}
