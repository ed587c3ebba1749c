//! Functions of the source documents: edge functions below `/functions/v1/`, compatible with `functions.invoke` of
//! supabase-js, and database functions below `/rest/v1/rpc/`, as `PostgREST` offers them, compatible with `rpc`.
//!
//! The server computes the vectors of edge functions, whose errors are `{"error": message}`, as in the source
//! documents. Arguments of database functions are named; those with a default are optional. Their rows are
//! filtered and sorted as those of a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::input::{Answer, Body, reply};
use super::super::problem::Problem;
use super::super::state::{Call, Use};
use super::query::Query;
use super::recall::{self, Hybrid, MEMORIES, Near, SimilarRow};
use super::tables::{MemoryRow, options};
use crate::model::MemoryType;
use crate::serve::arguments::{Bounds, LONGEST_QUERY, RESULTS, text};

/// Default similarity threshold. The source document's 0.7 is above the similarity of paraphrases
/// with common embedders, including ours, and its client never sends another value.
const THRESHOLD: f64 = 0.2;

/// Results of a search for procedures.
const PROCEDURES: Bounds = Bounds::of(1, 10, 50);

/// Search for procedures.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct HybridBody {
    /// Search query.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query: String,
    /// Maximum number of results, 1 to 50; default 10.
    #[schemars(range(min = PROCEDURES.least, max = PROCEDURES.most))]
    match_count: Option<i64>,
}

/// `POST /functions/v1/hybrid-search-context-eng`
pub(crate) async fn hybrid(call: Call, Body(body): Body<HybridBody>) -> Answer {
    let search = Hybrid {
        query_text: text("query", body.query, LONGEST_QUERY)?,
        match_count: body.match_count,
        ..Hybrid::default()
    };
    let why = "serve hybrid-search-context-eng";
    let work = call.work(Use::Any, why, async move |workspace| {
        search.rows(workspace, PROCEDURES)
    });
    reply(&work.await?)
}

/// Search for typed memories.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadBody {
    /// Search query.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query: String,
    /// Only memories of this type.
    memory_type: Option<MemoryType>,
    /// Minimum similarity, from -1 to 1; default 0.2.
    #[schemars(range(min = -1, max = 1))]
    match_threshold: Option<f64>,
    /// Maximum number of results, 1 to 50; default 5.
    #[schemars(range(min = RESULTS.least, max = RESULTS.most))]
    match_count: Option<i64>,
}

/// `POST /functions/v1/agent-memory-read`
pub(crate) async fn read(call: Call, Body(body): Body<ReadBody>) -> Answer {
    let search = Near {
        query: text("query", body.query, LONGEST_QUERY)?,
        match_threshold: body.match_threshold,
        match_count: body.match_count,
        memory_type: body.memory_type,
        ..Near::default()
    };
    let work = call.work(
        Use::Any,
        "serve agent-memory-read",
        async move |workspace| search.rows(workspace, RESULTS, THRESHOLD),
    );
    reply(&Read {
        results: work.await?,
    })
}

/// Typed memory to store.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteBody {
    /// Text of the memory.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    content: String,
    /// One of the five memory types.
    memory_type: MemoryType,
    /// Metadata: the fields of the type, and any others.
    #[schemars(with = "Option<Map<String, Value>>")]
    metadata: Option<Box<RawValue>>,
    /// Expiry: a time, a date, or a duration such as `30d`.
    expires_at: Option<String>,
}

/// Stored memory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Written {
    memory: MemoryRow,
}

/// Memories that a query has found, most similar first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Read {
    results: Vec<SimilarRow>,
}

/// `POST /functions/v1/agent-memory-write`
pub(crate) async fn write(call: Call, Body(body): Body<WriteBody>) -> Answer {
    let options = options(
        body.memory_type, body.content, body.metadata, body.expires_at,
    )?;
    let caller = call.caller.clone();
    let work = call.work(
        Use::Adds,
        "serve agent-memory-write",
        async move |workspace| {
            // A memory that another copy has deleted must not be learned again.
            workspace.store.catch_up()?;
            MemoryRow::add(workspace, &caller, &options)
        },
    );
    reply(&Written {
        memory: work.await?,
    })
}

/// `POST /rest/v1/rpc/hybrid_search_context_eng_memories`
pub(crate) async fn hybrid_search(
    call: Call,
    query: Query,
    Body(mut search): Body<Hybrid>,
) -> Answer {
    search.query_text = text("query_text", search.query_text, LONGEST_QUERY)?;
    let why = "serve hybrid_search_context_eng_memories";
    let work = call.work(Use::Any, why, async move |workspace| {
        search.rows(workspace, recall::PROCEDURES)
    });
    query.reply(&work.await?)
}

/// `POST /rest/v1/rpc/match_memory`
pub(crate) async fn match_memory(call: Call, query: Query, Body(search): Body<Near>) -> Answer {
    if search.query_embedding.is_none() {
        return Err(Problem::unfit(
            "`query_embedding` is null",
            "give a vector; `/v1/embeddings` returns one",
        ));
    }
    let user = search.filter_user_id.as_deref();
    if user.is_some_and(|user| user != call.caller.user.as_str()) {
        return query.reply::<SimilarRow>(&[]);
    }
    let why = "serve match_memory";
    let work = call.work(Use::Any, why, async move |workspace| {
        search.rows(workspace, MEMORIES, 0.7)
    });
    query.reply(&work.await?)
}

/// Answers for an unknown function.
pub(crate) async fn unknown_rpc() -> Problem {
    Problem::new(
        404,
        "function",
        "unknown function",
        "the functions are hybrid_search_context_eng_memories and match_memory",
    )
}
