//! Table of all operations of the server, the source of the router and of its description.

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::problem::{Problem, render};
use super::route::{Access, Route};
use super::schemas::{self, Answer};
use super::state::Server;
use super::supabase::{functions, insert, rpc};
use super::{auth, events, mcp, middleware, openapi, v1};

/// Returns all routes.
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
pub(super) fn routes() -> Vec<Route> {
    let open = |path, id, summary, answer, handler| Route {
        method: "get",
        path,
        id,
        summary,
        access: Access::Open,
        parameters: None,
        body: None,
        answer,
        handler,
    };
    vec![
        open(
            "/healthz",
            "health",
            "Status of the server",
            schemas::HEALTH,
            || get(healthz),
        ),
        open(
            "/openapi.json",
            "description",
            "This description",
            schemas::OBJECT,
            || get(document),
        ),
        Route {
            body: Some(schemas::of::<functions::HybridBody>),
            ..posts(
                "/functions/v1/hybrid-search-context-eng",
                "searchProcedures",
                "Search procedures by keywords and meaning",
                schemas::PROCEDURES,
                || post(functions::hybrid),
            )
        },
        Route {
            body: Some(schemas::of::<functions::ReadBody>),
            ..posts(
                "/functions/v1/agent-memory-read",
                "readMemory",
                "Search the caller's memories by similarity to a query",
                schemas::MEMORIES,
                || post(functions::read),
            )
        },
        Route {
            body: Some(schemas::of::<functions::WriteBody>),
            ..posts(
                "/functions/v1/agent-memory-write",
                "writeMemory",
                "Add a memory of the caller",
                schemas::MEMORY,
                || post(functions::write),
            )
        },
        Route {
            parameters: Some(schemas::of::<rpc::Shape>),
            body: Some(schemas::of::<rpc::HybridArguments>),
            ..posts(
                "/rest/v1/rpc/hybrid_search_context_eng_memories",
                "hybridSearch",
                "Search procedures by keywords and a vector",
                schemas::ROWS,
                || post(rpc::hybrid),
            )
        },
        Route {
            parameters: Some(schemas::of::<rpc::Shape>),
            body: Some(schemas::of::<rpc::MatchArguments>),
            ..posts(
                "/rest/v1/rpc/match_memory",
                "matchMemory",
                "Search the caller's memories by a vector",
                schemas::ROWS,
                || post(rpc::match_memory),
            )
        },
        Route {
            parameters: Some(schemas::of::<insert::Columns>),
            body: Some(schemas::items::<insert::Row>),
            ..posts(
                "/rest/v1/context_eng_memories",
                "insertProcedures",
                "Add procedures written by an analyst",
                schemas::INSERTED,
                || post(insert::insert),
            )
        },
        Route {
            parameters: Some(schemas::of::<v1::Page>),
            ..gets(
                "/v1/executions",
                "listExecutions",
                "The newest executions",
                schemas::EXECUTIONS,
                || get(v1::executions),
            )
        },
        Route {
            body: Some(schemas::of::<v1::ExecutionBody>),
            ..posts(
                "/v1/executions",
                "logExecution",
                "Add an execution that ran elsewhere",
                schemas::LOGGED,
                || post(v1::log_execution),
            )
        },
        Route {
            parameters: Some(schemas::of::<v1::Page>),
            ..gets(
                "/v1/corrections",
                "listCorrections",
                "The newest corrections",
                schemas::CORRECTIONS,
                || get(v1::corrections),
            )
        },
        Route {
            body: Some(schemas::of::<v1::CorrectionBody>),
            ..posts(
                "/v1/corrections",
                "correct",
                "Correct an execution, and learn a rule from it",
                schemas::CORRECTED,
                || post(v1::correct),
            )
        },
        Route {
            body: Some(schemas::of::<v1::HintBody>),
            ..posts(
                "/v1/hints",
                "hint",
                "Hints for an error",
                schemas::HINTS,
                || post(v1::hint),
            )
        },
        Route {
            body: Some(schemas::of::<v1::FailureBody>),
            ..posts(
                "/v1/failures",
                "recordFailure",
                "Record code that failed, and return hints",
                schemas::HINTS,
                || post(v1::failure),
            )
        },
        Route {
            body: Some(schemas::of::<v1::SuccessBody>),
            ..posts(
                "/v1/successes",
                "recordSuccess",
                "Record code that works; with the failure before it, it becomes a pattern",
                schemas::RECORDED,
                || post(v1::success),
            )
        },
        Route {
            parameters: Some(schemas::of::<v1::SearchBody>),
            ..gets(
                "/v1/search",
                "searchByQuery",
                "Search records by keywords and meaning",
                schemas::FOUND,
                || get(v1::search_by_query),
            )
        },
        Route {
            body: Some(schemas::of::<v1::SearchBody>),
            ..posts(
                "/v1/search",
                "search",
                "Search records by keywords and meaning",
                schemas::FOUND,
                || post(v1::search),
            )
        },
        gets(
            "/v1/prompt/{domain}/{skill}",
            "prompt",
            "The prompt for a skill's model",
            schemas::PROMPT,
            || get(v1::prompt),
        ),
        Route {
            body: Some(schemas::of::<v1::EmbeddingsBody>),
            ..posts(
                "/v1/embeddings",
                "embed",
                "Embeddings of texts by the embedder of this memory",
                schemas::EMBEDDINGS,
                || post(v1::embeddings),
            )
        },
        Route {
            body: Some(schemas::object),
            ..posts(
                "/v1/operations/{operation}",
                "operate",
                "Call an agent operation: search, hint, remember, correct, why or forget",
                schemas::OPERATED,
                || post(v1::operation),
            )
        },
        Route {
            body: Some(schemas::object),
            ..posts(
                "/mcp",
                "mcp",
                "Agent tools over the Model Context Protocol: JSON-RPC, without sessions",
                schemas::OBJECT,
                || post(mcp::mcp),
            )
        },
        Route {
            parameters: Some(schemas::of::<v1::MemoriesPage>),
            ..gets(
                "/v1/memories",
                "listMemories",
                "The caller's newest memories",
                schemas::LISTED_MEMORIES,
                || get(v1::memories),
            )
        },
        Route {
            parameters: Some(schemas::of::<v1::SessionsPage>),
            ..gets(
                "/v1/sessions",
                "listSessions",
                "The caller's newest sessions of agents",
                schemas::SESSIONS,
                || get(v1::sessions),
            )
        },
        Route {
            parameters: Some(schemas::of::<v1::LogPage>),
            ..gets(
                "/v1/sessions/{session}",
                "showSession",
                "A session of the caller, and the newest lines of its log",
                schemas::SESSION,
                || get(v1::session),
            )
        },
        gets(
            "/v1/users/me/export",
            "exportUser",
            "Everything of the caller: memories, sessions, log lines and audit events, as JSON Lines",
            schemas::EXPORTED,
            || get(v1::export_user),
        ),
        Route {
            method: "delete",
            parameters: Some(schemas::of::<v1::Confirmation>),
            ..gets(
                "/v1/users/me",
                "deleteUser",
                "Delete everything of the caller permanently: memories, sessions, vectors and log lines",
                schemas::DELETED,
                || delete(v1::delete_user),
            )
        },
        posts(
            "/v1/users/me/disable",
            "disableUser",
            "Switch the memory off for the caller: their requests read and write nothing",
            schemas::SWITCHED,
            || post(v1::disable_user),
        ),
        posts(
            "/v1/users/me/enable",
            "enableUser",
            "Switch the memory on again for the caller",
            schemas::SWITCHED,
            || post(v1::enable_user),
        ),
        gets(
            "/v1/events",
            "events",
            "Change feed: server-sent events",
            schemas::EVENTS,
            || get(events::events),
        ),
    ]
}

fn gets(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: Answer,
    handler: fn() -> MethodRouter<Server>,
) -> Route {
    Route {
        method: "get",
        path,
        id,
        summary,
        access: Access::Token,
        parameters: None,
        body: None,
        answer,
        handler,
    }
}

fn posts(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: Answer,
    handler: fn() -> MethodRouter<Server>,
) -> Route {
    Route {
        method: "post",
        ..gets(path, id, summary, answer, handler)
    }
}

/// Returns the router of the table.
pub(super) fn router(server: &Server) -> Router {
    let (mut open, mut closed) = (Router::new(), Router::new());
    for route in routes() {
        match route.access {
            Access::Open => open = open.route(route.path, (route.handler)()),
            Access::Token => closed = closed.route(route.path, (route.handler)()),
        }
    }
    // Unknown functions get an error in the format of PostgREST.
    closed = closed.route("/rest/v1/rpc/{function}", post(rpc::unknown));
    let limit = DefaultBodyLimit::max(server.limits().body);
    let with = |server: &Server| server.clone();
    let closed = closed.route_layer(from_fn_with_state(with(server), auth::caller));
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
