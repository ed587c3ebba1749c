//! Manifest of the index: its files, and the state of the records that they cover.

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use memctl_search::ANALYSIS;

use crate::store::Positions;
use memctl_search::embedder::Embedding;

/// Format version of the list and of its files; changes with each new format.
const FORMAT: u32 = 1;

/// List of the files of an index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct List {
    format: u32,
    analysis: u32,
    /// Number of the next new file.
    pub(crate) next: u64,
    /// Covered entries of each data file.
    pub(crate) covered: Vec<Covered>,
    /// Segments, oldest first.
    pub(crate) segments: Vec<Files>,
}

/// Covered part of a data file: its first entries, while it only grows. A kind has one for each of
/// its files, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Covered {
    pub(crate) kind: Kind,
    pub(crate) generation: u64,
    pub(crate) entries: usize,
}

/// Files of one segment, by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Files {
    pub(crate) documents: usize,
    pub(crate) words: u64,
    pub(crate) places: u64,
    pub(crate) vectors: Option<Vectors>,
}

/// File with the vectors of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Vectors {
    pub(crate) file: u64,
    /// Name of the embedder.
    pub(crate) embedder: String,
    /// Number of documents with a vector.
    pub(crate) filled: usize,
    /// File with the binary vectors, once every document has a vector.
    #[serde(default)]
    pub(crate) binary: Option<u64>,
}

impl List {
    pub(crate) fn new() -> Self {
        Self {
            format: FORMAT,
            analysis: ANALYSIS,
            ..Self::default()
        }
    }

    /// Parses a saved list; `None` if it is damaged or has another version.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let list: Self = serde_json::from_slice(bytes).ok()?;
        (list.format == FORMAT && list.analysis == ANALYSIS).then_some(list)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Number of covered entries of each data file of a kind; `None` if one of them has changed
    /// otherwise than by growing.
    pub(crate) fn covers(&self, kind: Kind, now: &Positions) -> Option<Vec<usize>> {
        let of_kind = self.covered.iter().filter(|covered| covered.kind == kind);
        let mut covered = of_kind.map(|covered| (covered.generation, covered.entries));
        let covers = now.generations().map(|(generation, entries)| {
            let (known, first) = covered.next()?;
            (known == generation && first <= entries).then_some(first)
        });
        covers.collect()
    }

    /// Reserves a number for a new file.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Names of all files in the list.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.segments.iter().flat_map(|files| {
            let vectors = files.vectors.as_ref();
            let binary = vectors.and_then(|vectors| vectors.binary);
            [words_name(files.words), places_name(files.places)]
                .into_iter()
                .chain(vectors.map(Vectors::name))
                .chain(binary.map(binary_name))
        })
    }
}

impl Vectors {
    /// Embedder of the vectors; `None` if the name is invalid.
    pub(crate) fn embedding(&self) -> Option<Embedding> {
        let (_, dimensions) = self.embedder.rsplit_once('/')?;
        Some(Embedding {
            name: self.embedder.clone(),
            dimensions: dimensions.parse().ok()?,
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.vectors", self.file)
    }
}

pub(crate) fn words_name(number: u64) -> String {
    format!("{number}.words")
}

pub(crate) fn places_name(number: u64) -> String {
    format!("{number}.places")
}

pub(crate) fn binary_name(number: u64) -> String {
    format!("{number}.binary")
}
