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
//! Deliberately absent: resources, prompts, sampling, notifications, sessions. Result schemas are absent too:
//! they would cost tokens in every context and repeat the results.

mod http;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Extensions,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::model::error::UserError;
use crate::store::workspace::Workspace;

use super::blocking;
use super::operations::{Answer, Operation};

pub use http::serve;
pub use http::service;

/// Instructions for every agent that has the tools.
const INSTRUCTIONS: &str = "Memory of earlier work in this project: search it before work that may have been done before, ask for a hint after a failure, \
     record with `lesson` what you found out and the next agent cannot guess, and pass on what the user corrects.";

/// Opens the memory for one call; the extensions of the request identify the caller.
type Open = dyn Fn(&Extensions, Operation) -> Result<Workspace, UserError> + Send + Sync;

/// Server with its tools and the function that opens the memory.
#[derive(Clone)]
pub struct Server {
    open: Arc<Open>,
    read_only: bool,
    /// Project of a call that names none; `None` if the server does not know where its clients
    /// work.
    project: Option<String>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Creates a server for one caller. `open` is called for every call of a tool, on a thread that may
    /// block.
    pub fn new(
        open: impl Fn(Operation) -> Result<Workspace, UserError> + Send + Sync + 'static,
    ) -> Self {
        Self::for_each(move |_, operation| open(operation))
    }

    fn for_each(
        open: impl Fn(&Extensions, Operation) -> Result<Workspace, UserError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            open: Arc::new(open),
            read_only: false,
            project: None,
        }
    }

    /// Returns the server with only the operations that change nothing, if `read_only` is true.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Returns the server with the project that hints are for if a call names none.
    #[must_use]
    pub fn in_project(self, project: Option<String>) -> Self {
        Self { project, ..self }
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
        let RequestContext { extensions, ct, .. } = context;
        let open = move || open(&extensions, operation);
        let done = blocking::call(open, async move |workspace| {
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
        let tools = self.offered().map(http::of).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let operation = Operation::from_name(name)?;
        self.offered()
            .find(|offered| *offered == operation)
            .map(http::of)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let named = Operation::from_name(&request.name);
        let offered = named.filter(|named| self.offered().any(|offered| offered == *named));
        let Some(operation) = offered else {
            let tools: Vec<&str> = self.offered().map(Operation::name).collect();
            let asked = request.name.escape_debug();
            let message = format!(
                "unknown tool `{asked}`; available tools: {}",
                tools.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        Ok(match self.call(operation, arguments, context).await {
            Ok(answer) => answered(answer),
            Err(error) => refused(&error),
        }
        .into())
    }
}

fn answered(answer: Answer) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
    result.structured_content = Some(answer.data);
    result
}

/// Message of an error with its hint.
fn words(error: &UserError) -> String {
    let hint = error.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    error.message.clone() + &hint
}

fn refused(error: &UserError) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(words(error))]);
    result.structured_content = Some(error.json());
    result
}
