//! `SQLite` reader for imports: reads all rows of ordinary tables from the bytes of a database,
//! including committed pages of its write-ahead log.
//!
//! The file format is stable (sqlite.org/fileformat2.html). Since it works on bytes, the reader
//! cannot lock or change the file of a running program, as the `SQLite` library does even for
//! readers in WAL mode. No input panics or loops: every offset is checked, and no page is visited
//! twice. A damaged page loses only its rows, and is reported.
//!
//! Deliberately absent: indexes, queries, tables `WITHOUT ROWID`, encrypted files, and rollback
//! journals (one next to the file means that a writer crashed).

mod record;
mod schema;
mod wal;

use std::collections::{BTreeMap, HashSet};

use record::varint;

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Returns `true` if the bytes start with the `SQLite` magic.
pub fn is_sqlite(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reason why a database, or a part of it, cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Not an `SQLite` database.
    #[error("it is not a SQLite database")]
    Foreign,
    /// The table does not exist.
    #[error("it has no table `{0}`")]
    NoTable(String),
    /// Unsupported form of table.
    #[error("its table `{0}` has an unsupported layout")]
    Form(String),
    /// Damaged page.
    #[error("its page {page} is damaged: {reason}")]
    Page {
        /// Page number, from 1.
        page: u32,
        /// Reason as text.
        reason: &'static str,
    },
}

/// Column value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `NULL`.
    Null,
    /// Integer.
    Integer(i64),
    /// Floating-point number.
    Real(f64),
    /// Text, with invalid UTF-8 replaced.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Stored column values of a row. Columns added to the table later may be missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row(BTreeMap<String, Value>);

impl Row {
    /// Text of a column; `None` if it is not text or is empty.
    pub fn text(&self, column: &str) -> Option<&str> {
        match self.0.get(column) {
            Some(Value::Text(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Integer of a column; `None` for other types.
    pub fn integer(&self, column: &str) -> Option<i64> {
        match self.0.get(column) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }
}

/// Table: root page, and columns in storage order.
#[derive(Debug, Clone)]
struct Table {
    root: u32,
    columns: Vec<schema::Column>,
    is_read: bool,
}

/// Database in memory.
#[derive(Debug)]
pub struct Database {
    bytes: Vec<u8>,
    page_size: usize,
    /// Usable bytes per page, without the reserved space.
    usable: usize,
    encoding: record::Encoding,
    tables: BTreeMap<String, Table>,
}

impl Database {
    /// Opens a database and applies the committed pages of its write-ahead log.
    pub fn open(mut bytes: Vec<u8>, log: Option<&[u8]>) -> Result<Self, Broken> {
        if let Some(log) = log {
            wal::replay(&mut bytes, log);
        }
        if !is_sqlite(&bytes) || bytes.len() < 100 {
            return Err(Broken::Foreign);
        }
        let page_size = match u16::from_be_bytes([bytes[16], bytes[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        if !page_size.is_power_of_two() || page_size < 512 {
            return Err(Broken::Foreign);
        }
        let usable = page_size.saturating_sub(usize::from(bytes[20]));
        if usable < 480 {
            return Err(Broken::Foreign);
        }
        let mut database = Self {
            encoding: record::Encoding::of(bytes[59]),
            bytes,
            page_size,
            usable,
            tables: BTreeMap::new(),
        };
        database.tables = database.read_schema()?;
        Ok(database)
    }

    /// Returns `true` if the table exists and has these columns.
    pub fn has(&self, table: &str, columns: &[&str]) -> bool {
        self.tables.get(table).is_some_and(|table| {
            let named = |name: &&str| table.columns.iter().any(|column| column.name == **name);
            columns.iter().all(named)
        })
    }

    /// Names of all tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Rows of a table in the order of their ids, and errors of unreadable parts.
    pub fn rows(&self, table: &str) -> Result<(Vec<Row>, Vec<Broken>), Broken> {
        let no_table = || Broken::NoTable(table.to_owned());
        let found = self.tables.get(table).ok_or_else(no_table)?;
        if !found.is_read {
            return Err(Broken::Form(table.to_owned()));
        }
        let mut rows = Vec::new();
        let broken = self.each(found.root, &mut |id, values| {
            let mut values = values.into_iter();
            let mut row = Row::default();
            for column in &found.columns {
                let Some(value) = values.next() else { break };
                // A row id column is stored as `NULL`.
                let value = if column.is_row_id && value == Value::Null {
                    Value::Integer(id)
                } else {
                    value
                };
                row.0.insert(column.name.clone(), value);
            }
            rows.push(row);
        });
        Ok((rows, broken))
    }

    fn read_schema(&self) -> Result<BTreeMap<String, Table>, Broken> {
        let mut tables = BTreeMap::new();
        let mut broken = self.each(1, &mut |_, values| {
            let [
                Value::Text(kind),
                Value::Text(name),
                _,
                Value::Integer(root),
                Value::Text(sql),
            ] = values.as_slice()
            else {
                return;
            };
            let (Ok(root), true) = (u32::try_from(*root), kind == "table") else {
                return;
            };
            let parsed = schema::parse(sql);
            let table = Table {
                root,
                is_read: root > 0 && parsed.is_some(),
                columns: parsed.unwrap_or_default(),
            };
            tables.insert(name.clone(), table);
        });
        match broken.pop() {
            Some(broken) if tables.is_empty() => Err(broken),
            _ => Ok(tables),
        }
    }

    /// Visits every row of the tree below `root`. Returns errors of unreadable parts.
    fn each(&self, root: u32, visit: &mut dyn FnMut(i64, Vec<Value>)) -> Vec<Broken> {
        let mut broken = Vec::new();
        let mut seen = HashSet::new();
        // The stack gets children from right to left, so that the leftmost is visited first.
        let mut waiting = vec![root];
        while let Some(page) = waiting.pop() {
            if !seen.insert(page) {
                broken.push(Broken::Page {
                    page,
                    reason: "it is its own ancestor",
                });
                continue;
            }
            if let Err(reason) = self.page(page, &mut waiting, &mut broken, visit) {
                broken.push(Broken::Page { page, reason });
            }
        }
        broken
    }

    fn page(
        &self,
        number: u32,
        waiting: &mut Vec<u32>,
        broken: &mut Vec<Broken>,
        visit: &mut dyn FnMut(i64, Vec<Value>),
    ) -> Result<(), &'static str> {
        let page = self.bytes_of(number).ok_or("it is not there")?;
        let header = if number == 1 { 100 } else { 0 };
        let kind = *page.get(header).ok_or("it is too short")?;
        let count = usize::from(short(page, header + 3).ok_or("it is too short")?);
        let (is_leaf, cells) = match kind {
            0x0d => (true, header + 8),
            0x05 => (false, header + 12),
            _ => return Err("it belongs to no table"),
        };
        let offsets = (0..count).filter_map(|i| short(page, cells + 2 * i).map(usize::from));
        if is_leaf {
            for at in offsets {
                match self.cell(page, at) {
                    Ok((id, values)) => visit(id, values),
                    Err(reason) => broken.push(Broken::Page {
                        page: number,
                        reason,
                    }),
                }
            }
        } else {
            let mut children: Vec<u32> = offsets.filter_map(|at| long(page, at)).collect();
            children.extend(long(page, header + 8));
            waiting.extend(children.into_iter().rev());
        }
        Ok(())
    }

    /// Row id and values of a cell.
    fn cell(&self, page: &[u8], at: usize) -> Result<(i64, Vec<Value>), &'static str> {
        let cut = "a row is cut off";
        let (size, at) = varint(page, at).ok_or(cut)?;
        let (id, at) = varint(page, at).ok_or(cut)?;
        let size = usize::try_from(size).map_err(|_| cut)?;
        if size > self.bytes.len() {
            return Err("a row is larger than the file");
        }
        let here = self.local(size);
        let end = at.checked_add(here).ok_or(cut)?;
        let mut payload = page.get(at..end).ok_or(cut)?.to_vec();
        if here < size {
            let next = long(page, end).ok_or(cut)?;
            self.overflow(next, size, &mut payload)?;
        }
        let values = record::values(&payload, self.encoding).ok_or("a row makes no sense")?;
        Ok((id, values))
    }

    /// Number of payload bytes stored on the table's own page.
    fn local(&self, size: usize) -> usize {
        let usable = self.usable;
        let most = usable - 35;
        if size <= most {
            return size;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let fitting = least + (size - least) % (usable - 4);
        if fitting <= most { fitting } else { least }
    }

    /// Appends the overflow pages of a row.
    fn overflow(
        &self,
        mut next: u32,
        size: usize,
        payload: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        // A cyclic chain ends too: each page adds bytes, up to the size.
        while payload.len() < size {
            let page = self.bytes_of(next).ok_or("a row goes on on no page")?;
            let take = (size - payload.len()).min(self.usable - 4);
            payload.extend_from_slice(page.get(4..4 + take).ok_or("a row is cut off")?);
            next = long(page, 0).unwrap_or_default();
        }
        Ok(())
    }

    fn bytes_of(&self, page: u32) -> Option<&[u8]> {
        let start = (page as usize)
            .checked_sub(1)?
            .checked_mul(self.page_size)?;
        self.bytes.get(start..start + self.page_size)
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([found[0], found[1]]))
}

/// Big-endian integer of four bytes.
fn long(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([found[0], found[1], found[2], found[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_database_is_refused_and_nothing_panics() {
        for bytes in [&b""[..], b"SQLite format 3\0", b"no", &[0; 200]] {
            assert_eq!(
                Database::open(bytes.to_vec(), None).unwrap_err(),
                Broken::Foreign
            );
        }
        let mut header = [MAGIC, &[0; 4_080]].concat();
        header[16] = 16;
        let mut state = 1_u32;
        for _ in 0..2_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = 100 + state as usize % 400;
            header[at] = (state >> 24) as u8;
            header[100] = 0x0d;
            if let Ok(database) = Database::open(header.clone(), Some(&header)) {
                let names: Vec<String> = database.tables().map(str::to_owned).collect();
                for name in names {
                    drop(database.rows(&name));
                }
            }
        }
    }
}
