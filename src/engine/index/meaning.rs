//! Vectors of documents, made as they are wanted and kept.

use crate::search::{
    BuiltIn, DIMENSIONS, Damaged, EMBEDDER, Filter, SLOTS_HEADER, slot, slot_width,
};

use super::held::{Bytes, Held};
use super::list::{List, Vectors};
use super::{Error, Index};

/// What makes the vectors. Vectors of different embeddings are never compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Embedding {
    /// Names the model and the shape of its vectors.
    pub(in crate::engine) name: String,
    /// How many numbers a vector has.
    pub(in crate::engine) dimensions: usize,
}

impl Embedding {
    /// The transformer that is built into the program.
    pub(in crate::engine) fn built_in() -> Self {
        Self {
            name: EMBEDDER.to_owned(),
            dimensions: DIMENSIONS,
        }
    }
}

impl Index {
    /// Makes vectors that are missing, at most so many: for the best by the words of a query first,
    /// then for the newest. Answers how many.
    pub(in crate::engine) fn fill_missing(
        &mut self,
        query: &str,
        filter: &Filter,
        limit: usize,
        model: &BuiltIn,
    ) -> Result<usize, Error> {
        let missing = self.ranker(filter)?.without_vector(query, limit)?;
        let mut texts = Vec::with_capacity(missing.len());
        for document in &missing {
            let (part, place) = self.place(*document).ok_or(Error::Index)?;
            let record = self.record(part, place)?;
            // What cannot be read says nothing.
            texts.push(record.map_or_else(String::new, |record| record.content));
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = model.embed(&texts)?;
        let vectors = vectors.iter().map(|vector| vector.to_vec());
        let filled: Vec<_> = missing.into_iter().zip(vectors).collect();
        self.fill(&filled)?;
        Ok(filled.len())
    }

    /// Gives documents their vectors. They are saved if nobody else is writing at this moment, and
    /// otherwise used this once.
    fn fill(&mut self, vectors: &[(usize, Vec<f32>)]) -> Result<(), Damaged> {
        let mut of_parts: Vec<Vec<(usize, Vec<u8>)>> = vec![Vec::new(); self.segments.len()];
        for (document, vector) in vectors {
            let (part, place) = self.place(*document).ok_or(Damaged)?;
            if vector.len() == self.embedding.dimensions {
                of_parts[part].push((place, slot(vector)));
            }
        }
        let writer = self.writer();
        let mut list = self.list.clone();
        for (part, slots) in of_parts.into_iter().enumerate() {
            if slots.is_empty() {
                continue;
            }
            let held = &mut self.segments[part];
            let saved = writer.as_ref().and_then(|writer| {
                let files = list.segments.get(part).cloned();
                let files = files.filter(|files| held.files.as_ref() == Some(files))?;
                let vectors = match files.vectors {
                    Some(vectors) => vectors,
                    None => reserve(writer, &mut list, held, &self.embedding)?,
                };
                let width = slot_width(self.embedding.dimensions);
                let at = |place: usize| (SLOTS_HEADER + place * width) as u64;
                let places = slots
                    .iter()
                    .map(|(place, slot)| (at(*place), slot.as_slice()));
                writer.fill(&vectors.name(), places).then_some(())?;
                let vectors = Vectors {
                    filled: vectors.filled + slots.len(),
                    ..vectors
                };
                let map = self.derived.map(&vectors.name())?;
                Some((vectors, map))
            });
            held.filled += slots.len();
            if let Some((vectors, map)) = saved {
                held.vectors = Some(Bytes::File(map));
                if let Some(files) = &mut held.files {
                    files.vectors = Some(vectors);
                    list.segments[part] = files.clone();
                }
            } else {
                held.fill_own(&slots, &self.embedding);
            }
        }
        if let Some(writer) = writer.filter(|_| list != self.list) {
            self.publish(&writer, list);
        }
        Ok(())
    }

    /// The segment that a document is in, and its place there.
    fn place(&self, document: usize) -> Option<(usize, usize)> {
        let mut first = 0;
        for (part, held) in self.segments.iter().enumerate() {
            if document < first + held.places.len() {
                return Some((part, document - first));
            }
            first += held.places.len();
        }
        None
    }
}

fn reserve(
    writer: &crate::store::DerivedWriter,
    list: &mut List,
    held: &Held,
    embedding: &Embedding,
) -> Option<Vectors> {
    let vectors = Vectors {
        file: list.number(),
        embedder: embedding.name.clone(),
        filled: 0,
    };
    let documents = held.places.len();
    let size = SLOTS_HEADER + documents * slot_width(embedding.dimensions);
    writer
        .reserve(&vectors.name(), &embedding.header(documents), size as u64)
        .then_some(vectors)
}

impl Held {
    /// Puts slots into memory, where they cannot be saved.
    fn fill_own(&mut self, slots: &[(usize, Vec<u8>)], embedding: &Embedding) {
        let width = slot_width(embedding.dimensions);
        let empty = || {
            let mut bytes = embedding.header(self.places.len()).to_vec();
            bytes.resize(SLOTS_HEADER + self.places.len() * width, 0);
            bytes
        };
        let mut bytes = self.vectors.as_ref().map_or_else(empty, |v| v.to_vec());
        for (place, slot) in slots {
            let start = SLOTS_HEADER + place * width;
            if let Some(room) = bytes.get_mut(start..start + width) {
                room.copy_from_slice(slot);
            }
        }
        self.vectors = Some(Bytes::Own(bytes));
    }
}
