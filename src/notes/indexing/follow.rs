//! Follows the records: which of them have no document yet, and documents for these.
//!
//! Files that only grew cost nothing: their first entries have kept their places. In any others, entries
//! are recognised by the hash of their text. New records are read and tokenized on all processors.

use std::collections::{HashMap, HashSet};

use memctl_files::parallel::each;
use memctl_search::Builder;

use super::filter::attributes;
use super::held::{GONE, IndexedSegment};
use super::{Error, Index, Progress, readable};
use crate::model::Kind;
use crate::store::Positions;

/// New entry: its kind as a place in [`Kind::ALL`], and its place among the entries of that kind.
pub(super) type NewEntry = (usize, u32);

/// Number of records below which a second thread does not pay off.
const FEW: usize = 256;
/// Maximum number of records that a thread takes at once: those of a full segment.
const SHARE: usize = 32_768;

impl Index {
    /// Updates the places of the documents, and returns the new entries. [`Error::Index`] means damage.
    pub(super) fn follow(&mut self) -> Result<Vec<NewEntry>, Error> {
        let mut new_entries = Vec::new();
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let file = &self.files[number];
            let unknown: Vec<u32> = match self.list.covers(kind, file) {
                Some(covered) => file.places_behind(&covered).collect(),
                None => recognise(&mut self.segments, number, &file.keys()?)?,
            };
            new_entries.extend(unknown.into_iter().map(|place| (number, place)));
        }
        Ok(new_entries)
    }

    /// Returns segments of these entries, in their order. Unreadable entries are skipped; `doctor`
    /// reports them.
    pub(super) fn analyse(
        &self,
        new_entries: &[NewEntry],
        progress: Progress<'_>,
    ) -> Result<Vec<IndexedSegment>, Error> {
        let files = &self.files;
        let threads = memctl_files::parallel::processors();
        let mut segments = Vec::new();
        let mut done = 0;
        for some in new_entries.chunks(SHARE * threads) {
            let share = some.len().div_ceil(threads).max(FEW);
            let made = each(some.chunks(share), some.len() > FEW, |share| {
                segments_of(files, share)
            });
            for made in made {
                segments.extend(made?);
            }
            done += some.len();
            progress(done, new_entries.len());
        }
        Ok(segments)
    }
}

fn segments_of(files: &[Positions], entries: &[NewEntry]) -> Result<Vec<IndexedSegment>, Error> {
    let mut segments = Vec::new();
    let (mut builder, mut places) = (Builder::default(), Vec::new());
    for (kind, place) in entries {
        let file = files.get(*kind).ok_or(Error::Index)?;
        let Some((key, entry)) = file.any_entry(*place)? else {
            continue;
        };
        if let Some(document) = readable(&entry) {
            if builder.is_full() {
                let full = std::mem::take(&mut builder).segment();
                segments.push(IndexedSegment::new(full, std::mem::take(&mut places)));
            }
            builder.add(&attributes(&document, key), &document.content);
            places.push(*place);
        }
    }
    if !builder.is_empty() {
        segments.push(IndexedSegment::new(builder.segment(), places));
    }
    Ok(segments)
}

/// Finds the documents of a kind by their keys: each gets the place of its record, or none. Returns
/// the places without a document.
fn recognise(
    segments: &mut [IndexedSegment],
    kind: usize,
    keys: &[(u32, u64)],
) -> Result<Vec<u32>, Error> {
    // Of equal entries all but one stay unknown, and get documents of their own.
    let mut by_key: HashMap<u64, u32> = keys.iter().map(|(place, key)| (*key, *place)).collect();
    let mut known: HashSet<u32> = HashSet::with_capacity(keys.len());
    for held in segments {
        let segment = held.segment()?;
        segment.verify()?;
        let now = |(document, before): (usize, &u32)| {
            if usize::from(segment.kind(document)) != kind {
                return *before;
            }
            let place = by_key.remove(&segment.key(document)).unwrap_or(GONE);
            known.insert(place);
            place
        };
        let places: Vec<u32> = held.places.iter().enumerate().map(now).collect();
        held.moved |= places != held.places;
        held.places = places;
    }
    let places = keys.iter().map(|(place, _)| *place);
    Ok(places.filter(|place| !known.contains(place)).collect())
}
