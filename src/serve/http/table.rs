//! Table of all operations of the server, the source of the router and of its description.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{delete, get, patch, post};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lessons::{HintReport, RecordReport};
use crate::model::ExecutionLog;
use crate::notes::FindReport;
use crate::review::EditReport;
use crate::rules::{AddedRule, CorrectReport};
use crate::skills::{LoggedExecution, PromptReport};

use super::input::{json, reply};
use super::limits::LONGEST_BODY;
use super::middleware;
use super::problem::{Problem, render};
use super::route::{self, Route};
use super::state::Server;
use super::supabase::query::QueryParameters;
use super::supabase::recall::{Hybrid, Near, RankedRow, SimilarRow};
use super::supabase::{functions, tables};
use super::v1::{hints, records, rules, search, users};

/// Returns all routes.
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("get", "/healthz", get(healthz))
            .named("health", "Status of the server")
            .answers::<Health>("It answers")
            .open(),
        Route::new("get", "/openapi.json", get(document))
            .named("description", "This description")
            .open(),
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
            .answers_rows::<RankedRow>(ROWS)
            .parameters::<QueryParameters>()
            .body::<Hybrid>(),
        Route::new("post", "/rest/v1/rpc/match_memory", post(functions::match_memory))
            .named("matchMemory", "Search the caller's memories by a vector")
            .answers_rows::<SimilarRow>(ROWS)
            .parameters::<QueryParameters>()
            .body::<Near>(),
        Route::new("get", "/rest/v1/agent_memory", get(tables::select::<tables::MemoryRow>))
            .named("selectMemories", "The caller's memories")
            .answers_rows::<tables::MemoryRow>(ROWS)
            .parameters::<QueryParameters>(),
        Route::new("post", "/rest/v1/agent_memory", post(tables::insert_memories))
            .named("insertMemories", "Add memories of the caller")
            .answers_rows::<tables::MemoryRow>(STORED)
            .creates()
            .parameters::<QueryParameters>()
            .body_of(route::items::<tables::NewMemory>),
        Route::new("get", "/rest/v1/agent_sessions", get(tables::select::<tables::SessionRow>))
            .named("selectSessions", "The caller's sessions of agents")
            .answers_rows::<tables::SessionRow>(ROWS)
            .parameters::<QueryParameters>(),
        Route::new("post", "/rest/v1/agent_sessions", post(tables::insert_sessions))
            .named("insertSessions", "Start sessions of the caller's agents")
            .answers_rows::<tables::SessionRow>(STORED)
            .creates()
            .parameters::<QueryParameters>()
            .body_of(route::items::<tables::NewSessionRow>),
        Route::new("get", "/rest/v1/agent_execution_logs", get(tables::logs))
            .named("selectLogs", "The log of the caller's agents, or of one session: `session_id=eq.SESSION`")
            .answers_rows::<ExecutionLog>(ROWS)
            .parameters::<QueryParameters>(),
        Route::new("post", "/rest/v1/agent_execution_logs", post(tables::insert_logs))
            .named("insertLogs", "Add lines to the log of a session of the caller")
            .answers_rows::<ExecutionLog>(STORED)
            .creates()
            .parameters::<QueryParameters>()
            .body_of(route::items::<tables::NewLogRow>),
        Route::new("get", "/rest/v1/context_eng_memories", get(tables::select::<tables::ProcedureRow>))
            .named("selectProcedures", "Procedures")
            .answers_rows::<tables::ProcedureRow>(ROWS)
            .parameters::<QueryParameters>(),
        Route::new("post", "/rest/v1/context_eng_memories", post(tables::insert_procedures))
            .named("insertProcedures", "Add procedures written by an analyst")
            .answers_rows::<tables::ProcedureRow>(STORED)
            .creates()
            .parameters::<QueryParameters>()
            .body_of(route::items::<tables::NewProcedure>),
        Route::new("get", "/v1/executions", get(records::executions))
            .named("listExecutions", "The newest executions")
            .answers::<records::Executions>("Newest first")
            .parameters::<records::Page>(),
        Route::new("post", "/v1/executions", post(records::log_execution))
            .named("logExecution", "Add an execution that ran elsewhere")
            .answers::<LoggedExecution>("Stored")
            .creates()
            .body::<records::ExecutionBody>(),
        Route::new("get", "/v1/corrections", get(records::corrections))
            .named("listCorrections", "The newest corrections")
            .answers::<records::Corrections>("Newest first")
            .parameters::<records::Page>(),
        Route::new("post", "/v1/corrections", post(records::correct))
            .named("correct", "Correct an execution, and learn a rule from it")
            .answers::<CorrectReport>("Result")
            .body::<records::CorrectionBody>(),
        Route::new("get", "/v1/reflexions", get(rules::reflexions))
            .named("listReflexions", "The newest rules")
            .answers::<rules::Reflexions>("Newest first")
            .parameters::<records::Page>(),
        Route::new("get", "/v1/reflexions/{id}", get(rules::reflexion))
            .named("getReflexion", "A rule")
            .answers::<serde_json::Map<String, serde_json::Value>>("The rule"),
        Route::new("post", "/v1/reflexions", post(rules::add_reflexion))
            .named("addReflexion", "Add a rule in the caller's words; that of an agent becomes a candidate")
            .answers::<AddedRule>("Stored")
            .creates()
            .body::<rules::ReflexionBody>(),
        Route::new("patch", "/v1/reflexions/{id}", patch(rules::update_reflexion))
            .named("updateReflexion", "Edit fields of a rule, as `memctl edit`")
            .answers::<EditReport>("The changed fields")
            .body_of(route::object),
        Route::new("post", "/v1/hints", post(hints::hint))
            .named("hint", "Hints for an error")
            .answers::<HintReport>("Hints")
            .body::<hints::HintBody>(),
        Route::new("post", "/v1/failures", post(hints::failure))
            .named("recordFailure", "Record code that failed, and return hints")
            .answers::<HintReport>("Hints")
            .body::<hints::FailureBody>(),
        Route::new("post", "/v1/successes", post(hints::success))
            .named("recordSuccess", "Record code that works; with the failure before it, it becomes a pattern")
            .answers::<RecordReport>("Result")
            .body::<hints::SuccessBody>(),
        Route::new("get", "/v1/search", get(search::search_by_query))
            .named("searchByQuery", "Search records by keywords and meaning")
            .answers::<FindReport>("Best first")
            .parameters::<search::SearchBody>(),
        Route::new("post", "/v1/search", post(search::search))
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
        Route::new("post", "/v1/users/me/disable", post(users::disable_user))
            .named("disableUser", "Switch the memory off for the caller: their requests read and write nothing")
            .answers::<users::Switched>("State of the switch"),
        Route::new("post", "/v1/users/me/enable", post(users::enable_user))
            .named("enableUser", "Switch the memory on again for the caller")
            .answers::<users::Switched>("State of the switch"),
    ]
}

const ROWS: &str = "Rows, or the one that was requested";
const STORED: &str = "Stored; with `Prefer: return=representation` the rows";

/// Status of the server.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

/// Returns the router of the table.
pub(super) fn router(server: &Server) -> Router {
    let (mut open, mut closed) = (Router::new(), Router::new());
    for route in routes() {
        let routes = if route.is_open {
            &mut open
        } else {
            &mut closed
        };
        *routes = std::mem::take(routes).route(route.path, route.handler);
    }
    // Unknown functions get an error in the format of PostgREST.
    closed = closed.route("/rest/v1/rpc/{function}", post(functions::unknown_rpc));
    let limit = DefaultBodyLimit::max(LONGEST_BODY);
    let with = || server.clone();
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
async fn healthz() -> Result<Response, Problem> {
    reply(&Health { status: "ok" })
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
