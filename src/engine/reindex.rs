//! Brings the search index up to date at once, with a vector for every record.
//!
//! Searches do that little by little by themselves; this is for after an import, and for another
//! embedder, whose vectors replace those of the one before. What is done is saved batch by batch, so
//! it can be stopped at any time and goes on where it stopped.

use std::time::Instant;

use serde::Serialize;

use crate::search::Filter;

use super::embedder::{Destination, Maker, Patience};
use super::index::Library;
use super::{Engine, Error, milliseconds};

/// What is to be done.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexOptions {
    /// Leave the vectors to later searches.
    pub keyword: bool,
    /// Throw away what there is and make everything again.
    pub rebuild: bool,
}

/// What is being done, or about to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStage<'a> {
    /// So many records are taken apart into words, out of how many.
    Words(usize, usize),
    /// So many texts are about to be sent there.
    Sends(usize, &'a Destination),
    /// So many records have got their vectors, out of how many.
    Vectors(usize, usize),
}

/// The index, up to date.
#[derive(Debug, Serialize)]
pub struct IndexReport {
    /// How many records can be found.
    pub documents: usize,
    /// How many of them have a vector.
    pub vectors: usize,
    /// How many vectors were made now.
    pub made: usize,
    /// What makes them.
    pub embedder: String,
    /// How much room the index takes, in bytes.
    pub bytes: u64,
    /// Milliseconds.
    pub took_ms: f64,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Brings the search index up to date. `progress` is told what is being done.
    ///
    /// # Errors
    ///
    /// The store's, and those of an embedder that cannot be used; what was made by then is saved.
    pub fn index(
        &self,
        options: IndexOptions,
        progress: &mut dyn FnMut(IndexStage<'_>),
    ) -> Result<IndexReport, Error> {
        let start = Instant::now();
        let embedder = &self.providers.embedder;
        // Who wants words alone needs no embedder that works.
        let maker = match embedder.open(Patience::Index, true) {
            Err(_) if options.keyword => None,
            maker => Some(maker?),
        };
        let mut index = Library::open(&self.store)?;
        let mut words = |done, of| progress(IndexStage::Words(done, of));
        if options.rebuild {
            index.renew(&mut words)?;
        } else {
            index.update(true, &mut words)?;
        }
        let known = |maker: &Maker| maker.embedding().or_else(|| index.stamp_of(maker));
        let embedding = maker.as_ref().and_then(known);
        index.ask_for(embedding.as_ref());
        let missing = index.without_vector();
        // What has expired is sent nowhere any more.
        let all = Filter {
            now: self.now.timestamp(),
            ..Filter::default()
        };
        let mut made = 0;
        if let Some(maker) = maker.as_ref().filter(|_| missing > 0 && !options.keyword) {
            index.drop_others();
            if let Some(destination) = embedder.destination()? {
                progress(IndexStage::Sends(missing, &destination));
            }
            loop {
                let batch = index.fill_missing("", &all, maker.batch(), maker)?;
                made += batch;
                if batch == 0 {
                    break;
                }
                progress(IndexStage::Vectors(made.min(missing), missing));
            }
        }
        let own = Filter {
            scope: self.store.scope().clone(),
            viewer: self.store.viewer().clone(),
            ..all
        };
        let (documents, vectors) = index.counts(&own)?;
        let mut warnings = Vec::new();
        if !index.is_saved() {
            warnings.push(
                "the index was not saved: another process is writing it, or its directory takes no files"
                    .to_owned(),
            );
        }
        let stamp = maker.as_ref().map_or("none", Maker::stamp);
        let embedder = index.asked_for().unwrap_or(stamp).to_owned();
        Ok(IndexReport {
            documents,
            vectors,
            made,
            embedder,
            bytes: index.bytes(),
            took_ms: milliseconds(start.elapsed()),
            warnings,
        })
    }
}
