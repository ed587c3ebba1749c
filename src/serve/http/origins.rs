//! Host names and origins that a server accepts.
//!
//! A web page can make a browser send requests to this machine: through its own host name that
//! resolves to this address (DNS rebinding), or directly across origins. So `Host` must be a name
//! of this server, and an `Origin` must be allowed. Numeric addresses are safe names, because
//! nobody can redirect them.

use std::net::IpAddr;
use std::str::FromStr as _;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use tower_http::cors::CorsLayer;

use crate::model::error::UserError;

use super::problem::Problem;

/// Request headers of Supabase clients and tracing.
const HEADERS: [&str; 12] = [
    "accept", "apikey", "authorization", "baggage", "content-type", "prefer", "traceparent",
    "tracestate", "x-client-info", "x-region", "x-request-id", "x-retry-count",
];

/// Host names and origins that a server accepts.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    hosts: Vec<String>,
    pages: Vec<HeaderValue>,
}

fn invalid(given: &str, what: &str, reason: &str) -> UserError {
    let message = format!("`{}` is not a valid {what}: {reason}", given.escape_debug());
    UserError::input(message, "memctl serve --allow-origin https://app.example")
}

impl Origins {
    /// Accepts these host names, besides `localhost` and numeric addresses, and these origins.
    ///
    /// # Errors
    ///
    /// Fails for an invalid host name or origin.
    pub fn new(hosts: &[String], pages: &[String]) -> Result<Self, UserError> {
        let mut read = Self::default();
        for given in hosts {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            if given.is_empty() || !given.chars().all(plain) {
                let reason = "write it without a scheme and a port, as in `memory.example.org`";
                return Err(invalid(given, "host name", reason));
            }
            read.hosts.push(given.to_ascii_lowercase());
        }
        for given in pages {
            let origin = url::Url::parse(given).map(|url| url.origin().ascii_serialization());
            let is_web = given.starts_with("http://") || given.starts_with("https://");
            let value = HeaderValue::from_str(given);
            let value = value
                .ok()
                .filter(|_| is_web && origin.as_ref() == Ok(given));
            let reason = "write each allowed one as `https://app.example`, without a path";
            read.pages
                .push(value.ok_or_else(|| invalid(given, "origin", reason))?);
        }
        Ok(read)
    }

    /// Returns the CORS layer; `None` if no origin is allowed.
    pub(super) fn layer(&self) -> Option<CorsLayer> {
        if self.pages.is_empty() {
            return None;
        }
        let layer = CorsLayer::new()
            .allow_origin(self.pages.clone())
            .allow_methods([
                Method::GET,
                Method::POST,
                Method::PATCH,
                Method::DELETE,
                Method::OPTIONS,
            ])
            .allow_headers(HEADERS.map(HeaderName::from_static))
            .expose_headers(["retry-after", "x-request-id"].map(HeaderName::from_static))
            .allow_private_network(true)
            .max_age(Duration::from_mins(10));
        Some(layer)
    }

    fn knows_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let name = name.to_ascii_lowercase();
        name == "localhost" || IpAddr::from_str(&name).is_ok() || self.hosts.contains(&name)
    }

    pub(super) fn permits(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let (host, another) = (named.next(), named.next());
        let host = host.and_then(|host| host.to_str().ok());
        let authority = uri.authority().map(http::uri::Authority::as_str);
        let is_own = |name: Option<&str>| name.is_none_or(|name| self.knows_host(name));
        if another.is_some() || host.is_none() || !is_own(host) || !is_own(authority) {
            return Err(Problem::new(
                403,
                "host",
                "the `Host` header does not name this server",
                "use `localhost` or the IP address, or start the server with `--allow-host NAME`",
            ));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if origins.all(|origin| self.pages.contains(origin)) {
            return Ok(());
        }
        Err(Problem::new(
            403,
            "origin",
            "requests from this origin are not allowed",
            "start the server with `--allow-origin ORIGIN`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn only_names_that_nobody_else_can_have_are_ours() {
        let origins = Origins::new(&texts(&["memory.example.org"]), &[]).unwrap();
        let check =
            |host: &str, expected: bool| assert_eq!(origins.knows_host(host), expected, "{host}");
        for good in [
            "localhost", "localhost:8787", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8787", "[::1]",
            "[::1]:8787", "192.168.1.7:80", "memory.example.org", "Memory.Example.Org:443",
        ] {
            check(good, true);
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:8787",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "memory.example.org.evil.example",
            "[evil]",
            "[::1",
            "::1",
            "1",
            "0x7f.1",
            "localhost.",
            "127.0.0.1@evil.example",
        ] {
            check(bad, false);
        }
    }

    #[test]
    fn a_page_is_one_that_was_named() {
        let page = "https://app.example";
        let origins = Origins::new(&[], &texts(&[page, "http://localhost:5173"])).unwrap();
        let check = |origin: &[&'static str], expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost:1"));
            for origin in origin {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let permits = origins.permits(&Uri::from_static("/x"), &headers);
            assert_eq!(permits.is_ok(), expected, "{origin:?}");
        };
        check(&[], true);
        check(&[page], true);
        check(&["http://localhost:5173"], true);
        for bad in [
            "null",
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil.example",
            "https://evil.example",
            "",
            "http://localhost:1",
        ] {
            check(&[bad], false);
        }
        check(&[page, "https://evil.example"], false);
        for bad in [
            "*", "app.example", "https://app.example/", "ftp://x", "null", "https://A.example",
        ] {
            assert!(Origins::new(&[], &texts(&[bad])).is_err(), "{bad}");
        }
    }
}
