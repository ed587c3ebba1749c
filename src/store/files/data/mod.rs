//! Data files: one JSON file of records per kind.
//!
//! - `file`: reading. `write`: appending at a constant cost, and changes that rewrite the file. `merge`: changes
//!   from another place. `scan`: finds the entries, and lines of positions for messages.
//! - `offsets`: derived table of entry offsets.
//! - `foreign_edit`: detection of edits by programs that take no lock, and repair of a torn tail.

use std::path::Path;

pub(crate) mod file;
pub(crate) mod foreign_edit;
pub(crate) mod merge;
pub(crate) mod offsets;
pub(crate) mod scan;
pub(crate) mod write;

/// Closing brackets of a file that this program writes.
const CLOSING: &str = "\n  ]\n}\n";

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

/// Runs the interference of a test, if any. Does nothing in production.
pub(crate) fn reach(point: Point, path: &Path) {
    #[cfg(test)]
    interfere(point, path);
    #[cfg(not(test))]
    let _ = (point, path);
}

#[cfg(test)]
fn interfere(point: Point, path: &Path) {
    MEANWHILE.with_borrow_mut(|other| {
        if let Some(other) = other {
            other(point, path);
        }
    });
}
