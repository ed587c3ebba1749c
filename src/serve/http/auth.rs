//! Authentication: converts the bearer token of a request to a
//! [`Caller`](crate::serve::token::Caller), or answers with an error.
//!
//! The header `apikey`, which Supabase clients also send, is ignored: it identifies a project, not
//! a user.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::serve::token::Refused;

use super::problem::Problem;
use super::state::Server;

/// Admits requests with a valid token and within the rate limit.
pub(super) async fn caller(
    State(server): State<Server>,
    mut request: Request,
    next: Next,
) -> Response {
    let token = match bearer(request.headers()) {
        Ok(token) => token.to_owned(),
        Err(refused) => return Problem::from(refused).into_response(),
    };
    let caller = match server.verifier().caller(&token, server.now()).await {
        Ok(caller) => caller,
        Err(refused) => return Problem::from(refused).into_response(),
    };
    drop(token);
    if let Err(wait) = server.rates().take(caller.user.as_str()) {
        return Problem::too_often(wait).into_response();
    }
    // Handlers get the caller, not the token.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert(caller);
    next.run(request).await
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
