//! Embedder cache: keeps one embedding model loaded between the calls of a long-lived process.
//!
//! Loading takes longer than most searches. A server keeps the model that its last search loaded; a
//! command that ends after one search needs no cache.
//!
//! Invariants:
//! - At most one model is cached: the last one requested. A replaced model lives until the searches
//!   that use it end.
//! - Each use compares the cached model with the request. Other settings, or other files in the
//!   model folder, cause a reload.
//! - Callers that arrive during a load wait for it, so that concurrent callers load it once.
//! - A failed load is not cached: the next call tries again.
//!
//! Out of scope: models behind a URL. They need no loading, and a connection that is idle for long
//! may break during a search.

use std::sync::{Arc, Mutex, PoisonError};

use super::config::{EmbedderConfig, Patience, Source};
use super::error::Error;
use super::opened::Embedder;

/// Cache of one loaded embedder. Clones share it.
#[derive(Clone, Default)]
pub struct EmbedderCache(Arc<Mutex<Option<CachedEmbedder>>>);

struct CachedEmbedder {
    source: Source,
    embedder: Arc<Embedder>,
}

impl std::fmt::Debug for EmbedderCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EmbedderCache").finish_non_exhaustive()
    }
}

impl EmbedderCache {
    /// Returns the embedder, loaded for a search, from the cache if its source is unchanged.
    pub(crate) fn open(&self, embedder: &EmbedderConfig) -> Result<Arc<Embedder>, Error> {
        // A cached embedder serves many texts, so the weight layout for many texts pays off.
        let open = || embedder.open(Patience::Search, true).map(Arc::new);
        let Some(source) = embedder.source() else {
            return open();
        };
        // A panic during a load leaves the cache valid.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = kept.as_ref().filter(|held| held.source == source) {
            return Ok(Arc::clone(&held.embedder));
        }
        // Drop the old model first: two loaded models need twice the memory.
        *kept = None;
        let embedder = open()?;
        *kept = Some(CachedEmbedder {
            source,
            embedder: Arc::clone(&embedder),
        });
        Ok(embedder)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::local;
    use super::*;
    use crate::platform::named;

    /// Copies the built-in model into a folder.
    fn folder(at: &Path) {
        fs::create_dir_all(at).unwrap();
        fs::write(at.join("model.onnx"), local::MODEL).unwrap();
        fs::write(at.join("model.data"), local::WEIGHTS).unwrap();
        fs::write(at.join("vocab.txt"), local::VOCABULARY).unwrap();
    }

    #[test]
    fn a_model_is_loaded_once_until_another_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        folder(&first);
        folder(&second);
        let kept = EmbedderCache::default();
        let mut last = None;
        let mut check = |embedder: &EmbedderConfig, loads: bool| {
            let embedder = kept.clone().open(embedder).unwrap();
            let known = last
                .as_ref()
                .is_some_and(|last| Arc::ptr_eq(last, &embedder));
            assert_eq!(!known, loads, "{embedder:?}");
            assert_eq!(Arc::strong_count(&embedder), if known { 3 } else { 2 });
            last = Some(embedder);
        };
        check(&EmbedderConfig::BuiltIn, true);
        check(&EmbedderConfig::BuiltIn, false);
        check(&EmbedderConfig::Folder(first.clone()), true);
        check(&EmbedderConfig::Folder(first.clone()), false);
        check(&EmbedderConfig::Folder(second.clone()), true);
        // Changed files in the same folder count as another model.
        named::replace(&second.join("tokenizer_config.json"), b"{}").unwrap();
        check(&EmbedderConfig::Folder(second.clone()), true);
        check(&EmbedderConfig::Folder(second.clone()), false);
        let same = fs::read(first.join("vocab.txt")).unwrap();
        named::replace(&second.join("vocab.txt"), &same).unwrap();
        check(&EmbedderConfig::Folder(second), true);
        check(&EmbedderConfig::BuiltIn, true);
    }

    #[test]
    fn a_crowd_loads_it_once_and_what_cannot_be_loaded_is_tried_again() {
        let kept = EmbedderCache::default();
        let all: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| kept.open(&EmbedderConfig::BuiltIn).unwrap()))
                .collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(all.iter().all(|embedder| Arc::ptr_eq(embedder, &all[0])));
        let dir = tempfile::tempdir().unwrap();
        let embedder = EmbedderConfig::Folder(dir.path().to_owned());
        assert!(kept.open(&embedder).is_err());
        folder(dir.path());
        assert!(kept.open(&embedder).is_ok());
    }
}
