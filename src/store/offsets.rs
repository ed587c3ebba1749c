//! The derived table of where each entry of a seed file lies.
//!
//! With it a record is found, counted or appended without reading a file of 150 MB. It may be
//! deleted at any time: a table that does not match its file exactly (inode, size, both times) is
//! not believed, and is made again from the file. Writers keep it in step under the lock; readers
//! take what they find or scan for themselves.
//!
//! On disk: one header of 160 bytes, then 72 bytes an entry, little-endian. The header goes last
//! and carries a checksum, so that a half-written table is a table that does not match.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::model::{IdShape, Kind, SkillPath};
use crate::platform::Directory;

use super::directory::DERIVED;

/// Bumped whenever the layout below changes; an older table is then simply made again.
const MAGIC: &[u8; 8] = b"mctloff2";
const HEADER: usize = 160;
const ROW: usize = 72;
/// Longer ids are cut in the table, and compared in the file.
const ID_ROOM: usize = 43;
const CUT: u8 = u8::MAX;
/// Rows read at once: large enough to be fast, small enough not to be seen in memory.
const BATCH: usize = 4096;

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: [i64; 2],
    changed: [i64; 2],
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: [metadata.mtime(), metadata.mtime_nsec()],
            changed: [metadata.ctime(), metadata.ctime_nsec()],
        }
    }

    /// Whether both are states of one file.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// A generation for rows that were found in this state of the file.
    pub(super) fn generation(&self) -> u64 {
        fnv(format!("{self:?}").as_bytes())
    }
}

/// What is known of the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) stamp: Stamp,
    /// Number of entries.
    pub(super) count: u64,
    /// Where the next entry goes.
    pub(super) tail: u64,
    /// Where the array's closing bracket stands; 0 where it has none.
    pub(super) close: u64,
    /// The file's format.
    pub(super) format: u64,
    /// The highest id given so far, those of removed records included.
    pub(super) highest: IdShape,
    /// How many problems the last scan found; what they are, only a scan tells.
    pub(super) problems: u64,
    /// Stays the same for as long as rows are only added behind the others.
    pub(super) generation: u64,
}

/// Where one entry lies and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) at: u64,
    pub(super) length: u32,
    /// A hash of the entry's text: tells this version of it from every other.
    pub(super) key: u64,
    skill: u32,
    domain: u32,
    id_length: u8,
    id: [u8; ID_ROOM],
}

impl Row {
    pub(super) fn new(at: u64, entry: &[u8], id: &str, skill: &str) -> Self {
        let mut row = Self {
            at,
            length: u32::try_from(entry.len()).unwrap_or(u32::MAX),
            key: xxh3_64(entry),
            skill: hash(skill),
            domain: domain_hash(skill),
            id_length: CUT,
            id: [0; ID_ROOM],
        };
        let kept = id.len().min(ID_ROOM);
        row.id[..kept].copy_from_slice(&id.as_bytes()[..kept]);
        if id.len() <= ID_ROOM {
            row.id_length = u8::try_from(id.len()).unwrap_or(CUT);
        }
        row
    }

    /// Whether this is the text that the row was made from.
    pub(super) fn is_of(&self, entry: &[u8]) -> bool {
        self.key == xxh3_64(entry)
    }

    /// The id, or as much of it as the table holds.
    pub(super) fn id(&self) -> &[u8] {
        &self.id[..usize::from(self.id_length).min(ID_ROOM)]
    }

    /// Whether [`Self::id`] is only the beginning.
    pub(super) fn id_is_cut(&self) -> bool {
        self.id_length == CUT
    }

    /// `false` means certainly another skill; `true` wants a look at the entry.
    pub(super) fn may_be_of_skill(&self, skill: &str) -> bool {
        self.skill == hash(skill)
    }

    /// The same for a domain.
    pub(super) fn may_be_of_domain(&self, domain: &str) -> bool {
        self.domain == hash(domain)
    }

    fn to_bytes(&self) -> [u8; ROW] {
        let mut bytes = [0; ROW];
        bytes[0..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.skill.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.domain.to_le_bytes());
        bytes[20] = self.id_length;
        bytes[21..64].copy_from_slice(&self.id);
        bytes[64..].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut id = [0; ID_ROOM];
        id.copy_from_slice(&bytes[21..64]);
        Self {
            at: u64_at(bytes, 0),
            length: u32_at(bytes, 8),
            key: u64_at(bytes, 64),
            skill: u32_at(bytes, 12),
            domain: u32_at(bytes, 16),
            id_length: bytes[20],
            id,
        }
    }
}

/// A table, on disk or (after a scan that could not save it) in memory.
#[derive(Debug)]
pub(super) struct Offsets {
    pub(super) header: Header,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Disk(File),
    Memory(Vec<Row>),
}

impl Offsets {
    /// The file of the table for a kind, inside the directory of derived files.
    pub(super) fn path(derived: &Path, kind: Kind) -> PathBuf {
        derived.join(format!("{}.offsets", kind.plural()))
    }

    /// A table that was just made by a scan.
    pub(super) fn in_memory(header: Header, rows: Vec<Row>) -> Self {
        Self {
            header,
            rows: Rows::Memory(rows),
        }
    }

    /// Opens the saved table; `None` where there is none that can be believed.
    pub(super) fn open(directory: &Directory, path: &Path) -> Option<Self> {
        let file = directory.open(path).ok()??;
        let mut bytes = [0; HEADER];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let header = Header::from_bytes(&bytes)?;
        let whole = HEADER as u64 + header.count * ROW as u64;
        (file.metadata().ok()?.len() >= whole).then_some(Self {
            header,
            rows: Rows::Disk(file),
        })
    }

    /// Whether the table lies on the disk, so that a row can be added to it there.
    pub(super) fn is_saved(&self) -> bool {
        matches!(self.rows, Rows::Disk(_))
    }

    /// Saves the whole table. Failure is not an error: the table can be made again.
    pub(super) fn save(&self, directory: &Directory, path: &Path) {
        let mut bytes = Vec::new();
        let collected = self.each(false, &mut |row| {
            bytes.extend_from_slice(&row.to_bytes());
            true
        });
        if collected.is_ok() {
            if directory.below(DERIVED).create().is_err() {
                return;
            }
            drop(directory.replace_derived(path, &[&self.header.to_bytes(), &bytes]));
        }
    }

    /// Adds rows to the saved table and moves its header on, which counts them already. Failure is not
    /// an error: the old header no longer matches the file, so nobody believes the table.
    pub(super) fn append(
        directory: &Directory,
        path: &Path,
        header: &Header,
        rows: &[Row],
    ) -> io::Result<()> {
        let Some(file) = directory.open_for_update(path)? else {
            return Ok(());
        };
        let before = header.count - rows.len() as u64;
        let bytes: Vec<u8> = rows.iter().flat_map(Row::to_bytes).collect();
        file.write_all_at(&bytes, HEADER as u64 + before * ROW as u64)?;
        file.write_all_at(&header.to_bytes(), 0)
    }

    /// The row at a place, from 0.
    pub(super) fn get(&self, place: usize) -> io::Result<Option<Row>> {
        match &self.rows {
            Rows::Memory(rows) => Ok(rows.get(place).cloned()),
            Rows::Disk(file) if (place as u64) < self.header.count => {
                let mut bytes = [0; ROW];
                file.read_exact_at(&mut bytes, (HEADER + place * ROW) as u64)?;
                Ok(Some(Row::from_bytes(&bytes)))
            }
            Rows::Disk(_) => Ok(None),
        }
    }

    /// Shows every row, from the oldest or from the newest, until `visit` answers `false`.
    pub(super) fn each(
        &self,
        newest_first: bool,
        visit: &mut dyn FnMut(&Row) -> bool,
    ) -> io::Result<()> {
        match &self.rows {
            Rows::Memory(rows) if newest_first => {
                let _all = rows.iter().rev().all(visit);
            }
            Rows::Memory(rows) => {
                let _all = rows.iter().all(visit);
            }
            Rows::Disk(file) => {
                let count = usize::try_from(self.header.count).unwrap_or(usize::MAX);
                let mut bytes = vec![0; BATCH.min(count) * ROW];
                let mut done = 0;
                while done < count {
                    let n = BATCH.min(count - done);
                    let first = if newest_first { count - done - n } else { done };
                    let batch = &mut bytes[..n * ROW];
                    file.read_exact_at(batch, (HEADER + first * ROW) as u64)?;
                    let mut rows = batch.chunks_exact(ROW).map(Row::from_bytes);
                    let more = if newest_first {
                        rows.rev().all(|row| visit(&row))
                    } else {
                        rows.all(|row| visit(&row))
                    };
                    if !more {
                        break;
                    }
                    done += n;
                }
            }
        }
        Ok(())
    }
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        let stamp = &self.stamp;
        #[expect(
            clippy::cast_sign_loss,
            reason = "the bits are kept, and compared as bits"
        )]
        let numbers = [
            stamp.device,
            stamp.inode,
            stamp.size,
            stamp.modified[0] as u64,
            stamp.modified[1] as u64,
            stamp.changed[0] as u64,
            stamp.changed[1] as u64,
            self.count,
            self.tail,
            self.close,
            self.format,
            self.highest.number,
            u64::from(self.highest.suffix),
            self.problems,
            self.generation,
        ];
        for (i, number) in numbers.iter().enumerate() {
            bytes[8 + i * 8..16 + i * 8].copy_from_slice(&number.to_le_bytes());
        }
        let sum = fnv(&bytes[..HEADER - 8]);
        bytes[HEADER - 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> Option<Self> {
        if &bytes[..8] != MAGIC || fnv(&bytes[..HEADER - 8]) != u64_at(bytes, HEADER - 8) {
            return None;
        }
        let number = |i: usize| u64_at(bytes, 8 + i * 8);
        #[expect(
            clippy::cast_possible_wrap,
            reason = "the bits are kept, and compared as bits"
        )]
        let time = |i: usize| [number(i) as i64, number(i + 1) as i64];
        Some(Self {
            stamp: Stamp {
                device: number(0),
                inode: number(1),
                size: number(2),
                modified: time(3),
                changed: time(5),
            },
            count: number(7),
            tail: number(8),
            close: number(9),
            format: number(10),
            highest: IdShape {
                number: number(11),
                suffix: u32::try_from(number(12)).ok()?,
            },
            problems: number(13),
            generation: number(14),
        })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>. Collisions cost a look at the file.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, b| {
        (sum ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "half of the bits is enough for a filter"
)]
fn hash(text: &str) -> u32 {
    fnv(text.as_bytes()) as u32
}

/// The domain's hash of a skill as it stands in a file; what is no skill path has none that any
/// domain's name could equal.
fn domain_hash(skill: &str) -> u32 {
    skill
        .parse::<SkillPath>()
        .map_or_else(|_| hash("\0no domain"), |skill| hash(skill.domain()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::named;

    fn header(count: u64) -> Header {
        Header {
            count,
            tail: 17,
            format: 1,
            highest: IdShape {
                number: 9,
                suffix: 2,
            },
            ..Header::default()
        }
    }

    #[test]
    fn a_saved_table_is_read_back_in_both_directions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.offsets");
        let n = BATCH as u64 * 2 + 3;
        let rows: Vec<Row> = (0..n)
            .map(|i| Row::new(i, b"{}", &format!("CORR-{i}"), "hr/x"))
            .collect();
        Offsets::in_memory(header(n), rows.clone()).save(&dir.path().into(), &path);
        let table = Offsets::open(&dir.path().into(), &path).unwrap();
        assert_eq!(table.header, header(n));
        let collect = |newest_first| {
            let mut seen = Vec::new();
            table
                .each(newest_first, &mut |row| {
                    seen.push(row.clone());
                    true
                })
                .unwrap();
            seen
        };
        assert_eq!(collect(false), rows);
        for place in [0, 1, BATCH, rows.len() - 1, rows.len()] {
            assert_eq!(table.get(place).unwrap().as_ref(), rows.get(place));
        }
        let mut reversed = collect(true);
        reversed.reverse();
        assert_eq!(reversed, rows);
    }

    #[test]
    fn a_damaged_table_is_no_table() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.offsets");
        Offsets::in_memory(header(1), vec![Row::new(0, b"{}", "CORR-1", "hr/x")])
            .save(&dir.path().into(), &path);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..HEADER {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            named::replace(&path, &bytes).unwrap();
            assert!(Offsets::open(&dir.path().into(), &path).is_none(), "{at}");
        }
        named::replace(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(Offsets::open(&dir.path().into(), &path).is_none());
    }

    #[test]
    fn long_ids_are_marked_as_cut() {
        let long = "EXEC-".to_owned() + &"9".repeat(60);
        let row = Row::from_bytes(&Row::new(1, b"{}", &long, "hr/x").to_bytes());
        assert!(row.id_is_cut());
        assert!(long.as_bytes().starts_with(row.id()));
        assert!(row.may_be_of_domain("hr") && row.may_be_of_skill("hr/x"));
        assert!(!row.may_be_of_domain("dev"));
        assert!(!Row::new(0, b"", "", "hr").may_be_of_domain("hr"));
    }
}
