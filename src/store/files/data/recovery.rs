//! Recovery of a data file before a write: a torn tail is cut off.
//!
//! Bytes that a crash left after the last complete entry are saved to a copy, never discarded.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use crate::store::atomic;
use crate::store::error::{Error, Problem, ProblemKind};
use crate::store::files::directory::Lock;
use crate::store::files::directory::RECOVERED;
use memctl_files::{FileState, PositionedFile as _};

use super::data_file::CLOSING;
use super::foreign_edit::{Point, reach};
use super::json_file::{FORMAT, JsonFile, Snapshot};
use super::offsets::Header;

impl JsonFile<'_> {
    /// Returns the current state of the file, repaired and ready for a write. Reports each repair.
    pub(crate) fn prepare(
        self,
        lock: &Lock,
        repaired: &mut Vec<Problem>,
    ) -> Result<Snapshot, Error> {
        debug_assert_eq!(lock.directory(), self.directory);
        // Opening it for a write makes a file private that another program has saved. That changes
        // the state of the file, so it is done before the state is read.
        drop(atomic::open_for_update(self.directory, self.path())?);
        let snapshot = self.as_it_is()?;
        // A torn tail may be part of another program's save in progress.
        let snapshot = if self.await_save(&snapshot)? {
            self.as_it_is()?
        } else {
            snapshot
        };
        let snapshot = self.repaired_tail(snapshot, repaired)?;
        reach(Point::Read, &snapshot.path);
        Ok(snapshot)
    }

    fn as_it_is(self) -> Result<Snapshot, Error> {
        match self.by_table()? {
            // The table makes a scan unnecessary unless the end of the file is in doubt.
            Some(s) if s.file.is_none() || s.table.header.close != 0 => Ok(s),
            _ => self.by_scan(),
        }
    }

    /// Closes the brackets at the end of the file if they are missing, and scans it again.
    fn repaired_tail(
        self,
        snapshot: Snapshot,
        repaired: &mut Vec<Problem>,
    ) -> Result<Snapshot, Error> {
        let header = &snapshot.table.header;
        if header.format > FORMAT {
            return Err(Error::NewerFormat {
                path: snapshot.path,
                found: header.format,
                ours: FORMAT,
            });
        }
        if snapshot.file.is_none() || header.close != 0 {
            return Ok(snapshot);
        }
        // A torn tail is cut only after an intact beginning: between damaged parts, the matching
        // brackets are ambiguous.
        let [torn] = snapshot.problems.as_slice() else {
            let broken = snapshot.problems.into_iter().next();
            return Err(broken.map_or_else(|| self.endless(), Error::Damaged));
        };
        if torn.kind != ProblemKind::TornTail {
            return Err(Error::Damaged(torn.clone()));
        }
        self.cut_back(header)?;
        repaired.push(torn.clone());
        let snapshot = self.by_scan()?;
        if snapshot.table.header.close == 0 {
            return Err(self.endless());
        }
        Ok(snapshot)
    }

    fn endless(self) -> Error {
        Error::io("write", &self.path())(io::Error::other("its end was not found"))
    }

    /// Saves the bytes after the last complete entry to a copy, and closes the brackets there.
    fn cut_back(self, header: &Header) -> Result<(), Error> {
        let path = self.path();
        let tail = header.tail;
        let Some(mut file) = atomic::open_for_update(self.directory, &path)? else {
            return Err(Error::Changing { path });
        };
        let mut rest = Vec::new();
        file.seek(SeekFrom::Start(tail))
            .and_then(|_| file.read_to_end(&mut rest))
            .map_err(Error::io("read", &path))?;
        if rest
            .iter()
            .any(|b| !b.is_ascii_whitespace() && *b != b',' && *b != 0)
        {
            let aside = self.directory.below(RECOVERED);
            atomic::create_dir(&aside)?;
            let name = format!("{}.{tail}.txt", self.of.name());
            atomic::replace(&aside, name, &rest)?;
        }
        let now = FileState::of(&file).map_err(Error::io("read", &path))?;
        if now != header.stamp {
            return Err(Error::Changing { path });
        }
        // Truncate first: a crash here only leaves a torn tail again.
        file.set_len(tail)
            .and_then(|()| file.write_all_at(CLOSING.as_bytes(), tail))
            .and_then(|()| file.sync_all())
            .map_err(Error::io("write", &path))
    }
}
