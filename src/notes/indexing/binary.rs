//! Binary vectors of large segments: derived from the vectors when an index has many of them.

use memctl_files::parallel::each;
use memctl_search::{BinaryVectors, binary_vectors};

use super::Index;
use super::held::{Bytes, IndexedSegment, SegmentVectors};
use super::manifest::binary_name;

/// Minimum number of vectors of an index, and of a segment: below, comparing all is as fast.
const MANY: usize = 65_536;
const LARGE: usize = 4_096;

impl Index {
    /// Makes the missing binary vectors. Without them a search compares all vectors, so they are made
    /// only if they can be saved.
    pub(crate) fn add_binary(&mut self) {
        self.add_binary_from(MANY, LARGE);
    }

    fn add_binary_from(&mut self, many: usize, large: usize) {
        let vectors = |held: &IndexedSegment| held.filled(self.embedding.as_ref());
        if self.segments.iter().map(vectors).sum::<usize>() < many {
            return;
        }
        let lacks = |held: &IndexedSegment| held.lacks_binary(large);
        let lacks: Vec<bool> = self.segments.iter().map(lacks).collect();
        if !lacks.contains(&true) {
            return;
        }
        let Some(writer) = self.writer() else {
            return;
        };
        let missing = self.segments.iter().zip(&lacks);
        let missing =
            missing.map(|(held, lacks)| held.all_slots().filter(|_| *lacks).zip(held.embedding()));
        let made = each(missing, true, |found| {
            found.map(|(slots, embedding)| {
                binary_vectors(&slots, &embedding.name, embedding.dimensions)
            })
        });
        let mut list = self.list.clone();
        for ((place, held), bytes) in self.segments.iter_mut().enumerate().zip(made) {
            let (Some(bytes), Some(files)) = (bytes, &held.files) else {
                continue;
            };
            let number = list.number();
            if list.segments.get(place) != Some(files)
                || !writer.write(&binary_name(number), &[&bytes])
            {
                return;
            }
            if let (Some(vectors), Some(meaning)) =
                (&mut list.segments[place].vectors, &mut held.vectors)
            {
                vectors.binary = Some(number);
                meaning.binary = Some(Bytes::Own(bytes));
            }
            held.files = Some(list.segments[place].clone());
        }
        self.publish(&writer, list);
    }
}

impl IndexedSegment {
    /// Returns true for a large saved segment in which every document has a vector.
    fn lacks_binary(&self, large: usize) -> bool {
        let of_file = |meaning: &&SegmentVectors| {
            matches!(meaning.slots, Bytes::File(_)) && meaning.filled >= self.places.len()
        };
        let vectors = self.vectors.as_ref().filter(of_file);
        vectors.is_some_and(|meaning| {
            meaning.binary.is_none() && self.layout(&meaning.embedding).slots() >= large
        })
    }

    /// Binary vectors of the current ones.
    pub(super) fn binary(&self) -> Option<BinaryVectors<'_>> {
        let vectors = self.vectors.as_ref()?;
        BinaryVectors::open(
            vectors.binary.as_ref()?,
            &vectors.embedding.name,
            vectors.embedding.dimensions,
            self.layout(&vectors.embedding),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::model::Scope;
    use crate::notes::indexing::Filter;
    use crate::store::Scoped;
    use memctl_search::embedder::Embedding;
    use memctl_search::{Fusion, Question, Ranker};

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
        index.ask_for(Some(Embedding {
            name: "model/64".to_owned(),
            dimensions: 64,
        }));
        index
    }

    fn nearest(index: &Index, n: usize) -> usize {
        let asked = vector(n);
        let length = asked.iter().map(|x| x * x).sum::<f32>().sqrt();
        let asked: Vec<f32> = asked.iter().map(|x| x / length).collect();
        let question = Question {
            text: "",
            vector: Some(&asked),
            fusion: Fusion::Semantic,
            floor: None,
            weak: false,
            limit: 1,
            weight: |_| 1.0,
        };
        let ranker = Ranker::new(index.parts(&Filter::default(), |_| true).unwrap());
        ranker.rank(&question).unwrap()[0].document
    }

    #[test]
    fn they_are_saved_found_again_and_go_with_their_segment() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 0..90);
        let mut index = open(dir.path());
        let vectors: Vec<_> = (0..89).map(|n| (n, vec![vector(n)])).collect();
        let embedding = index.embedding.clone().unwrap();
        index.fill(&vectors, &embedding).unwrap();
        let has_binary = |index: &Index| index.segments.iter().all(|held| held.binary().is_some());
        index.add_binary_from(80, 10);
        assert!(!has_binary(&index), "one note has no vector");
        index.fill(&[(89, vec![vector(89)])], &embedding).unwrap();
        index.add_binary_from(91, 10);
        assert!(!has_binary(&index), "too few");
        index.add_binary_from(90, 10);
        assert!(has_binary(&index));
        assert_eq!(nearest(&index, 33), 33);
        drop(index);

        let index = open(dir.path());
        assert!(has_binary(&index));
        assert_eq!(nearest(&index, 33), 33);
        let file = || {
            let files = std::fs::read_dir(dir.path().join(".index/search")).unwrap();
            let mut files = files.map(|file| file.unwrap().path());
            files.find(|path| path.extension().is_some_and(|e| e == "binary"))
        };
        drop(index);
        let path = file().unwrap();
        let mut damaged = std::fs::read(&path).unwrap();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(nearest(&open(dir.path()), 33), 33);

        // Every form of a deleted note is removed.
        write(dir.path(), 1..90);
        assert!(!has_binary(&open(dir.path())) && file().is_none());
        let mut index = open(dir.path());
        index.add_binary_from(80, 10);
        assert!(has_binary(&index));
        assert_eq!(nearest(&index, 33), 32);
    }
}
