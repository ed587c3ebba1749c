//! Segment of an open index.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::store::{Derived, Map};
use memctl_files::PositionedFile as _;
use memctl_search::{Damaged, ReadAt, Segment, SlotLayout, SlotSource, Slots, slot_width};

use super::manifest::{Files, binary_name, places_name, words_name};
use memctl_search::embedder::Embedding;
use xxhash_rust::xxh3::xxh3_64;

/// Place of a document whose record has been deleted.
pub(super) const GONE: u32 = u32::MAX;

/// Bytes in a file, or only in memory.
#[derive(Debug)]
pub(crate) enum Bytes {
    File(Map),
    Own(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::File(map) => map,
            Self::Own(bytes) => bytes,
        }
    }
}

impl SlotSource for Bytes {
    fn open(&self) -> Option<Box<ReadAt<'_>>> {
        match self {
            Self::File(map) => {
                let file = map.reopen()?;
                Some(Box::new(move |at, into| {
                    file.read_exact_at(into, at).is_ok()
                }))
            }
            Self::Own(_) => None,
        }
    }
}

/// Vectors of one embedder for the documents of a segment; some may be missing.
#[derive(Debug)]
pub(crate) struct SegmentVectors {
    pub(crate) slots: Bytes,
    /// Embedder of the vectors.
    pub(crate) embedding: Embedding,
    /// Number of documents with a vector.
    pub(crate) filled: usize,
    /// Binary vectors, once every document has a vector.
    pub(crate) binary: Option<Bytes>,
}

/// Segment with the places of its records and with its vectors.
#[derive(Debug)]
pub(crate) struct IndexedSegment {
    pub(crate) words: Bytes,
    /// Place of each document's record among those of its kind, or [`GONE`].
    pub(crate) places: Vec<u32>,
    pub(crate) vectors: Option<SegmentVectors>,
    /// Files of the segment; `None` if it was never saved.
    pub(crate) files: Option<Files>,
    /// True if the places differ from those in the file.
    pub(crate) moved: bool,
    /// Places of the vectors, one for each document.
    singles: SlotLayout,
    /// Places of the vectors, with those of windows.
    windows: OnceLock<SlotLayout>,
}

impl IndexedSegment {
    /// Creates a segment that is in no file yet.
    pub(crate) fn new(words: Vec<u8>, places: Vec<u32>) -> Self {
        Self {
            words: Bytes::Own(words),
            singles: SlotLayout::Single(places.len()),
            windows: OnceLock::new(),
            places,
            vectors: None,
            files: None,
            moved: false,
        }
    }

    /// Opens a segment of the list; `None` if a file is missing or damaged.
    pub(crate) fn open(derived: &Derived, files: &Files) -> Option<Self> {
        let words = derived.map(&words_name(files.words))?;
        let places = read_places(&derived.map(&places_name(files.places))?)?;
        if places.len() != files.documents {
            return None;
        }
        let vectors = files.vectors.as_ref().and_then(|vectors| {
            Some(SegmentVectors {
                slots: Bytes::File(derived.map(&vectors.name())?),
                embedding: vectors.embedding()?,
                filled: vectors.filled,
                binary: vectors
                    .binary
                    .and_then(|number| derived.map(&binary_name(number)))
                    .map(Bytes::File),
            })
        });
        let mut held = Self {
            words: Bytes::File(words),
            singles: SlotLayout::Single(places.len()),
            windows: OnceLock::new(),
            places,
            vectors,
            files: Some(files.clone()),
            moved: false,
        };
        if held.all_slots().is_none() {
            held.forget_vectors();
        }
        Some(held)
    }

    /// Drops all vectors.
    pub(crate) fn forget_vectors(&mut self) {
        self.vectors = None;
        if let Some(files) = &mut self.files {
            files.vectors = None;
        }
    }

    pub(crate) fn segment(&self) -> Result<Segment<'_>, Damaged> {
        let segment = Segment::open(&self.words).ok_or(Damaged)?;
        let is_whole = segment.len() == self.places.len();
        is_whole.then_some(segment).ok_or(Damaged)
    }

    /// Embedder of the vectors.
    pub(crate) fn embedding(&self) -> Option<&Embedding> {
        self.vectors.as_ref().map(|vectors| &vectors.embedding)
    }

    /// Returns true if the vectors come from another embedder.
    pub(crate) fn is_of_another(&self, embedding: Option<&Embedding>) -> bool {
        self.vectors.is_some() && self.embedding() != embedding
    }

    /// Number of documents with a vector of this embedder.
    pub(crate) fn filled(&self, embedding: Option<&Embedding>) -> usize {
        let vectors = self.vectors.as_ref();
        let vectors = vectors.filter(|vectors| Some(&vectors.embedding) == embedding);
        vectors.map_or(0, |vectors| vectors.filled.min(self.places.len()))
    }

    /// Vectors, if they come from this embedder.
    pub(crate) fn slots(&self, embedding: Option<&Embedding>) -> Option<Slots<'_>> {
        (self.embedding() == embedding).then(|| self.all_slots())?
    }

    /// Vectors of any embedder.
    pub(crate) fn all_slots(&self) -> Option<Slots<'_>> {
        let vectors = self.vectors.as_ref()?;
        Slots::open(
            &vectors.slots,
            &vectors.embedding.name,
            vectors.embedding.dimensions,
            self.layout(&vectors.embedding),
        )
        .map(|slots| slots.with_source(&vectors.slots))
    }

    /// Places of the vectors of an embedder.
    pub(crate) fn layout(&self, embedding: &Embedding) -> &SlotLayout {
        if !embedding.reads_windows() {
            return &self.singles;
        }
        // A damaged segment is noticed by its use.
        let windows = || match self.segment() {
            Ok(segment) => SlotLayout::of(&segment),
            Err(_) => SlotLayout::Single(self.places.len()),
        };
        self.windows.get_or_init(windows)
    }

    /// Returns true if records of some documents have been deleted.
    pub(crate) fn has_gone(&self) -> bool {
        // No saved segment holds one.
        self.moved && self.places.contains(&GONE)
    }

    pub(crate) fn kept(&self) -> Vec<bool> {
        self.places.iter().map(|place| *place != GONE).collect()
    }

    /// Slots of the remaining documents, one after the other, and the number of filled ones.
    pub(crate) fn kept_slots(&self, embedding: &Embedding) -> (Vec<u8>, usize) {
        let width = slot_width(embedding.dimensions);
        let slots = self.slots(Some(embedding));
        let (mut out, mut filled) = (Vec::new(), 0);
        for (document, _) in self.places.iter().enumerate().filter(|(_, p)| **p != GONE) {
            let sound = |slots: &Slots<'_>| slots.is_intact(document) && slots.is_filled(document);
            if let Some(slots) = slots.filter(sound) {
                out.extend_from_slice(slots.get(document));
                filled += 1;
            } else {
                let slots = self.layout(embedding).of_document(document).len();
                out.resize(out.len() + slots * width, 0);
            }
        }
        (out, filled)
    }
}

/// Reads places from their file: a checksum, then four bytes per place. `None` if it is damaged.
fn read_places(file: &[u8]) -> Option<Vec<u32>> {
    let (sum, bytes) = file.split_first_chunk()?;
    let (places, rest) = bytes.as_chunks();
    let is_intact = rest.is_empty() && u64::from_le_bytes(*sum) == xxh3_64(bytes);
    is_intact.then(|| {
        places
            .iter()
            .map(|place| u32::from_le_bytes(*place))
            .collect()
    })
}

/// Content of a file with these places.
pub(super) fn places_file(places: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = places
        .iter()
        .flat_map(|place| place.to_le_bytes())
        .collect();
    [&xxh3_64(&bytes).to_le_bytes()[..], &bytes].concat()
}
