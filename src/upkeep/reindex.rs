//! Brings the search index up to date at once, with a vector for every record.
//!
//! Searches do that step by step; this operation is for an import, or for another embedder, whose
//! vectors replace the old ones. Each batch is saved, so that an interrupted run resumes where it
//! stopped.

use std::time::Instant;

use serde::Serialize;

use crate::notes::indexing::{Filter, Index, MultiIndex};
use crate::store::workspace::{Error, Workspace, milliseconds};
use memctl_search::Admission;
use memctl_search::embedder::Embedder;
use memctl_search::embedder::{Destination, Patience};

/// Options of [`index()`].
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexOptions {
    /// Leaves the vectors to later searches.
    pub keyword: bool,
    /// Discards the index and rebuilds it.
    pub rebuild: bool,
}

/// Progress of [`index()`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IndexStage<'a> {
    /// Number of records split into words, and the total.
    Words(usize, usize),
    /// Number of texts about to be sent, and their destination. Nothing is sent if the answer is
    /// `false`.
    Sends(usize, &'a Destination),
    /// Number of records with a new vector, and the total.
    Vectors(usize, usize),
}

/// Outcome of [`index()`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct IndexReport {
    /// Number of indexed records that the caller may see.
    pub documents: usize,
    /// Number of records with a vector.
    pub vectors: usize,
    /// Number of vectors made by this run.
    pub made: usize,
    /// Stamp of the embedder; `none` if it is unusable.
    pub embedder: String,
    /// Duration in milliseconds.
    pub took_ms: f64,
    /// Non-fatal problems.
    pub warnings: Vec<String>,
}

/// Brings the search index up to date, and reports each step to `progress`. Only the answer to
/// [`IndexStage::Sends`] counts.
///
/// # Errors
///
/// Fails if the store does, or if the embedder is unusable; the vectors made so far are saved.
pub fn index(
    workspace: &Workspace,
    options: IndexOptions,
    progress: &mut dyn FnMut(IndexStage<'_>) -> bool,
) -> Result<IndexReport, Error> {
    let start = Instant::now();
    let config = &workspace.providers.embedder;
    // A keyword-only run needs no working embedder.
    let embedder = match config.open(Patience::Index, true) {
        Err(_) if options.keyword => None,
        embedder => Some(embedder?),
    };
    let mut index = MultiIndex::open(&workspace.store)?;
    let mut words = |done, of| {
        progress(IndexStage::Words(done, of));
    };
    if options.rebuild {
        index.renew(&mut words)?;
    } else {
        index.update(true, &mut words)?;
    }
    let indexed = |embedder: &Embedder| {
        let of_index = || index.iter().find_map(|index| index.stamp_of(embedder));
        embedder.embedding().or_else(of_index)
    };
    let embedding = embedder.as_ref().and_then(indexed);
    index.ask_for(embedding.as_ref());
    let missing = index.without_vector();
    // Expired records are not sent to an embedder.
    let now = workspace.now.timestamp();
    let all = Admission {
        now,
        ..Admission::default()
    };
    let mut made = 0;
    if let Some(embedder) = embedder
        .as_ref()
        .filter(|_| missing > 0 && !options.keyword)
    {
        let destination = config.destination()?;
        let is_wanted = destination.is_none_or(|to| progress(IndexStage::Sends(missing, &to)));
        if is_wanted {
            index.iter_mut().for_each(Index::drop_others);
            loop {
                let batch = index.fill_missing("", &all, embedder.batch(), embedder)?;
                made += batch;
                if batch == 0 {
                    break;
                }
                progress(IndexStage::Vectors(made.min(missing), missing));
            }
        }
    }
    let (scope, viewer) = (workspace.store.scope(), workspace.store.viewer());
    let own = Filter::default().admission(now, scope, viewer);
    let (documents, vectors) = index.counts(&own)?;
    let unsaved =
        "the index was not saved: another process is writing it, or its directory takes no files";
    let is_saved = index.iter().all(Index::is_saved);
    let stamp = embedder.as_ref().map_or("none", Embedder::stamp);
    let stamp = index.asked_for().unwrap_or(stamp).to_owned();
    Ok(IndexReport {
        documents,
        vectors,
        made,
        embedder: stamp,
        took_ms: milliseconds(start.elapsed()),
        warnings: (!is_saved)
            .then(|| unsaved.to_owned())
            .into_iter()
            .collect(),
    })
}
