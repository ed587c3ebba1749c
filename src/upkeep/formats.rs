//! Formats of the data files, and the versions of this program that read and write them.
//!
//! A program reads its own format, every older one, and as much of a newer one as it understands. It writes
//! nothing to a newer one, so that an older program loses nothing of a newer store.

use serde::Serialize;

use crate::store::{self, FORMAT, FORMATS, Scoped};

/// Formats of a store.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Formats {
    /// Version of this program.
    pub program: &'static str,
    /// Format that this program writes.
    pub writes: u64,
    /// Formats that this program reads.
    pub reads: Vec<KnownFormat>,
    /// Data files that exist.
    pub files: Vec<FileFormat>,
}

/// Format that this program knows.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct KnownFormat {
    /// Number of the format.
    pub format: u64,
    /// First version of the program that reads and writes it.
    pub since: &'static str,
}

/// Format of a data file.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct FileFormat {
    /// Name of the file.
    pub file: &'static str,
    /// Number of its format.
    pub format: u64,
    /// `true` if a newer program wrote it: this program reads it, and writes nothing to it.
    pub newer: bool,
}

impl Formats {
    /// Returns the formats of a store.
    pub(crate) fn of(store: &Scoped) -> Result<Self, store::Error> {
        let files = store
            .formats()?
            .into_iter()
            .map(|(file, format)| FileFormat {
                file: file.name(),
                format,
                newer: format > FORMAT,
            });
        let known = FORMATS.iter().map(|(format, since)| KnownFormat {
            format: *format,
            since,
        });
        Ok(Self {
            program: env!("CARGO_PKG_VERSION"),
            writes: FORMAT,
            reads: known.collect(),
            files: files.collect(),
        })
    }

    /// Returns the files that a newer program wrote.
    pub fn newer(&self) -> impl Iterator<Item = &FileFormat> {
        self.files.iter().filter(|file| file.newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_up_to_the_written_one() {
        let formats: Vec<u64> = FORMATS.iter().map(|(format, _)| *format).collect();
        assert_eq!(formats, (1..=FORMAT).collect::<Vec<_>>());
        // The version that begins a format has a store in `fixtures/stores`, or is this one.
        for (_, since) in FORMATS {
            let stores = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/stores");
            assert!(std::path::Path::new(stores).join(since).is_dir(), "{since}");
        }
    }
}
