//! Data files: one JSON file of records per kind.
//!
//! - Here: an entry of a data file, as text.
//! - `file`: reading. `write`: appends at a constant cost, changes that rewrite the file, and changes from
//!   another copy. `scan`: finds the entries, and line numbers for messages.
//! - `offsets`: derived table of entry offsets.
//! - `foreign_edit`: detection of edits by programs that take no lock, and repair of a torn tail.

pub(crate) mod file;
pub(crate) mod foreign_edit;
pub(crate) mod offsets;
pub(crate) mod scan;
pub(crate) mod write;

use std::borrow::Cow;
use std::path::Path;

use memctl_files::json;

use crate::model::{Kind, Record};
use crate::store::DataFile;

/// Closing brackets of a file that this program writes.
const CLOSING: &str = "\n  ]\n}\n";

/// Text around the entries of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Text before the first entry.
    pub head: String,
    /// Text after the last entry.
    pub tail: String,
}

impl Frame {
    /// Returns the frame that this program writes.
    pub fn plain(kind: Kind) -> Self {
        Self {
            head: format!("{{\n  \"{}\": [\n    ", kind.root_key()),
            tail: CLOSING.to_owned(),
        }
    }

    /// Returns the text of a file of this kind with these entries; without any, nothing stands around them.
    pub fn around(&self, kind: Kind, entries: &[impl AsRef<[u8]>]) -> Vec<u8> {
        if entries.is_empty() {
            return format!("{{\n  \"{}\": []\n}}\n", kind.root_key()).into_bytes();
        }
        let entries: Vec<&[u8]> = entries.iter().map(AsRef::as_ref).collect();
        let entries = entries.join(&b",\n    "[..]);
        [self.head.as_bytes(), &entries, self.tail.as_bytes()].concat()
    }
}

/// Point in a write where a test lets another program interfere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The state of the file was read; its content is not read yet.
    Sized,
    /// The file was read; nothing is written yet.
    Read,
    /// The bytes after the last entry were read for an append; those before it are not read yet.
    EndRead,
    /// The file was found unchanged; the next call writes.
    Compared,
    /// The bytes are written, and not verified yet.
    Written,
}

/// Another program, simulated by a test.
#[cfg(test)]
type Other = Box<dyn FnMut(Point, &Path)>;

#[cfg(test)]
thread_local! {
    pub(crate) static MEANWHILE: std::cell::RefCell<Option<Other>> = const { std::cell::RefCell::new(None) };
}

/// Does nothing: a test alone interferes.
#[cfg(not(test))]
pub(crate) const fn reach(_: Point, _: &Path) {}

/// Runs the interference of a test, if any.
#[cfg(test)]
pub(crate) fn reach(point: Point, path: &Path) {
    MEANWHILE.with_borrow_mut(|other| {
        if let Some(other) = other {
            other(point, path);
        }
    });
}

/// One entry, as the text in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind of the record.
    pub kind: Kind,
    /// Id; empty if the entry has none.
    pub id: String,
    /// JSON text.
    pub text: Vec<u8>,
    /// `true` if it is in the local file of its kind.
    pub is_local: bool,
    /// Byte offset in the file.
    pub offset: u64,
}

impl Entry {
    /// Returns the file that it is in.
    pub(crate) fn file(&self) -> DataFile {
        DataFile {
            kind: self.kind,
            is_local: self.is_local,
        }
    }

    /// Returns the id of the user, if the entry names one.
    pub fn user_id(&self) -> Option<Cow<'_, str>> {
        json::string_field(&self.text, "user_id").filter(|_| self.kind.has_user())
    }

    /// Parses the entry as a record of its kind.
    pub fn parse<R: Record>(&self) -> Result<R, serde_json::Error> {
        serde_json::from_slice(&self.text)
    }
}
