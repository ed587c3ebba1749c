//! The functions of the source documents, where and as their clients call them: below
//! `/functions/v1/`, with what `functions.invoke` of supabase-js sends.
//!
//! The vectors are made here. Errors are `{"error": message}`, as there.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json, value::to_raw_value};

use crate::engine::AddOptions;
use crate::model::{Memory, MemoryType, Record as _, Trust};
use crate::serve::token::Caller;
use crate::store;

use super::input::{Body, LONGEST_QUERY, LONGEST_TEXT, text, within};
use super::problem::Problem;
use super::recall::{Hybrid, Near};
use super::reply::reply;
use super::schemas;
use super::state::Server;

/// How like the query a memory must be where nobody says it. The source document's 0.7 is above what
/// paraphrases reach by the usual embedders, ours among them, and its own client never says another.
const THRESHOLD: f64 = 0.2;

/// A search for procedures.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HybridBody {
    /// What to look for.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query: String,
    /// How many at most: 10 where nobody says, 50 at most.
    #[schemars(range(min = 1, max = 50))]
    match_count: Option<i64>,
}

/// `POST /functions/v1/hybrid-search-context-eng`
pub(super) async fn hybrid(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<HybridBody>,
) -> Result<Response, Problem> {
    let search = Hybrid {
        query_text: text("query", body.query, LONGEST_QUERY)?,
        query_embedding: None,
        match_count: within("match_count", body.match_count, 10, (1, 50))?,
        full_text_weight: 1.0,
        semantic_weight: 1.0,
        rrf_k: 50.0,
    };
    let why = "serve hybrid-search-context-eng";
    reply(
        &server
            .work(&caller, why, |engine| search.rows(engine))
            .await?,
    )
}

/// A search for typed memories.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadBody {
    /// What to look for.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query: String,
    /// Memories of this type only.
    #[schemars(extend("enum" = schemas::types_or_null()))]
    memory_type: Option<String>,
    /// How like the query they must be, from -1 to 1.
    #[schemars(range(min = -1, max = 1))]
    match_threshold: Option<f64>,
    /// How many at most: 5 where nobody says, 50 at most.
    #[schemars(range(min = 1, max = 50))]
    match_count: Option<i64>,
}

/// `POST /functions/v1/agent-memory-read`
pub(super) async fn read(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<ReadBody>,
) -> Result<Response, Problem> {
    let search = Near {
        query: text("query", body.query, LONGEST_QUERY)?,
        query_embedding: None,
        match_threshold: threshold(body.match_threshold, THRESHOLD)?,
        match_count: within("match_count", body.match_count, 5, (1, 50))?,
        memory_type: body.memory_type.as_deref().map(memory_type).transpose()?,
    };
    let work = server.work(&caller, "serve agent-memory-read", |engine| {
        search.rows(engine)
    });
    reply(&json!({ "results": work.await? }))
}

/// A typed memory to keep.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WriteBody {
    /// What it says.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    content: String,
    /// One of the five types.
    #[schemars(extend("enum" = schemas::types()))]
    memory_type: String,
    /// Its metadata: the fields of its type, and any others.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    /// When it ends: a time, a date, or a span as `30d`.
    expires_at: Option<String>,
}

/// A row of `agent_memory`.
#[derive(Debug, Serialize)]
struct Row {
    id: String,
    user_id: Option<String>,
    memory_type: MemoryType,
    content: String,
    /// Made when it is first looked for.
    embedding: Option<()>,
    metadata: Box<RawValue>,
    created_at: String,
    updated_at: String,
    expires_at: Option<String>,
    /// How far it may be believed.
    trust: Trust,
}

/// `POST /functions/v1/agent-memory-write`
pub(super) async fn write(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<WriteBody>,
) -> Result<Response, Problem> {
    let metadata = body.metadata.filter(|metadata| !metadata.is_null());
    let metadata = metadata.as_ref().map(to_raw_value).transpose();
    let options = AddOptions {
        memory_type: memory_type(&body.memory_type)?,
        content: text("content", body.content, LONGEST_TEXT)?,
        metadata: metadata.map_err(store::Error::from)?,
        expires_at: body.expires_at,
    };
    let is_agent = caller.is_agent();
    let work = server.write(&caller, "serve agent-memory-write", move |engine| {
        let report = if is_agent {
            engine.add_observed(&options)?
        } else {
            engine.add_memory(&options)?
        };
        let memory: Memory = engine.store.get(&report.id)?;
        Ok(Row {
            trust: memory.trust(),
            id: memory.id,
            user_id: memory.user_id,
            memory_type: memory.memory_type,
            content: memory.content,
            embedding: None,
            metadata: memory.metadata,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
            expires_at: memory.expires_at,
        })
    });
    reply(&json!({ "memory": work.await? }))
}

/// The type of this name.
pub(super) fn memory_type(name: &str) -> Result<MemoryType, Problem> {
    let mut all = MemoryType::ALL.into_iter();
    all.find(|of| of.name() == name).ok_or_else(|| {
        let names = MemoryType::ALL.map(MemoryType::name).join(", ");
        Problem::unfit(
            format!("`memory_type` is `{}`", name.escape_debug()),
            format!("it is one of {names}"),
        )
    })
}

/// How like each other two texts must be.
pub(super) fn threshold(given: Option<f64>, usual: f64) -> Result<f64, Problem> {
    let threshold = given.unwrap_or(usual);
    if (-1.0..=1.0).contains(&threshold) {
        return Ok(threshold);
    }
    Err(Problem::unfit(
        format!("`match_threshold` is {threshold}"),
        "give a number from -1 to 1",
    ))
}
