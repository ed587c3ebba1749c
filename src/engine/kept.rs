//! A model of meanings that stays loaded between the calls of a process that lives long.
//!
//! Loading takes longer than most searches. A server and whoever serves tools to agents keep what the
//! last search has loaded; a command that ends after one does without.
//!
//! Invariants:
//! - At most one model is kept, the one that was asked for last. One that is replaced lives until those
//!   who search with it are done.
//! - Before each use it is compared with what is asked for now: other settings, or other files in the
//!   folder of a model, and it is loaded anew.
//! - Who comes while it is loaded waits for it, so that a crowd loads it once.
//! - What cannot be loaded is not kept: the next one tries again.
//!
//! Deliberately absent: models behind a URL. There is nothing to load, and a connection that has lain
//! idle for long may break in the middle of a search.

use std::sync::{Arc, Mutex, PoisonError};

use super::Error;
use super::embedder::{Embedder, Maker, Patience, Source};

/// Keeps a model loaded. Clones keep the same one.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Option<Held>>>);

struct Held {
    source: Source,
    maker: Arc<Maker>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// The embedder, ready to be used for a search, as it is or as it was left here.
    pub(super) fn open(&self, embedder: &Embedder) -> Result<Arc<Maker>, Error> {
        // Texts follow one after the other, so it pays to lay the weights out for many.
        let open = || embedder.open(Patience::Search, true).map(Arc::new);
        let Some(source) = embedder.source() else {
            return open();
        };
        // Whoever broke off while it was loaded has left nothing half-done.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = kept.as_ref().filter(|held| held.source == source) {
            return Ok(Arc::clone(&held.maker));
        }
        // Both at once would be twice the memory.
        *kept = None;
        let maker = open()?;
        *kept = Some(Held {
            source,
            maker: Arc::clone(&maker),
        });
        Ok(maker)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::platform::named;

    /// The built-in model as a folder.
    fn folder(at: &Path) {
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/embedder");
        fs::create_dir_all(at).unwrap();
        for file in ["model.onnx", "model.data", "vocab.txt"] {
            fs::copy(assets.join(file), at.join(file)).unwrap();
        }
    }

    #[test]
    fn a_model_is_loaded_once_until_another_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        folder(&first);
        folder(&second);
        let kept = Kept::default();
        let mut last = None;
        let mut check = |embedder: &Embedder, loads: bool| {
            let maker = kept.clone().open(embedder).unwrap();
            let known = last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &maker));
            assert_eq!(!known, loads, "{embedder:?}");
            assert_eq!(Arc::strong_count(&maker), if known { 3 } else { 2 });
            last = Some(maker);
        };
        check(&Embedder::BuiltIn, true);
        check(&Embedder::BuiltIn, false);
        check(&Embedder::Folder(first.clone()), true);
        check(&Embedder::Folder(first.clone()), false);
        check(&Embedder::Folder(second.clone()), true);
        // Other files in the same folder are another model.
        named::replace(&second.join("tokenizer_config.json"), b"{}").unwrap();
        check(&Embedder::Folder(second.clone()), true);
        check(&Embedder::Folder(second.clone()), false);
        fs::copy(first.join("vocab.txt"), second.join("vocab.txt")).unwrap();
        check(&Embedder::Folder(second), true);
        check(&Embedder::BuiltIn, true);
    }

    #[test]
    fn a_crowd_loads_it_once_and_what_cannot_be_loaded_is_tried_again() {
        let kept = Kept::default();
        let all: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| kept.open(&Embedder::BuiltIn).unwrap()))
                .collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(all.iter().all(|maker| Arc::ptr_eq(maker, &all[0])));
        let dir = tempfile::tempdir().unwrap();
        let embedder = Embedder::Folder(dir.path().to_owned());
        assert!(kept.open(&embedder).is_err());
        folder(dir.path());
        assert!(kept.open(&embedder).is_ok());
    }
}
