//! Database functions of the source documents, as `PostgREST` offers them below `/rest/v1/rpc/`,
//! compatible with `rpc` of supabase-js.
//!
//! Arguments are named; those with a default are optional. The rows are filtered and sorted as those of
//! a table.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::serve::arguments::{Bounds, LONGEST_QUERY, text};
use crate::serve::token::Caller;

use super::super::input::Body;
use super::super::problem::Problem;
use super::super::route;
use super::super::state::Server;
use super::functions::{memory_type, threshold};
use super::query::Query;
use super::recall::{Hybrid, Near};

/// Maximum dimension of a vector.
const DIMENSIONS: usize = 4_096;
/// Results of a search for procedures.
const PROCEDURES: Bounds = Bounds::of(0, 10, 200);
/// Results of a search for memories.
const MEMORIES: Bounds = Bounds::of(0, 5, 200);
/// Rank constants of reciprocal rank fusion.
const RANK_CONSTANT: Bounds = Bounds::of(0, 50, 1_000_000);

/// Arguments of `hybrid_search_context_eng_memories`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HybridArguments {
    /// Search query.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    query_text: String,
    /// Vector of this memory's embedder, as a list or as text; computed if absent.
    #[serde(default, deserialize_with = "vector")]
    #[schemars(with = "Option<Vec<f32>>")]
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

/// `POST /rest/v1/rpc/hybrid_search_context_eng_memories`
pub(crate) async fn hybrid(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Body(given): Body<HybridArguments>,
) -> Result<Response, Problem> {
    let search = Hybrid {
        query_text: text("query_text", given.query_text, LONGEST_QUERY)?,
        query_embedding: given.query_embedding,
        match_count: PROCEDURES.check("match_count", given.match_count)?,
        full_text_weight: weight("full_text_weight", given.full_text_weight)?,
        semantic_weight: weight("semantic_weight", given.semantic_weight)?,
        #[expect(clippy::cast_precision_loss, reason = "it is small")]
        rrf_k: RANK_CONSTANT.check("rrf_k", given.rrf_k)? as f64,
    };
    let why = "serve hybrid_search_context_eng_memories";
    let rows = server
        .work(&caller, why, |workspace| search.rows(workspace))
        .await?;
    query.reply(&rows)
}

/// Arguments of `match_memory`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatchArguments {
    /// Vector of this memory's embedder, as a list or as text.
    #[serde(deserialize_with = "vector")]
    #[schemars(with = "Vec<f32>")]
    query_embedding: Option<Vec<f32>>,
    /// Minimum similarity, from -1 to 1; default 0.7.
    #[schemars(range(min = -1, max = 1))]
    match_threshold: Option<f64>,
    /// Maximum number of results, 0 to 200; default 5.
    #[schemars(range(min = MEMORIES.least, max = MEMORIES.most))]
    match_count: Option<i64>,
    /// Only memories of this type.
    #[schemars(extend("enum" = route::types_or_null()))]
    memory_type: Option<String>,
    /// Id of the caller; another user's id returns nothing.
    filter_user_id: Option<String>,
}

/// `POST /rest/v1/rpc/match_memory`
pub(crate) async fn match_memory(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    query: Query,
    Body(given): Body<MatchArguments>,
) -> Result<Response, Problem> {
    if given.query_embedding.is_none() {
        return Err(Problem::unfit(
            "`query_embedding` is null",
            "give a vector; `/v1/embeddings` returns one",
        ));
    }
    let search = Near {
        query: String::new(),
        query_embedding: given.query_embedding,
        match_threshold: threshold(given.match_threshold, 0.7)?,
        match_count: MEMORIES.check("match_count", given.match_count)?,
        memory_type: given.memory_type.as_deref().map(memory_type).transpose()?,
    };
    let asked = given.filter_user_id;
    if asked.is_some_and(|user| user != caller.user.as_str()) {
        return query.reply::<()>(&[]);
    }
    let work = server.work(&caller, "serve match_memory", |workspace| {
        search.rows(workspace)
    });
    query.reply(&work.await?)
}

/// Answers for an unknown function.
pub(crate) async fn unknown() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "function",
        "unknown function",
        "the functions are hybrid_search_context_eng_memories and match_memory",
    )
}

fn weight(name: &str, given: Option<f64>) -> Result<f64, Problem> {
    let weight = given.unwrap_or(1.0);
    if (0.0..=1_000_000.0).contains(&weight) {
        return Ok(weight);
    }
    Err(Problem::unfit(
        format!("`{name}` is {weight}"),
        "give a number from 0 to 1000000",
    ))
}

/// Parses a vector from a list of numbers, or from the text form of PostgreSQL.
fn vector<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<f32>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        List(Vec<f32>),
        Text(String),
    }
    let vector = match Option::<Given>::deserialize(reader)? {
        None => return Ok(None),
        Some(Given::List(list)) => list,
        Some(Given::Text(text)) => serde_json::from_str(&text).map_err(D::Error::custom)?,
    };
    if vector.is_empty() || vector.len() > DIMENSIONS || vector.iter().any(|x| !x.is_finite()) {
        return Err(D::Error::custom("a vector has 1 to 4096 finite numbers"));
    }
    Ok(Some(vector))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_vector_is_a_list_or_its_text() {
        let check = |given: Value, expected: Option<Vec<f32>>| {
            let read: Result<HybridArguments, _> =
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
        let none: HybridArguments =
            serde_json::from_value(json!({ "query_text": "x", "query_embedding": null })).unwrap();
        assert_eq!(none.query_embedding, None);
    }
}
