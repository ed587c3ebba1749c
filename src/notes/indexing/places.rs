//! Places of the records of a segment's documents.
//!
//! Places in a file are read there, since a search asks for the places of its results only. They are
//! copied into memory before the first change.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use super::held::IndexedSegment;
use super::{Error, Index, NewEntry};
use crate::model::Kind;
use crate::store::Map;

/// Place of a document whose record has been deleted.
pub(crate) const GONE: u32 = u32::MAX;

/// Bytes of the checksum before the places.
const SUM: usize = 8;

/// Place of each document's record among those of its kind, or [`GONE`].
#[derive(Debug)]
pub(crate) enum Places {
    File(Map),
    Own(Vec<u32>),
}

impl Places {
    /// Opens the places of a file; `None` if it is damaged.
    pub(crate) fn open(map: Map) -> Option<Self> {
        let (sum, places) = map.split_first_chunk::<SUM>()?;
        let is_whole = places.len().is_multiple_of(size_of::<u32>());
        let is_intact = is_whole && u64::from_le_bytes(*sum) == xxh3_64(places);
        is_intact.then_some(Self::File(map))
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::File(map) => in_file(map).len(),
            Self::Own(places) => places.len(),
        }
    }

    /// Place of a document's record; [`GONE`] also for a document that the segment does not have.
    pub(crate) fn get(&self, document: usize) -> u32 {
        let place = match self {
            Self::File(map) => in_file(map)
                .get(document)
                .map(|place| u32::from_le_bytes(*place)),
            Self::Own(places) => places.get(document).copied(),
        };
        place.unwrap_or(GONE)
    }

    /// Places of all documents.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|document| self.get(document))
    }

    /// Changes a place, and returns the one before.
    pub(crate) fn replace(&mut self, document: usize, place: u32) -> u32 {
        let before = self.get(document);
        if before == place {
            return before;
        }
        if let Self::File(_) = self {
            *self = Self::Own(self.iter().collect());
        }
        if let Self::Own(places) = self
            && let Some(own) = places.get_mut(document)
        {
            *own = place;
        }
        before
    }

    /// Content of a file with these places: a checksum, then four bytes per place.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let places: Vec<u8> = self.iter().flat_map(u32::to_le_bytes).collect();
        let mut out = xxh3_64(&places).to_le_bytes().to_vec();
        out.extend(places);
        out
    }
}

fn in_file(map: &Map) -> &[[u8; size_of::<u32>()]] {
    map.get(SUM..).unwrap_or_default().as_chunks().0
}

impl Index {
    /// Updates the places of the documents, and returns the new entries.
    ///
    /// Files that only grew cost nothing: their first entries have kept their places. In any others,
    /// entries are recognised by the hash of their text. [`Error::Index`] means damage.
    pub(crate) fn follow(&mut self) -> Result<Vec<NewEntry>, Error> {
        let mut new_entries = Vec::new();
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let file = &self.files[number];
            if let Some(covered) = self.list.covers(kind, file) {
                new_entries.extend(file.places_behind(&covered).map(|place| (number, place)));
                continue;
            }
            let keys = file.keys()?;
            let unknown = recognise(&mut self.segments, number, &keys)?;
            new_entries.extend(unknown.into_iter().map(|place| (number, place)));
        }
        Ok(new_entries)
    }
}

/// Finds the documents of a kind by their keys: each gets the place of its record, or none. Returns
/// the places without a document.
fn recognise(
    segments: &mut [IndexedSegment],
    kind: usize,
    keys: &[(u32, u64)],
) -> Result<Vec<u32>, Error> {
    let mut by_key: HashMap<u64, u32> = HashMap::with_capacity(keys.len());
    // Of equal entries all but one stay unknown, and get documents of their own.
    by_key.extend(keys.iter().map(|(place, key)| (*key, *place)));
    for held in segments.iter_mut() {
        let mut found = Vec::new();
        let segment = held.segment()?;
        segment.verify()?;
        for document in 0..segment.len() {
            if usize::from(segment.kind(document)) == kind {
                let place = by_key.remove(&segment.key(document)).unwrap_or(GONE);
                found.push((document, place));
            }
        }
        for (document, place) in found {
            held.moved |= held.places.replace(document, place) != place;
        }
    }
    let mut known: HashSet<u32> = HashSet::with_capacity(keys.len());
    for held in &*segments {
        let segment = held.segment()?;
        let places = held.places.iter().enumerate();
        known.extend(
            places
                .filter(|(document, _)| usize::from(segment.kind(*document)) == kind)
                .map(|(_, place)| place),
        );
    }
    let places = keys.iter().map(|(place, _)| *place);
    Ok(places.filter(|place| !known.contains(place)).collect())
}
