//! Derived table of the offsets of entries in a data file.
//!
//! With the table, finding, counting and appending records does not read a file of 150 MB. It may
//! be deleted at any time. A table that does not match its file exactly (inode, size, both times)
//! is ignored and rebuilt. Writers update it under the lock; readers use it or scan.
//!
//! On disk: a header of 160 bytes, then 72 bytes per entry, little-endian. The header is written
//! last and carries a checksum, so that a partially written table does not match. Rows are only added
//! to a file, and readers map it into memory.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;

use memctl_files::{Directory, FileState, PositionedFile as _, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::model::{IdShape, Kind, SkillPath};
use crate::store::files::{Map, directory};

/// Changes with the layout below; older tables are rebuilt.
const MAGIC: [u8; 8] = *b"mctloff3";
const HEADER: usize = 160;
const ROW: usize = 72;
/// Maximum length of an id in the table, in bytes; longer ids are truncated and compared in the
/// file.
const ID_ROOM: usize = 43;
const CUT: u8 = u8::MAX;

/// Returns a generation number for rows found in this state of the file.
pub(crate) fn generation(state: &FileState) -> u64 {
    xxh3_64(format!("{state:?}").as_bytes())
}

/// Facts about the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Header {
    pub(crate) stamp: FileState,
    /// Number of entries.
    pub(crate) count: u64,
    /// Offset of the next entry.
    pub(crate) tail: u64,
    /// Offset of the array's closing bracket; 0 if it has none.
    pub(crate) close: u64,
    /// Format of the file.
    pub(crate) format: u64,
    /// Highest id so far, including removed records.
    pub(crate) highest: IdShape,
    /// Number of problems found by the last scan; only a scan lists them.
    pub(crate) problems: u64,
    /// Constant while rows are only appended.
    pub(crate) generation: u64,
}

/// Position and keys of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) at: u64,
    pub(crate) length: u32,
    /// Hash of the entry's text, which identifies its version.
    pub(crate) key: u64,
    skill: u32,
    domain: u32,
    id_length: u8,
    id: [u8; ID_ROOM],
}

impl Row {
    /// Returns the row of an entry of this kind.
    pub(crate) fn of(kind: Kind, at: u64, entry: &[u8]) -> Self {
        let (mut id, mut skill) = (Cow::default(), Cow::default());
        for (key, span) in json::fields(entry) {
            if key == kind.id_field() {
                id = json::string(&entry[span]).unwrap_or_default();
            } else if key == "skill" {
                skill = json::string(&entry[span]).unwrap_or_default();
            }
        }
        Self::new(at, entry, &id, &skill)
    }

    pub(crate) fn new(at: u64, entry: &[u8], id: &str, skill: &str) -> Self {
        let mut row = Self {
            at,
            length: u32::try_from(entry.len()).unwrap_or(u32::MAX),
            key: xxh3_64(entry),
            skill: hash(skill),
            domain: domain_hash(skill),
            id_length: CUT,
            id: [0; ID_ROOM],
        };
        let length = id.len().min(ID_ROOM);
        row.id[..length].copy_from_slice(&id.as_bytes()[..length]);
        if id.len() <= ID_ROOM {
            row.id_length = u8::try_from(id.len()).unwrap_or(CUT);
        }
        row
    }

    /// Returns `true` if the row was made from this text.
    pub(crate) fn is_of(&self, entry: &[u8]) -> bool {
        self.key == xxh3_64(entry)
    }

    /// Returns the place of the entry in the text of the file.
    pub(crate) fn span(&self) -> Range<usize> {
        let start = usize::try_from(self.at).unwrap_or(usize::MAX);
        start..start.saturating_add(self.length as usize)
    }

    /// Returns the id, possibly truncated.
    pub(crate) fn id(&self) -> &[u8] {
        &self.id[..usize::from(self.id_length).min(ID_ROOM)]
    }

    /// Returns `true` if [`Self::id`] is truncated.
    pub(crate) fn id_is_cut(&self) -> bool {
        self.id_length == CUT
    }

    /// Returns `false` if the entry certainly has another id; on `true`, compare the entry.
    pub(crate) fn may_be(&self, id: &str) -> bool {
        let is_cut = self.id_is_cut() && id.as_bytes().starts_with(self.id());
        is_cut || self.id() == id.as_bytes()
    }

    /// Returns `false` if the entry is certainly of another skill; on `true`, compare the entry.
    pub(crate) fn may_be_of_skill(&self, skill: &str) -> bool {
        self.skill == hash(skill)
    }

    /// Returns `false` if the entry is certainly of another domain; on `true`, compare the entry.
    pub(crate) fn may_be_of_domain(&self, domain: &str) -> bool {
        self.domain == hash(domain)
    }

    fn to_bytes(self) -> [u8; ROW] {
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

    fn from_bytes(bytes: &[u8; ROW]) -> Self {
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

/// A table, saved on disk or, after a scan, in memory.
#[derive(Debug)]
pub(crate) struct Offsets {
    pub(crate) header: Header,
    /// The rows, behind a place for the header.
    bytes: Map,
}

impl Offsets {
    /// Returns a table built by a scan.
    pub(crate) fn in_memory(header: Header, rows: impl IntoIterator<Item = Row>) -> Self {
        let mut bytes = vec![0; HEADER];
        for row in rows {
            bytes.extend_from_slice(&row.to_bytes());
        }
        let bytes = Map::Memory(bytes);
        Self { header, bytes }
    }

    /// Opens the saved table; `None` if it is missing or invalid.
    pub(crate) fn open(directory: &Directory, path: &Path) -> Option<Self> {
        let bytes = Map::open(directory, path)?;
        let header = Header::from_bytes(bytes.first_chunk()?)?;
        let whole = HEADER as u64 + header.count * ROW as u64;
        (bytes.len() as u64 >= whole).then_some(Self { header, bytes })
    }

    /// Returns `true` if the table is on disk, so that rows can be appended there.
    pub(crate) fn is_saved(&self) -> bool {
        matches!(self.bytes, Map::Saved(_))
    }

    /// Saves the whole table.
    pub(crate) fn save(&self, directory: &Directory, path: &Path) {
        directory::keep_derived(
            directory,
            path,
            &[&self.header.to_bytes(), &self.bytes[HEADER..]],
        );
    }

    /// Writes rows into the saved table, from the `first` one on, and a header that counts them. A failure is harmless:
    /// the old header no longer matches the file, so the table is ignored.
    pub(crate) fn write(
        directory: &Directory,
        path: &Path,
        header: &Header,
        first: u64,
        rows: &[Row],
    ) -> io::Result<()> {
        let Some(file) = directory.open_for_update(path)? else {
            return Ok(());
        };
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_bytes()).collect();
        file.write_all_at(&bytes, HEADER as u64 + first * ROW as u64)?;
        file.write_all_at(&header.to_bytes(), 0)
    }

    /// Replaces the row of an entry whose text was written over by one of the same length. A failure is
    /// harmless, as that of [`Self::write`].
    pub(crate) fn replace_row(
        &self,
        directory: &Directory,
        path: &Path,
        stamp: FileState,
        row: Row,
    ) {
        let header = Header {
            stamp,
            // Another one even if the clock of the file system has not ticked since.
            generation: xxh3_64_with_seed(&row.key.to_le_bytes(), self.header.generation),
            ..self.header.clone()
        };
        let place = self.rows().position(|there| there.at == row.at);
        if let Some(place) = place {
            drop(Self::write(directory, path, &header, place as u64, &[row]));
        }
    }

    /// Returns the row at an index, from 0.
    pub(crate) fn get(&self, place: usize) -> Option<Row> {
        let row = self.bytes.get(HEADER + place * ROW..)?.first_chunk();
        row.filter(|_| place < self.len()).map(Row::from_bytes)
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.header.count).unwrap_or(usize::MAX)
    }

    /// Returns every row, oldest first.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = Row> {
        (0..self.len()).filter_map(|place| self.get(place))
    }
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER] {
        let numbers = [
            self.count,
            self.tail,
            self.close,
            self.format,
            self.highest.number,
            u64::from(self.highest.suffix),
            self.problems,
            self.generation,
        ];
        sealed(MAGIC, &self.stamp, &numbers)
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> Option<Self> {
        let (stamp, number) = unsealed(MAGIC, bytes)?;
        Some(Self {
            stamp,
            count: number(0),
            tail: number(1),
            close: number(2),
            format: number(3),
            highest: IdShape {
                number: number(4),
                suffix: u32::try_from(number(5)).ok()?,
            },
            problems: number(6),
            generation: number(7),
        })
    }
}

/// Returns the header of a derived table: the state of its file and other numbers, between a magic word
/// and a checksum. The other bytes are zero.
#[expect(clippy::cast_sign_loss, reason = "the bits are kept, and compared as bits")]
pub(crate) fn sealed<const SIZE: usize>(
    magic: [u8; 8],
    of: &FileState,
    numbers: &[u64],
) -> [u8; SIZE] {
    let times = [of.modified, of.changed].concat();
    let state = [of.device, of.inode, of.size].into_iter();
    let state = state.chain(times.into_iter().map(|time| time as u64));
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&magic);
    for (i, number) in state.chain(numbers.iter().copied()).enumerate() {
        bytes[8 + i * 8..16 + i * 8].copy_from_slice(&number.to_le_bytes());
    }
    let sum = xxh3_64(&bytes[..SIZE - 8]);
    bytes[SIZE - 8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns the state and the other numbers of a header; `None` if it is damaged.
#[expect(clippy::cast_possible_wrap, reason = "the bits are kept, and compared as bits")]
pub(crate) fn unsealed<const SIZE: usize>(
    magic: [u8; 8],
    bytes: &[u8; SIZE],
) -> Option<(FileState, impl Fn(usize) -> u64 + '_)> {
    if bytes[..8] != magic || xxh3_64(&bytes[..SIZE - 8]) != u64_at(bytes, SIZE - 8) {
        return None;
    }
    let number = |i: usize| u64_at(bytes, 8 + i * 8);
    let time = |i: usize| [number(i) as i64, number(i + 1) as i64];
    let state = FileState {
        device: number(0),
        inode: number(1),
        size: number(2),
        modified: time(3),
        changed: time(5),
    };
    Some((state, move |i| u64_at(bytes, 64 + i * 8)))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "half of the bits is enough for a filter; a collision costs one read of the file"
)]
fn hash(text: &str) -> u32 {
    xxh3_64(text.as_bytes()) as u32
}

/// Returns the hash of a skill's domain. An invalid skill path gets a value that no domain's name
/// has.
fn domain_hash(skill: &str) -> u32 {
    skill
        .parse::<SkillPath>()
        .map_or_else(|_| hash("\0no domain"), |skill| hash(skill.domain()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DERIVED;
    use memctl_files::named;

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
        let path = dir.path().join(DERIVED).join("x.offsets");
        let n = 9000;
        let rows: Vec<Row> = (0..n)
            .map(|i| Row::new(i, b"{}", &format!("CORR-{i}"), "hr/x"))
            .collect();
        Offsets::in_memory(header(n), rows.clone()).save(&dir.path().into(), &path);
        let table = Offsets::open(&dir.path().into(), &path).unwrap();
        assert_eq!(table.header, header(n));
        assert_eq!(table.rows().collect::<Vec<_>>(), rows);
        for place in [0, 1, 4096, rows.len() - 1, rows.len()] {
            assert_eq!(table.get(place).as_ref(), rows.get(place));
        }
        assert!(table.rows().rev().eq(rows.into_iter().rev()));
    }

    #[test]
    fn a_damaged_table_is_no_table() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DERIVED).join("x.offsets");
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
