//! Interface between a provider and the common HTTP code: endpoint, limits, wire protocol, and what
//! a server has accepted so far.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::attempt_error::Fault;
use super::attempt_log::Draft;
use super::price::Pricing;
use super::retry::Policy;
use super::{Request, Secret, sse};

/// Limits of a request over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time limit of a request, including retries and repair; 120 s by default.
    pub answer_within: Duration,
    /// Time limit of connecting; 10 s by default.
    pub connect_within: Duration,
    /// Maximum silence within an answer; 60 s by default. Only `answer_within` limits the wait for
    /// the beginning, since local servers load their models first.
    pub silent_for: Duration,
    /// Maximum answer size in bytes; 32 MiB by default.
    pub max_bytes: usize,
    /// Retry policy.
    pub retry: Policy,
    /// Seed for the random part of the pauses.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer_within: Duration::from_mins(2),
            connect_within: Duration::from_secs(10),
            silent_for: Duration::from_mins(1),
            max_bytes: 32 << 20,
            retry: Policy::default(),
            seed: 0,
        }
    }
}

/// Features that a server has accepted so far. Stored for later requests, so that a rejection costs
/// one request in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// `true` for the provider's first mechanism of structured output, `false` for the second.
    pub(super) native_structure: bool,
    /// Field name of the token limit.
    pub(super) token_limit: &'static str,
    /// The server has rejected the other field name.
    pub(super) swapped_tokens: bool,
    /// Request a stream.
    pub(super) stream: bool,
}

/// All features enabled, for protocols without a fallback.
impl Default for Dialect {
    fn default() -> Self {
        Self {
            native_structure: true,
            token_limit: "max_tokens",
            swapped_tokens: false,
            stream: true,
        }
    }
}

/// Wire protocol of a provider.
pub(super) trait Protocol: Sync {
    /// Request path below the base URL.
    const PATH: &'static str;

    /// Request headers, including the key.
    fn headers(&self, key: Option<HeaderValue>) -> HeaderMap;

    fn body(&self, request: &Request, dialect: Dialect) -> Value;

    /// Reads an event. Returns `true` if it is the last one.
    fn event(&self, draft: &mut Draft, event: &sse::Event) -> Result<bool, Fault>;

    /// Reads an answer that is not streamed.
    fn whole(&self, draft: &mut Draft, body: &Value) -> Result<(), Fault>;

    /// Dialect to use after the server has rejected this one; `None` if there is no other.
    fn fall_back(&self, dialect: Dialect, message: &str) -> Option<Dialect>;
}

/// Endpoint, credentials and limits of a provider.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) base_url: String,
    pub(super) key: Option<Secret>,
    pub(super) pricing: Pricing,
    pub(super) limits: Limits,
    pub(super) extra: Map<String, Value>,
}

/// Headers with the key as bearer token.
pub(super) fn bearer(key: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let value = key.and_then(|key| {
        let value = [b"Bearer ", key.as_bytes()].concat();
        HeaderValue::from_bytes(&value).ok()
    });
    if let Some(mut value) = value {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}
