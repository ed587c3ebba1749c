//! Finds the records that have changed since the index was saved.

use std::collections::HashMap;

use crate::model::Kind;

use super::held::{GONE, Held};
use super::{Error, Index, NewEntry};

impl Index {
    /// Updates the places of the documents, and returns the new entries.
    ///
    /// A file that only grew costs nothing: its first entries have kept their places. In any other
    /// file, entries are recognised by the hash of their text. [`Error::Index`] means damage.
    pub(crate) fn follow(&mut self) -> Result<Vec<NewEntry>, Error> {
        let mut new_entries = Vec::new();
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let file = &self.files[number];
            let covered = self.list.covers(kind, file.generation());
            if let Some(covered) = covered.filter(|covered| *covered <= file.len()) {
                new_entries.extend(places(covered..file.len()).map(|place| (number, place)));
                continue;
            }
            let keys = file.keys()?;
            let unknown = recognise(&mut self.segments, number, &keys)?;
            new_entries.extend(unknown.into_iter().map(|place| (number, place)));
        }
        Ok(new_entries)
    }
}

fn places(range: std::ops::Range<usize>) -> impl Iterator<Item = u32> {
    range.map_while(|place| u32::try_from(place).ok())
}

/// Finds the documents of a kind by their keys: each gets the place of its record, or none. Returns
/// the places without a document.
fn recognise(segments: &mut [Held], kind: usize, keys: &[u64]) -> Result<Vec<u32>, Error> {
    let mut by_key: HashMap<u64, u32> = HashMap::with_capacity(keys.len());
    // Of equal entries all but one stay unknown, and get documents of their own.
    by_key.extend(keys.iter().copied().zip(places(0..keys.len())));
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
            held.moved |= held.places[document] != place;
            held.places[document] = place;
        }
    }
    let mut unknown = vec![true; keys.len()];
    for held in &*segments {
        let segment = held.segment()?;
        for (document, place) in held.places.iter().enumerate() {
            if usize::from(segment.kind(document)) == kind && *place != GONE {
                unknown[*place as usize] = false;
            }
        }
    }
    Ok(places(0..keys.len())
        .filter(|place| unknown[*place as usize])
        .collect())
}
