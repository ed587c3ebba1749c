//! JSON responses, redacted: older versions or other programs may have stored secrets in the files.

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use crate::store;

use super::problem::Problem;

/// Returns a value as a redacted JSON response.
pub(super) fn reply<T: Serialize>(value: &T) -> Result<Response, Problem> {
    let text = serde_json::to_string(value).map_err(store::Error::from)?;
    let text = memctl_redact::redact_json(&text).text.into_owned();
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
