//! Searches the indexes of this memory and of remote records as one.
//!
//! Each index is stored next to its records and follows only those, so adding or removing one
//! workspace touches no other index. A ranking covers all of them: a word has the same weight
//! everywhere.

use memctl_search::embedder::{Embedder, Embedding};
use memctl_search::{Damaged, Ranker};

use super::{Error, Filter, Index, Progress};
use crate::model::Document;
use crate::store::Scoped;

/// Indexes, this memory's own first.
#[derive(Debug)]
pub(crate) struct MultiIndex {
    indexes: Vec<Index>,
}

impl MultiIndex {
    /// Opens all indexes as saved. They must be updated before use.
    pub(crate) fn open(store: &Scoped) -> Result<Self, Error> {
        let mut indexes = vec![Index::open(store)?];
        for pulled in store.others() {
            indexes.push(Index {
                origin: Some(pulled.origin),
                ..Index::open(&pulled.store)?
            });
        }
        Ok(Self { indexes })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Index> {
        self.indexes.iter_mut()
    }

    /// Brings all of them up to date; see [`Index::update`].
    pub(crate) fn update(&mut self, save: bool, progress: Progress<'_>) -> Result<(), Error> {
        self.iter_mut()
            .try_for_each(|index| index.update(save, progress))
    }

    /// Rebuilds all indexes from the data files.
    pub(crate) fn renew(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        self.iter_mut().try_for_each(|index| index.renew(progress))
    }

    /// Number of documents that pass the filter, and number of those with a vector.
    pub(crate) fn counts(&self, filter: &Filter) -> Result<(usize, usize), Damaged> {
        let counts: Result<Vec<_>, _> = self.iter().map(|index| index.counts(filter)).collect();
        let sum = |(a, b): (usize, usize), (c, d): (usize, usize)| (a + c, b + d);
        Ok(counts?.into_iter().fold((0, 0), sum))
    }

    /// Number of documents without a vector of the current embedder.
    pub(crate) fn without_vector(&self) -> usize {
        self.iter().map(Index::without_vector).sum()
    }

    /// Sets the current embedder.
    pub(crate) fn ask_for(&mut self, embedding: Option<&Embedding>) {
        self.iter_mut()
            .for_each(|index| index.embedding = embedding.cloned());
    }

    /// Name of the current embedder.
    pub(crate) fn asked_for(&self) -> Option<&str> {
        self.iter()
            .find_map(|index| index.embedding.as_ref())
            .map(|embedding| embedding.name.as_str())
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
        for index in self.iter_mut() {
            if made < limit && index.without_vector() > 0 {
                made += index.fill_missing(query, filter, limit - made, embedder)?;
            }
        }
        Ok(made)
    }

    /// Ranker for the documents that pass the filter.
    pub(crate) fn ranker(&self, filter: &Filter) -> Result<Ranker<'_>, Damaged> {
        let mut parts = Vec::new();
        for index in self.iter() {
            parts.extend(index.parts(filter, |_| true)?);
        }
        Ok(Ranker::new(parts))
    }

    /// Returns the record of a document by its place in the ranker's parts, with its origin. `None`
    /// if the caller may not see it or it cannot be read.
    pub(crate) fn record(
        &self,
        mut part: usize,
        place: usize,
    ) -> Result<Option<(Option<&str>, Document)>, Error> {
        for index in self.iter() {
            if part < index.segments.len() {
                let document = index.record(part, place)?;
                return Ok(document.map(|document| (index.origin.as_deref(), document)));
            }
            part -= index.segments.len();
        }
        Err(Error::Index)
    }
}
