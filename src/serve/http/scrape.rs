//! Endpoint of the metrics, for programs that collect them.

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use crate::model::Kind;
use crate::serve::token::Caller;

use super::problem::Problem;
use super::state::Server;

/// `GET /metrics`
pub(super) async fn metrics(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let work = server.work(&caller, "serve metrics", |workspace| {
        let count = |kind| {
            let count = workspace.store.count(kind)?;
            Ok((kind, count))
        };
        let counts: Result<Vec<_>, crate::store::Error> =
            Kind::ALL.into_iter().map(count).collect();
        Ok(counts?)
    });
    let records = work.await?;
    let listeners = server.events().listeners();
    let text = server.metrics().text(listeners, server.commits(), &records);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
