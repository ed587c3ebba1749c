//! Database functions of the source documents, as `PostgREST` offers them below `/rest/v1/rpc/`,
//! compatible with `rpc` of supabase-js.
//!
//! Arguments are named; those with a default are optional. The rows are filtered and sorted as those of
//! a table.

use crate::serve::arguments::{LONGEST_QUERY, text};

use super::super::input::{Answer, Body};
use super::super::problem::Problem;
use super::super::state::{Call, Use};
use super::query::Query;
use super::recall::{Hybrid, MEMORIES, Near, PROCEDURES, SimilarRow};

/// `POST /rest/v1/rpc/hybrid_search_context_eng_memories`
pub(crate) async fn hybrid(call: Call, query: Query, Body(mut search): Body<Hybrid>) -> Answer {
    search.query_text = text("query_text", search.query_text, LONGEST_QUERY)?;
    let why = "serve hybrid_search_context_eng_memories";
    let work = call.work(Use::Any, why, async move |workspace| {
        search.rows(workspace, PROCEDURES)
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
pub(crate) async fn unknown() -> Problem {
    Problem::new(
        404,
        "function",
        "unknown function",
        "the functions are hybrid_search_context_eng_memories and match_memory",
    )
}
