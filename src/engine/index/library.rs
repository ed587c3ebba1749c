//! The index of this memory and those of what was pulled from other workspaces, searched as one.
//!
//! Each lies beside its records and is kept in step with them alone, so that what is pulled or thrown
//! away touches no other. A ranking goes over all of them: how telling a word is, is the same for all.

use crate::model::Document;
use crate::search::{Damaged, Filter, Ranker};
use crate::store::Scoped;

use super::{Embedding, Error, Index, Progress};
use crate::engine::embedder::Maker;
use crate::model::Kind;

/// The indexes, this memory's own first.
#[derive(Debug)]
pub(in crate::engine) struct Library {
    shelves: Vec<Shelf>,
}

#[derive(Debug)]
struct Shelf {
    /// The workspace that its records were pulled from; `None` is this one.
    origin: Option<String>,
    index: Index,
}

impl Library {
    /// Opens them as they were saved. They are of no use before they are brought up to date.
    pub(in crate::engine) fn open(store: &Scoped) -> Result<Self, Error> {
        let mut shelves = vec![Shelf {
            origin: None,
            index: Index::open(store)?,
        }];
        for pulled in store.pulled() {
            shelves.push(Shelf {
                index: Index::open(&pulled.store)?,
                origin: Some(pulled.origin),
            });
        }
        Ok(Self { shelves })
    }

    fn indexes(&self) -> impl Iterator<Item = &Index> {
        self.shelves.iter().map(|shelf| &shelf.index)
    }

    fn indexes_mut(&mut self) -> impl Iterator<Item = &mut Index> {
        self.shelves.iter_mut().map(|shelf| &mut shelf.index)
    }

    /// Brings all of them up to date; see [`Index::update`].
    pub(in crate::engine) fn update(
        &mut self,
        save: bool,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        self.indexes_mut()
            .try_for_each(|index| index.update(save, progress))
    }

    /// Makes all of them again from the files.
    pub(in crate::engine) fn renew(&mut self, progress: Progress<'_>) -> Result<(), Error> {
        self.indexes_mut()
            .try_for_each(|index| index.renew(progress))
    }

    /// Whether nothing is remembered at all.
    pub(in crate::engine) fn is_blank(&self) -> bool {
        self.indexes().all(Index::is_blank)
    }

    /// Whether everything that they hold is in files.
    pub(in crate::engine) fn is_saved(&self) -> bool {
        self.indexes().all(Index::is_saved)
    }

    /// How much room they take.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        self.indexes().map(Index::bytes).sum()
    }

    /// What is wrong with the files of a kind, or with all of them.
    pub(in crate::engine) fn problems(&self, kind: Option<Kind>) -> impl Iterator<Item = String> {
        self.indexes().flat_map(move |index| index.problems(kind))
    }

    /// See [`Index::has_all_vectors`].
    pub(in crate::engine) fn has_all_vectors(&self) -> bool {
        self.indexes()
            .all(|index| index.is_blank() || index.has_all_vectors())
    }

    /// How many documents the filter admits, and how many of those have a vector.
    pub(in crate::engine) fn counts(&self, filter: &Filter) -> Result<(usize, usize), Damaged> {
        let (mut documents, mut vectors) = (0, 0);
        for index in self.indexes() {
            let (more, of_them) = index.counts(filter)?;
            documents += more;
            vectors += of_them;
        }
        Ok((documents, vectors))
    }

    /// How many documents have no vector of the embedder that is asked for.
    pub(in crate::engine) fn without_vector(&self) -> usize {
        self.indexes().map(Index::without_vector).sum()
    }

    /// How many documents have a vector of another embedder than is asked for, and of which one.
    pub(in crate::engine) fn of_others(&self) -> Option<(usize, &str)> {
        let others = self.indexes().filter_map(Index::of_others);
        others.reduce(|(sum, _), (documents, name)| (sum + documents, name))
    }

    /// Asks for the vectors of this embedding from now on.
    pub(in crate::engine) fn ask_for(&mut self, embedding: Option<&Embedding>) {
        self.indexes_mut()
            .for_each(|index| index.ask_for(embedding.cloned()));
    }

    /// The name of the vectors that are asked for.
    pub(in crate::engine) fn asked_for(&self) -> Option<&str> {
        self.indexes().find_map(Index::asked_for)
    }

    /// The stamp of vectors that are there already, of this maker and whatever size.
    pub(in crate::engine) fn stamp_of(&self, maker: &Maker) -> Option<Embedding> {
        self.indexes().find_map(|index| index.stamp_of(maker))
    }

    /// Lets go of the vectors of other embedders.
    pub(in crate::engine) fn drop_others(&mut self) {
        self.indexes_mut().for_each(Index::drop_others);
    }

    /// Makes vectors that are missing, at most so many, this memory's own first; see
    /// [`Index::fill_missing`].
    pub(in crate::engine) fn fill_missing(
        &mut self,
        query: &str,
        filter: &Filter,
        limit: usize,
        maker: &Maker,
    ) -> Result<usize, Error> {
        let mut made = 0;
        for index in self.indexes_mut() {
            if made < limit && index.without_vector() > 0 {
                made += index.fill_missing(query, filter, limit - made, maker)?;
            }
        }
        Ok(made)
    }

    /// What the filter admits, ready to be ranked.
    pub(in crate::engine) fn ranker(&self, filter: &Filter) -> Result<Ranker<'_>, Damaged> {
        let mut parts = Vec::new();
        for index in self.indexes() {
            parts.extend(index.parts(filter, |_| true)?);
        }
        Ok(Ranker::new(parts))
    }

    /// The record of a document, by its place in the ranker's parts, and the workspace that it was pulled
    /// from; `None` where the caller may not see it or it cannot be read.
    pub(in crate::engine) fn record(
        &self,
        part: usize,
        place: usize,
    ) -> Result<Option<(Option<&str>, Document)>, Error> {
        let mut part = part;
        for shelf in &self.shelves {
            let held = shelf.index.segments.len();
            if part < held {
                let document = shelf.index.record(part, place)?;
                return Ok(document.map(|document| (shelf.origin.as_deref(), document)));
            }
            part -= held;
        }
        Err(Error::Index)
    }
}
