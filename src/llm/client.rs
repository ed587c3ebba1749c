//! The HTTP client: what holds for every connection to a provider.
//!
//! No redirects, since they would carry the key to another host; no proxy to this machine's own
//! servers; TLS by `rustls` with `ring`, and only where the URL asks for it.

use std::time::Duration;

use reqwest::{Client, Url};

/// A client for this base URL.
///
/// # Errors
///
/// Why the URL is none, or why there is no TLS, in words.
pub(super) fn client(base_url: &str, connect_within: Duration) -> Result<(Url, Client), String> {
    let url = Url::parse(base_url).map_err(|error| format!("its base URL is none: {error}"))?;
    let is_loopback = match url.host_str() {
        _ if !matches!(url.scheme(), "http" | "https") => {
            return Err("its base URL is neither `http://` nor `https://`".to_owned());
        }
        None => return Err("its base URL names no host".to_owned()),
        Some(name) => matches!(name, "localhost" | "[::1]") || name.starts_with("127."),
    };
    let mut builder = Client::builder()
        .user_agent(concat!("memctl/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect_within);
    if is_loopback {
        // A proxy cannot reach this machine's own servers.
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // The system's certificates take time to read, and may not be there.
        builder = builder.tls_certs_only([]);
    }
    // An error only says that it was installed before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = builder
        .build()
        .map_err(|error| format!("no TLS: {}", source_of(&error)))?;
    Ok((url, client))
}

/// Host and port, and nothing else of the URL.
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
