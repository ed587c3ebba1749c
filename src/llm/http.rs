//! What all providers behind a URL have in common: connect, send, read within limits, retry.
//!
//! A [`Protocol`] says what a request looks like and reads events or a whole body into the draft;
//! everything that can go wrong on the way is told apart here, as a [`Fault`], and either retried
//! or turned into an [`Error`].
//!
//! Invariants: redirects are not followed, since they would carry the key to another host; no
//! answer is read past [`Limits::max_bytes`]; what a server says is scrubbed of the key. Whether an
//! answer is a stream is decided by its content type, not by what was asked for, because
//! compatible servers do as they like.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Response};
use serde_json::{Map, Value};

use super::client::{client, host};
use super::fault::{Fault, parse, shortened};
use super::price::{self, Pricing};
use super::retry::{self, Decision, Policy};
use super::{Draft, Error, OnProgress, Paid, Progress, Request, Secret, Tally, Usage, sse};

/// Limits of a question over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time limit of a question, its retries and its repair included; 120 s by default.
    pub answer_within: Duration,
    /// Time limit of a connection; 10 s by default.
    pub connect_within: Duration,
    /// Longest silence in the middle of an answer; 60 s by default. The wait for its beginning is
    /// limited by `answer_within` only, since local servers load their models first.
    pub silent_for: Duration,
    /// Longest answer in bytes; 32 MiB by default.
    pub max_bytes: usize,
    /// When to ask again.
    pub retry: Policy,
    /// Seed of the random part of the pauses.
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

/// What a server has turned out to understand. Kept for the next question, so that a refusal costs
/// one request and not one a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Structured output by the provider's first mechanism; else by its second.
    pub(super) native_structure: bool,
    /// The name of the token limit.
    pub(super) token_limit: &'static str,
    /// The other name of it was refused.
    pub(super) swapped_tokens: bool,
    /// Ask for a stream.
    pub(super) stream: bool,
}

/// The language of a provider.
pub(super) trait Protocol: Sync {
    /// Where questions go, below the base URL.
    const PATH: &'static str;

    /// The headers of a request, the key among them.
    fn headers(&self, key: Option<HeaderValue>) -> HeaderMap;

    /// The body of a request.
    fn body(&self, request: &Request, dialect: Dialect) -> Value;

    /// Reads an event; `true` when it was the last one.
    fn event(&self, draft: &mut Draft, event: &sse::Event) -> Result<bool, Fault>;

    /// Reads an answer that came in one piece.
    fn whole(&self, draft: &mut Draft, body: &Value) -> Result<(), Fault>;

    /// The dialect to go on with after the server has refused this one.
    fn fall_back(&self, dialect: Dialect, message: &str) -> Option<Dialect>;
}

/// Who is behind a URL.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) base_url: String,
    pub(super) key: Option<Secret>,
    pub(super) pricing: Pricing,
    pub(super) limits: Limits,
    pub(super) extra: Map<String, Value>,
}

/// A provider and the way to it.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer,
    shown: String,
    host: String,
    client: Client,
    dialect: Mutex<Dialect>,
    random: AtomicU64,
}

impl Connection {
    pub(super) fn new(mut peer: Peer, dialect: Dialect) -> Result<Self, Error> {
        let shown = format!("{}/{}", peer.provider, peer.model);
        let invalid = |reason: String| Error::Config {
            model: shown.clone(),
            reason,
        };
        peer.base_url
            .truncate(peer.base_url.trim_end_matches('/').len());
        let (url, client) = client(&peer.base_url, peer.limits.connect_within).map_err(invalid)?;
        if let Some(key) = &peer.key
            && (key.expose().is_empty() || HeaderValue::from_str(key.expose()).is_err())
        {
            return Err(invalid(
                "the key is empty or holds characters that no key has".to_owned(),
            ));
        }
        Ok(Self {
            host: host(&url),
            client,
            dialect: Mutex::new(dialect),
            random: AtomicU64::new(peer.limits.seed),
            shown,
            peer,
        })
    }

    /// `provider/model`.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The model, as the provider calls it.
    pub(super) fn model(&self) -> &str {
        &self.peer.model
    }

    pub(super) const fn answer_within(&self) -> Duration {
        self.peer.limits.answer_within
    }

    /// What the draft is worth.
    pub(super) fn bill(&self, draft: &Draft) -> Paid {
        let cost_usd = draft.cost_usd.or_else(|| {
            let Peer {
                pricing,
                base_url,
                model,
                ..
            } = &self.peer;
            price::price(pricing, base_url, model, draft.tokens?)
        });
        Paid {
            text: draft.text.clone(),
            model: self.shown.clone(),
            usage: draft.tokens.map(Usage::from),
            cost_usd,
        }
    }

    /// Asks until there is an answer in the draft, or no hope of one.
    pub(super) async fn ask(
        &self,
        protocol: &impl Protocol,
        request: &Request,
        progress: OnProgress<'_>,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let mut retries = 0;
        loop {
            tally.attempts += 1;
            tally.draft = Draft::default();
            let dialect = *self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
            let fault = match self
                .attempt(protocol, request, dialect, progress, &mut tally.draft)
                .await
            {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            };
            if let Fault::Status {
                status: 400 | 422,
                message,
                ..
            } = &fault
                && let Some(next) = protocol.fall_back(dialect, message)
            {
                *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = next;
                continue;
            }
            // What is malformed was likely paid for, and would come again.
            let decision = if matches!(fault, Fault::Malformed { .. }) {
                Decision::GiveUp
            } else {
                let (policy, left) = (&self.peer.limits.retry, tally.left());
                retry::decide(policy, retries, fault.failure(), left, self.random())
            };
            let Decision::Retry(after) = decision else {
                return Err(self.error(fault, decision, tally));
            };
            let reason = self.scrub(&fault.describe());
            progress(Progress::Retry {
                after,
                reason: &reason,
            });
            tokio::time::sleep(after).await;
            retries += 1;
        }
    }

    async fn attempt(
        &self,
        protocol: &impl Protocol,
        request: &Request,
        dialect: Dialect,
        progress: OnProgress<'_>,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let mut body = protocol.body(request, dialect);
        if let Value::Object(body) = &mut body {
            body.extend(self.peer.extra.clone());
        }
        let key = self.peer.key.as_ref();
        let key = key.and_then(|key| HeaderValue::from_str(key.expose()).ok());
        let mut response = self
            .client
            .post(format!("{}{}", self.peer.base_url, path::<_>(protocol)))
            .headers(protocol.headers(key))
            .json(&body)
            .send()
            .await
            .map_err(|error| Fault::NoAnswer(error.without_url()))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"));
        if !is_stream {
            let read = self.read_whole(&mut response).await;
            let (bytes, broken) = match read {
                Ok(bytes) => (bytes, None),
                Err((bytes, fault)) => (bytes, Some(fault)),
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some(fault) = broken {
                draft.text = self.scrub(&text);
                return Err(fault);
            }
            let body = parse(&text).inspect_err(|_| draft.text = self.scrub(&text))?;
            protocol.whole(draft, &body)?;
            progress(Progress::Text(&draft.text));
            return Ok(());
        }
        let mut decoder = sse::Decoder::default();
        let mut size = 0;
        loop {
            let chunk = match self.chunk(&mut response, &mut size).await {
                Ok(chunk) => chunk,
                // Only the token count could still have come.
                Err(Fault::Broken(_)) if draft.complete => return Ok(()),
                Err(fault) => return Err(fault),
            };
            let at_end = chunk.is_none();
            let events = match chunk {
                Some(bytes) => decoder.push(&bytes),
                None => std::mem::take(&mut decoder).finish().into_iter().collect(),
            };
            for event in &events {
                let before = draft.text.len();
                let last = protocol.event(draft, event)?;
                if draft.text.len() > before {
                    progress(Progress::Text(&draft.text[before..]));
                }
                if last {
                    return Ok(());
                }
            }
            match (at_end, draft.complete) {
                (false, _) => {}
                (true, true) => return Ok(()),
                (true, false) => {
                    return Err(Fault::Broken(
                        "the stream ended before the answer".to_owned(),
                    ));
                }
            }
        }
    }

    /// The next bytes; `None` at the end.
    async fn chunk(
        &self,
        response: &mut Response,
        size: &mut usize,
    ) -> Result<Option<Vec<u8>>, Fault> {
        if *size > self.peer.limits.max_bytes {
            return Err(Fault::Malformed {
                reason: format!("more than {} bytes", self.peer.limits.max_bytes),
                text: String::new(),
            });
        }
        let silent_for = self.peer.limits.silent_for;
        let chunk = match tokio::time::timeout(silent_for, response.chunk()).await {
            Err(_) => {
                let seconds = silent_for.as_secs_f64();
                return Err(Fault::Broken(format!("nothing came for {seconds} s")));
            }
            Ok(Err(_)) => return Err(Fault::Broken("the connection was cut".to_owned())),
            Ok(Ok(chunk)) => chunk,
        };
        Ok(chunk.map(|bytes| {
            // What is too much is dropped, and the next call says so.
            let allowed = self.peer.limits.max_bytes - *size;
            *size = size.saturating_add(bytes.len());
            bytes[..bytes.len().min(allowed)].to_vec()
        }))
    }

    /// All bytes of a body, or those that came and why there are no more.
    async fn read_whole(&self, response: &mut Response) -> Result<Vec<u8>, (Vec<u8>, Fault)> {
        let (mut bytes, mut size) = (Vec::new(), 0);
        loop {
            match self.chunk(response, &mut size).await {
                Ok(Some(more)) => bytes.extend(more),
                Ok(None) => return Ok(bytes),
                Err(fault) => return Err((bytes, fault)),
            }
        }
    }

    async fn refusal(&self, mut response: Response) -> Fault {
        let status = response.status();
        let headers = response.headers().clone();
        if status.is_redirection() {
            let target = headers.get(LOCATION).and_then(|to| to.to_str().ok());
            let target = target.and_then(|to| response.url().join(to).ok());
            let target = target.map_or_else(|| "nowhere".to_owned(), |url| host(&url));
            return Fault::Status {
                status: status.as_u16(),
                headers: Box::new(headers),
                code: String::new(),
                message: format!("it redirects to `{target}`, which is not followed"),
            };
        }
        // Half an explanation is better than none.
        let bytes = match self.read_whole(&mut response).await {
            Ok(bytes) | Err((bytes, _)) => bytes,
        };
        let text = String::from_utf8_lossy(&bytes);
        match serde_json::from_str::<Value>(&text) {
            Ok(body) => Fault::read(status.as_u16(), headers, &body),
            Err(_) => Fault::Status {
                status: status.as_u16(),
                headers: Box::new(headers),
                code: String::new(),
                message: shortened(&text),
            },
        }
    }

    /// The error that a fault is when nothing more is tried.
    fn error(&self, fault: Fault, decision: Decision, tally: &Tally) -> Error {
        let provider = self.peer.provider.clone();
        let attempts = tally.attempts;
        let retry_after = match decision {
            Decision::WaitTooLong(wait) => Some(wait),
            _ => None,
        };
        match fault {
            Fault::Status {
                status, message, ..
            } => {
                let message = self.scrub(&message);
                match status {
                    _ if decision == Decision::SpendLimit => {
                        Error::SpendLimit { provider, message }
                    }
                    401 | 403 => Error::Auth { provider, message },
                    429 => Error::RateLimited {
                        provider,
                        message,
                        retry_after,
                        attempts,
                    },
                    408 | 409 | 500.. => Error::Overloaded {
                        provider,
                        status,
                        message,
                        retry_after,
                        attempts,
                    },
                    _ => Error::BadRequest {
                        provider,
                        status,
                        message,
                    },
                }
            }
            Fault::NoAnswer(source) => Error::Unreachable {
                host: self.host.clone(),
                attempts,
                source,
            },
            Fault::Broken(reason) => Error::Interrupted {
                provider,
                reason,
                attempts,
                paid: Box::new(tally.bill(self.bill(&tally.draft))),
            },
            Fault::Malformed { reason, text } => Error::Malformed {
                provider,
                reason,
                text: match text.as_str() {
                    "" => tally.draft.text.clone(),
                    text => self.scrub(text),
                },
            },
        }
    }

    fn scrub(&self, text: &str) -> String {
        match &self.peer.key {
            Some(key) => key.scrub(text),
            None => text.to_owned(),
        }
    }

    /// The next random number in `0.0..1.0` (`SplitMix64`).
    fn random(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.random.fetch_add(STEP, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let top = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(top) / f64::from(u32::MAX).next_up()
    }
}

fn path<P: Protocol>(_: &P) -> &'static str {
    P::PATH
}
