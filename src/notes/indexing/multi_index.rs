//! Searches the indexes of this memory and of remote records as one.
//!
//! Each index is stored next to its records and follows only those, so adding or removing one
//! workspace touches no other index. A ranking covers all of them: a word has the same weight
//! everywhere.

use crate::model::Document;
use crate::notes::indexing::Filter;
use crate::store::Scoped;
use memctl_search::{Damaged, Ranker};

use super::{Error, Index, Progress};
use crate::model::Kind;
use memctl_search::embedder::Embedder;
use memctl_search::embedder::Embedding;

/// Indexes, this memory's own first.
#[derive(Debug)]
pub(crate) struct MultiIndex {
    by_origin: Vec<OriginIndex>,
}

#[derive(Debug)]
struct OriginIndex {
    /// Origin of the remote records; `None` for this workspace.
    origin: Option<String>,
    index: Index,
}

impl MultiIndex {
    /// Opens all indexes as saved. They must be updated before use.
    pub(crate) fn open(store: &Scoped) -> Result<Self, Error> {
        let mut by_origin = vec![OriginIndex {
            origin: None,
            index: Index::open(store)?,
        }];
        for pulled in store.others() {
            by_origin.push(OriginIndex {
                index: Index::open(&pulled.store)?,
                origin: Some(pulled.origin),
            });
        }
        Ok(Self { by_origin })
    }

    fn indexes(&self) -> impl Iterator<Item = &Index> {
        self.by_origin.iter().map(|one| &one.index)
    }

    fn indexes_mut(&mut self) -> impl Iterator<Item = &mut Index> {
        self.by_origin.iter_mut().map(|one| &mut one.index)
    }

    /// Brings all of them up to date; see [`Index::update`].
    pub(crate) fn update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        self.indexes_mut()
            .try_for_each(|index| index.update(save, progress))
    }

    /// Rebuilds all indexes from the data files.
    pub(crate) fn renew(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        self.indexes_mut()
            .try_for_each(|index| index.renew(progress))
    }

    /// Returns true if there are no records at all.
    pub(crate) fn is_blank(&self) -> bool {
        self.indexes().all(Index::is_blank)
    }

    /// Returns true if all changes are in files.
    pub(crate) fn is_saved(&self) -> bool {
        self.indexes().all(Index::is_saved)
    }

    /// Size of all indexes in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.indexes().map(Index::bytes).sum()
    }

    /// Problems of the file of a kind, or of all files.
    pub(crate) fn problems(&self, kind: Option<Kind>) -> impl Iterator<Item = String> {
        self.indexes().flat_map(move |index| index.problems(kind))
    }

    /// See [`Index::has_all_vectors`].
    pub(crate) fn has_all_vectors(&self) -> bool {
        self.indexes()
            .all(|index| index.is_blank() || index.has_all_vectors())
    }

    /// Number of documents that pass the filter, and number of those with a vector.
    pub(crate) fn counts(&self, filter: &Filter) -> Result<(usize, usize), Damaged> {
        let (mut documents, mut vectors) = (0, 0);
        for index in self.indexes() {
            let (more, of_them) = index.counts(filter)?;
            documents += more;
            vectors += of_them;
        }
        Ok((documents, vectors))
    }

    /// Number of documents without a vector of the current embedder.
    pub(crate) fn without_vector(&self) -> usize {
        self.indexes().map(Index::without_vector).sum()
    }

    /// Number of documents with vectors of another embedder, and the name of that embedder.
    pub(crate) fn of_others(&self) -> Option<(usize, &str)> {
        let others = self.indexes().filter_map(Index::of_others);
        others.reduce(|(sum, _), (documents, name)| (sum + documents, name))
    }

    /// Sets the current embedder.
    pub(crate) fn ask_for(&mut self, embedding: Option<&Embedding>) {
        self.indexes_mut()
            .for_each(|index| index.ask_for(embedding.cloned()));
    }

    /// Name of the current embedder.
    pub(crate) fn asked_for(&self) -> Option<&str> {
        self.indexes().find_map(Index::asked_for)
    }

    /// Stamp of existing vectors from this embedder, of any size.
    pub(crate) fn stamp_of(&self, embedder: &Embedder) -> Option<Embedding> {
        self.indexes().find_map(|index| index.stamp_of(embedder))
    }

    /// Drops the vectors of other embedders.
    pub(crate) fn drop_others(&mut self) {
        self.indexes_mut().for_each(Index::drop_others);
    }

    /// Adds at most `limit` missing vectors, starting with this memory's own index; see
    /// [`Index::fill_missing`].
    pub(crate) fn fill_missing(
        &mut self,
        query: &str,
        filter: &Filter,
        limit: usize,
        embedder: &Embedder,
    ) -> Result<usize, Error> {
        let mut made = 0;
        for index in self.indexes_mut() {
            if made < limit && index.without_vector() > 0 {
                made += index.fill_missing(query, filter, limit - made, embedder)?;
            }
        }
        Ok(made)
    }

    /// See [`Index::add_binary`].
    pub(crate) fn add_binary(&mut self) {
        self.indexes_mut().for_each(Index::add_binary);
    }

    /// Ranker for the documents that pass the filter.
    pub(crate) fn ranker(&self, filter: &Filter) -> Result<Ranker<'_>, Damaged> {
        let mut parts = Vec::new();
        for index in self.indexes() {
            parts.extend(index.parts(filter, |_| true)?);
        }
        Ok(Ranker::new(parts))
    }

    /// Returns the record of a document by its place in the ranker's parts, with its origin. `None`
    /// if the caller may not see it or it cannot be read.
    pub(crate) fn record(
        &self,
        part: usize,
        place: usize,
    ) -> Result<Option<(Option<&str>, Document)>, Error> {
        let mut part = part;
        for one in &self.by_origin {
            let held = one.index.segments.len();
            if part < held {
                let document = one.index.record(part, place)?;
                return Ok(document.map(|document| (one.origin.as_deref(), document)));
            }
            part -= held;
        }
        Err(Error::Index)
    }
}
