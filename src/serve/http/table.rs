//! Table of all operations of the server, the source of the router and of its description.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{delete, get, patch, post};
use serde_json::{Map, Value};

use crate::lessons::{HintReport, RecordReport};
use crate::model::{Correction, Execution, Reflexion};
use crate::notes::FindReport;
use crate::review::EditReport;
use crate::rules::{AddedRule, CorrectReport};
use crate::skills::{LoggedExecution, PromptReport};

use super::functions::{Hybrid, Near, RankedRow, SimilarRow};
use super::input::{Body, Parameters, json};
use super::middleware;
use super::problem::{Problem, render};
use super::route::{self, Route};
use super::state::{Call, LONGEST_BODY, Server};
use super::{functions, records, search, tables, users};

/// Returns all routes.
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("get", "/healthz", get(healthz))
            .named("health", "Status of the server"),
        Route::new("get", "/openapi.json", get(document))
            .named("description", "This description"),
        Route::new("post", "/functions/v1/hybrid-search-context-eng", post(functions::hybrid))
            .named("searchProcedures", "Search procedures by keywords and meaning")
            .answers::<Vec<RankedRow>>("The best procedures first")
            .body::<functions::HybridBody>(),
        Route::new("post", "/functions/v1/agent-memory-read", post(functions::read))
            .named("readMemory", "Search the caller's memories by similarity to a query")
            .answers::<functions::Read>("Most similar first")
            .body::<functions::ReadBody>(),
        Route::new("post", "/functions/v1/agent-memory-write", post(functions::write))
            .named("writeMemory", "Add a memory of the caller")
            .answers::<functions::Written>("The memory as stored")
            .body::<functions::WriteBody>(),
        Route::new("post", "/rest/v1/rpc/hybrid_search_context_eng_memories", post(functions::hybrid_search))
            .named("hybridSearch", "Search procedures by keywords and a vector")
            .answers_with(ROWS, route::rows::<RankedRow>)
            .body::<Hybrid>(),
        Route::new("post", "/rest/v1/rpc/match_memory", post(functions::match_memory))
            .named("matchMemory", "Search the caller's memories by a vector")
            .answers_with(ROWS, route::rows::<SimilarRow>)
            .body::<Near>(),
        Route::new("get", "/rest/v1/agent_memory", get(tables::select_memories))
            .named("selectMemories", "The caller's memories, oldest first")
            .answers_with(ROWS, route::rows::<tables::MemoryRow>)
            .parameters::<tables::Choice>(),
        Route::new("post", "/rest/v1/agent_memory", post(tables::insert_memories))
            .named("insertMemories", "Add memories of the caller")
            .answers_with(STORED, route::rows::<tables::MemoryRow>)
            .creates()
            .body_of(route::items::<tables::NewMemory>),
        Route::new("post", "/rest/v1/context_eng_memories", post(tables::insert_procedures))
            .named("insertProcedures", "Add procedures written by an analyst")
            .answers_with(STORED, route::rows::<tables::ProcedureRow>)
            .creates()
            .body_of(route::items::<tables::NewProcedure>),
        Route::new("get", "/v1/executions", get(records::list::<Execution>))
            .named("listExecutions", "The newest executions")
            .answers_with("Newest first", || route::listed::<Execution>("executions"))
            .parameters::<records::Page>(),
        Route::new("post", "/v1/executions", post(records::log_execution))
            .named("logExecution", "Add an execution that ran elsewhere")
            .answers::<LoggedExecution>("Stored")
            .creates()
            .body::<records::ExecutionBody>(),
        Route::new("get", "/v1/corrections", get(records::list::<Correction>))
            .named("listCorrections", "The newest corrections")
            .answers_with("Newest first", || route::listed::<Object>("corrections"))
            .parameters::<records::Page>(),
        Route::new("post", "/v1/corrections", post(records::correct))
            .named("correct", "Correct an execution, and learn a rule from it")
            .answers::<CorrectReport>("Result")
            .body::<records::CorrectionBody>(),
        Route::new("get", "/v1/reflexions", get(records::list::<Reflexion>))
            .named("listReflexions", "The newest rules")
            .answers_with("Newest first", || route::listed::<Object>("reflexions"))
            .parameters::<records::Page>(),
        Route::new("get", "/v1/reflexions/{id}", get(records::reflexion))
            .named("getReflexion", "A rule")
            .answers::<Object>("The rule"),
        Route::new("post", "/v1/reflexions", post(records::add_reflexion))
            .named("addReflexion", "Add a rule in the caller's words; that of an agent becomes a candidate")
            .answers::<AddedRule>("Stored")
            .creates()
            .body::<records::ReflexionBody>(),
        Route::new("patch", "/v1/reflexions/{id}", patch(records::update_reflexion))
            .named("updateReflexion", "Edit fields of a rule, as `memctl edit`")
            .answers::<EditReport>("The changed fields")
            .body_of(route::object),
        Route::new("post", "/v1/hints", post(search::hint))
            .named("hint", "Hints for an error")
            .answers::<HintReport>("Hints")
            .body::<search::HintBody>(),
        Route::new("post", "/v1/failures", post(search::failure))
            .named("recordFailure", "Record code that failed, and return hints")
            .answers::<HintReport>("Hints")
            .body::<search::FailureBody>(),
        Route::new("post", "/v1/successes", post(search::success))
            .named("recordSuccess", "Record code that works; with the failure before it, it becomes a pattern")
            .answers::<RecordReport>("Result")
            .body::<search::SuccessBody>(),
        Route::new("get", "/v1/search", get(|call: Call, Parameters(query)| search::search(call, query)))
            .named("searchByQuery", "Search records by keywords and meaning")
            .answers::<FindReport>("Best first")
            .parameters::<search::SearchBody>(),
        Route::new("post", "/v1/search", post(|call: Call, Body(body)| search::search(call, body)))
            .named("search", "Search records by keywords and meaning")
            .answers::<FindReport>("Best first")
            .body::<search::SearchBody>(),
        Route::new("get", "/v1/prompt/{domain}/{skill}", get(search::prompt))
            .named("prompt", "The prompt for a skill's model")
            .answers::<PromptReport>("The prompt and its parts"),
        Route::new("post", "/v1/embeddings", post(search::embeddings))
            .named("embed", "Embeddings of texts by the embedder of this memory")
            .answers::<search::Embeddings>("One vector per text, in the same order")
            .body::<search::EmbeddingsBody>(),
        Route::new("post", "/mcp", post(search::mcp))
            .named("mcp", "Agent tools over the Model Context Protocol: JSON-RPC, without sessions")
            .body_of(route::object),
        Route::new("get", "/v1/users/me/export", get(users::export_user))
            .named("exportUser", "Everything of the caller: memories, sessions, log lines and audit events, as JSON Lines")
            .answers_lines(
                "application/x-ndjson",
                "A header with `format`, `exported_at` and `counts`, then one record, log line or audit event a line",
            ),
        Route::new("delete", "/v1/users/me", delete(users::delete_user))
            .named("deleteUser", "Delete everything of the caller permanently: memories, sessions, vectors and log lines")
            .answers::<users::DeletedUser>("Numbers of what was deleted")
            .parameters::<users::Confirmation>(),
        Route::new("post", "/v1/users/me/disable", post(|call: Call| users::switch(call, "serve disable user", true)))
            .named("disableUser", "Switch the memory off for the caller: their requests read and write nothing")
            .answers::<users::Switched>("State of the switch"),
        Route::new("post", "/v1/users/me/enable", post(|call: Call| users::switch(call, "serve enable user", false)))
            .named("enableUser", "Switch the memory on again for the caller")
            .answers::<users::Switched>("State of the switch"),
    ]
}

/// Record without a description of its fields.
type Object = Map<String, Value>;

const ROWS: &str = "Rows, or the one that was requested";
const STORED: &str = "Stored; with `Prefer: return=representation` the rows";

/// Returns the router of the table.
pub(super) fn router(server: &Arc<Server>) -> Router {
    let (mut open, mut closed) = (Router::new(), Router::new());
    for route in routes() {
        let routes = if route::OPEN.contains(&route.path) {
            &mut open
        } else {
            &mut closed
        };
        *routes = std::mem::take(routes).route(route.path, route.handler);
    }
    // Unknown functions get an error in the format of PostgREST.
    closed = closed.route("/rest/v1/rpc/{function}", post(functions::unknown_rpc));
    let limit = DefaultBodyLimit::max(LONGEST_BODY);
    let with = || Arc::clone(server);
    let closed = closed.route_layer(from_fn_with_state(with(), middleware::caller));
    let all = open
        .merge(closed)
        .fallback(nothing)
        .method_not_allowed_fallback(no_method)
        .layer(limit)
        .layer(from_fn(middleware::in_time));
    let all = match server.options.origins.layer() {
        Some(cors) => all.layer(cors),
        None => all,
    };
    all.layer(from_fn_with_state(with(), middleware::check_origin))
        .layer(from_fn_with_state(with(), middleware::observe))
        .layer(from_fn(render))
        .with_state(with())
}

/// `GET /openapi.json`
async fn document() -> Response {
    json(route::describe(&routes()).to_string())
}

/// `GET /healthz`
async fn healthz() -> Response {
    json(r#"{"status":"ok"}"#.to_owned())
}

async fn nothing() -> Problem {
    Problem::new(404, "not_found", "unknown path", "see /openapi.json")
}

async fn no_method() -> Problem {
    Problem::new(
        405,
        "method",
        "this path does not support this method",
        "see /openapi.json",
    )
}
