//! Request bodies and parameters, their errors, and JSON responses.
//!
//! Every body is a JSON object of at most 1 MiB. Below `/v1/` and `/rest/`,
//! unknown fields are errors, so that a mistyped name is not silently ignored. Functions ignore
//! unknown fields, as in the source document.
//!
//! Responses are redacted: older versions or other programs may have stored secrets in the files.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::model::SkillPath;
use crate::serve::http::problem::Problem;
use crate::store::writer;
use memctl_files::json::unreadable;

/// Answer of a handler.
pub(super) type Answer = Result<Response, Problem>;

/// Body parsed as JSON.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        parse(&bytes(request, state).await?).map(Self)
    }
}

async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::new(
            415,
            "input",
            "the content type of the body is not JSON",
            "send `Content-Type: application/json`",
        ));
    }
    let bytes = Bytes::from_request(request, state).await;
    bytes.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(413, "input", "the body is too large", "send a smaller body")
        }
        _ => Problem::input("the body is incomplete", "send it again"),
    })
}

/// Maximum number of rows in one insertion.
pub(super) const ROWS: usize = 50;

/// One item, or a list of at most [`ROWS`] items.
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Items<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = bytes(request, state).await?;
        if bytes.trim_ascii().first() != Some(&b'[') {
            return parse(&bytes).map(|one| Self(vec![one]));
        }
        let rows: Vec<T> = read(&bytes)?;
        if (1..=ROWS).contains(&rows.len()) {
            return Ok(Self(rows));
        }
        let message = format!("{} rows were sent", rows.len());
        Err(Problem::unfit(message, format!("send 1 to {ROWS}")))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii().first() != Some(&b'{') {
        return Err(Problem::input(
            "the body is not a JSON object",
            "send `{…}`",
        ));
    }
    read(bytes)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = T::deserialize(&mut reader).and_then(|read| reader.end().map(|()| read));
    let read = read.map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::unfit(
            format!(
                "the body does not match the schema: {}",
                with_field(bytes, &error)
            ),
            "see /openapi.json",
        ),
        _ => Problem::input(
            format!("the body is not valid JSON: {error}"),
            "correct the request",
        ),
    })?;
    // Refused here, so that none of several rows is stored.
    match std::str::from_utf8(bytes).ok().and_then(unreadable) {
        Some(value) => Err(writer::unreadable(value).into()),
        None => Ok(read),
    }
}

/// Returns the words of an error, after the field whose value is none of those that it lists.
fn with_field(bytes: &[u8], error: &serde_json::Error) -> String {
    let error = error.to_string();
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let rows = body
        .as_array()
        .map_or(std::slice::from_ref(&body), Vec::as_slice);
    let mut fields = rows.iter().filter_map(Value::as_object).flatten();
    let is_it = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        error.starts_with(&format!("unknown variant `{text}`"))
    };
    match fields.find(|(_, value)| is_it(value)) {
        Some((name, _)) => format!("`{name}`: {error}"),
        None => error,
    }
}

/// Query parameters.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given = Map::new();
        for (name, value) in pairs(parts) {
            // The only numbers among the parameters.
            let value = match value.parse::<i64>() {
                Ok(number) if matches!(name.as_str(), "limit" | "offset") => Value::from(number),
                _ => Value::from(value),
            };
            if given.contains_key(&name) {
                let message = format!("`{}` is given twice", name.escape_debug());
                return Err(Problem::input(message, "see /openapi.json"));
            }
            given.insert(name, value);
        }
        let read = T::deserialize(Value::Object(given));
        read.map(Self).map_err(|error| {
            let message = format!("the query parameters do not match: {error}");
            Problem::input(message, "see /openapi.json")
        })
    }
}

/// Names and values of the query, in their order; a name may come twice.
fn pairs(parts: &Parts) -> impl Iterator<Item = (String, String)> {
    let query = parts.uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned()
}

/// Path parameters.
pub(super) struct Names<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Names<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = Path::<T>::from_request_parts(parts, state).await;
        names.map(|Path(read)| Self(read)).map_err(|error| {
            let message = error.body_text();
            Problem::input(message, "see the paths in /openapi.json")
        })
    }
}

/// Parses the skill of a request.
pub(super) fn skill(given: &str) -> Result<SkillPath, Problem> {
    given
        .parse()
        .map_err(|error: crate::model::InvalidSkillPath| {
            Problem::unfit(error.to_string(), "a skill is written as `domain/skill`")
        })
}

/// Returns a value as a redacted JSON response.
pub(super) fn reply<T: Serialize>(value: &T) -> Answer {
    let text = serde_json::to_string(value)?;
    Ok(json(memctl_redact::redact_json(&text).text.into_owned()))
}

/// Returns a JSON text as a response.
pub(super) fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
