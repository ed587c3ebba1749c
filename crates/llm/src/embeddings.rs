//! Embeddings from a server with `OpenAI`'s protocol, which many support, Ollama among them.
//!
//! Requests have the same guarantees as all connections: a time limit over all retries, no
//! redirects, no key in any message. An answer must have exactly one vector per text, all with the
//! same dimensions, and with the configured ones if there are any. Everything else is an error,
//! because a wrong vector would go unnoticed.
//!
//! Only the beginning of a text is sent. If the server rejects it as too long, a shorter beginning
//! is sent once. So no table of model limits is needed.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::timed_out;
use super::error::Fault;
use super::http::{Connection, Endpoint, bearer, unusable};
use super::request::{Attempts, Tokens, beginning};
use super::{Error, ErrorKind, Progress};

/// Maximum characters sent per text, more than most models use.
pub const SENT: usize = 4_000;
/// Maximum characters per text after a rejection: at most 512 tokens for nearly every text.
const SENT_LESS: usize = 1_000;
/// Replaces a text without visible characters; `OpenAI` rejects an empty one.
const NOTHING: &str = ".";

/// Embedding model behind a URL.
#[derive(Debug)]
pub struct Embeddings {
    connection: Connection,
    dimensions: Option<usize>,
}

impl Embeddings {
    /// Creates the client of an endpoint. `dimensions` are those requested of a vector; `None` for
    /// the model's default. Sends nothing before the first text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an invalid base URL, or a key that is not a valid header value.
    pub fn new(endpoint: Endpoint, dimensions: Option<usize>) -> Result<Self, Error> {
        let headers =
            bearer(endpoint.key.as_ref()).map_err(|reason| unusable(&endpoint.model, &reason))?;
        Ok(Self {
            connection: Connection::new(endpoint, None, headers)?,
            dimensions,
        })
    }

    /// `provider/model`.
    pub fn model(&self) -> &str {
        &self.connection.shown
    }

    /// Host and port of the server.
    pub fn host(&self) -> &str {
        &self.connection.host
    }

    /// Price of a million tokens in US dollars; `None` if it is unknown.
    pub fn usd_per_million_tokens(&self) -> Option<f64> {
        self.connection.price(Tokens {
            input: 1_000_000,
            ..Tokens::default()
        })
    }

    /// Embeds all texts in one request. The vectors come in the order of the texts, all with the
    /// same dimensions. They are not normalised and never zero.
    ///
    /// # Errors
    ///
    /// See [`Error`]. [`ErrorKind::Malformed`] if the answer does not match the request.
    pub async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let limit = self.connection.endpoint.limits.answer_within;
        let embed = async {
            let outcome = self.ask(texts, SENT, limit).await;
            let is_long = |text: &&str| beginning(text, SENT_LESS) != *text;
            match outcome {
                Err(error)
                    if matches!(error.kind, ErrorKind::BadRequest(400 | 413 | 422))
                        && texts.iter().any(is_long) =>
                {
                    self.ask(texts, SENT_LESS, limit).await
                }
                outcome => outcome,
            }
        };
        let embedded = tokio::time::timeout(limit, embed).await;
        embedded.map_err(|_| timed_out(self.model(), limit))?
    }

    async fn ask(
        &self,
        texts: &[&str],
        length: usize,
        limit: Duration,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let text = |text: &&str| {
            let text = beginning(text, length);
            if text.trim().is_empty() {
                NOTHING
            } else {
                text
            }
            .to_owned()
        };
        let texts: Vec<String> = texts.iter().map(text).collect();
        let mut body = json!({
            "model": self.connection.endpoint.model,
            "input": texts,
            "encoding_format": "float",
        });
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = Value::from(dimensions);
        }
        let read = |answer: &Value| {
            Fault::in_success(answer)?;
            by_index(&answer["data"])
                .and_then(|vectors| self.fitting(vectors, texts.len()))
                .map_err(|reason| Fault::Malformed {
                    reason,
                    text: String::new(),
                })
        };
        let mut silent = |_: Progress<'_>| {};
        let mut attempts = Attempts::new(limit, &mut silent);
        self.connection
            .fetch("/embeddings", &body, read, &mut attempts)
            .await
    }

    /// Returns the vectors if they match the request.
    fn fitting(&self, vectors: Vec<Vec<f32>>, texts: usize) -> Result<Vec<Vec<f32>>, String> {
        if vectors.len() != texts {
            return Err(format!("{} vectors for {texts} texts", vectors.len()));
        }
        let expected = self.dimensions.or(vectors.first().map(Vec::len));
        for vector in &vectors {
            if let Some(expected) = expected.filter(|expected| *expected != vector.len()) {
                let length = vector.len();
                return Err(format!(
                    "vectors of {length} dimensions where {expected} were expected"
                ));
            }
            let has_direction = vector.iter().any(|x| *x != 0.0);
            if !has_direction || vector.iter().any(|x| !x.is_finite()) {
                return Err("a vector without a direction".to_owned());
            }
        }
        Ok(vectors)
    }
}

/// Vector in an answer.
#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// Vectors of a list of objects, ordered by `index`.
fn by_index(data: &Value) -> Result<Vec<Vec<f32>>, String> {
    let items = Vec::<Item>::deserialize(data);
    let mut items = items.map_err(|error| format!("`data` is no list of vectors: {error}"))?;
    items.sort_by_key(|item| item.index);
    let mut places = items.iter().zip(0..);
    if !places.all(|(item, place)| item.index.is_none_or(|index| index == place)) {
        return Err("an `index` that is none of a text".to_owned());
    }
    Ok(items.into_iter().map(|item| item.embedding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embeddings(dimensions: Option<usize>) -> Embeddings {
        let endpoint = Endpoint {
            base_url: "http://127.0.0.1:9/v1".to_owned(),
            ..Endpoint::new("openai", "m", None)
        };
        Embeddings::new(endpoint, dimensions).unwrap()
    }

    #[test]
    fn vectors_are_put_in_the_order_of_their_texts() {
        let check = |data: Value, expected: Result<&[&[f32]], &str>| {
            let found = by_index(&data);
            let found = found.as_ref().map_err(String::as_str);
            let expected = expected.map(|vectors| vectors.iter().map(|v| v.to_vec()).collect());
            assert_eq!(found.cloned(), expected, "{data}");
        };
        let item = |index: u64, x: f64| json!({"index": index, "embedding": [x, 1]});
        let right: &[&[f32]] = &[&[1.0, 1.0], &[2.0, 1.0]];
        check(json!([item(1, 2.0), item(0, 1.0)]), Ok(right));
        check(
            json!([{"embedding": [1, 1]}, {"embedding": [2, 1]}]),
            Ok(right),
        );
        let stray = Err("an `index` that is none of a text");
        check(json!([item(0, 1.0), item(0, 2.0)]), stray);
        check(json!([item(0, 1.0), item(7, 2.0)]), stray);
        for odd in [
            json!([{"index": 0, "embedding": "AACAPw=="}]),
            json!([{"index": 0, "embedding": ["1"]}]),
            json!({}),
        ] {
            let reason = by_index(&odd).unwrap_err();
            assert!(reason.contains("no list of vectors"), "{reason}");
        }
    }

    #[test]
    fn an_answer_fits_what_was_asked() {
        let check = |dimensions, vectors: &[&[f32]], expected: Result<(), &str>| {
            let vectors = vectors.iter().map(|v| v.to_vec()).collect();
            let found = embeddings(dimensions).fitting(vectors, 2).map(|_| ());
            assert_eq!(found, expected.map_err(str::to_owned), "{dimensions:?}");
        };
        check(None, &[&[1.0, 0.0], &[0.0, 2.0]], Ok(()));
        check(Some(2), &[&[1.0, 0.0], &[0.0, 2.0]], Ok(()));
        check(
            Some(3),
            &[&[1.0, 0.0], &[0.0, 2.0]],
            Err("vectors of 2 dimensions where 3 were expected"),
        );
        check(
            None,
            &[&[1.0, 0.0], &[0.0]],
            Err("vectors of 1 dimensions where 2 were expected"),
        );
        check(None, &[&[1.0]], Err("1 vectors for 2 texts"));
        check(None, &[&[1.0], &[0.0]], Err("a vector without a direction"));
        check(
            None,
            &[&[1.0], &[f32::INFINITY]],
            Err("a vector without a direction"),
        );
    }

    #[test]
    fn only_the_beginning_of_a_text_is_sent() {
        assert_eq!(beginning("日本語", 2), "日本");
        assert_eq!(beginning("ab", 2), "ab");
        assert_eq!(beginning("", 2), "");
    }
}
