//! Model Context Protocol: the table of operations as tools.
//!
//! Tools and operations correspond one to one; this module decides nothing about the memory. A call
//! opens the memory, runs one operation and closes it. So it sees the writes of other processes,
//! and holds nothing that could go stale.
//!
//! A failed operation is a result with `isError` and a hint, so that the model reads it; only a
//! violation of the protocol is a protocol error. The SDK negotiates the revision, from the first
//! of 2024 to the newest.
//!
//! Over HTTP, the mounting server authenticates, and makes a service for the caller of each request. There are
//! no sessions, so that no caller can use the session of another. Every response is one JSON document, and
//! any process can answer. The mounting server also checks host names and origins. Over standard input and
//! output there is one message per line of at most 16 MiB, and no other output. As in the other SDKs, a line
//! that is no JSON is passed over, so that two programs that misunderstand each other do not go on for ever.
//!
//! Deliberately absent: resources, prompts, sampling, notifications, sessions. Result schemas are absent too:
//! they would cost tokens in every context and repeat the results.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError, serve_server};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, stdio_pipes};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::model::error::UserError;
use crate::store::workspace::Workspace;

use super::call;
use super::operations::{Answer, Effect, Operation};

/// Instructions for every agent that has the tools.
const INSTRUCTIONS: &str = "Memory of earlier work in this project: search it before work that may have been done before, ask for a hint after a failure, \
     record with `lesson` what you found out and the next agent cannot guess, and pass on what the user corrects.";

/// Opens the memory for one call of a tool, on a thread that may block.
type Open = dyn Fn(Operation) -> Result<Workspace, UserError> + Send + Sync;

/// Tools for one caller.
#[derive(Clone)]
pub struct Server {
    open: Arc<Open>,
    /// `true` offers only the operations that change nothing.
    read_only: bool,
    /// Project of a call that names none; `None` if the server does not know where its clients
    /// work.
    project: Option<String>,
}

impl Server {
    /// Creates a server whose memory is opened by `open` for every call of a tool.
    pub fn new(
        open: impl Fn(Operation) -> Result<Workspace, UserError> + Send + Sync + 'static,
        read_only: bool,
        project: Option<String>,
    ) -> Self {
        Self {
            open: Arc::new(open),
            read_only,
            project,
        }
    }

    /// Adds the server's own project to a call that may name one and does not.
    fn with_project(&self, operation: Operation, mut arguments: Value) -> Value {
        if operation == Operation::Hint
            && let Some(project) = &self.project
            && let Some(arguments) = arguments.as_object_mut()
            && arguments.get("project").is_none_or(Value::is_null)
        {
            arguments.insert("project".to_owned(), project.as_str().into());
        }
        arguments
    }

    fn offered(&self) -> impl Iterator<Item = Operation> {
        let read_only = self.read_only;
        let all = Operation::ALL.into_iter();
        all.filter(move |operation| !read_only || operation.reads())
    }

    /// Runs the operation on a separate thread, because it blocks, until it is done or the client
    /// cancels.
    async fn call(
        &self,
        operation: Operation,
        arguments: Value,
        context: RequestContext<RoleServer>,
    ) -> Result<Answer, UserError> {
        let open = Arc::clone(&self.open);
        let arguments = self.with_project(operation, arguments);
        let ct = context.ct;
        let open = move || open(operation);
        let done = call(open, async move |workspace| {
            tokio::select! {
                answer = operation.call(workspace, arguments) => answer,
                () = ct.cancelled() => Err(UserError::interrupted()),
            }
        });
        done.await.unwrap_or_else(|_| {
            Err(UserError::internal(format!(
                "`{}` failed unexpectedly",
                operation.name()
            )))
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        ServerConfig::new(capabilities.enable_tools().build())
            .with_server_info(
                Implementation::new("memctl", env!("CARGO_PKG_VERSION")).with_title("memctl"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.offered().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let mut offered = self.offered();
        offered.find(|offered| offered.name() == name).map(tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut offered = self.offered();
        let Some(operation) = offered.find(|offered| offered.name() == request.name) else {
            let tools: Vec<&str> = self.offered().map(Operation::name).collect();
            let name = request.name.escape_debug();
            let message = format!(
                "unknown tool `{name}`; available tools: {}",
                tools.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let (mut result, data) = match self.call(operation, arguments, context).await {
            Ok(Answer { text, data }) => (
                CallToolResult::success(vec![ContentBlock::text(text)]),
                data,
            ),
            Err(error) => {
                let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
                let text = error.message.clone() + &hint.unwrap_or_default();
                (
                    CallToolResult::error(vec![ContentBlock::text(text)]),
                    error.json(),
                )
            }
        };
        result.structured_content = Some(data);
        Ok(result.into())
    }
}

/// Returns the service of one caller over HTTP, for bodies of at most this many bytes.
pub fn service(
    longest_body: usize,
    server: Server,
) -> StreamableHttpService<Server, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(longest_body)
        .disable_allowed_hosts();
    StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}

/// Serves over standard input and output until the input ends. Pending calls are then answered, if they take at most a few
/// seconds; their writes are completed in any case.
pub async fn serve(server: Server) -> io::Result<()> {
    match serve_server(server, stdio_pipes()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // A client that only checks whether the program starts closes the input again.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Returns the tool of an operation, with the annotations that agent hosts need before they let a
/// model call it.
fn tool(operation: Operation) -> Tool {
    let (name, title, effect, description) = operation.spec();
    // The title is only here: the field of the tool itself would repeat it in every context.
    let annotations = ToolAnnotations::with_title(title)
        .read_only(effect == Effect::Reads)
        .open_world(false);
    // Both other annotations apply only to tools that write.
    let annotations = if effect == Effect::Reads {
        annotations
    } else {
        annotations
            .destructive(effect == Effect::Removes)
            .idempotent(false)
    };
    Tool::new(name, description, operation.schema()).with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use http_body_util::BodyExt as _;
    use serde_json::json;
    use tower_service::Service as _;

    use super::*;
    use crate::model::error::Kind;

    fn ask(who: &'static str, method: &str, params: &Value) -> (StatusCode, Value) {
        // Refuses the caller, with their name in the message.
        let refuse = move |operation: Operation| {
            Err(UserError {
                kind: Kind::Permission,
                message: format!("{who} may not {}", operation.name()),
                hint: None,
            })
        };
        let mut service = service(1_000, Server::new(refuse, false, None));
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .header("host", "127.0.0.1:8080")
            .body(body.to_string())
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let answer = service.call(request).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            (status, serde_json::from_slice(&body).unwrap_or_default())
        })
    }

    #[test]
    fn tools_are_listed_without_a_session_and_without_opening_anything() {
        let (status, answer) = ask("ann", "tools/list", &json!({}));
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!(answer["id"], 7);
        assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn every_call_is_made_for_the_caller_of_its_service() {
        for who in ["ann", "bob"] {
            let call = json!({"name": "forget", "arguments": {"id": "MEM-001"}});
            let (status, answer) = ask(who, "tools/call", &call);
            assert_eq!(status, StatusCode::OK, "{answer}");
            let result = &answer["result"];
            assert_eq!(result["isError"], true, "{answer}");
            let error = &result["structuredContent"]["error"];
            assert_eq!(error["kind"], "permission");
            assert_eq!(error["message"], format!("{who} may not forget"));
        }
    }

    #[test]
    fn long_bodies_are_turned_away() {
        let long = json!({"cursor": "x".repeat(2_000)});
        let (status, answer) = ask("ann", "tools/list", &long);
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
    }
}

#[cfg(test)]
mod tests_of_tools {
    use super::*;
    use crate::skills::prompt::tokens;

    /// All tool descriptions are in the context of every agent, used or not.
    #[test]
    fn all_tools_together_cost_little() {
        let tools =
            Operation::ALL.map(|operation| serde_json::to_string(&tool(operation)).unwrap());
        let all: usize = tools.iter().map(|tools| tokens(tools)).sum();
        assert!(all < 1_750, "{all} tokens");
    }
}
