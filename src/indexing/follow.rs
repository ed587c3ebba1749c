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
    /// entries are recognised by the hash of their text. Long documents of a segment from before windows
    /// are analysed again, and inherit their vectors. [`Error::Index`] means damage.
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
        for held in &mut self.segments {
            let without = held.without_windows()?;
            held.moved |= !without.is_empty();
            for document in without {
                let kind = usize::from(held.segment()?.kind(document));
                let place = held.places.replace(document, GONE);
                new_entries.push((kind, place));
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Index;
    use crate::embedder::Embedding;
    use crate::model::Scope;
    use crate::search::{plain, vectors_of};
    use crate::store::Scoped;

    #[test]
    fn long_documents_of_an_older_index_get_windows_and_keep_their_vectors() {
        let dir = tempfile::tempdir().unwrap();
        let text = |n: usize| match n {
            0 => "short".to_owned(),
            _ => (0..150)
                .map(|word| format!("w{n}x{word}"))
                .collect::<Vec<_>>()
                .join(" "),
        };
        let note = |n| {
            json!({ "id": format!("MEM-{n}"), "memory_type": "task_memory", "content": text(n),
                "metadata": {}, "created_at": "2026-01-01T00:00:00Z" })
        };
        let entries: Vec<_> = (0..3).map(note).collect();
        let file = json!({ "entries": entries }).to_string();
        std::fs::write(dir.path().join("memories.json"), file).unwrap();
        let embedding = Embedding {
            name: "model/2".to_owned(),
            dimensions: 2,
        };
        let open = || {
            let mut index = Index::open(&Scoped::new(dir.path(), Scope::All)).unwrap();
            index.update(true, &mut |_, _| {}).unwrap();
            index.ask_for(Some(embedding.clone()));
            index
        };
        let mut index = open();
        let count = |n| if n == 0 { 1 } else { vectors_of(150) };
        let vectors: Vec<_> = (0..3)
            .map(|n| (n, vec![vec![0.6, 0.8]; count(n)]))
            .collect();
        index.fill(&vectors, &embedding).unwrap();
        assert_eq!(index.without_vector(), 0);

        let saved = dir.path().join(".index/search");
        let words = std::fs::read_dir(&saved)
            .unwrap()
            .map(|file| file.unwrap().path());
        for path in words.filter(|path| path.extension().is_some_and(|of| of == "words")) {
            let old = plain(&std::fs::read(&path).unwrap());
            std::fs::write(&path, old).unwrap();
        }
        for _ in 0..2 {
            let index = open();
            let lengths: Vec<usize> = index
                .segments
                .iter()
                .map(|held| held.places.len())
                .collect();
            assert_eq!(lengths.iter().sum::<usize>(), 3);
            for held in &index.segments {
                assert_eq!(held.without_windows().unwrap(), Vec::<usize>::new());
            }
            assert_eq!(index.without_vector(), 0, "vectors are inherited");
            assert!(index.is_saved());
        }
    }
}
