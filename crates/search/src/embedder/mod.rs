//! Embedders: text in, vector out.
//!
//! - Here: an embedder in use, the name and shape of its vectors, and a cache of the built-in one; which embedder is
//!   configured, and how it is opened.
//! - `local`: the built-in model and its inference. `wordpiece`: tokenization.
//!
//! All vectors have the length 1, and those of an embedder have one size. Vectors carry a stamp that names the
//! embedder; those with different stamps are never compared. A model behind a URL gets a short timeout while a search
//! waits, and the usual timeout while an index is built.
//!
//! Deliberately absent: storage of vectors (`search`, `indexing`).

mod local;
mod wordpiece;

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use memctl_llm::{Embeddings, Endpoint};
use tokio::runtime::Runtime;

pub use local::{DIMENSIONS, EMBEDDER, Transformer, Vector, built_in};

/// Reason why texts were not embedded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not a model, or it needs an unsupported operator.
    #[error("the sentence transformer cannot be loaded")]
    Load(#[from] rten::LoadError),
    /// Inference failed.
    #[error("the sentence transformer cannot be run")]
    Run(#[from] rten::RunError),
    /// The output does not have the shape of a vector.
    #[error("the sentence transformer returned no vector")]
    NoVector,
    /// A model behind a URL failed.
    #[error(transparent)]
    Llm(#[from] memctl_llm::Error),
    /// The embedder returned vectors of another size than configured or than before.
    #[error("`{embedder}` returned vectors of {found} dimensions, but {expected} are expected")]
    VectorSize {
        /// Name of the embedder.
        embedder: String,
        /// Number of dimensions returned.
        found: usize,
        /// Number of dimensions expected.
        expected: usize,
    },
    /// The async runtime does not start.
    #[error("cannot start the async runtime")]
    Runtime(#[from] io::Error),
}

/// Embedding of a set of vectors. Vectors of different embeddings are never compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// Names the model and the shape of its vectors: `<provider>/<model>/<dimensions>`.
    pub name: String,
    /// Numbers in a vector.
    pub dimensions: usize,
}

impl Embedding {
    /// Returns `true` if long texts have vectors of their windows. Servers read longer texts at once,
    /// and many of them bill every token.
    pub fn reads_windows(&self) -> bool {
        let provider = self.name.split('/').next();
        !matches!(provider, Some("openai" | "ollama"))
    }
}

/// Embedder that is ready for use.
#[derive(Debug)]
pub struct Embedder {
    stamp: String,
    dimensions: Option<usize>,
    batch: usize,
    model: Model,
}

/// Model that answers: loaded here, or behind a URL.
#[derive(Debug)]
enum Model {
    Here(Box<Transformer>),
    There(Box<Embeddings>, Driver),
}

/// Runtime for the requests. It may be dropped on any thread, even one that drives another async
/// runtime; a bare `Runtime` may not.
#[derive(Debug)]
struct Driver(Option<Runtime>);

impl Driver {
    fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Embedder {
    /// Name of the embedder, without the vector size.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Stamp of the vectors; `None` if their size is unknown until the first vector.
    pub fn embedding(&self) -> Option<Embedding> {
        let dimensions = self.dimensions?;
        Some(self.embedding_of(dimensions))
    }

    /// Stamp of vectors of this size.
    pub fn embedding_of(&self, dimensions: usize) -> Embedding {
        Embedding {
            name: format!("{}/{dimensions}", self.stamp),
            dimensions,
        }
    }

    /// Best number of texts per call.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Embeds texts, in their order. All vectors are normalized and of one size.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        let vectors = self.ask(texts)?;
        // A zero vector would be requested again by every search.
        let is_sound = |vector: &Vector| {
            vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0)
        };
        if vectors.len() != texts.len() || !vectors.iter().all(is_sound) {
            return Err(Error::NoVector);
        }
        Ok(vectors)
    }

    fn ask(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        match &self.model {
            Model::Here(transformer) => transformer.embed(texts),
            Model::There(embeddings, driver) => {
                let runtime = driver.0.as_ref().ok_or(Error::NoVector)?;
                let mut vectors = Vec::with_capacity(texts.len());
                for texts in texts.chunks(self.batch) {
                    // A separate thread, since the caller may run inside an async runtime.
                    let answer = thread::scope(|scope| {
                        let ask = || runtime.block_on(embeddings.embed(texts));
                        scope.spawn(ask).join()
                    });
                    vectors.extend(answer.map_err(|_| Error::NoVector)??);
                }
                let size = vectors.first().map_or(0, Vec::len);
                if let Some(other) = vectors.iter().find(|vector| vector.len() != size) {
                    return Err(self.other_size(other.len(), size));
                }
                vectors.iter_mut().for_each(normalise);
                Ok(vectors)
            }
        }
    }

    /// Error for vectors of the wrong size.
    pub fn other_size(&self, found: usize, expected: usize) -> Error {
        Error::VectorSize {
            embedder: self.stamp.clone(),
            found,
            expected,
        }
    }
}

fn normalise(vector: &mut Vector) {
    // The square of a 32-bit number may overflow 32 bits.
    let squares: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
    let length = squares.sqrt().max(f64::MIN_POSITIVE);
    for number in vector {
        #[expect(clippy::cast_possible_truncation, reason = "a share of 1 is small enough")]
        let share = (f64::from(*number) / length) as f32;
        *number = share;
    }
}

/// Cache of the built-in embedder, which keeps the model loaded between the calls of a long-lived process.
/// Clones share it. Callers that arrive during a load wait for it. Models behind a URL are not loaded here.
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

/// Time limits of a search for an answer from a URL, and for the connection to it.
const SEARCH_WAITS: Duration = Duration::from_secs(5);
const SEARCH_CONNECTS: Duration = Duration::from_secs(2);

/// Number of texts that a local model embeds between two saves.
const BATCH: usize = 256;

/// Configured embedder.
#[derive(Debug, Clone, Default)]
pub enum EmbedderConfig {
    /// Transformer model built into the program.
    #[default]
    BuiltIn,
    /// Model behind a URL.
    Remote(Box<RemoteEmbedderConfig>),
}

/// Model behind a URL.
#[derive(Debug, Clone)]
pub struct RemoteEmbedderConfig {
    /// Server and model, with the limits of a request while an index is built.
    pub endpoint: Endpoint,
    /// Requested vector size; `None` for the default of the model.
    pub dimensions: Option<usize>,
    /// Number of texts per request.
    pub batch: usize,
}

/// Names of the embedders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderName {
    /// `built-in`
    BuiltIn,
    /// `openai`, or another server with its protocol
    OpenAi,
    /// `ollama`
    Ollama,
}

impl FromStr for EmbedderName {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "built-in" => Ok(Self::BuiltIn),
            "openai" => Ok(Self::OpenAi),
            "ollama" => Ok(Self::Ollama),
            _ => Err("the embedders are built-in, openai and ollama"),
        }
    }
}

/// Destination of texts that leave the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Host and port.
    pub host: String,
    /// Model, as `provider/model`.
    pub model: String,
    /// Number of texts per request.
    pub batch: usize,
    /// Price of a million tokens in US dollars; `None` if it is unknown.
    pub usd_per_million_tokens: Option<f64>,
}

impl Destination {
    /// Returns the number of requests for this number of texts.
    pub fn requests(&self, texts: usize) -> usize {
        texts.div_ceil(self.batch.max(1))
    }

    /// Estimates the highest cost of this number of texts in US dollars, each of the full length that
    /// is sent; `None` if the price is unknown.
    pub fn highest_cost(&self, texts: usize) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "texts stay far below 2^52")]
        let tokens = texts as f64 * TOKENS_OF_A_TEXT;
        Some(self.usd_per_million_tokens? * tokens / 1e6)
    }
}

/// Tokens of a text of 4,000 characters, the longest that is sent, at four characters a token.
const TOKENS_OF_A_TEXT: f64 = 1_000.0;

/// Timeout class of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// A search waits for the answer.
    Search,
    /// An index is being built.
    Index,
}

impl EmbedderConfig {
    /// Returns the destination of texts; `None` if they stay on this machine.
    ///
    /// # Errors
    ///
    /// Invalid base URL.
    pub fn destination(&self) -> Result<Option<Destination>, Error> {
        let Self::Remote(server) = self else {
            return Ok(None);
        };
        let embeddings = embeddings(server, Patience::Index)?;
        Ok(Some(Destination {
            host: embeddings.host().to_owned(),
            model: embeddings.model().to_owned(),
            batch: server.batch,
            usd_per_million_tokens: embeddings.usd_per_million_tokens(),
        }))
    }

    /// Prepares the embedder for one text or for many. Sends nothing.
    pub fn open(&self, patience: Patience, many_texts: bool) -> Result<Embedder, Error> {
        match self {
            Self::BuiltIn => Ok(Embedder {
                stamp: EMBEDDER
                    .trim_end_matches(&format!("/{DIMENSIONS}"))
                    .to_owned(),
                dimensions: Some(DIMENSIONS),
                batch: BATCH,
                model: Model::Here(Box::new(built_in(many_texts)?)),
            }),
            Self::Remote(server) => {
                let embeddings = embeddings(server, patience)?;
                Ok(Embedder {
                    stamp: embeddings.model().to_owned(),
                    dimensions: server.dimensions,
                    batch: server.batch.max(1),
                    model: Model::There(Box::new(embeddings), Driver::start()?),
                })
            }
        }
    }
}

/// Connects to a server, with shorter limits while a search waits.
fn embeddings(server: &RemoteEmbedderConfig, patience: Patience) -> Result<Embeddings, Error> {
    let mut endpoint = server.endpoint.clone();
    if patience == Patience::Search {
        let limits = &mut endpoint.limits;
        limits.answer_within = SEARCH_WAITS.min(limits.answer_within);
        limits.connect_within = SEARCH_CONNECTS;
        limits.max_retries = 0;
    }
    Ok(Embeddings::new(endpoint, server.dimensions)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_length_one_whatever_came() {
        let check = |mut vector: Vector| {
            normalise(&mut vector);
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((length - 1.0).abs() < 1e-5, "{vector:?}");
        };
        check(vec![3.0, 4.0]);
        check(vec![1e-30, 0.0]);
        check(vec![1e30, -1e30]);
    }

    #[test]
    fn a_crowd_loads_the_model_once() {
        let cache = EmbedderCache::default();
        let all: Vec<_> = thread::scope(|scope| {
            let asking: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| cache.open(&EmbedderConfig::BuiltIn).unwrap()))
                .collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(all.iter().all(|embedder| Arc::ptr_eq(embedder, &all[0])));
    }
}

#[cfg(test)]
mod tests_of_settings {
    use super::*;

    #[test]
    fn the_cost_of_texts_is_that_of_their_full_length() {
        let to = |usd_per_million_tokens| Destination {
            host: String::new(),
            model: String::new(),
            batch: 64,
            usd_per_million_tokens,
        };
        assert_eq!(to(Some(0.02)).highest_cost(10_000), Some(0.2));
        assert_eq!(to(Some(0.0)).highest_cost(10_000), Some(0.0));
        assert_eq!(to(None).highest_cost(1), None);
        assert_eq!(to(None).requests(65), 2);
    }

    #[test]
    fn the_built_in_stamp_is_the_one_of_all_its_vectors() {
        let embedder = EmbedderConfig::BuiltIn
            .open(Patience::Search, true)
            .unwrap();
        let embedding = embedder.embedding().unwrap();
        assert_eq!(
            (embedding.name.as_str(), embedding.dimensions),
            (EMBEDDER, DIMENSIONS)
        );
        assert_eq!(embedder.embed(&["x"]).unwrap()[0].len(), DIMENSIONS);
    }
}
