//! Rows as a client of `PostgREST` requests them: all columns of them, and by headers exactly one (`.single()`) or
//! the inserted ones (`.select()`).
//!
//! Invariant: any other parameter is an error, because an ignored filter would return too much.
//!
//! Deliberately absent: filters of functions, chosen columns and orders, which the shared database offers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{Answer, Parameters, reply};
use super::problem::Problem;

/// The one value of `select`: all columns.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) enum Columns {
    #[serde(rename = "*")]
    All,
}

/// Parameters of a request for all rows of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    #[serde(rename = "select")]
    _select: Option<Columns>,
    /// supabase-js repeats the names of the inserted columns.
    #[serde(rename = "columns")]
    _columns: Option<String>,
}

/// Answer with all rows.
pub(super) struct Rows(pub(super) Form);

impl<S: Send + Sync> FromRequestParts<S> for Rows {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Parameters::<Whole>::from_request_parts(parts, state).await?;
        Form::from_request_parts(parts, state).await.map(Self)
    }
}

/// Form of an answer.
pub(super) struct Form {
    /// Exactly one row is wanted, as an object.
    is_single: bool,
    /// Inserted rows are wanted in the answer.
    wants_inserted: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Form {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let says = |headers: &HeaderMap, name: &str, what: &str| {
            let mut values = headers.get_all(name).iter();
            values.any(|value| value.to_str().is_ok_and(|text| text.contains(what)))
        };
        if says(&parts.headers, "prefer", "resolution=") {
            return Err(Problem::input(
                "a row that exists is not replaced here",
                "insert without `upsert`",
            ));
        }
        Ok(Self {
            is_single: says(&parts.headers, "accept", "vnd.pgrst.object+json"),
            wants_inserted: says(&parts.headers, "prefer", "return=representation"),
        })
    }
}

impl Form {
    /// Answers with rows.
    pub(super) fn reply<T: Serialize>(&self, rows: &[T]) -> Answer {
        match rows {
            rows if !self.is_single => reply(&rows),
            [one] => reply(one),
            rows => Err(Problem::new(
                406,
                "input",
                format!("one row was requested, but there are {}", rows.len()),
                "remove `.single()`, or narrow the query to one row",
            )),
        }
    }

    /// Answers for inserted rows: with the rows, if the client wants them.
    pub(super) fn inserted<T: Serialize>(&self, rows: &[T]) -> Answer {
        if !self.wants_inserted {
            return Ok(StatusCode::CREATED.into_response());
        }
        Ok((StatusCode::CREATED, self.reply(rows)?).into_response())
    }
}
