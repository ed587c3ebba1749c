//! Parts of a memory for sync: redacted records, vectors of texts, audit events.
//!
//! Out of scope: the shared store itself; see `remote`.

use crate::store::{AuditAction, Scoped};

use crate::lessons::telling::table;
use crate::model::error::message as chain;
use crate::store::workspace::Error;
use memctl_search::embedder::config::Patience;
use memctl_search::embedder::{Embedder, EmbedderConfig};

/// Embedder for shared records.
#[derive(Debug)]
pub struct SharedEmbedder {
    embedder: Embedder,
    name: String,
}

impl SharedEmbedder {
    /// Name of the embedder, with the size of its vectors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the vectors of texts in order, or the reason why there are none.
    pub fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.embedder.embed(&texts).map_err(|error| chain(&error))
    }
}

/// Opens an embedder.
pub fn shared_embedder(
    config: &EmbedderConfig,
    patience: Patience,
) -> Result<SharedEmbedder, Error> {
    let embedder = config.open(patience, true)?;
    // A model behind a URL may reveal the size of its vectors only by making one.
    let known = embedder.embedding().map(Ok);
    let ask = || Ok::<_, Error>(embedder.embed(&["size"])?.first().map_or(0, Vec::len));
    let embedding = known.unwrap_or_else(|| ask().map(|size| embedder.embedding_of(size)))?;
    Ok(SharedEmbedder {
        name: embedding.name,
        embedder,
    })
}

/// Writes the audit events of a sync, with the numbers of records sent and received by kind.
/// Returns a warning if that fails.
pub fn note_sync(store: &Scoped, out: &[String], came: &[String]) -> Result<Option<String>, Error> {
    for (did, what) in [(AuditAction::Exported, out), (AuditAction::Added, came)] {
        let touched: Vec<_> = what.iter().map(|what| (what.as_str(), None)).collect();
        if touched.is_empty() {
            continue;
        }
        if let Err(error) = store.audit(did, &touched) {
            let why = chain(&error);
            return Ok(Some(format!("this sync is not in the audit: {why}")));
        }
    }
    for pulled in store.others() {
        table::prepare(&pulled.store)?;
    }
    Ok(None)
}
