//! The protocol over streamable HTTP, as a service that an HTTP server mounts at one path.
//!
//! Whoever mounts it decides who asks: a layer in front reads the token and puts what it found into the
//! extensions of the request, and `open` makes an engine of that. It is called for every call of a tool,
//! with the head of that very request: no session of one caller can be used by another, for there are
//! none. Every answer is one JSON document, and every process can give it.
//!
//! A second lock, whatever the server in front checks: only the named hosts, no page of a browser unless
//! its origin is named, and no body that is longer than a memory may be.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::engine::Engine;
use crate::error::{Explained, Kind};

use super::super::operations::Operation;
use super::Server;

/// From where the service may be reached.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Values of `Host`, with or without a port; the names of the loopback where there are none.
    pub hosts: Vec<String>,
    /// Values of `Origin`, each with its scheme and port. Without any, no browser is answered.
    pub origins: Vec<String>,
    /// The longest body, in bytes.
    pub longest_body: usize,
    /// Whether only what changes nothing is offered.
    pub read_only: bool,
}

/// The service. `open` opens the memory for whom the head of the request names, on a thread that may
/// block; it is to refuse whom it does not know.
pub fn service(
    access: Access,
    open: impl Fn(&Parts, Operation) -> Result<Engine, Explained> + Send + Sync + 'static,
) -> StreamableHttpService<Server, NeverSessionManager> {
    let open = move |extensions: &Extensions, operation| match extensions.get::<Parts>() {
        Some(head) => open(head, operation),
        // Without a request nobody is known.
        None => Err(Explained {
            kind: Kind::Scope,
            message: "nobody is known to ask".to_owned(),
            hint: None,
        }),
    };
    let server = Server::for_each(open).read_only(access.read_only);
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(access.longest_body)
        .with_allowed_origins(access.origins)
        .enforce_origin_validation();
    if !access.hosts.is_empty() {
        config = config.with_allowed_hosts(access.hosts);
    }
    StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}
