//! Steps around every request: id and log, host and origin, authentication, and the time limit.
//!
//! Authentication converts the bearer token of a request to a [`Caller`](crate::serve::token::Caller), or
//! answers with an error. The header `apikey`, which Supabase clients also send, is ignored: it identifies
//! a project, not a user.

use std::sync::Arc;
use std::time::Instant;

use crate::serve::http::input::Answer;
use crate::serve::http::problem::Problem;
use crate::serve::http::state::ANSWER_WITHIN;
use crate::serve::http::state::Server;
use crate::serve::token::Refused;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;

/// Assigns the id of a request, and logs its result.
pub(super) async fn observe(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let start = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>();
    // Unknown paths share one label, because their number is unlimited.
    let route = path.map_or("other", MatchedPath::as_str).to_owned();
    let id = request_id(&request).unwrap_or_else(|| (server.options.workspace.random)());
    let mut response = next.run(request).await;
    let (status, took) = (response.status(), start.elapsed());
    let problem = response.extensions().get::<Problem>();
    if let Some(inner) = problem.and_then(|problem| problem.inner.as_deref()) {
        (server.options.log)(&format!("{method} {route} {id}: {inner}"));
    }
    if let Some(log) = &server.options.access_log {
        let (status, ms) = (status.as_u16(), took.as_secs_f64() * 1_000.0);
        log(&format!("{method} {route} {status} {ms:.1} ms {id}"));
    }
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
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Answer {
    let origins = &server.options.origins;
    origins.permits(request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

/// Answers with a timeout error if a handler takes too long.
pub(super) async fn in_time(request: Request, next: Next) -> Answer {
    let answer = tokio::time::timeout(ANSWER_WITHIN, next.run(request)).await;
    answer.map_err(|_| {
        let message = format!("no answer within {} s", ANSWER_WITHIN.as_secs());
        let hint = "the write may have succeeded; check before you send it again";
        Problem::new(504, "time", message, hint)
    })
}

/// Admits requests with a valid token and within the rate limit.
pub(super) async fn caller(
    State(server): State<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Answer {
    let token = bearer(request.headers())?;
    let caller = server.options.verifier.caller(token, server.now()).await?;
    let rate = server.rates.take(caller.user.as_str());
    rate.map_err(Problem::too_often)?;
    // Handlers get the caller, not the token.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn bearer(headers: &HeaderMap) -> Result<&str, Refused> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(header), None) = (given.next(), given.next()) else {
        return Err(Refused::Missing);
    };
    let text = header.to_str().map_err(|_| Refused::Invalid)?;
    let (scheme, token) = text.split_once(' ').ok_or(Refused::Missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(Refused::Missing);
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bearer_token_is_one() {
        let check = |headers: &[(&'static str, &'static str)], expected: Option<&str>| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            assert_eq!(bearer(&map).ok(), expected, "{headers:?}");
        };
        check(&[("authorization", "Bearer a.b.c")], Some("a.b.c"));
        check(&[("authorization", "bearer  a.b.c ")], Some("a.b.c"));
        check(&[("authorization", "Basic a.b.c")], None);
        check(&[("authorization", "Bearer")], None);
        check(&[("authorization", "Bearer ")], None);
        check(&[("authorization", "a.b.c")], None);
        check(&[("apikey", "a.b.c")], None);
        check(
            &[("authorization", "Bearer a"), ("authorization", "Bearer b")],
            None,
        );
        check(&[], None);
    }
}
