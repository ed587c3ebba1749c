//! Common HTTP behaviour of all providers: connect, send, read within limits, retry.
//!
//! A [`Protocol`] builds the request and reads events or a whole body into the draft. Failures are
//! classified here as a [`Fault`], then retried or turned into an [`Error`].
//!
//! Invariants: redirects are not followed, since they would send the key to another host. No answer
//! is read past [`Limits::max_bytes`]. The key is removed from all server messages. The content
//! type decides if an answer is a stream, because compatible servers may ignore the requested mode.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::attempt_error::{Fault, parse};
use super::attempt_log::{Draft, Tally};
use super::body::Body;
use super::client::{client, host};
use super::price::{self, Tokens};
use super::protocol::{Dialect, Endpoint, Limits, Protocol, bearer};
use super::retry::{self, Decision};
use super::{Error, OnProgress, Paid, Progress, Request, Usage, sse};

/// Client for one provider.
#[derive(Debug)]
pub(super) struct Connection {
    endpoint: Endpoint,
    shown: String,
    host: String,
    client: Client,
    dialect: Mutex<Dialect>,
    random: AtomicU64,
}

impl Connection {
    pub(super) fn new(mut endpoint: Endpoint, dialect: Dialect) -> Result<Self, Error> {
        let shown = format!("{}/{}", endpoint.provider, endpoint.model);
        let invalid = |reason: String| Error::Config {
            model: shown.clone(),
            reason,
        };
        endpoint
            .base_url
            .truncate(endpoint.base_url.trim_end_matches('/').len());
        let (url, client) =
            client(&endpoint.base_url, endpoint.limits.connect_within).map_err(invalid)?;
        if let Some(key) = &endpoint.key
            && (key.expose().is_empty() || HeaderValue::from_str(key.expose()).is_err())
        {
            return Err(invalid(
                "the key is empty or contains invalid characters".to_owned(),
            ));
        }
        Ok(Self {
            host: host(&url),
            client,
            dialect: Mutex::new(dialect),
            random: AtomicU64::new(endpoint.limits.seed),
            shown,
            endpoint,
        })
    }

    /// `provider/model`.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Host and port.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Model name at the provider.
    pub(super) fn model(&self) -> &str {
        &self.endpoint.model
    }

    pub(super) const fn answer_within(&self) -> Duration {
        self.endpoint.limits.answer_within
    }

    /// Price of these tokens in US dollars; `None` if it is unknown.
    pub(super) fn price(&self, tokens: Tokens) -> Option<f64> {
        let endpoint = &self.endpoint;
        price::price(
            &endpoint.pricing, &endpoint.base_url, &endpoint.model, tokens,
        )
    }

    /// Usage and cost of the draft.
    pub(super) fn bill(&self, draft: &Draft) -> Paid {
        let cost_usd = draft.cost_usd.or_else(|| self.price(draft.tokens?));
        Paid {
            text: draft.text.clone(),
            model: self.shown.clone(),
            usage: draft.tokens.map(Usage::from),
            cost_usd,
        }
    }

    /// Sends the request until the draft is complete or an error is final.
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
            let decision = self.decide(retries, &fault, tally);
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
            body.extend(self.endpoint.extra.clone());
        }
        let headers = protocol.headers(self.key());
        let mut body = self.send(path(protocol), headers, &body).await?;
        if body.is_stream() {
            return read_stream(protocol, body, progress, draft).await;
        }
        let (text, end) = body.whole().await;
        if let Err(fault) = end {
            draft.text = self.scrub(&text);
            return Err(fault);
        }
        let body = parse(&text).inspect_err(|_| draft.text = self.scrub(&text))?;
        protocol.whole(draft, &body)?;
        progress(Progress::Text(&draft.text));
        Ok(())
    }

    /// Sends a request with the same retries, and reads an answer that is not streamed. An answer
    /// that `read` rejects was probably billed and would not change, so it is not retried.
    pub(super) async fn fetch<T>(
        &self,
        path: &str,
        body: &Value,
        read: impl Fn(&Value) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let limit = self.answer_within();
        let mut tally = Tally::new(Instant::now(), limit);
        let asking = async {
            let mut retries = 0;
            loop {
                tally.attempts += 1;
                let fault = match self.fetch_once(path, body, &read).await {
                    Ok(read) => return Ok(read),
                    Err(fault) => fault,
                };
                let decision = self.decide(retries, &fault, &tally);
                let Decision::Retry(after) = decision else {
                    return Err(self.error(fault, decision, &tally));
                };
                tokio::time::sleep(after).await;
                retries += 1;
            }
        };
        let answer = tokio::time::timeout(limit, asking).await;
        answer.map_err(|_| Error::TimedOut {
            model: self.shown.clone(),
            after: limit,
            paid: None,
        })?
    }

    async fn fetch_once<T>(
        &self,
        path: &str,
        body: &Value,
        read: impl Fn(&Value) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut body = self.send(path, bearer(self.key().as_ref()), body).await?;
        let (text, end) = body.whole().await;
        end?;
        read(&parse(&text)?)
    }

    /// Sends a request and returns the body of a successful response.
    async fn send(&self, path: &str, headers: HeaderMap, body: &Value) -> Result<Body, Fault> {
        let response = self
            .client
            .post(format!("{}{path}", self.endpoint.base_url))
            .headers(headers)
            .json(body)
            .send()
            .await
            .map_err(|error| Fault::NoAnswer(error.without_url()))?;
        let is_success = response.status().is_success();
        let Limits {
            max_bytes,
            silent_for,
            ..
        } = self.endpoint.limits;
        let body = Body::new(response, max_bytes, silent_for);
        if is_success {
            Ok(body)
        } else {
            Err(body.refusal().await)
        }
    }

    fn key(&self) -> Option<HeaderValue> {
        let key = self.endpoint.key.as_ref()?;
        HeaderValue::from_str(key.expose()).ok()
    }

    fn decide(&self, retries: u32, fault: &Fault, tally: &Tally) -> Decision {
        // A malformed answer was probably billed and would not change.
        if matches!(fault, Fault::Malformed { .. }) {
            return Decision::GiveUp;
        }
        let (policy, left) = (&self.endpoint.limits.retry, tally.left());
        retry::decide(policy, retries, fault.failure(), left, self.random())
    }

    /// Converts the final fault into an error.
    fn error(&self, fault: Fault, decision: Decision, tally: &Tally) -> Error {
        let provider = self.endpoint.provider.clone();
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
                // An error within a stream does not discard the text before it.
                let has_begun = !tally.draft.text.is_empty();
                let paid = has_begun.then(|| Box::new(tally.bill(self.bill(&tally.draft))));
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
                        paid,
                    },
                    408 | 409 | 500.. => Error::Overloaded {
                        provider,
                        status,
                        message,
                        retry_after,
                        attempts,
                        paid,
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
                // The beginning of an answer is more useful than the malformed part.
                text: match tally.draft.text.as_str() {
                    "" => self.scrub(&text),
                    text => text.to_owned(),
                },
            },
        }
    }

    fn scrub(&self, text: &str) -> String {
        match &self.endpoint.key {
            Some(key) => key.scrub(text),
            None => text.to_owned(),
        }
    }

    /// Next random number in `0.0..1.0` (`SplitMix64`).
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

/// Reads events until the protocol or the stream ends.
async fn read_stream(
    protocol: &impl Protocol,
    mut body: Body,
    progress: OnProgress<'_>,
    draft: &mut Draft,
) -> Result<(), Fault> {
    let mut decoder = sse::Decoder::default();
    loop {
        let chunk = match body.chunk().await {
            Ok(chunk) => chunk,
            // Only the token count is missing.
            Err(Fault::Broken(_)) if draft.complete => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let at_end = chunk.is_none();
        let events = match chunk {
            Some(bytes) => decoder.push(&bytes),
            None => Vec::from_iter(std::mem::take(&mut decoder).finish()),
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
        if at_end && !draft.complete {
            let reason = "the stream ended before the answer";
            return Err(Fault::Broken(reason.to_owned()));
        }
        if at_end {
            return Ok(());
        }
    }
}

fn path<P: Protocol>(_: &P) -> &'static str {
    P::PATH
}
