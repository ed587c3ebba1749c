//! Tables of the source documents, as `PostgREST` offers them below `/rest/v1/`, for `from(…).insert()` of
//! supabase-js, and for `select()` of the memories.
//!
//! A caller reads and inserts only their own rows. All rows of a request are checked before the first is
//! stored. The server writes ids and times: a row with one is refused, as one with an unknown column is. It
//! also makes the vectors: one of a client is accepted, and not kept.
//!
//! Deliberately absent: updates and deletions, for commands correct and remove records and keep their history; and
//! the rows of sessions and logs, which the shared database has.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::lessons;
use crate::model::{Kind, Memory, MemoryType, Procedure, Record as _, Trust};
use crate::notes::{self, AddOptions};
use crate::serve::arguments::{LONGEST_TEXT, text};
use crate::serve::token::Caller;
use crate::store::Selection;
use crate::store::workspace::Workspace;

use super::input::{Answer, Items, Parameters};
use super::problem::Problem;
use super::rows::{Columns, Form, Rows};
use super::state::{Call, Use};

/// Choice among the caller's memories.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    #[serde(rename = "select")]
    #[schemars(skip)]
    _select: Option<Columns>,
    /// Only memories of a type: `eq.TYPE`.
    memory_type: Option<String>,
    /// Maximum number of rows, at most 1,000; default 1,000.
    limit: Option<usize>,
    /// Number of rows to leave out at the beginning.
    offset: Option<usize>,
}

/// Maximum number of rows in an answer.
const MOST: usize = 1_000;

/// `GET /rest/v1/agent_memory`: the caller's memories, oldest first. The read of those in the answer is audited.
pub(crate) async fn select_memories(
    call: Call,
    Parameters(choice): Parameters<Choice>,
    form: Form,
) -> Answer {
    let of_filter = |given: String| {
        let wanted = given.strip_prefix("eq.").map(str::to_owned);
        wanted.ok_or_else(|| {
            let message = format!("`memory_type` is `{}`", given.escape_debug());
            Problem::input(message, "give `eq.TYPE`")
        })
    };
    let wanted = choice.memory_type.map(of_filter).transpose()?;
    let work = call.work(Use::Any, "serve rows", async move |workspace| {
        let memories = workspace.store.list::<Memory>(&Selection::default())?;
        let memories = memories.records.into_iter().filter(|memory| {
            let wanted = wanted.as_deref();
            wanted.is_none_or(|wanted| memory.memory_type.name() == wanted)
        });
        let rows: Vec<MemoryRow> = memories
            .skip(choice.offset.unwrap_or_default())
            .take(choice.limit.unwrap_or(MOST).min(MOST))
            .map(MemoryRow::from)
            .collect();
        let read = rows
            .iter()
            .map(|row| (row.id.as_str(), row.user_id.as_deref()));
        // One that cannot be audited is answered, as everywhere.
        drop(workspace.note_read(read.map(|row| (Kind::Memory, row))));
        form.reply(&rows)
    });
    work.await
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

/// Vector as a list of numbers, or in the text form of PostgreSQL.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum VectorForm {
    List(Vec<f32>),
    Text(String),
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
    Rows(form): Rows,
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
    form.inserted(&work.await?)
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

/// Document of a procedure, in the form of the source document's analyst.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    pub(crate) status: String,
    pub(crate) data: Box<RawValue>,
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
    Rows(form): Rows,
    Items(rows): Items<NewProcedure>,
) -> Answer {
    let documents = rows.iter().map(|row| to_raw_value(&row.metadata));
    let documents: Vec<Box<RawValue>> = documents.collect::<Result<_, _>>()?;
    let why = "serve context_eng_memories";
    let work = call.work(Use::Writes, why, async move |workspace| {
        let mut stored = Vec::new();
        for document in &documents {
            let report = lessons::add_procedure(workspace, document)?;
            let procedure: Procedure = workspace.store.get(&report.id)?;
            stored.push(ProcedureRow::from(procedure));
        }
        Ok(stored)
    });
    form.inserted(&work.await?)
}
