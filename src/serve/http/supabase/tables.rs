//! Tables of the source documents, as `PostgREST` offers them below `/rest/v1/`, for `from(…).select()` and
//! `insert()` of supabase-js.
//!
//! A caller sees and inserts only what is theirs. The server writes ids, times, texts and vectors, and ignores
//! values that a client sends for them.
//!
//! Deliberately absent: updates and deletions. Records are corrected and removed by the commands, which keep
//! their history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::lessons;
use crate::model::{Kind, Memory, MemoryType, Procedure, Record, Session, Trust};
use crate::notes::{self, AddOptions, sessions};
use crate::serve::arguments::{LONGEST_TEXT, text};
use crate::serve::token::Caller;
use crate::store::workspace::Workspace;
use crate::store::{self, Selection};

use super::super::input::{Answer, Items};
use super::super::problem::Problem;
use super::super::route;
use super::super::state::{Call, Use};
use super::functions::{memory_type, vector};
use super::query::{MOST, Query, Row};
use super::recall::Metadata;

/// Maximum number of rows in one insertion.
const ROWS: usize = 50;

/// Row of a table that shows the caller's records of one kind.
pub(crate) trait Shows: Serialize + From<Self::Of> + 'static {
    /// Record of a row.
    type Of: Record;
}

/// `GET /rest/v1/…`: the caller's rows. The read of those in the answer is audited.
pub(crate) async fn select<T: Shows>(call: Call, query: Query) -> Answer {
    let work = call.work("serve rows", move |workspace| {
        let records = workspace.store.list::<T::Of>(&Selection::default())?;
        let rows: Vec<T> = records.records.into_iter().map(T::from).collect();
        let rows = query.choose(&rows)?;
        note_read(workspace, T::Of::KIND, &rows);
        query.answer(rows)
    });
    work.await
}

/// Audits a read. One that cannot be audited is answered, as everywhere.
fn note_read(workspace: &Workspace, kind: Kind, rows: &[Row]) {
    let text = |row: &Row, name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
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
    /// Null unless an insertion requests it: embedding happens at the first search.
    embedding: Option<Vec<f32>>,
    metadata: Box<RawValue>,
    created_at: String,
    updated_at: String,
    expires_at: Option<String>,
    /// Trust level.
    trust: Trust,
}

impl Shows for MemoryRow {
    type Of = Memory;
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
        has_vector: bool,
    ) -> Result<Self, Problem> {
        let report = if caller.is_agent {
            notes::add_observed(workspace, options)?
        } else {
            notes::add_memory(workspace, options)?
        };
        let mut row = Self::from(workspace.store.get::<Memory>(&report.id)?);
        if has_vector {
            row.embedding = Some(vector(workspace, &row.content)?);
        }
        Ok(row)
    }
}

/// Memory to store.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewMemory {
    /// The caller; another user is refused.
    user_id: Option<String>,
    /// Text of the memory.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    content: String,
    /// One of the five memory types.
    #[schemars(extend("enum" = route::types()))]
    memory_type: String,
    /// Metadata: the fields of the type, and any others.
    #[schemars(with = "Option<Map<String, Value>>")]
    metadata: Option<Value>,
    /// Expiry: a time, a date, or a duration such as `30d`.
    expires_at: Option<String>,
}

/// `POST /rest/v1/agent_memory`
pub(crate) async fn insert_memories(
    call: Call,
    query: Query,
    Items(rows): Items<NewMemory>,
) -> Answer {
    at_most(rows.len())?;
    let mut all = Vec::new();
    for row in rows {
        if row
            .user_id
            .is_some_and(|user| user != call.caller.user.as_str())
        {
            return Err(Problem::new(
                403,
                "permission",
                "`user_id` is not the user of the token",
                "leave it out, or give the `sub` of the token",
            ));
        }
        all.push(options(
            row.content, &row.memory_type, row.metadata, row.expires_at,
        )?);
    }
    let has_vector = query.names("embedding");
    let caller = call.caller.clone();
    let work = call.using(Use::Writes, "serve agent_memory", move |workspace| {
        let stored = all
            .iter()
            .map(|options| MemoryRow::add(workspace, &caller, options, has_vector));
        stored.collect::<Result<Vec<MemoryRow>, Problem>>()
    });
    query.inserted(&work.await?)
}

/// Returns the options that store a memory of a request.
pub(crate) fn options(
    content: String,
    of: &str,
    metadata: Option<Value>,
    expires_at: Option<String>,
) -> Result<AddOptions, Problem> {
    let metadata = metadata.filter(|metadata| !metadata.is_null());
    let metadata = metadata.as_ref().map(to_raw_value).transpose();
    Ok(AddOptions {
        memory_type: memory_type(of)?,
        content: text("content", content, LONGEST_TEXT)?,
        metadata: metadata.map_err(store::Error::from)?,
        expires_at,
        replaces: Vec::new(),
    })
}

fn at_most(rows: usize) -> Result<(), Problem> {
    if (1..=ROWS).contains(&rows) {
        return Ok(());
    }
    Err(Problem::unfit(
        format!("{rows} rows were sent"),
        format!("send 1 to {ROWS}"),
    ))
}

/// Row of `agent_sessions`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    id: String,
    #[serde(flatten)]
    session: Session,
}

impl Shows for SessionRow {
    type Of = Session;
}

impl From<Session> for SessionRow {
    fn from(session: Session) -> Self {
        Self {
            id: session.session_id.clone(),
            session,
        }
    }
}

/// `GET /rest/v1/agent_execution_logs`: the log of one session. Lines belong to no domain, so a token for
/// some domains sees none.
pub(crate) async fn logs(call: Call, query: Query) -> Answer {
    let work = call.work("serve rows", move |workspace| {
        let Some(session) = query.equal("session_id") else {
            return Err(Problem::unfit(
                "the session is missing",
                "give `session_id=eq.SESSION`",
            ));
        };
        query.reply(&sessions::show(workspace, session, MOST)?.logs)
    });
    work.await
}

/// Procedure to store.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct NewProcedure {
    /// Procedure: `{"status": "procedure_learned", "data": {…}}`.
    metadata: Map<String, Value>,
}

/// Row of `context_eng_memories`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProcedureRow {
    id: String,
    content: String,
    metadata: Metadata,
    /// Null unless an insertion requests it: embedding happens at the first search.
    embedding: Option<Vec<f32>>,
    created_dt: String,
    trust: Trust,
}

impl Shows for ProcedureRow {
    type Of = Procedure;
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
    at_most(rows.len())?;
    let documents: Result<Vec<Box<RawValue>>, _> =
        rows.iter().map(|row| to_raw_value(&row.metadata)).collect();
    let documents = documents.map_err(store::Error::from)?;
    let has_vector = query.names("embedding");
    let work = call.using(
        Use::Writes,
        "serve context_eng_memories",
        move |workspace| {
            let mut stored = Vec::new();
            for document in &documents {
                let report = lessons::add_procedure(workspace, document)?;
                let procedure: Procedure = workspace.store.get(&report.id)?;
                let embedding = has_vector.then(|| vector(workspace, &procedure.content()));
                stored.push(ProcedureRow {
                    embedding: embedding.transpose()?,
                    ..ProcedureRow::from(procedure)
                });
            }
            Ok(stored)
        },
    );
    query.inserted(&work.await?)
}
