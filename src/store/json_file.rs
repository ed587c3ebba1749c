//! One seed file: `{"entries": [ … ]}` with entries kept as the text that they are.
//!
//! Here it is read: by the saved table of offsets where that matches the file, by a scan where it
//! does not. Reading needs no lock and never waits for more than a moment. Writing is in
//! `json_write`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::{IdShape, Kind};
use crate::platform::Directory;

use super::directory::{self, DERIVED};
use super::error::{Error, Problem, ProblemKind};
use super::offsets::{Header, Offsets, Row, Stamp};
use super::scan::{self, Outline};
use super::{json_text, tombstones};

/// The newest format of seed file that this program writes.
///
/// - 1: the source documents' own files, which carry no `format` key.
pub(super) const FORMAT: u64 = 1;
/// Below this size a scan costs no more than reading a table would.
const SMALL: u64 = 64 << 10;
/// How long a reader asks a crowd of writers for quiet.
const QUIET: Duration = Duration::from_millis(100);

/// One seed file of a memory directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonFile<'a> {
    pub(super) directory: &'a Directory,
    pub(super) kind: Kind,
    /// Whoever asks holds the lock, so that nobody has to be waited for.
    held: bool,
}

/// The file as it was at one moment. Entries that are read from it later are those of then: bytes
/// in front of the tail are only ever replaced together with the file itself.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) path: PathBuf,
    pub(super) file: Option<File>,
    pub(super) table: Offsets,
    /// What the scan found; empty, though `table.header.problems` may not be zero, where the saved
    /// table spared one.
    pub(super) problems: Vec<Problem>,
}

impl Snapshot {
    /// The text of an entry.
    pub(super) fn read(&self, row: &Row) -> Result<Vec<u8>, Error> {
        let Some(file) = &self.file else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; row.length as usize];
        file.read_exact_at(&mut bytes, row.at)
            .map_err(Error::io("read", &self.path))?;
        Ok(bytes)
    }

    /// Shows every row until `visit` answers `false`.
    pub(super) fn each(
        &self,
        newest_first: bool,
        visit: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), Error> {
        self.table
            .each(newest_first, visit)
            .map_err(Error::io("read", &self.path))
    }
}

impl<'a> JsonFile<'a> {
    pub(super) fn new(directory: &'a Directory, kind: Kind, held: bool) -> Self {
        Self {
            directory,
            kind,
            held,
        }
    }

    pub(super) fn path(self) -> PathBuf {
        self.directory.join(self.kind.file())
    }

    pub(super) fn table_path(self) -> PathBuf {
        Offsets::path(&self.directory.join(DERIVED), self.kind)
    }

    /// The file as it is now, for a reader.
    ///
    /// A writer is between its two files for some microseconds, and its entry is half there for
    /// less. Looking again is cheaper than reading 150 MB, and is never done for long.
    pub(super) fn snapshot(self) -> Result<Snapshot, Error> {
        if self.held {
            if let Some(snapshot) = self.by_table()? {
                return Ok(snapshot);
            }
            let snapshot = self.by_scan()?;
            self.keep(&snapshot);
            return Ok(snapshot);
        }
        let mut before = None;
        for _ in 0..60 {
            if let Some(snapshot) = self.by_table()? {
                return Ok(snapshot);
            }
            let state = self.stamp()?;
            let is_busy = directory::is_being_written(self.directory);
            // A writer's file that has not moved since the last look is whole, whatever else it is busy with:
            // who keeps the lock keeps nobody from reading.
            if is_busy && before != Some(state) {
                before = Some(state);
                std::thread::sleep(Duration::from_micros(500));
                continue;
            }
            let snapshot = self.by_scan()?;
            let is_steady = self.stamp()? == Some(snapshot.table.header.stamp);
            if is_steady && !directory::is_being_written(self.directory) {
                self.keep(&snapshot);
                return Ok(snapshot);
            }
            let is_torn = |p: &Problem| p.kind == ProblemKind::TornTail;
            if is_steady && is_busy && !snapshot.problems.iter().any(is_torn) {
                return Ok(snapshot);
            }
        }
        // In a crowd of writers a reader asks for one moment of quiet. Without it, what is being
        // written is at least not called torn.
        let quiet = directory::share(self.directory, QUIET);
        if let Some(snapshot) = self.by_table()? {
            return Ok(snapshot);
        }
        let mut snapshot = self.by_scan()?;
        if quiet.is_none() {
            snapshot
                .problems
                .retain(|p| p.kind != ProblemKind::TornTail);
        }
        Ok(snapshot)
    }

    /// Saves the table of a file that is worth one.
    fn keep(self, snapshot: &Snapshot) {
        if snapshot.table.header.stamp.size >= SMALL {
            snapshot.table.save(self.directory, &self.table_path());
        }
    }

    fn stamp(self) -> Result<Option<Stamp>, Error> {
        let Some(file) = directory::open_data(self.directory, self.kind.file())? else {
            return Ok(Some(Stamp::default()));
        };
        let metadata = file.metadata().map_err(Error::io("read", &self.path()))?;
        Ok(Some(Stamp::of(&metadata)))
    }

    /// The file as it is now, read from start to end whatever any table says.
    pub(super) fn by_scan(self) -> Result<Snapshot, Error> {
        let path = self.path();
        let Some(file) = directory::open_data(self.directory, self.kind.file())? else {
            return Ok(self.missing());
        };
        let cannot_read = |source| Error::io("read", &path)(source);
        let mut highest = tombstones::highest(self.directory, self.kind);
        let mut rows = Vec::new();
        let stamp = Stamp::of(&file.metadata().map_err(cannot_read)?);
        let outline = scan::scan(&file, &path, self.kind.root_key(), &mut |at, entry| {
            let text = |name| json_text::string_field(entry, name).unwrap_or_default();
            let id = text(self.kind.id_field());
            highest = highest.max(IdShape::of(self.kind, &id).unwrap_or_default());
            rows.push(Row::new(at, entry, &id, &text("skill")));
        })
        .map_err(cannot_read)?;
        let Outline {
            tail,
            close,
            format,
            problems,
            ..
        } = outline;
        let header = Header {
            stamp,
            count: rows.len() as u64,
            tail,
            close: close.unwrap_or(0),
            format,
            highest,
            generation: stamp.generation(),
            problems: if outline.empty {
                0
            } else {
                problems.len() as u64
            },
        };
        Ok(Snapshot {
            path,
            file: (!outline.empty).then_some(file),
            table: Offsets::in_memory(header, rows),
            problems,
        })
    }

    fn missing(self) -> Snapshot {
        let header = Header {
            format: FORMAT,
            highest: tombstones::highest(self.directory, self.kind),
            ..Header::default()
        };
        Snapshot {
            path: self.path(),
            file: None,
            table: Offsets::in_memory(header, Vec::new()),
            problems: Vec::new(),
        }
    }

    pub(super) fn by_table(self) -> Result<Option<Snapshot>, Error> {
        let path = self.path();
        let Some(file) = directory::open_data(self.directory, self.kind.file())? else {
            return Ok(Some(self.missing()));
        };
        let stamp = Stamp::of(&file.metadata().map_err(Error::io("read", &path))?);
        let table = Offsets::open(self.directory, &self.table_path());
        Ok(table
            .filter(|table| table.header.stamp == stamp)
            .map(|table| Snapshot {
                path,
                file: Some(file),
                table,
                problems: Vec::new(),
            }))
    }
}
