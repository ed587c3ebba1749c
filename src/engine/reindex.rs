//! Brings the search index up to date at once, with a vector for every record.
//!
//! Searches do that little by little by themselves; this is for after an import, and for another
//! embedder. What is done is saved batch by batch, so it can be stopped at any time and goes on where it
//! stopped.

use std::time::Instant;

use serde::Serialize;

use crate::search::{BuiltIn, Filter};

use super::index::{Embedding, Index};
use super::{Engine, Error, milliseconds};

/// So many records get their vectors between two savings.
const BATCH: usize = 256;

/// What is to be done.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexOptions {
    /// Leave the vectors to later searches.
    pub keyword: bool,
    /// Throw away what there is and make everything again.
    pub rebuild: bool,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStage {
    /// Records are taken apart into words.
    Words,
    /// Records get their vectors.
    Vectors,
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
    /// Brings the search index up to date. `progress` is told what is being done, and how much of it.
    pub fn index(
        &self,
        options: IndexOptions,
        progress: &mut dyn FnMut(IndexStage, usize, usize),
    ) -> Result<IndexReport, Error> {
        let start = Instant::now();
        let embedding = Embedding::built_in();
        let mut index = Index::open(&self.store, &embedding)?;
        let mut words = |done, of| progress(IndexStage::Words, done, of);
        if options.rebuild {
            index.renew(&mut words)?;
        } else {
            index.update(true, &mut words)?;
        }
        let missing = index.without_vector();
        let mut made = 0;
        if missing > 0 && !options.keyword {
            let model = BuiltIn::load()?;
            loop {
                let batch = index.fill_missing("", &Filter::default(), BATCH, &model)?;
                made += batch;
                if batch == 0 {
                    break;
                }
                progress(IndexStage::Vectors, made.min(missing), missing);
            }
        }
        let mut warnings = Vec::new();
        if !index.is_saved() {
            warnings.push(
                "the index was not saved: another process is writing it, or its directory takes no files"
                    .to_owned(),
            );
        }
        Ok(IndexReport {
            documents: index.len(),
            vectors: index.len() - index.without_vector(),
            made,
            embedder: embedding.name,
            bytes: index.bytes(),
            took_ms: milliseconds(start.elapsed()),
            warnings,
        })
    }
}
