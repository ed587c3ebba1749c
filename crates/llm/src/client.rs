//! HTTP client settings for all providers.
//!
//! No redirects, since they would send the key to another host. No proxy for local servers. TLS
//! uses `rustls` with `ring`, and only if the URL requires it.

use std::time::Duration;

use reqwest::{Client, Url};
use url::Host;

/// Parses a base URL and builds its client.
///
/// # Errors
///
/// The reason as text: an invalid URL, or no TLS.
pub(super) fn client(base_url: &str, connect_within: Duration) -> Result<(Url, Client), String> {
    let url =
        Url::parse(base_url).map_err(|error| format!("the base URL is not valid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the base URL does not begin with `http://` or `https://`".to_owned());
    }
    let Some(host) = url.host() else {
        return Err("the base URL has no host".to_owned());
    };
    let mut builder = Client::builder()
        .user_agent(concat!("memctl/", env!("CARGO_PKG_VERSION")))
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

/// Returns `true` if the host is this machine. Host names that only resemble a loopback address do not
/// count.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name.eq_ignore_ascii_case("localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// Host and port of the URL.
pub(super) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}

fn source_of(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), source_of)
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
