//! Vectors of documents: computed on demand and stored.

use memctl_search::embedder::{Embedder, Embedding};
use memctl_search::{Admission, Ranker, SLOTS_HEADER, slot, slot_width, slots_header, texts_of};

use super::segment::{IndexedSegment, SegmentVectors};
use super::{Error, Index};
use crate::store::Map;

/// Number of a segment, and place of a document there.
type Place = (usize, usize);

impl Index {
    /// Stamp of existing vectors from this embedder, of any size.
    pub(crate) fn stamp_of(&self, embedder: &Embedder) -> Option<Embedding> {
        let mut stamps = self.segments.iter().filter_map(IndexedSegment::embedding);
        let own = stamps.find(|stamp| **stamp == embedder.embedding_of(stamp.dimensions));
        own.cloned()
    }

    /// Number of documents with vectors of another embedder, and the name of that embedder.
    pub(crate) fn of_others(&self) -> Option<(usize, &str)> {
        let current = self.embedding.as_ref();
        let others = self
            .segments
            .iter()
            .filter(|indexed| indexed.is_of_another(current));
        let (mut documents, mut name) = (0, None);
        for indexed in others {
            documents += indexed.filled(indexed.embedding());
            name = indexed.embedding().map(|embedding| embedding.name.as_str());
        }
        name.map(|name| (documents, name))
    }

    /// Drops the vectors of other embedders. They stay in the files until they are replaced.
    pub(crate) fn drop_others(&mut self) {
        let current = self.embedding.clone();
        for indexed in &mut self.segments {
            if indexed.is_of_another(current.as_ref()) {
                indexed.vectors = None;
            }
        }
    }

    /// Adds at most `limit` missing vectors: for the best keyword matches of the query first, then
    /// for the newest documents. Documents with a vector of another embedder keep it. Returns the
    /// number of vectors added.
    pub(crate) fn fill_missing(
        &mut self,
        query: &str,
        admission: &Admission,
        limit: usize,
        embedder: &Embedder,
    ) -> Result<usize, Error> {
        let current = self.embedding.as_ref();
        let own = |indexed: &IndexedSegment| !indexed.is_of_another(current);
        let missing = Ranker::new(self.parts(admission, own)?).without_vector(query, limit)?;
        let mut texts = Vec::with_capacity(missing.len());
        let (mut counts, mut total) = (Vec::new(), 0);
        // The number of dimensions does not matter to the layout.
        let of_embedder = embedder.embedding_of(0);
        for (part, place) in missing.iter().copied() {
            let indexed = self.segments.get(part).ok_or(Error::Index)?;
            let count = indexed.layout(&of_embedder).of_document(place).len().max(1);
            // The windows of long texts count too, but one document always gets its vectors.
            if total > 0 && total + count > limit {
                break;
            }
            total += count;
            counts.push(count);
            let record = self.any_record(part, place)?;
            // An unreadable record counts as an empty text.
            texts.push(record.map_or_else(String::new, |record| record.content));
        }
        let texts: Vec<&str> = texts
            .iter()
            .zip(&counts)
            .flat_map(|(text, count)| texts_of(text, *count))
            .collect();
        let mut vectors = embedder.embed(&texts)?.into_iter();
        let Some(found) = vectors.as_slice().first().map(Vec::len) else {
            return Ok(0);
        };
        let embedding = self.embedding.clone();
        let embedding = embedding.unwrap_or_else(|| embedder.embedding_of(found));
        if found != embedding.dimensions {
            return Err(embedder.other_size(found, embedding.dimensions).into());
        }
        let of_document = |count| vectors.by_ref().take(count).collect();
        let vectors = counts.into_iter().map(of_document);
        let filled: Vec<(Place, Vec<Vec<f32>>)> = missing.into_iter().zip(vectors).collect();
        let count = filled.len();
        self.fill(filled, &embedding)?;
        self.embedding = Some(embedding);
        Ok(count)
    }

    /// Sets the vectors of documents. They are saved if no other process is writing, otherwise kept
    /// in memory for this run.
    fn fill(
        &mut self,
        vectors: Vec<(Place, Vec<Vec<f32>>)>,
        embedding: &Embedding,
    ) -> Result<(), Error> {
        let mut of_parts: Vec<Vec<(usize, Vec<u8>)>> = vec![Vec::new(); self.segments.len()];
        for ((part, place), vectors) in vectors {
            let slots = vectors.iter().flat_map(|vector| slot(vector)).collect();
            of_parts[part].push((place, slots));
        }
        let parts = self.segments.iter_mut().zip(of_parts);
        for (indexed, slots) in parts.filter(|(_, slots)| !slots.is_empty()) {
            indexed.fill(&slots, embedding);
        }
        Ok(self.save()?)
    }
}

impl IndexedSegment {
    /// Sets slots, in memory.
    fn fill(&mut self, slots: &[(usize, Vec<u8>)], embedding: &Embedding) {
        let width = slot_width(embedding.dimensions);
        let layout = self.layout(embedding);
        let empty = || {
            let mut bytes = slots_header(embedding, layout.slots()).to_vec();
            bytes.resize(SLOTS_HEADER + layout.slots() * width, 0);
            bytes
        };
        let own = self.vectors.as_ref().filter(|v| v.embedding == *embedding);
        let mut bytes = own.map_or_else(empty, |vectors| vectors.slots.to_vec());
        for (place, slot) in slots {
            let start = SLOTS_HEADER + layout.of_document(*place).start * width;
            if let Some(room) = bytes.get_mut(start..start + slot.len()) {
                room.copy_from_slice(slot);
            }
        }
        self.vectors = Some(SegmentVectors {
            slots: Map::Memory(bytes),
            embedding: embedding.clone(),
            filled: self.filled(Some(embedding)) + slots.len(),
            file: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::model::Scope;
    use crate::store::Scoped;
    use memctl_search::{Fusion, Question};

    fn write(dir: &Path, notes: std::ops::Range<usize>) {
        let note = |n| {
            json!({ "id": format!("MEM-{n}"), "memory_type": "task_memory", "content": format!("note {n}"),
                "metadata": {}, "created_at": "2026-01-01T00:00:00Z" })
        };
        let entries: Vec<_> = notes.map(note).collect();
        let text = json!({ "entries": entries }).to_string();
        std::fs::write(dir.join("memories.json"), text).unwrap();
    }

    fn vector(n: usize) -> Vec<f32> {
        let number = |i: usize| i8::try_from((n * 31 + i * 17) % 97).unwrap() - 48;
        (0..64).map(|i| f32::from(number(i))).collect()
    }

    fn open(dir: &Path) -> Index {
        let mut index = Index::open(&Scoped::new(dir, Scope::All)).unwrap();
        index.update(true, &mut |_, _| {}).unwrap();
        index.embedding = Some(Embedding {
            name: "model/64".to_owned(),
            dimensions: 64,
        });
        index
    }

    fn nearest(index: &Index, n: usize) -> usize {
        let query = vector(n);
        let length = query.iter().map(|x| x * x).sum::<f32>().sqrt();
        let query: Vec<f32> = query.iter().map(|x| x / length).collect();
        let question = Question {
            text: "",
            vector: Some(&query),
            fusion: Fusion::Semantic,
            floor: None,
            weak: false,
            limit: 1,
            weight: |_| 1.0,
        };
        let ranker = Ranker::new(index.parts(&Admission::default(), |_| true).unwrap());
        ranker.rank(&question).unwrap()[0].document
    }

    #[test]
    fn they_are_saved_found_again_and_go_with_their_segment() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 0..90);
        let mut index = open(dir.path());
        let vectors: Vec<_> = (0..89).map(|n| ((0, n), vec![vector(n)])).collect();
        let embedding = index.embedding.clone().unwrap();
        index.fill(vectors, &embedding).unwrap();
        let last = vec![((0, 89), vec![vector(89)])];
        index.fill(last, &embedding).unwrap();
        assert_eq!(nearest(&index, 33), 33);
        drop(index);

        let index = open(dir.path());
        assert_eq!(index.without_vector(), 0);
        assert_eq!(nearest(&index, 33), 33);
        drop(index);

        // The vector of a deleted note is removed.
        write(dir.path(), 1..90);
        let index = open(dir.path());
        assert_eq!(nearest(&index, 33), 32);
        assert_ne!(nearest(&index, 0), 0);
    }
}
