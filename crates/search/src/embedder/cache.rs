//! Embedder cache: keeps the built-in model loaded between the calls of a long-lived process.
//!
//! Loading takes longer than most searches. A command that ends after one search needs no cache.
//! Callers that arrive during a load wait for it, so that concurrent callers load it once.
//!
//! Deliberately absent: models behind a URL, which are not loaded here.

use std::sync::{Arc, Mutex, PoisonError};

use super::config::{EmbedderConfig, Patience};
use super::error::Error;
use super::opened::Embedder;

/// Cache of the built-in embedder. Clones share it.
#[derive(Clone, Default)]
pub struct EmbedderCache(Arc<Mutex<Option<Arc<Embedder>>>>);

impl std::fmt::Debug for EmbedderCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EmbedderCache").finish_non_exhaustive()
    }
}

impl EmbedderCache {
    /// Returns the embedder, opened for a search; the built-in one from the cache.
    pub fn open(&self, embedder: &EmbedderConfig) -> Result<Arc<Embedder>, Error> {
        // A cached embedder serves many texts, so the weight layout for many texts pays off.
        let open = || embedder.open(Patience::Search, true).map(Arc::new);
        if !matches!(embedder, EmbedderConfig::BuiltIn) {
            return open();
        }
        // A panic during a load leaves the cache valid.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(embedder) = cached.as_ref() {
            return Ok(Arc::clone(embedder));
        }
        let embedder = open()?;
        *cached = Some(Arc::clone(&embedder));
        Ok(embedder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_loads_the_model_once() {
        let cache = EmbedderCache::default();
        let all: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| cache.open(&EmbedderConfig::BuiltIn).unwrap()))
                .collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(all.iter().all(|embedder| Arc::ptr_eq(embedder, &all[0])));
    }
}
