//! Answers as JSON, without what must not go out: whatever older or other programs have left of secrets
//! in the files is taken out on the way, as on a terminal.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use crate::guard;
use crate::store;

use super::problem::Problem;

/// An answer.
pub(super) fn reply<T: Serialize>(value: &T) -> Result<Response, Problem> {
    let text = serde_json::to_string(value).map_err(store::Error::from)?;
    let text = guard::redact_json(&text).text.into_owned();
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
