//! Steps around every request: id and log, host and origin, and the time limit.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::problem::Problem;
use super::state::Server;

/// Assigns the id of a request, and logs its result.
pub(super) async fn observe(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>();
    // Unknown paths share one label, because their number is unlimited.
    let route = path.map_or("other", MatchedPath::as_str).to_owned();
    let id = request_id(&request).unwrap_or_else(|| server.random());
    let mut response = next.run(request).await;
    let (status, took) = (response.status(), start.elapsed());
    let problem = response.extensions().get::<Problem>();
    if let Some(inner) = problem.and_then(|problem| problem.inner.as_deref()) {
        server.log(&format!("{method} {route} {id}: {inner}"));
    }
    server.log_access(|| {
        let ms = took.as_secs_f64() * 1_000.0;
        format!("{method} {route} {} {ms:.1} ms {id}", status.as_u16())
    });
    if let Ok(id) = id.parse() {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// Returns the client's request id, if it is short and has only safe characters.
fn request_id(request: &Request) -> Option<String> {
    let id = request.headers().get("x-request-id")?.to_str().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !id.is_empty() && id.len() <= 64 && id.chars().all(plain);
    fits.then(|| id.to_owned())
}

/// Admits requests with an accepted host name, and without an origin or with an allowed one.
pub(super) async fn check_origin(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    match server.origins().permits(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Answers with a timeout error if a handler takes too long.
pub(super) async fn in_time(
    State(server): State<Server>,
    request: Request,
    next: Next,
) -> Response {
    let limit = server.limits().time;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "time",
            format!("no answer within {} s", limit.as_secs_f64()),
            "the write may have succeeded; check before you send it again",
        )
        .into_response(),
    }
}
