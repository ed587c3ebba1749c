//! Saves the index.
//!
//! New segments follow the old ones. A segment is merged with the newer ones after it if it has at
//! most twice as many documents. So a document moves a few times in its life, not with every new
//! one. A segment with deleted records is rewritten without them.

use std::collections::HashSet;

use crate::store::DerivedWriter;
use memctl_search::{Damaged, merge, slots_header};

use super::follow::NewEntry;
use super::held::{Bytes, GONE, IndexedSegment, SegmentVectors, places_file};
use super::manifest::{Covered, Files, List, Vectors, places_name, words_name};
use super::{Error, Index, Progress, SPARE};
use crate::model::Kind;
use memctl_search::embedder::Embedding;

/// Maximum size of a merged segment, in documents; a larger merge would delay a search.
const MERGED: usize = 8_192;

impl Index {
    /// Adds the new entries, and saves them if they are many or `save` is set.
    pub(crate) fn take_in(
        &mut self,
        new_entries: &[NewEntry],
        save: bool,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let changed = self.segments.iter().any(|held| held.moved) || self.has_lost_track();
        let fresh = self.analyse(new_entries, progress)?;
        self.segments.extend(fresh);
        if changed || new_entries.len() > SPARE || (save && !new_entries.is_empty()) {
            self.save()?;
        }
        Ok(())
    }

    /// Saves everything, unless another process is writing or has written since.
    fn save(&mut self) -> Result<(), Damaged> {
        let Some(writer) = self.writer() else {
            return Ok(());
        };
        self.merge_small()?;
        let mut list = self.list.clone();
        list.covered = self.covered();
        list.segments.clear();
        for held in &mut self.segments {
            let Some(files) = held.save(&writer, &mut list) else {
                return Ok(());
            };
            list.segments.push(files);
        }
        self.publish(&writer, list);
        Ok(())
    }

    /// Returns the write lock if the saved state is still the one that was opened.
    pub(crate) fn writer(&self) -> Option<DerivedWriter> {
        let writer = self.derived.writer()?;
        let saved = self.derived.list().and_then(|bytes| List::parse(&bytes));
        let same = match saved {
            None => true,
            // A damaged list was cleared in memory, and is replaced.
            Some(saved) => saved == self.list || self.list.covered.is_empty(),
        };
        same.then_some(writer)
    }

    pub(crate) fn publish(&mut self, writer: &DerivedWriter, list: List) {
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
            while let Some(held) = segments.last()
                && let before = held.places.len()
                && before <= size.saturating_mul(2)
                && before + size <= MERGED
                && !(embedding.is_some() && held.is_of_another(embedding.as_ref()))
            {
                size += before;
                embedding = embedding.or(held.embedding().cloned());
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
        let kept: Vec<Vec<bool>> = group.iter().map(IndexedSegment::kept).collect();
        let segments: Result<Vec<_>, _> = group.iter().map(IndexedSegment::segment).collect();
        let parts: Vec<_> = segments?
            .into_iter()
            .zip(kept.iter().map(Vec::as_slice))
            .collect();
        let words = merge(&parts)?;
        let places = group.iter().flat_map(|held| &held.places);
        let places: Vec<u32> = places.copied().filter(|place| *place != GONE).collect();
        let mut one = IndexedSegment::new(words, places);
        if let Some(embedding) = group.iter().find_map(IndexedSegment::embedding) {
            let mut bytes = header(embedding, one.layout(embedding).slots()).to_vec();
            let mut all = 0;
            for held in group {
                let (slots, filled) = held.kept_slots(embedding);
                bytes.extend(slots);
                all += filled;
            }
            one.vectors = (all > 0).then(|| SegmentVectors {
                slots: Bytes::Own(bytes),
                embedding: embedding.clone(),
                filled: all,
                binary: None,
            });
        }
        Ok(one)
    }
}

impl IndexedSegment {
    /// Writes the parts that are not saved yet or have changed; `None` on failure.
    fn save(&mut self, writer: &DerivedWriter, list: &mut List) -> Option<Files> {
        let mut files = if let Some(files) = self.files.take() {
            files
        } else {
            let words = list.number();
            writer
                .write(&words_name(words), &[&self.words])
                .then_some(())?;
            self.moved = true;
            Files {
                documents: self.places.len(),
                words,
                places: 0,
                vectors: None,
            }
        };
        if self.moved {
            files.places = list.number();
            let name = places_name(files.places);
            writer
                .write(&name, &[&places_file(&self.places)])
                .then_some(())?;
            self.moved = false;
        }
        if let Some(meaning) = &self.vectors
            && let Bytes::Own(bytes) = &meaning.slots
        {
            let vectors = Vectors {
                file: list.number(),
                embedder: meaning.embedding.name.clone(),
                filled: meaning.filled,
                binary: None,
            };
            writer.write(&vectors.name(), &[bytes]).then_some(())?;
            files.vectors = Some(vectors);
        }
        self.files = Some(files.clone());
        Some(files)
    }
}

/// Header of this number of slots.
pub(crate) fn header(embedding: &Embedding, slots: usize) -> [u8; memctl_search::SLOTS_HEADER] {
    slots_header(&embedding.name, embedding.dimensions, slots)
}
