//! Tables of the source documents, as `PostgREST` offers them below `/rest/v1/`, for `from(…).select()` and
//! `insert()` of supabase-js.
//!
//! A caller reads and inserts only their own rows. All rows of a request are checked before the first is
//! stored. The server writes ids and times: a row with one is refused, as one with an unknown column is. It
//! also makes the vectors: one of a client is accepted, and not kept.
//!
//! Deliberately absent: updates and deletions. Records are corrected and removed by the commands, which keep
//! their history. Sessions and lines of their logs are written by `memctl session`, or in SQL.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::lessons;
use crate::model::{Kind, Memory, MemoryType, Procedure, Record, Session, Trust};
use crate::notes::{self, AddOptions, sessions};
use crate::serve::arguments::{LONGEST_TEXT, text};
use crate::serve::token::Caller;
use crate::store::workspace::Workspace;
use crate::store::{LogSelection, Selection};

use super::functions::{Metadata, VectorForm};
use super::input::{Answer, Items};
use super::problem::Problem;
use super::query::{Query, Row};
use super::state::{Call, Use};

/// `GET /rest/v1/…`: the caller's rows. The read of those in the answer is audited.
pub(crate) async fn select<R, T>(call: Call, query: Query) -> Answer
where
    R: Record + 'static,
    T: From<R> + Serialize + JsonSchema + 'static,
{
    let work = call.work(Use::Any, "serve rows", async move |workspace| {
        let records = workspace.store.list::<R>(&Selection::default())?;
        let rows: Vec<T> = records.records.into_iter().map(T::from).collect();
        let rows = query.choose(&rows)?;
        note_read(workspace, R::KIND, &rows);
        query.answer(rows)
    });
    work.await
}

/// Audits a read. One that cannot be audited is answered, as everywhere.
fn note_read(workspace: &Workspace, kind: Kind, rows: &[Row]) {
    let text = |row: &Row, name: &str| row.cell(name).as_str().map(str::to_owned);
    let read: Vec<_> = rows
        .iter()
        .map(|row| (text(row, "id").unwrap_or_default(), text(row, "user_id")))
        .collect();
    let read = read.iter();
    drop(workspace.note_read(read.map(|(id, user)| (kind, (id.as_str(), user.as_deref())))));
}

/// Row of `agent_memory`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryRow {
    id: String,
    user_id: Option<String>,
    memory_type: MemoryType,
    content: String,
    /// Null: embedding happens at the first search, and `/v1/embeddings` makes vectors.
    embedding: Option<Vec<f32>>,
    metadata: Box<RawValue>,
    created_at: String,
    updated_at: String,
    expires_at: Option<String>,
    /// Trust level.
    trust: Trust,
}

impl From<Memory> for MemoryRow {
    fn from(memory: Memory) -> Self {
        Self {
            trust: memory.trust(),
            id: memory.id,
            user_id: memory.user_id,
            memory_type: memory.memory_type,
            content: memory.content,
            embedding: None,
            metadata: memory.metadata,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
            expires_at: memory.expires_at,
        }
    }
}

impl MemoryRow {
    /// Stores a memory of the caller, and returns its row.
    pub(crate) fn add(
        workspace: &Workspace,
        caller: &Caller,
        options: &AddOptions,
    ) -> Result<Self, Problem> {
        let report = if caller.is_agent {
            notes::add_observed(workspace, options)?
        } else {
            notes::add_memory(workspace, options)?
        };
        Ok(Self::from(workspace.store.get::<Memory>(&report.id)?))
    }
}

/// Returns the options that store a memory of a request.
pub(crate) fn options(
    memory_type: MemoryType,
    content: String,
    metadata: Option<Box<RawValue>>,
    expires_at: Option<String>,
) -> Result<AddOptions, Problem> {
    Ok(AddOptions {
        memory_type,
        content: text("content", content, LONGEST_TEXT)?,
        metadata,
        expires_at,
        replaces: Vec::new(),
    })
}

/// Memory to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMemory {
    /// The caller; another user is refused.
    user_id: Option<String>,
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
    /// Ignored: the server makes the vector of the text.
    #[serde(rename = "embedding")]
    #[schemars(with = "Option<VectorForm>")]
    _embedding: Option<IgnoredAny>,
}

/// `POST /rest/v1/agent_memory`
pub(crate) async fn insert_memories(
    call: Call,
    query: Query,
    Items(rows): Items<NewMemory>,
) -> Answer {
    let mut all = Vec::new();
    for row in rows {
        is_own(&call, row.user_id.as_deref())?;
        let (memory_type, content) = (row.memory_type, row.content);
        all.push(options(memory_type, content, row.metadata, row.expires_at)?);
    }
    let caller = call.caller.clone();
    let work = call.work(Use::Writes, "serve agent_memory", async move |workspace| {
        for options in &all {
            notes::check(workspace, options, caller.is_agent)?;
        }
        let add = |options| MemoryRow::add(workspace, &caller, options);
        all.iter()
            .map(add)
            .collect::<Result<Vec<MemoryRow>, Problem>>()
    });
    query.inserted(&work.await?)
}

/// Refuses rows of another user.
fn is_own(call: &Call, user: Option<&str>) -> Result<(), Problem> {
    if user.is_none_or(|user| user == call.caller.user.as_str()) {
        return Ok(());
    }
    Err(Problem::new(
        403,
        "permission",
        "`user_id` is not the user of the token",
        "leave it out, or give the `sub` of the token",
    ))
}

/// Row of `agent_sessions`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    id: String,
    #[serde(flatten)]
    session: Session,
}

impl From<Session> for SessionRow {
    fn from(session: Session) -> Self {
        Self {
            id: session.session_id.clone(),
            session,
        }
    }
}

/// `GET /rest/v1/agent_execution_logs`: the lines of the caller, or of one session, oldest first. Lines belong to
/// no domain, so a token for some domains sees none.
pub(crate) async fn logs(call: Call, query: Query) -> Answer {
    let work = call.work(Use::Any, "serve rows", async move |workspace| {
        if let Some(session) = query.equal("session_id") {
            query.reply(&sessions::show(workspace, session, usize::MAX)?.logs)
        } else {
            let lines = workspace.store.execution_logs(LogSelection {
                sessions: None,
                since: "",
                newest: usize::MAX,
            })?;
            query.reply(&lines.lines)
        }
    });
    work.await
}

/// Procedure to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewProcedure {
    /// Ignored: the server writes the text of a procedure from its metadata.
    #[serde(rename = "content")]
    _content: Option<String>,
    /// Procedure: `{"status": "procedure_learned", "data": {…}}`.
    metadata: Map<String, Value>,
    /// Ignored: the server makes the vector of the text.
    #[serde(rename = "embedding")]
    #[schemars(with = "Option<VectorForm>")]
    _embedding: Option<IgnoredAny>,
}

/// Row of `context_eng_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProcedureRow {
    id: String,
    content: String,
    metadata: Metadata,
    /// Null: embedding happens at the first search, and `/v1/embeddings` makes vectors.
    embedding: Option<Vec<f32>>,
    created_dt: String,
    trust: Trust,
}

impl From<Procedure> for ProcedureRow {
    fn from(procedure: Procedure) -> Self {
        Self {
            trust: procedure.trust(),
            content: procedure.shown_content(),
            id: procedure.procedure_id,
            metadata: Metadata {
                status: procedure.status,
                data: procedure.data,
            },
            embedding: None,
            created_dt: procedure.created_at,
        }
    }
}

/// `POST /rest/v1/context_eng_memories`: rows in the form of the source document's analyst, whose
/// `metadata` is the procedure.
pub(crate) async fn insert_procedures(
    call: Call,
    query: Query,
    Items(rows): Items<NewProcedure>,
) -> Answer {
    let documents = rows.iter().map(|row| to_raw_value(&row.metadata));
    let documents: Vec<Box<RawValue>> = documents.collect::<Result<_, _>>()?;
    let work = call.work(
        Use::Writes,
        "serve context_eng_memories",
        async move |workspace| {
            let mut stored = Vec::new();
            for document in &documents {
                let report = lessons::add_procedure(workspace, document)?;
                let procedure: Procedure = workspace.store.get(&report.id)?;
                stored.push(ProcedureRow::from(procedure));
            }
            Ok(stored)
        },
    );
    query.inserted(&work.await?)
}
