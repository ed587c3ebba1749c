//! Embedders: the built-in model, or a model behind a URL.
//!
//! Vectors carry a stamp that names the embedder. Vectors with different stamps are never compared.
//! A model behind a URL gets a short timeout while a search waits, and the usual timeout while an
//! index is built.

use std::str::FromStr;
use std::time::Duration;

use super::{DIMENSIONS, Driver, EMBEDDER, Embedder, Error, Model, built_in};
use memctl_llm::{Embeddings, Endpoint};

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
