//! Streamable HTTP transport, as a service that an HTTP server mounts at one path.
//!
//! The mounting server authenticates: a layer in front verifies the token and puts the result into
//! the extensions of the request, from which `open` opens a workspace. It is called for every call
//! of a tool, with the head of that request. There are no sessions, so that no caller can use the session of
//! another. Every response is one JSON document, and any process can answer. The mounting server also checks
//! host names and origins.
//!
//! Standard input and output transport: one message per line, and no other output.
//!
//! Tool descriptions of the protocol for operations.

use std::io;
use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{Extensions, Tool, ToolAnnotations};
use rmcp::service::{ServerInitializeError, serve_server};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, stdio_pipes};

use crate::model::error::{Kind, UserError};
use crate::serve::mcp::Server;
use crate::serve::operations::{Effect, Operation};
use crate::store::workspace::Workspace;

/// Returns the service for bodies of at most this many bytes. `open` opens the memory for the caller in the
/// head of the request, on a thread that may block; it must refuse unknown callers.
pub fn service(
    longest_body: usize,
    open: impl Fn(&Parts, Operation) -> Result<Workspace, UserError> + Send + Sync + 'static,
) -> StreamableHttpService<Server, NeverSessionManager> {
    let open = move |extensions: &Extensions, operation| match extensions.get::<Parts>() {
        Some(head) => open(head, operation),
        // Without a request there is no caller.
        None => Err(UserError {
            kind: Kind::Permission,
            message: "the request has no authenticated caller".to_owned(),
            hint: None,
        }),
    };
    let server = Server::for_each(open);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(longest_body)
        .disable_allowed_hosts();
    StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}

/// Serves until the input ends. Pending calls are then answered, if they take at most a few
/// seconds; their writes are completed in any case.
pub async fn serve(server: Server) -> io::Result<()> {
    match serve_server(server, stdio_pipes()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // A client that only checks whether the program starts closes the input again.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Returns the tool of an operation, with the annotations that agent hosts need before they let a
/// model call it.
pub(super) fn of(operation: Operation) -> Tool {
    let effect = operation.effect();
    // The title stands here alone: the field of the tool itself would repeat it in every context.
    let annotations = ToolAnnotations::with_title(operation.title())
        .read_only(effect == Effect::Reads)
        .open_world(false);
    // Both other annotations apply only to tools that write.
    let annotations = if effect == Effect::Reads {
        annotations
    } else {
        annotations
            .destructive(effect == Effect::Removes)
            .idempotent(false)
    };
    Tool::new(
        operation.name(),
        operation.description(),
        operation.schema(),
    )
    .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};
    use tower_service::Service as _;

    use super::*;

    /// Refuses every caller, and returns the recognised caller in the message.
    fn refuse(head: &Parts, operation: Operation) -> Result<Workspace, UserError> {
        let who = head.extensions.get::<&'static str>().unwrap_or(&"nobody");
        let message = format!("{who} may not {}", operation.name());
        Err(UserError {
            kind: Kind::Permission,
            message,
            hint: None,
        })
    }

    fn ask(who: &'static str, method: &str, params: &Value) -> (StatusCode, Value) {
        let mut service = service(1_000, refuse);
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let mut request = Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .header("host", "127.0.0.1:8080")
            .body(body.to_string())
            .unwrap();
        request.extensions_mut().insert(who);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let answer = service.call(request).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            (status, serde_json::from_slice(&body).unwrap_or_default())
        })
    }

    #[test]
    fn tools_are_listed_without_a_session_and_without_opening_anything() {
        let (status, answer) = ask("ann", "tools/list", &json!({}));
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!(answer["id"], 7);
        assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn every_call_is_made_for_whom_its_own_request_names() {
        for who in ["ann", "bob"] {
            let call = json!({"name": "forget", "arguments": {"id": "MEM-001"}});
            let (status, answer) = ask(who, "tools/call", &call);
            assert_eq!(status, StatusCode::OK, "{answer}");
            let result = &answer["result"];
            assert_eq!(result["isError"], true, "{answer}");
            let error = &result["structuredContent"]["error"];
            assert_eq!(error["kind"], "permission");
            assert_eq!(error["message"], format!("{who} may not forget"));
        }
    }

    #[test]
    fn long_bodies_are_turned_away() {
        let long = json!({"cursor": "x".repeat(2_000)});
        let (status, answer) = ask("ann", "tools/list", &long);
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
    }
}

#[cfg(test)]
mod tests_of_tools {
    use super::*;
    use crate::skills::prompt::tokens;

    /// All tool descriptions are in the context of every agent, used or not.
    #[test]
    fn all_tools_together_cost_little() {
        let said = Operation::ALL.map(|operation| serde_json::to_string(&of(operation)).unwrap());
        let all: usize = said.iter().map(|said| tokens(said)).sum();
        assert!(all < 1_750, "{all} tokens");
    }
}
