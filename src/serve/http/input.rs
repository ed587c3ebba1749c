//! Parsing of request bodies and parameters, and their errors.
//!
//! Every body is a JSON object of at most [`Limits::body`](super::Limits) bytes. Below `/v1/`,
//! unknown fields are errors, so that a mistyped name is not silently ignored. Functions ignore
//! unknown fields, as in the source document.
//!
//! JSON responses, redacted: older versions or other programs may have stored secrets in the files.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::de::value::{Error, MapDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use url::form_urlencoded;

use crate::serve::http::problem::Problem;
use crate::store;

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
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "input",
            "the content type of the body is not JSON",
            "send `Content-Type: application/json`",
        ));
    }
    let bytes = Bytes::from_request(request, state).await;
    bytes.map_err(|rejection| too_long(&rejection))
}

/// One item, or a list of items.
pub(super) struct Items<T>(pub(super) Vec<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Items<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = bytes(request, state).await?;
        if bytes.trim_ascii().first() == Some(&b'[') {
            return read(&bytes).map(Self);
        }
        parse(&bytes).map(|one| Self(vec![one]))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

fn too_long(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "input",
            "the body is too large",
            "send a smaller body",
        );
    }
    Problem::input("the body is incomplete", "send it again")
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
    read.map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::unfit(
            format!("the body does not match the schema: {error}"),
            "see /openapi.json",
        ),
        _ => Problem::input(
            format!("the body is not valid JSON: {error}"),
            "correct the request",
        ),
    })
}

/// Query parameters.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let given = pairs(parts).map(|(name, value)| (name, Parameter(value)));
        let read = T::deserialize(MapDeserializer::new(given));
        read.map(Self).map_err(|error: Error| {
            let message = format!("the query parameters do not match: {error}");
            Problem::input(message, "see /openapi.json")
        })
    }
}

/// Names and values of the query, in their order; a name may come twice.
pub(super) fn pairs(parts: &Parts) -> impl Iterator<Item = (String, String)> {
    let query = parts.uri.query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned()
}

/// Value of a query parameter: a number where one is expected, text elsewhere.
struct Parameter(String);

impl<'de> Deserializer<'de> for Parameter {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let number = self.0.parse().map_err(de::Error::custom);
        visitor.visit_i64(number?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Parameter {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
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

/// Returns a value as a redacted JSON response.
pub(super) fn reply<T: Serialize>(value: &T) -> Result<Response, Problem> {
    let text = serde_json::to_string(value).map_err(store::Error::from)?;
    Ok(json(memctl_redact::redact_json(&text).text.into_owned()))
}

/// Returns a JSON text as a response.
pub(super) fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
