//! Finds the records that have changed since the index was saved.

use std::collections::{HashMap, HashSet};

use crate::model::Kind;

use super::held::IndexedSegment;
use super::places::GONE;
use super::{Error, Index, NewEntry};

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
