//! What the index consists of: which files hold it, and which state of the records it covers.

use serde::{Deserialize, Serialize};

use crate::model::Kind;
use crate::search::ANALYSIS;

use super::Embedding;

/// Bumped whenever the list or the files that it names change their form.
const FORMAT: u32 = 1;

/// The list of the index's files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct List {
    format: u32,
    analysis: u32,
    /// The number of the next new file.
    pub(super) next: u64,
    /// Which entries of each data file are covered.
    pub(super) covered: Vec<Covered>,
    /// From the oldest to the newest.
    pub(super) segments: Vec<Files>,
}

/// How much of a data file is covered: its first entries, for as long as it only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Covered {
    pub(super) kind: Kind,
    pub(super) generation: u64,
    pub(super) entries: usize,
}

/// The files of one segment, by their numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Files {
    pub(super) documents: usize,
    pub(super) words: u64,
    pub(super) places: u64,
    pub(super) vectors: Option<Vectors>,
}

/// The file of a segment's vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Vectors {
    pub(super) file: u64,
    /// What made them.
    pub(super) embedder: String,
    /// How many documents have one.
    pub(super) filled: usize,
}

impl List {
    pub(super) fn new() -> Self {
        Self {
            format: FORMAT,
            analysis: ANALYSIS,
            ..Self::default()
        }
    }

    /// A list as it was saved; `None` where it is none, or one of another version.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let list: Self = serde_json::from_slice(bytes).ok()?;
        (list.format == FORMAT && list.analysis == ANALYSIS).then_some(list)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The entries of a data file that are covered, if it is still in the generation in which they
    /// were.
    pub(super) fn covers(&self, kind: Kind, generation: u64) -> Option<usize> {
        let covered = self.covered.iter().find(|covered| covered.kind == kind)?;
        (covered.generation == generation).then_some(covered.entries)
    }

    /// A name for a new file.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The names of all files that it names.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.segments.iter().flat_map(|files| {
            let vectors = files.vectors.as_ref().map(Vectors::name);
            [words_name(files.words), places_name(files.places)]
                .into_iter()
                .chain(vectors)
        })
    }
}

impl Vectors {
    /// What made them; `None` where its name is none.
    pub(super) fn embedding(&self) -> Option<Embedding> {
        let (_, dimensions) = self.embedder.rsplit_once('/')?;
        Some(Embedding {
            name: self.embedder.clone(),
            dimensions: dimensions.parse().ok()?,
        })
    }

    pub(super) fn name(&self) -> String {
        format!("{}.vectors", self.file)
    }
}

pub(super) fn words_name(number: u64) -> String {
    format!("{number}.words")
}

pub(super) fn places_name(number: u64) -> String {
    format!("{number}.places")
}
