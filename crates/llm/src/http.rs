//! Common HTTP behaviour of all servers: connect, send, read within limits, retry.
//!
//! A failed attempt is a [`Fault`]; it is sent again, or becomes an [`Error`].
//!
//! Invariants: redirects are not followed, since they would send the key to another host. No answer
//! is read past [`Limits::max_bytes`]. The key is overwritten in memory when it is dropped, has no `Display` and
//! no `Serialize`, and is removed from all server messages, since some servers repeat it. No proxy for
//! local servers. TLS uses `rustls` with `ring`, and only if the URL requires it.
//!
//! Deliberately absent: streams. An answer is read whole, within the time limit of its question.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use url::Host;
use zeroize::Zeroizing;

use super::error::{Fault, LONGEST, pause};
use super::request::{Attempts, Limits, Tokens, price, shortened};
use super::{Error, ErrorKind, Paid, Progress};

/// Model at a server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// First part of `provider/model`.
    pub provider: String,
    /// Base URL up to the path of the protocol.
    pub base_url: String,
    /// Sent in one header; `None` for local servers.
    pub key: Option<Secret>,
    /// Model name at the server.
    pub model: String,
    /// Limits of a request.
    pub limits: Limits,
}

/// API key.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Creates a key from user input; surrounding whitespace is removed.
    pub fn new(key: &str) -> Self {
        Self(Zeroizing::new(key.trim().to_owned()))
    }

    /// Plain key, for the one header that sends it.
    fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the key.
    fn scrub(&self, text: &str) -> String {
        if self.expose().is_empty() {
            return text.to_owned();
        }
        text.replace(self.expose(), "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Client for one model.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint,
    /// Provider in the table of prices; `None` looks it up by the base URL.
    price_id: Option<&'static str>,
    /// `provider/model`.
    pub(super) shown: String,
    /// Host and port.
    pub(super) host: String,
    client: Client,
}

impl Connection {
    /// `headers` are sent with each request, besides those that the key needs.
    pub(super) fn new(
        mut endpoint: Endpoint,
        price_id: Option<&'static str>,
        headers: HeaderMap,
    ) -> Result<Self, Error> {
        let shown = format!("{}/{}", endpoint.provider, endpoint.model);
        let base = endpoint.base_url.trim_end_matches('/').to_owned();
        let (url, client) = client(&base, endpoint.limits.connect_within, headers)
            .map_err(|reason| unusable(&shown, &reason))?;
        endpoint.base_url = base;
        Ok(Self {
            host: host(&url),
            client,
            price_id,
            shown,
            endpoint,
        })
    }

    /// Price of these tokens in US dollars; `None` if it is unknown.
    pub(super) fn price(&self, tokens: Tokens) -> Option<f64> {
        price(&self.endpoint, self.price_id, tokens)
    }

    /// Sends a request until it has an answer or an error is final. An answer that `read` rejects
    /// was probably billed and would not change, so it is not retried.
    pub(super) async fn fetch<T>(
        &self,
        path: &str,
        body: &Value,
        read: impl Fn(&Value) -> Result<T, Fault>,
        attempts: &mut Attempts<'_>,
    ) -> Result<T, Error> {
        let mut retries = 0;
        loop {
            let fault = match self.once(path, body, &read).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            let limits = &self.endpoint.limits;
            let Some(after) = pause(limits, retries, &fault, attempts.left(), random()) else {
                return Err(self.error(fault));
            };
            let reason = self.scrub(&fault.describe());
            (attempts.progress)(Progress::Retry {
                after,
                reason: &reason,
            });
            tokio::time::sleep(after).await;
            retries += 1;
        }
    }

    async fn once<T>(
        &self,
        path: &str,
        body: &Value,
        read: impl Fn(&Value) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let url = format!("{}{path}", self.endpoint.base_url);
        let response = self.client.post(url).json(body).send().await;
        let response = response.map_err(|error| Fault::NoAnswer(error.without_url()))?;
        let text = text(response, self.endpoint.limits.max_bytes).await?;
        match serde_json::from_str(&text) {
            Ok(answer) => read(&answer),
            Err(error) => Err(Fault::Malformed {
                reason: format!("invalid JSON: {error}"),
                text,
            }),
        }
    }

    /// Converts the final fault into an error.
    fn error(&self, fault: Fault) -> Error {
        let provider = &self.endpoint.provider;
        let (kind, message) = match &fault {
            Fault::Status {
                status, message, ..
            } => {
                let wait = fault.retry_after().map_or_else(String::new, |wait| {
                    format!(" and asks to wait {} s", wait.as_secs())
                });
                let (kind, what) = match status {
                    _ if fault.is_spend_limit() => (
                        ErrorKind::SpendLimit,
                        format!("the spending limit at `{provider}` is reached"),
                    ),
                    401 | 403 => (ErrorKind::Auth, format!("`{provider}` refused the key")),
                    429 => (
                        ErrorKind::RateLimited,
                        format!("`{provider}` limits the rate of requests{wait}"),
                    ),
                    408 | 409 | 500.. => (
                        ErrorKind::Overloaded,
                        format!("`{provider}` is overloaded or failing (status {status}){wait}"),
                    ),
                    _ => (
                        ErrorKind::BadRequest(*status),
                        format!("`{provider}` does not accept the request (status {status})"),
                    ),
                };
                (kind, format!("{what}: {}", self.scrub(message)))
            }
            Fault::NoAnswer(_) => (
                ErrorKind::Unreachable,
                format!("`{}` cannot be reached", self.host),
            ),
            Fault::Broken { reason, .. } => (
                ErrorKind::Interrupted,
                format!("the answer of `{provider}` broke off: {reason}"),
            ),
            Fault::Malformed { reason, .. } => (
                ErrorKind::Malformed,
                format!("`{provider}` violated its protocol: {reason}"),
            ),
        };
        let error = Error::new(kind, message);
        match fault {
            Fault::NoAnswer(source) => error.because(source),
            Fault::Broken { text, .. } | Fault::Malformed { text, .. } => error.after(Paid {
                text: self.scrub(&text),
                ..Paid::default()
            }),
            Fault::Status { .. } => error,
        }
    }

    fn scrub(&self, text: &str) -> String {
        match &self.endpoint.key {
            Some(key) => key.scrub(text),
            None => text.to_owned(),
        }
    }
}

/// Names of the models that a server offers. Also checks that the server is available.
///
/// # Errors
///
/// An invalid URL, no answer within the time, an unsuccessful status, or an answer without a list.
pub async fn list_models(
    provider: &str,
    base_url: &str,
    key: Option<&Secret>,
    within: Duration,
) -> Result<Vec<String>, Error> {
    let url = format!("{}/models", base_url.trim_end_matches('/'));
    let unusable = |reason: String| unusable(provider, &reason);
    let headers = bearer(key).map_err(unusable)?;
    let (parsed, client) = client(&url, within, headers).map_err(unusable)?;
    let failed = |reason: String| {
        let message = format!(
            "the models of `{}` cannot be reached: {reason}",
            host(&parsed)
        );
        Error::new(ErrorKind::Unreachable, message)
    };
    let body = get(&client, &url, within, Limits::default().max_bytes).await;
    let body = body.map_err(failed)?;
    let models = body["data"].as_array();
    let models = models.ok_or_else(|| failed("no list `data`".to_owned()))?;
    let names = models.iter().filter_map(|model| model["id"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Fetches a JSON document of at most `max_bytes`, such as a key set. Redirects are not followed.
///
/// # Errors
///
/// The reason as text.
pub async fn get_json(url: &str, within: Duration, max_bytes: usize) -> Result<Value, String> {
    let (_, client) = client(url, within, HeaderMap::new())?;
    get(&client, url, within, max_bytes).await
}

async fn get(
    client: &Client,
    url: &str,
    within: Duration,
    max_bytes: usize,
) -> Result<Value, String> {
    let ask = async {
        let response = client.get(url).send().await;
        let response = response.map_err(|error| format!("no answer: {}", error.without_url()))?;
        let text = text(response, max_bytes).await;
        let text = text.map_err(|fault| fault.describe())?;
        serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
    };
    let answer = tokio::time::timeout(within, ask).await;
    answer.map_err(|_| format!("no answer within {} s", within.as_secs_f64()))?
}

/// Reads a response of at most this size. The fault has what was read before it.
async fn text(mut response: Response, max_bytes: usize) -> Result<String, Fault> {
    let status = response.status();
    let headers = response.headers().clone();
    if status.is_redirection() {
        let target = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        let target = target.and_then(|to| response.url().join(to).ok());
        let target = target.map_or_else(|| "nowhere".to_owned(), |url| host(&url));
        return Err(Fault::Status {
            status: status.as_u16(),
            headers: Box::new(headers),
            code: String::new(),
            message: format!("it redirects to `{target}`, which is not followed"),
        });
    }
    let mut bytes = Vec::new();
    let mut is_cut = false;
    while bytes.len() <= max_bytes {
        match response.chunk().await {
            Ok(Some(more)) => bytes.extend(more),
            Ok(None) => break,
            Err(_) => {
                is_cut = true;
                break;
            }
        }
    }
    let is_too_long = bytes.len() > max_bytes;
    bytes.truncate(max_bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !status.is_success() {
        // A partial error text is better than none.
        let body =
            serde_json::from_str(&text).unwrap_or_else(|_| Value::from(shortened(&text, LONGEST)));
        return Err(Fault::read(status.as_u16(), headers, &body));
    }
    if is_too_long {
        let reason = format!("more than {max_bytes} bytes");
        return Err(Fault::Malformed { reason, text });
    }
    if is_cut {
        let reason = "the connection was cut".to_owned();
        return Err(Fault::Broken { reason, text });
    }
    Ok(text)
}

/// Parses a URL and builds its client, which sends these headers with each request.
///
/// # Errors
///
/// The reason as text: an invalid URL, or no TLS.
fn client(
    url: &str,
    connect_within: Duration,
    headers: HeaderMap,
) -> Result<(Url, Client), String> {
    let url = Url::parse(url).map_err(|error| format!("the base URL is not valid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the base URL does not begin with `http://` or `https://`".to_owned());
    }
    let Some(host) = url.host() else {
        return Err("the base URL has no host".to_owned());
    };
    let mut builder = Client::builder()
        .user_agent(concat!("memctl/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_within);
    if is_loopback(&host) {
        // A proxy cannot reach local servers.
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Reading the system's certificates takes time, and they may be missing.
        builder = builder.tls_certs_only([]);
    }
    // The only possible error is that a provider is already installed.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = builder
        .build()
        .map_err(|error| format!("no TLS: {}", source_of(&error)))?;
    Ok((url, client))
}

/// Error of a configuration that cannot work.
pub(super) fn unusable(model: &str, reason: &str) -> Error {
    let message = format!("the model `{model}` is not usable: {reason}");
    Error::new(ErrorKind::Config, message)
}

/// Headers with the key as bearer token.
pub(super) fn bearer(key: Option<&Secret>) -> Result<HeaderMap, String> {
    with_key(key, "authorization", "Bearer ")
}

/// Headers with the key behind a prefix in one of this name, if there is a key.
pub(super) fn with_key(
    key: Option<&Secret>,
    name: &'static str,
    prefix: &str,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let value = HeaderValue::from_str(&format!("{prefix}{}", key.expose()));
        let value = value.ok().filter(|_| !key.expose().is_empty());
        let mut value = value.ok_or("the key is empty or contains invalid characters")?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns `true` if the host is this machine. Host names that only resemble a loopback address do not
/// count.
pub fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// Host and port of the URL.
fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}

fn source_of(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), source_of)
}

/// Random number in `0.0..1.0`, from the random keys of a hash map.
fn random() -> f64 {
    let random = std::hash::RandomState::new().build_hasher().finish();
    let top = u32::try_from(random >> 32).unwrap_or_default();
    f64::from(top) / f64::from(u32::MAX).next_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_and_localhost_bypass_the_proxy() {
        let check = |url: &str, expected: bool| {
            let url = Url::parse(url).unwrap();
            assert_eq!(is_loopback(&url.host().unwrap()), expected, "{url}");
        };
        check("http://localhost:11434/v1", true);
        check("http://127.0.0.1:8080", true);
        check("http://127.8.9.10", true);
        check("http://[::1]:8080", true);
        check("http://[::ffff:127.0.0.1]", true);
        check("http://127.evil.example", false);
        check("http://127.0.0.1.evil.example", false);
        check("http://localhost.evil.example", false);
        check("http://192.0.2.7", false);
        check("http://[2001:db8::1]", false);
    }
}

#[cfg(test)]
mod tests_of_secret {
    use super::*;

    #[test]
    fn a_key_is_neither_shown_nor_repeated() {
        let key = Secret::new(" sk-live-1234\n");
        assert_eq!(key.expose(), "sk-live-1234");
        assert_eq!(format!("{key:?} {:?}", Some(&key)), "[key] Some([key])");
        assert_eq!(key.scrub("bad key sk-live-1234."), "bad key [key].");
        assert_eq!(Secret::new("").scrub("as it is"), "as it is");
    }
}
