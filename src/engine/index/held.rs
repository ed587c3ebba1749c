//! A segment as it is held while the index is open.

use std::ops::Deref;

use xxhash_rust::xxh3::xxh3_64;

use crate::search::{Damaged, Segment, Slots, slot_width};
use crate::store::{Derived, Map};

use super::Embedding;
use super::list::{Files, places_name, words_name};

/// The place of a document whose record is no longer there.
pub(super) const GONE: u32 = u32::MAX;

/// Bytes in a file, or not yet in one.
#[derive(Debug)]
pub(super) enum Bytes {
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

/// Vectors of one embedder for the documents of a segment, as far as they have one.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) slots: Bytes,
    /// What made them.
    pub(super) embedding: Embedding,
    /// How many documents have one.
    pub(super) filled: usize,
}

/// A segment, where its documents' records lie, and their vectors.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) words: Bytes,
    /// For each document the place of its record in the file of its kind, or [`GONE`].
    pub(super) places: Vec<u32>,
    pub(super) vectors: Option<Meaning>,
    /// Its files, if it was saved.
    pub(super) files: Option<Files>,
    /// Whether the places are other ones than those in the file.
    pub(super) moved: bool,
}

impl Held {
    /// A segment that is in no file yet.
    pub(super) fn new(words: Vec<u8>, places: Vec<u32>) -> Self {
        Self {
            words: Bytes::Own(words),
            places,
            vectors: None,
            files: None,
            moved: false,
        }
    }

    /// A segment of the list; `None` where a file is missing or is not what it should be.
    pub(super) fn open(derived: &Derived, files: &Files) -> Option<Self> {
        let words = derived.map(&words_name(files.words))?;
        let places = parse_places(&derived.map(&places_name(files.places))?)?;
        if places.len() != files.documents {
            return None;
        }
        let vectors = files.vectors.as_ref().and_then(|vectors| {
            Some(Meaning {
                slots: Bytes::File(derived.map(&vectors.name())?),
                embedding: vectors.embedding()?,
                filled: vectors.filled,
            })
        });
        let mut held = Self {
            words: Bytes::File(words),
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

    /// Goes on as if nothing had a vector yet.
    pub(super) fn forget_vectors(&mut self) {
        self.vectors = None;
        if let Some(files) = &mut self.files {
            files.vectors = None;
        }
    }

    pub(super) fn segment(&self) -> Result<Segment<'_>, Damaged> {
        let segment = Segment::open(&self.words).ok_or(Damaged)?;
        (segment.len() == self.places.len())
            .then_some(segment)
            .ok_or(Damaged)
    }

    /// What made its vectors.
    pub(super) fn embedding(&self) -> Option<&Embedding> {
        self.vectors.as_ref().map(|vectors| &vectors.embedding)
    }

    /// Whether its vectors are those of another embedder.
    pub(super) fn is_of_another(&self, embedding: Option<&Embedding>) -> bool {
        self.vectors.is_some() && self.embedding() != embedding
    }

    /// How many documents have a vector of this embedder.
    pub(super) fn filled(&self, embedding: Option<&Embedding>) -> usize {
        let vectors = self.vectors.as_ref();
        let vectors = vectors.filter(|vectors| Some(&vectors.embedding) == embedding);
        vectors.map_or(0, |vectors| vectors.filled.min(self.places.len()))
    }

    /// The vectors of this embedder.
    pub(super) fn slots(&self, embedding: Option<&Embedding>) -> Option<Slots<'_>> {
        (self.embedding() == embedding).then(|| self.all_slots())?
    }

    /// The vectors, whoever made them.
    pub(super) fn all_slots(&self) -> Option<Slots<'_>> {
        let vectors = self.vectors.as_ref()?;
        Slots::open(
            &vectors.slots,
            &vectors.embedding.name,
            vectors.embedding.dimensions,
            self.places.len(),
        )
    }

    /// Whether records of documents are no longer there.
    pub(super) fn has_gone(&self) -> bool {
        self.places.contains(&GONE)
    }

    pub(super) fn kept(&self) -> Vec<bool> {
        self.places.iter().map(|place| *place != GONE).collect()
    }

    /// The slots of the documents that are kept, one behind the other.
    pub(super) fn kept_slots(&self, embedding: &Embedding) -> (Vec<u8>, usize) {
        let width = slot_width(embedding.dimensions);
        let slots = self.slots(Some(embedding));
        let (mut out, mut filled) = (Vec::new(), 0);
        for (document, _) in self.places.iter().enumerate().filter(|(_, p)| **p != GONE) {
            match slots.filter(|slots| slots.is_intact(document) && slots.is_filled(document)) {
                Some(slots) => {
                    out.extend_from_slice(slots.get(document));
                    filled += 1;
                }
                None => out.resize(out.len() + width, 0),
            }
        }
        (out, filled)
    }
}

/// Places as a file holds them: a checksum, and four bytes a place.
pub(super) fn places_bytes(places: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = places
        .iter()
        .flat_map(|place| place.to_le_bytes())
        .collect();
    let mut out = xxh3_64(&bytes).to_le_bytes().to_vec();
    out.extend(bytes);
    out
}

fn parse_places(bytes: &[u8]) -> Option<Vec<u32>> {
    let (sum, places) = bytes.split_first_chunk()?;
    if u64::from_le_bytes(*sum) != xxh3_64(places) {
        return None;
    }
    let (places, rest) = places.as_chunks();
    rest.is_empty().then(|| {
        places
            .iter()
            .map(|place| u32::from_le_bytes(*place))
            .collect()
    })
}
