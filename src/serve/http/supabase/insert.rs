//! Insertion into `context_eng_memories`, the one table of the source documents that other programs
//! write to, as `PostgREST` offers it.
//!
//! A row has the form of the source document's analyst: its `metadata` is the procedure. The server
//! computes the text and vectors of the other columns, and ignores values that a client sends in
//! them.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::model::{Procedure, Record as _, Trust};
use crate::serve::token::Caller;
use crate::{lessons, store};

use super::super::input::reply;
use super::super::input::{Items, Parameters};
use super::super::problem::Problem;
use super::super::state::Server;
use super::functions::vector;
use super::recall::Metadata;

/// Maximum number of rows in one request.
const ROWS: usize = 50;

/// Procedure to store.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Row {
    /// Procedure: `{"status": "procedure_learned", "data": {…}}`.
    metadata: Map<String, Value>,
}

/// Columns of the answer.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Columns {
    /// Columns, separated by commas. The vector is returned only if `embedding` is one of them.
    select: Option<String>,
}

impl Columns {
    fn names(&self, column: &str) -> bool {
        let mut names = self.select.iter().flat_map(|names| names.split(','));
        names.any(|name| name.trim() == column)
    }
}

/// Stored row.
#[derive(Debug, Serialize)]
struct StoredRow {
    id: String,
    content: String,
    metadata: Metadata,
    /// Null unless requested: embedding happens at the first search.
    embedding: Option<Vec<f32>>,
    created_dt: String,
    trust: Trust,
}

impl StoredRow {
    fn of(procedure: Procedure, embedding: Option<Vec<f32>>) -> Self {
        Self {
            trust: procedure.trust(),
            content: procedure.shown_content(),
            id: procedure.procedure_id,
            metadata: Metadata {
                status: procedure.status,
                data: procedure.data,
            },
            embedding,
            created_dt: procedure.created_at,
        }
    }
}

/// `POST /rest/v1/context_eng_memories`
pub(crate) async fn insert(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Parameters(columns): Parameters<Columns>,
    Items(rows): Items<Row>,
) -> Result<Response, Problem> {
    if rows.is_empty() || rows.len() > ROWS {
        let message = format!("{} rows were sent", rows.len());
        return Err(Problem::unfit(message, format!("send 1 to {ROWS}")));
    }
    let documents: Result<Vec<Box<RawValue>>, _> =
        rows.iter().map(|row| to_raw_value(&row.metadata)).collect();
    let documents = documents.map_err(store::Error::from)?;
    let has_vector = columns.names("embedding");
    let work = server.write(&caller, "serve context_eng_memories", move |workspace| {
        let mut kept = Vec::new();
        for document in &documents {
            let report = lessons::add_procedure(workspace, document)?;
            let procedure: Procedure = workspace.store.get(&report.id)?;
            let vector = has_vector.then(|| vector(workspace, &procedure.content()));
            kept.push(StoredRow::of(procedure, vector.transpose()?));
        }
        Ok(kept)
    });
    let kept = work.await?;
    let says = |name: header::HeaderName, what: &str| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| value.to_str().is_ok_and(|text| text.contains(what)))
    };
    if !says(
        header::HeaderName::from_static("prefer"),
        "return=representation",
    ) {
        return Ok(StatusCode::CREATED.into_response());
    }
    let answer = match kept.as_slice() {
        [one] if says(header::ACCEPT, "vnd.pgrst.object+json") => reply(one)?,
        all => reply(&all)?,
    };
    Ok((StatusCode::CREATED, answer).into_response())
}
