//! Brings the index up to date with the records, and saves it.
//!
//! Files that only grew cost nothing: their first entries have kept their places. In other files, entries
//! are recognised by the hash of their text. New records are read and tokenized on all processors.
//!
//! New segments follow the old ones. A segment is merged with the newer ones after it if it has at
//! most twice as many documents, so a document moves only a few times in its life. A segment with deleted
//! records is rewritten without them.

use std::collections::{HashMap, HashSet};

use memctl_files::parallel::{each, processors};
use memctl_search::{Builder, Damaged, merge, slots_header};

use super::segment::{Covered, GONE, IndexedSegment, List, SegmentVectors, attributes};
use super::{Error, Index, Progress, SPARE, readable};
use crate::model::Kind;
use crate::store::{DerivedWriter, Map, Positions};

/// New entry: its kind as a place in [`Kind::ALL`], and its place among the entries of that kind.
type NewEntry = (usize, u32);

/// Number of records below which a second thread does not pay off.
const FEW: usize = 256;
/// Maximum number of records that a thread takes at once: those of a full segment.
const SHARE: usize = 32_768;

/// Maximum size of a merged segment, in documents; a larger merge would delay a search.
const MERGED: usize = 8_192;

impl Index {
    /// Follows the records, and saves the new entries if they are many or `save` is set. [`Error::Index`]
    /// means damage.
    pub(super) fn try_update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        let new_entries = self.follow()?;
        let has_moved = |indexed: &IndexedSegment| indexed.places_file.is_none();
        let changed = self.segments.iter().any(has_moved) || self.has_lost_track();
        let fresh = self.analyse(&new_entries, progress)?;
        self.segments.extend(fresh);
        if changed || new_entries.len() > SPARE || (save && !new_entries.is_empty()) {
            self.save()?;
        }
        Ok(())
    }

    /// Updates the places of the documents, and returns the new entries. [`Error::Index`] means damage.
    fn follow(&mut self) -> Result<Vec<NewEntry>, Error> {
        let mut new_entries = Vec::new();
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let file = &self.files[number];
            let unknown: Vec<u32> = match self.list.covers(kind, file) {
                Some(covered) => file.places_behind(&covered).collect(),
                None => recognise(&mut self.segments, number, &file.keys())?,
            };
            new_entries.extend(unknown.into_iter().map(|place| (number, place)));
        }
        Ok(new_entries)
    }

    /// Returns segments of these entries, in their order. Unreadable entries are skipped; `doctor`
    /// reports them.
    fn analyse(
        &self,
        new_entries: &[NewEntry],
        progress: Progress<'_>,
    ) -> Result<Vec<IndexedSegment>, Error> {
        let files = &self.files;
        let threads = processors();
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

    /// Saves everything, unless another process is writing or has written since.
    pub(super) fn save(&mut self) -> Result<(), Damaged> {
        let Some(writer) = self.writer() else {
            return Ok(());
        };
        self.merge_small()?;
        let mut list = self.list.clone();
        list.covered = self.covered();
        list.segments.clear();
        for indexed in &mut self.segments {
            let Some(files) = indexed.save(&writer, &self.derived, &mut list) else {
                return Ok(());
            };
            list.segments.push(files);
        }
        self.publish(&writer, list);
        Ok(())
    }

    /// Returns the write lock if the saved state is still the one that was opened.
    fn writer(&self) -> Option<DerivedWriter> {
        let writer = self.derived.writer()?;
        let saved = self.derived.list().and_then(|bytes| List::parse(&bytes));
        let same = match saved {
            None => true,
            // A damaged list was cleared in memory, and is replaced.
            Some(saved) => saved == self.list || self.list.covered.is_empty(),
        };
        same.then_some(writer)
    }

    fn publish(&mut self, writer: &DerivedWriter, list: List) {
        let names: HashSet<String> = list.names().collect();
        if writer.keep(&list.to_bytes(), &names) {
            self.list = list;
        }
    }

    /// Returns true if a large file has another generation than the list. Until the list is saved,
    /// every search would recognise its entries again, though none has changed.
    fn has_lost_track(&self) -> bool {
        let mut files = Kind::ALL.into_iter().zip(&self.files);
        files.any(|(kind, file)| file.len() > SPARE && self.list.covers(kind, file).is_none())
    }

    fn covered(&self) -> Vec<Covered> {
        let kinds = Kind::ALL.into_iter().zip(&self.files);
        let covered = kinds.flat_map(|(kind, file)| {
            let files = file.generations();
            files.map(move |(generation, entries)| Covered {
                kind,
                generation,
                entries,
            })
        });
        covered.collect()
    }

    /// Merges small segments, newest first, and drops the documents of deleted records.
    fn merge_small(&mut self) -> Result<(), Damaged> {
        let mut segments = std::mem::take(&mut self.segments);
        let mut merged: Vec<IndexedSegment> = Vec::new();
        while let Some(last) = segments.pop() {
            let mut size = last.places.len();
            let mut embedding = last.embedding().cloned();
            let mut group = vec![last];
            while let Some(indexed) = segments.last()
                && let before = indexed.places.len()
                && before <= size.saturating_mul(2)
                && before + size <= MERGED
                && !(embedding.is_some() && indexed.is_of_another(embedding.as_ref()))
            {
                size += before;
                embedding = embedding.or(indexed.embedding().cloned());
                group.extend(segments.pop());
            }
            group.reverse();
            if group.len() > 1 || group.iter().any(IndexedSegment::has_gone) {
                let one = Self::one_of(&group)?;
                merged.extend((!one.places.is_empty()).then_some(one));
            } else {
                merged.extend(group);
            }
        }
        merged.reverse();
        self.segments = merged;
        Ok(())
    }

    fn one_of(group: &[IndexedSegment]) -> Result<IndexedSegment, Damaged> {
        let in_force: Vec<Vec<bool>> = group.iter().map(IndexedSegment::in_force).collect();
        let segments: Result<Vec<_>, _> = group.iter().map(IndexedSegment::segment).collect();
        let parts: Vec<_> = segments?
            .into_iter()
            .zip(in_force.iter().map(Vec::as_slice))
            .collect();
        let words = merge(&parts)?;
        let places = group.iter().flat_map(|indexed| &indexed.places);
        let places: Vec<u32> = places.copied().filter(|place| *place != GONE).collect();
        let mut one = IndexedSegment::new(words, places);
        if let Some(embedding) = group.iter().find_map(IndexedSegment::embedding) {
            let mut bytes = slots_header(embedding, one.layout(embedding).slots()).to_vec();
            let mut all = 0;
            for indexed in group {
                let (slots, filled) = indexed.kept_slots(embedding);
                bytes.extend(slots);
                all += filled;
            }
            one.vectors = (all > 0).then(|| SegmentVectors {
                slots: Map::Memory(bytes),
                embedding: embedding.clone(),
                filled: all,
                file: None,
            });
        }
        Ok(one)
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
    let mut existing: HashSet<u32> = HashSet::with_capacity(keys.len());
    for indexed in segments {
        let segment = indexed.segment()?;
        segment.verify()?;
        let now = |(document, before): (usize, &u32)| {
            if usize::from(segment.kind(document)) != kind {
                return *before;
            }
            let place = by_key.remove(&segment.key(document)).unwrap_or(GONE);
            existing.insert(place);
            place
        };
        let places: Vec<u32> = indexed.places.iter().enumerate().map(now).collect();
        if places != indexed.places {
            indexed.places_file = None;
        }
        indexed.places = places;
    }
    let places = keys.iter().map(|(place, _)| *place);
    Ok(places.filter(|place| !existing.contains(place)).collect())
}
