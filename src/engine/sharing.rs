//! What a memory gives to whoever shares it: records without secrets, vectors of texts, a line in the
//! audit.
//!
//! Deliberately absent: where it is shared; that is `remote`'s.

use crate::store::{Did, Scoped};

use super::embedder::{Maker, Patience};
use super::error::chain;
use super::{Engine, Error, door, shared};

/// Makes the vectors of what is shared.
#[derive(Debug)]
pub struct Vectoriser {
    maker: Maker,
    name: String,
}

impl Vectoriser {
    /// What makes them, and their size.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The vectors of texts, in their order; or why there are none.
    pub fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.maker.embed(&texts).map_err(|error| chain(&error))
    }
}

impl Engine {
    /// The records, and the redaction that what leaves and what comes passes through.
    pub fn sharing_store(&self) -> Scoped {
        self.store.clone().with_redaction(door::redact)
    }

    /// Fetches what other copies of the memory have written, where it lies in a database; answers whether there
    /// was something. What is read next holds all that was there before this call.
    ///
    /// # Errors
    ///
    /// That the database does not answer, or that nobody has said where it is.
    pub fn catch_up(&self) -> Result<bool, Error> {
        Ok(self.sharing_store().catch_up()?)
    }

    /// The embedder that is configured.
    pub fn vectoriser(&self) -> Result<Vectoriser, Error> {
        let maker = self.providers.embedder.open(Patience::Index, true)?;
        // A model behind a URL may say how long its vectors are only by making one.
        let known = maker.embedding().map(Ok);
        let ask = || Ok::<_, Error>(maker.embed(&["size"])?.first().map_or(0, Vec::len));
        let embedding = known.unwrap_or_else(|| ask().map(|size| maker.embedding_of(size)))?;
        Ok(Vectoriser {
            name: embedding.name,
            maker,
        })
    }

    /// Takes in that records went out and came in, each as a number of its kind. Answers what of that
    /// could not be noted.
    pub fn shared(&self, out: &[String], came: &[String]) -> Result<Option<String>, Error> {
        for (did, what) in [(Did::Exported, out), (Did::Added, came)] {
            let touched: Vec<_> = what.iter().map(|what| (what.as_str(), None)).collect();
            if touched.is_empty() {
                continue;
            }
            if let Err(error) = self.store.audit(did, &touched) {
                let why = chain(&error);
                return Ok(Some(format!("this sync is not in the audit: {why}")));
            }
        }
        shared::prepare(&self.store)?;
        Ok(None)
    }
}
