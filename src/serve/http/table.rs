//! Table of all operations of the server, the source of the router and of its description.

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::problem::{Problem, render};
use super::route::{Access, Route};
use super::schemas;
use super::state::Server;
use super::supabase::{functions, insert, rpc};
use super::{events, mcp, middleware, openapi, v1};

/// Returns all routes.
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", healthz)
            .named("health", "Status of the server")
            .answers(schemas::HEALTH)
            .open(),
        Route::get("/openapi.json", document)
            .named("description", "This description")
            .answers(schemas::OBJECT)
            .open(),
        Route::post("/functions/v1/hybrid-search-context-eng", functions::hybrid)
            .named("searchProcedures", "Search procedures by keywords and meaning")
            .answers(schemas::PROCEDURES)
            .body(schemas::of::<functions::HybridBody>),
        Route::post("/functions/v1/agent-memory-read", functions::read)
            .named("readMemory", "Search the caller's memories by similarity to a query")
            .answers(schemas::MEMORIES)
            .body(schemas::of::<functions::ReadBody>),
        Route::post("/functions/v1/agent-memory-write", functions::write)
            .named("writeMemory", "Add a memory of the caller")
            .answers(schemas::MEMORY)
            .body(schemas::of::<functions::WriteBody>),
        Route::post("/rest/v1/rpc/hybrid_search_context_eng_memories", rpc::hybrid)
            .named("hybridSearch", "Search procedures by keywords and a vector")
            .answers(schemas::ROWS)
            .parameters(schemas::of::<rpc::Shape>)
            .body(schemas::of::<rpc::HybridArguments>),
        Route::post("/rest/v1/rpc/match_memory", rpc::match_memory)
            .named("matchMemory", "Search the caller's memories by a vector")
            .answers(schemas::ROWS)
            .parameters(schemas::of::<rpc::Shape>)
            .body(schemas::of::<rpc::MatchArguments>),
        Route::post("/rest/v1/context_eng_memories", insert::insert)
            .named("insertProcedures", "Add procedures written by an analyst")
            .answers(schemas::INSERTED)
            .parameters(schemas::of::<insert::Columns>)
            .body(schemas::items::<insert::Row>),
        Route::get("/v1/executions", v1::executions)
            .named("listExecutions", "The newest executions")
            .answers(schemas::EXECUTIONS)
            .parameters(schemas::of::<v1::Page>),
        Route::post("/v1/executions", v1::log_execution)
            .named("logExecution", "Add an execution that ran elsewhere")
            .answers(schemas::LOGGED)
            .body(schemas::of::<v1::ExecutionBody>),
        Route::get("/v1/corrections", v1::corrections)
            .named("listCorrections", "The newest corrections")
            .answers(schemas::CORRECTIONS)
            .parameters(schemas::of::<v1::Page>),
        Route::post("/v1/corrections", v1::correct)
            .named("correct", "Correct an execution, and learn a rule from it")
            .answers(schemas::CORRECTED)
            .body(schemas::of::<v1::CorrectionBody>),
        Route::post("/v1/hints", v1::hint)
            .named("hint", "Hints for an error")
            .answers(schemas::HINTS)
            .body(schemas::of::<v1::HintBody>),
        Route::post("/v1/failures", v1::failure)
            .named("recordFailure", "Record code that failed, and return hints")
            .answers(schemas::HINTS)
            .body(schemas::of::<v1::FailureBody>),
        Route::post("/v1/successes", v1::success)
            .named("recordSuccess", "Record code that works; with the failure before it, it becomes a pattern")
            .answers(schemas::RECORDED)
            .body(schemas::of::<v1::SuccessBody>),
        Route::get("/v1/search", v1::search_by_query)
            .named("searchByQuery", "Search records by keywords and meaning")
            .answers(schemas::FOUND)
            .parameters(schemas::of::<v1::SearchBody>),
        Route::post("/v1/search", v1::search)
            .named("search", "Search records by keywords and meaning")
            .answers(schemas::FOUND)
            .body(schemas::of::<v1::SearchBody>),
        Route::get("/v1/prompt/{domain}/{skill}", v1::prompt)
            .named("prompt", "The prompt for a skill's model")
            .answers(schemas::PROMPT),
        Route::post("/v1/embeddings", v1::embeddings)
            .named("embed", "Embeddings of texts by the embedder of this memory")
            .answers(schemas::EMBEDDINGS)
            .body(schemas::of::<v1::EmbeddingsBody>),
        Route::post("/v1/operations/{operation}", v1::operation)
            .named("operate", "Call an agent operation: search, hint, remember, correct, why or forget")
            .answers(schemas::OPERATED)
            .body(schemas::object),
        Route::post("/mcp", mcp::mcp)
            .named("mcp", "Agent tools over the Model Context Protocol: JSON-RPC, without sessions")
            .answers(schemas::OBJECT)
            .body(schemas::object),
        Route::get("/v1/memories", v1::memories)
            .named("listMemories", "The caller's newest memories")
            .answers(schemas::LISTED_MEMORIES)
            .parameters(schemas::of::<v1::MemoriesPage>),
        Route::get("/v1/sessions", v1::sessions)
            .named("listSessions", "The caller's newest sessions of agents")
            .answers(schemas::SESSIONS)
            .parameters(schemas::of::<v1::SessionsPage>),
        Route::get("/v1/sessions/{session}", v1::session)
            .named("showSession", "A session of the caller, and the newest lines of its log")
            .answers(schemas::SESSION)
            .parameters(schemas::of::<v1::LogPage>),
        Route::get("/v1/users/me/export", v1::export_user)
            .named("exportUser", "Everything of the caller: memories, sessions, log lines and audit events, as JSON Lines")
            .answers(schemas::EXPORTED),
        Route::delete("/v1/users/me", v1::delete_user)
            .named("deleteUser", "Delete everything of the caller permanently: memories, sessions, vectors and log lines")
            .answers(schemas::DELETED)
            .parameters(schemas::of::<v1::Confirmation>),
        Route::post("/v1/users/me/disable", v1::disable_user)
            .named("disableUser", "Switch the memory off for the caller: their requests read and write nothing")
            .answers(schemas::SWITCHED),
        Route::post("/v1/users/me/enable", v1::enable_user)
            .named("enableUser", "Switch the memory on again for the caller")
            .answers(schemas::SWITCHED),
        Route::get("/v1/events", events::events)
            .named("events", "Change feed: server-sent events")
            .answers(schemas::EVENTS),
    ]
}

/// Returns the router of the table.
pub(super) fn router(server: &Server) -> Router {
    let (mut open, mut closed) = (Router::new(), Router::new());
    for route in routes() {
        match route.access {
            Access::Open => open = open.route(route.path, route.handler),
            Access::Token => closed = closed.route(route.path, route.handler),
        }
    }
    // Unknown functions get an error in the format of PostgREST.
    closed = closed.route("/rest/v1/rpc/{function}", post(rpc::unknown));
    let limit = DefaultBodyLimit::max(server.limits().body);
    let with = |server: &Server| server.clone();
    let closed = closed.route_layer(from_fn_with_state(with(server), middleware::caller));
    let all = open
        .merge(closed)
        .fallback(nothing)
        .method_not_allowed_fallback(no_method)
        .layer(limit)
        .layer(from_fn_with_state(with(server), middleware::in_time));
    let all = match server.origins().layer() {
        Some(cors) => all.layer(cors),
        None => all,
    };
    all.layer(from_fn_with_state(with(server), middleware::check_origin))
        .layer(from_fn_with_state(with(server), middleware::observe))
        .layer(from_fn(render))
        .with_state(with(server))
}

/// `GET /openapi.json`
async fn document() -> Json<Value> {
    Json(openapi::describe(&routes()))
}

/// `GET /healthz`
async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

async fn nothing() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "unknown path",
        "see /openapi.json",
    )
}

async fn no_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        "this path does not support this method",
        "see /openapi.json",
    )
}
