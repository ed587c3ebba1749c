//! Functions of the source documents: edge functions below `/functions/v1/`, compatible with `functions.invoke` of
//! supabase-js, and database functions below `/rest/v1/rpc/`, as `PostgREST` offers them, compatible with `rpc`:
//! hybrid search for procedures, semantic search for typed memories.
//!
//! The server computes the vectors of edge functions, whose errors are `{"error": message}`, as in the source
//! documents. Arguments of database functions are named; those with a default are optional. A vector from a client must come from this memory's embedder; zeros
//! may pad it to the 1,536 dimensions of the source documents' tables.

use std::ops::RangeInclusive;

use memctl_search::{Fusion, Rrf};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::{Kind, Memory, MemoryType, Procedure, Record, Trust};
use crate::notes::indexing::Filter;
use crate::notes::{self, FindOptions, Found};
use crate::serve::arguments::{Bounds, LONGEST_QUERY, text};
use crate::store;
use crate::store::workspace::Workspace;

use super::input::{Answer, Body, reply};
use super::problem::Problem;
use super::rows::Rows;
use super::state::{Call, Use};
use super::tables::{MemoryRow, Metadata, VectorForm, options};

/// Default similarity threshold. The source document's 0.7 is above the similarity of paraphrases
/// with common embedders, including ours, and its client never sends another value.
const THRESHOLD: f64 = 0.2;

/// Default similarity threshold of the database function.
const THRESHOLD_OF_RPC: f64 = 0.7;

/// Results of a search for procedures.
const PROCEDURES: Bounds = Bounds::of(0, 10, 200);
/// Results of a search for memories.
const MEMORIES: Bounds = Bounds::of(0, 5, 200);
/// Rank constants of reciprocal rank fusion.
const RANK_CONSTANT: Bounds = Bounds::of(0, 50, 1_000_000);
/// Maximum dimension of a vector.
const LARGEST_VECTOR: usize = 4_096;

/// Search for procedures.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct HybridBody {
    /// Search query.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query: String,
    /// Maximum number of results, 0 to 200; default 10.
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
    let work = call.work(Use::Any, why, async move |workspace| search.rows(workspace));
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
    /// Maximum number of results, 0 to 200; default 5.
    #[schemars(range(min = MEMORIES.least, max = MEMORIES.most))]
    match_count: Option<i64>,
}

/// `POST /functions/v1/agent-memory-read`
pub(crate) async fn read(call: Call, Body(body): Body<ReadBody>) -> Answer {
    let search = Near {
        query: text("query", body.query, LONGEST_QUERY)?,
        match_threshold: body.match_threshold.or(Some(THRESHOLD)),
        match_count: body.match_count,
        memory_type: body.memory_type,
        ..Near::default()
    };
    let why = "serve agent-memory-read";
    let work = call.work(Use::Any, why, async move |workspace| search.rows(workspace));
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
    let why = "serve agent-memory-write";
    let work = call.work(Use::Adds, why, async move |workspace| {
        // A memory that another copy has deleted must not be learned again.
        workspace.store.catch_up()?;
        MemoryRow::add(workspace, &caller, &options)
    });
    reply(&Written {
        memory: work.await?,
    })
}

/// `POST /rest/v1/rpc/hybrid_search_context_eng_memories`
pub(crate) async fn hybrid_search(
    call: Call,
    Rows(form): Rows,
    Body(mut search): Body<Hybrid>,
) -> Answer {
    search.query_text = text("query_text", search.query_text, LONGEST_QUERY)?;
    let why = "serve hybrid_search_context_eng_memories";
    let work = call.work(Use::Any, why, async move |workspace| search.rows(workspace));
    form.reply(&work.await?)
}

/// `POST /rest/v1/rpc/match_memory`
pub(crate) async fn match_memory(call: Call, Rows(form): Rows, Body(search): Body<Near>) -> Answer {
    if search.query_embedding.is_none() {
        return Err(Problem::unfit(
            "`query_embedding` is null",
            "give a vector; `/v1/embeddings` returns one",
        ));
    }
    let user = search.filter_user_id.as_deref();
    if user.is_some_and(|user| user != call.caller.user.as_str()) {
        return form.reply::<SimilarRow>(&[]);
    }
    let why = "serve match_memory";
    let work = call.work(Use::Any, why, async move |workspace| search.rows(workspace));
    form.reply(&work.await?)
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

/// Search for procedures: the arguments of `hybrid_search_context_eng_memories`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hybrid {
    /// Search query.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query_text: String,
    /// Vector of this memory's embedder, as a list or as text; computed if absent.
    #[serde(default, deserialize_with = "vector")]
    #[schemars(with = "Option<VectorForm>")]
    query_embedding: Option<Vec<f32>>,
    /// Maximum number of results, 0 to 200; default 10.
    #[schemars(range(min = PROCEDURES.least, max = PROCEDURES.most))]
    match_count: Option<i64>,
    /// Weight of the keyword ranking; default 1.
    #[schemars(range(min = 0, max = 1_000_000))]
    full_text_weight: Option<f64>,
    /// Weight of the semantic ranking; default 1.
    #[schemars(range(min = 0, max = 1_000_000))]
    semantic_weight: Option<f64>,
    /// Rank constant: a larger value favours the first ranks less; default 50.
    #[schemars(range(min = RANK_CONSTANT.least, max = RANK_CONSTANT.most))]
    rrf_k: Option<i64>,
}

/// Row of `hybrid_search_context_eng_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RankedRow {
    id: String,
    content: String,
    metadata: Metadata,
    created_dt: String,
    rrf_score: f64,
    keyword_rank: Option<usize>,
    semantic_rank: Option<usize>,
    trust: Trust,
}

impl Hybrid {
    /// Returns the best matching procedures.
    fn rows(self, workspace: &Workspace) -> Result<Vec<RankedRow>, Problem> {
        let count = PROCEDURES.check("match_count", self.match_count)?;
        let weight = |name, given: Option<f64>| number(name, given.unwrap_or(1.0), 0.0..=1e6);
        let keyword = weight("full_text_weight", self.full_text_weight)?;
        let semantic = weight("semantic_weight", self.semantic_weight)?;
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        let k = RANK_CONSTANT.check("rrf_k", self.rrf_k)? as f64;
        if count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            filter: Filter {
                kind: Some(Kind::Procedure),
                ..Filter::default()
            },
            fusion: Fusion::Rrf(Rrf {
                k,
                keyword,
                semantic,
            }),
            vector: self.query_embedding,
            // The document's function has no minimum.
            floor: Some(f32::MIN_POSITIVE),
            ..FindOptions::new(self.query_text, count)
        };
        let found = notes::find(workspace, &options, &mut |_, _| {})?;
        let part = |weight: f64, rank: Option<usize>| {
            #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
            let part = rank.map_or(0.0, |rank| weight / (k + rank as f64));
            part
        };
        let mut rows = Vec::new();
        for found in found.results {
            // Records deleted since the search are skipped.
            let Some(procedure) = record::<Procedure>(workspace, &found)? else {
                continue;
            };
            let (keyword_rank, semantic_rank) = (found.ranks.keyword, found.ranks.semantic);
            rows.push(RankedRow {
                content: procedure.shown_content(),
                trust: found.trust,
                id: found.name(),
                created_dt: procedure.created_at,
                metadata: Metadata {
                    status: procedure.status,
                    data: procedure.data,
                },
                rrf_score: part(keyword, keyword_rank) + part(semantic, semantic_rank),
                keyword_rank,
                semantic_rank,
            });
        }
        Ok(rows)
    }
}

/// Search for typed memories: the arguments of `match_memory`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Near {
    /// Text to embed if there is no vector.
    #[serde(skip)]
    query: String,
    /// Vector of this memory's embedder, as a list or as text.
    #[serde(deserialize_with = "vector")]
    #[schemars(with = "VectorForm")]
    query_embedding: Option<Vec<f32>>,
    /// Minimum similarity, from -1 to 1; default 0.7.
    #[schemars(range(min = -1, max = 1))]
    match_threshold: Option<f64>,
    /// Maximum number of results, 0 to 200; default 5.
    #[schemars(range(min = MEMORIES.least, max = MEMORIES.most))]
    match_count: Option<i64>,
    /// Only memories of this type.
    memory_type: Option<MemoryType>,
    /// Id of the caller; another user's id returns nothing.
    filter_user_id: Option<String>,
}

/// Row of `match_memory`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SimilarRow {
    id: String,
    content: String,
    similarity: f64,
    metadata: Box<RawValue>,
    created_at: String,
    trust: Trust,
}

impl Near {
    /// Returns the caller's memories above the similarity threshold, most similar first.
    fn rows(self, workspace: &Workspace) -> Result<Vec<SimilarRow>, Problem> {
        let count = MEMORIES.check("match_count", self.match_count)?;
        let threshold = self.match_threshold.unwrap_or(THRESHOLD_OF_RPC);
        let threshold = number("match_threshold", threshold, -1.0..=1.0)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let options = FindOptions {
            filter: Filter {
                kind: Some(Kind::Memory),
                memory_type: self.memory_type,
                ..Filter::default()
            },
            fusion: Fusion::Semantic,
            vector: self.query_embedding,
            // The rows are compared exactly below; this only lets all of them through.
            #[expect(clippy::cast_possible_truncation, reason = "rounded down")]
            floor: Some((threshold as f32).next_down()),
            explain: true,
            ..FindOptions::new(self.query, count)
        };
        let found = notes::find(workspace, &options, &mut |_, _| {})?;
        let similarity =
            |found: &Found| found.explain.as_ref().and_then(|explain| explain.semantic);
        let mut rows = Vec::new();
        for found in found.results {
            let Some(similarity) = similarity(&found).filter(|like| *like > threshold) else {
                continue;
            };
            let Some(memory) = record::<Memory>(workspace, &found)? else {
                continue;
            };
            rows.push(SimilarRow {
                trust: memory.trust(),
                id: found.name(),
                content: memory.content,
                similarity,
                metadata: memory.metadata,
                created_at: memory.created_at,
            });
        }
        Ok(rows)
    }
}

/// Returns the record of a result, local or remote; `None` if it has been deleted since.
fn record<R: Record>(workspace: &Workspace, found: &Found) -> Result<Option<R>, Problem> {
    let (workspace, id) = workspace.of_id(&found.name())?;
    match workspace.store.get::<R>(&id) {
        Ok(record) => Ok(Some(record)),
        Err(store::Error::NotFound(..)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn number(name: &str, given: f64, permitted: RangeInclusive<f64>) -> Result<f64, Problem> {
    if permitted.contains(&given) {
        return Ok(given);
    }
    let (least, most) = permitted.into_inner();
    let hint = format!("give a number from {least} to {most}");
    Err(Problem::unfit(format!("`{name}` is {given}"), hint))
}

/// Parses a vector.
fn vector<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<f32>>, D::Error> {
    let vector = match Option::<VectorForm>::deserialize(reader)? {
        None => return Ok(None),
        Some(VectorForm::List(list)) => list,
        Some(VectorForm::Text(text)) => serde_json::from_str(&text).map_err(D::Error::custom)?,
    };
    if vector.is_empty() || vector.len() > LARGEST_VECTOR || vector.iter().any(|x| !x.is_finite()) {
        return Err(D::Error::custom("a vector has 1 to 4096 finite numbers"));
    }
    Ok(Some(vector))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_vector_is_a_list_or_its_text() {
        let check = |given: Value, expected: Option<Vec<f32>>| {
            let read: Result<Hybrid, _> =
                serde_json::from_value(json!({ "query_text": "x", "query_embedding": given }));
            assert_eq!(
                read.ok().map(|read| read.query_embedding),
                expected.map(Some),
                "{given}"
            );
        };
        check(json!([1, 0.5]), Some(vec![1.0, 0.5]));
        check(json!("[1,0.5]"), Some(vec![1.0, 0.5]));
        for bad in [
            json!([]),
            json!("[]"),
            json!("1"),
            json!(1),
            json!(["a"]),
            json!([1e300]),
        ] {
            check(bad, None);
        }
        let none: Hybrid =
            serde_json::from_value(json!({ "query_text": "x", "query_embedding": null })).unwrap();
        assert_eq!(none.query_embedding, None);
    }
}
