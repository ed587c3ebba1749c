//! Tables of the source documents, as `PostgREST` offers them below `/rest/v1/`, for `from(…).select()` and
//! `insert()` of supabase-js.
//!
//! A caller sees and inserts only what is theirs. The server writes ids, times, texts and vectors, and ignores
//! values that a client sends for them. A query has columns (`select`), filters (`eq`, `neq`, `gt`, `gte`,
//! `lt`, `lte`, `is`, `in`), `order`, `limit` and `offset`; anything else is an error, because an ignored
//! filter would return too much.
//!
//! Deliberately absent: updates and deletions. Records are corrected and removed by the commands, which keep
//! their history.

use std::cmp::Ordering;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use chrono::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::lessons;
use crate::model::{ExecutionLog, Kind, Memory, MemoryType, Procedure, Record, Session, Trust};
use crate::notes::{self, AddOptions, sessions};
use crate::serve::arguments::{LONGEST_TEXT, text};
use crate::serve::token::Caller;
use crate::store::workspace::Workspace;
use crate::store::{self, Selection};

use super::super::input::{Items, Pairs, reply};
use super::super::problem::Problem;
use super::super::route;
use super::super::state::Server;
use super::functions::{memory_type, vector};
use super::recall::Metadata;

/// Maximum number of rows in one insertion, and in one answer.
const ROWS: usize = 50;
const MOST: usize = 1_000;

/// Columns, filters and order of a request.
pub(crate) struct Query {
    columns: Option<Vec<String>>,
    filters: Vec<(String, Filter)>,
    /// Columns, each with `true` for the largest first.
    order: Vec<(String, bool)>,
    limit: usize,
    offset: usize,
}

/// Query parameters, for the description.
#[derive(JsonSchema)]
#[expect(
    dead_code,
    reason = "the names of filters are columns, so the parameters are read by hand"
)]
pub(crate) struct QueryParameters {
    /// Columns, separated by commas; default all.
    select: Option<String>,
    /// Columns to sort by, such as `created_at.desc`.
    order: Option<String>,
    /// Maximum number of rows.
    limit: Option<u32>,
    /// Number of rows to skip.
    offset: Option<u32>,
}

/// Condition on a column.
#[derive(Debug, PartialEq)]
struct Filter {
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Different,
    Greater,
    NotLess,
    Less,
    NotGreater,
    Is,
    In,
}

impl Filter {
    /// Parses `eq.value` or `in.(one,two)`.
    fn parse(given: &str) -> Option<Self> {
        let (operator, value) = given.split_once('.')?;
        let operator = match operator {
            "eq" => Operator::Equal,
            "neq" => Operator::Different,
            "gt" => Operator::Greater,
            "gte" => Operator::NotLess,
            "lt" => Operator::Less,
            "lte" => Operator::NotGreater,
            "is" if matches!(value, "null" | "true" | "false") => Operator::Is,
            "in" => Operator::In,
            _ => return None,
        };
        let values = if operator == Operator::In {
            let list = value.strip_prefix('(')?.strip_suffix(')')?.split(',');
            list.map(|one| one.trim().trim_matches('"').to_owned())
                .collect()
        } else {
            vec![value.to_owned()]
        };
        Some(Self { operator, values })
    }

    /// Returns `true` if a value meets the condition. As in SQL, null meets only `is`.
    fn holds(&self, value: &Value) -> bool {
        let is_null = value.is_null();
        let mut values = self.values.iter();
        if self.operator == Operator::Is {
            return values.any(|wanted| match wanted.as_str() {
                "null" => is_null,
                wanted => value.as_bool() == Some(wanted == "true"),
            });
        }
        !is_null
            && values.any(|wanted| {
                let wanted = match value {
                    Value::String(_) => Some(Value::from(wanted.as_str())),
                    _ => serde_json::from_str(wanted).ok(),
                };
                let Some(order) = wanted.map(|wanted| compare(value, &wanted)) else {
                    return false;
                };
                match self.operator {
                    Operator::Equal | Operator::In | Operator::Is => order.is_eq(),
                    Operator::Different => order.is_ne(),
                    Operator::Greater => order.is_gt(),
                    Operator::NotLess => order.is_ge(),
                    Operator::Less => order.is_lt(),
                    Operator::NotGreater => order.is_le(),
                }
            })
    }
}

/// Compares numbers as numbers, times as times and everything else as text; null is the largest.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Null, _) | (_, Value::Null) => one.is_null().cmp(&other.is_null()),
        (Value::String(one), Value::String(other)) => {
            let time = |text: &str| DateTime::parse_from_rfc3339(text).ok();
            match (time(one), time(other)) {
                (Some(one), Some(other)) => one.cmp(&other),
                _ => one.cmp(other),
            }
        }
        _ => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => one.to_string().cmp(&other.to_string()),
        },
    }
}

impl Query {
    /// Parses the parameters of a request.
    pub(crate) fn parse(given: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut query = Self {
            columns: None,
            filters: Vec::new(),
            order: Vec::new(),
            limit: MOST,
            offset: 0,
        };
        let count = |name: &str, text: &str| {
            let number = text.parse::<usize>();
            number.map_err(|_| not_a(name, text, "a whole number, not negative"))
        };
        for (name, value) in given {
            match name.as_str() {
                "select" if value == "*" => {}
                "select" => {
                    let names = value.split(',').map(|name| name.trim().to_owned());
                    query.columns = Some(names.collect());
                }
                // supabase-js repeats the names of the inserted columns.
                "columns" => {}
                "order" => {
                    for part in value.split(',') {
                        let mut words = part.split('.');
                        let column = words.next().unwrap_or_default().to_owned();
                        let words: Vec<&str> = words.collect();
                        let known = ["asc", "desc", "nullsfirst", "nullslast"];
                        if !words.iter().all(|word| known.contains(word)) {
                            return Err(not_a("order", part, "`COLUMN.asc` or `COLUMN.desc`"));
                        }
                        query.order.push((column, words.contains(&"desc")));
                    }
                }
                "limit" => query.limit = count("limit", &value)?,
                "offset" => query.offset = count("offset", &value)?,
                _ => {
                    let filter = Filter::parse(&value)
                        .ok_or_else(|| not_a(&name, &value, "a filter such as `eq.VALUE`"))?;
                    query.filters.push((name, filter));
                }
            }
        }
        Ok(query)
    }

    /// Returns the value of an `eq` filter.
    fn equal(&self, column: &str) -> Option<&str> {
        let mut filters = self.filters.iter();
        let found =
            filters.find(|(name, filter)| name == column && filter.operator == Operator::Equal);
        found.and_then(|(_, filter)| filter.values.first().map(String::as_str))
    }

    /// Returns the requested rows.
    fn of<T: Serialize>(&self, rows: &[T]) -> Result<Vec<Map<String, Value>>, Problem> {
        let mut all = Vec::new();
        for row in rows {
            if let Value::Object(row) = serde_json::to_value(row).map_err(store::Error::from)? {
                all.push(row);
            }
        }
        if let Some(first) = all.first() {
            let used = self.filters.iter().map(|(name, _)| name);
            let used = used.chain(self.order.iter().map(|(name, _)| name));
            let mut used = used.chain(self.columns.iter().flatten());
            if let Some(column) = used.find(|column| !first.contains_key(*column)) {
                return Err(Problem::input(
                    format!("unknown column `{}`", column.escape_debug()),
                    "name columns of the answer",
                ));
            }
        }
        all.retain(|row| {
            let mut filters = self.filters.iter();
            filters.all(|(name, filter)| filter.holds(&row[name]))
        });
        all.sort_by(|one, other| {
            let orders = self.order.iter().map(|(column, is_reverse)| {
                let order = compare(&one[column], &other[column]);
                if *is_reverse { order.reverse() } else { order }
            });
            orders
                .filter(|order| order.is_ne())
                .fold(Ordering::Equal, Ordering::then)
        });
        Ok(all
            .into_iter()
            .skip(self.offset)
            .take(self.limit.min(MOST))
            .collect())
    }

    /// Answers with the requested columns of rows that are chosen already.
    fn chosen(
        &self,
        mut rows: Vec<Map<String, Value>>,
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        if let Some(columns) = &self.columns {
            for row in &mut rows {
                row.retain(|name, _| columns.contains(name));
            }
        }
        if !says(headers, &header::ACCEPT, "vnd.pgrst.object+json") {
            return reply(&rows);
        }
        match rows.as_slice() {
            [one] => reply(one),
            rows => Err(Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                "input",
                format!("one row was requested, but there are {}", rows.len()),
                "remove `.single()`, or narrow the query to one row",
            )),
        }
    }

    /// Answers with the requested part of rows.
    pub(crate) fn reply<T: Serialize>(
        &self,
        rows: &[T],
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        self.chosen(self.of(rows)?, headers)
    }

    /// Answers for inserted rows: with the rows, if the client prefers that.
    fn inserted<T: Serialize>(&self, rows: &[T], headers: &HeaderMap) -> Result<Response, Problem> {
        let prefer = header::HeaderName::from_static("prefer");
        if !says(headers, &prefer, "return=representation") {
            return Ok(StatusCode::CREATED.into_response());
        }
        Ok((StatusCode::CREATED, self.reply(rows, headers)?).into_response())
    }
}

fn not_a(name: &str, given: &str, wanted: &str) -> Problem {
    let (name, given) = (name.escape_debug(), given.escape_debug());
    Problem::input(format!("`{name}` is `{given}`"), format!("give {wanted}"))
}

fn says(headers: &HeaderMap, name: &header::HeaderName, what: &str) -> bool {
    let mut values = headers.get_all(name).iter();
    values.any(|value| value.to_str().is_ok_and(|text| text.contains(what)))
}

/// Answers for a table: `rows` reads all of the caller's. If they are records of a `kind`, the read of those
/// in the answer is audited.
async fn select<T: Serialize>(
    (server, caller): (Server, Caller),
    (given, headers): (Vec<(String, String)>, HeaderMap),
    kind: Option<Kind>,
    rows: impl FnOnce(&Workspace, &Query) -> Result<Vec<T>, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let query = Query::parse(given)?;
    let work = server.work(&caller, "serve rows", move |workspace| {
        let rows = query.of(&rows(workspace, &query)?)?;
        let text = |row: &Map<String, Value>, name: &str| {
            row.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let read: Vec<_> = rows
            .iter()
            .map(|row| (text(row, "id").unwrap_or_default(), text(row, "user_id")))
            .collect();
        if let Some(kind) = kind {
            let read = read
                .iter()
                .map(|(id, user)| (kind, (id.as_str(), user.as_deref())));
            // A read that cannot be audited is answered, as everywhere.
            drop(workspace.note_read(read));
        }
        query.chosen(rows, &headers)
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
    /// Null unless requested: embedding happens at the first search.
    embedding: Option<Vec<f32>>,
    metadata: Box<RawValue>,
    created_at: String,
    updated_at: String,
    expires_at: Option<String>,
    /// Trust level.
    trust: Trust,
}

impl MemoryRow {
    fn of(memory: Memory, embedding: Option<Vec<f32>>) -> Self {
        Self {
            trust: memory.trust(),
            id: memory.id,
            user_id: memory.user_id,
            memory_type: memory.memory_type,
            content: memory.content,
            embedding,
            metadata: memory.metadata,
            created_at: memory.created_at,
            updated_at: memory.updated_at,
            expires_at: memory.expires_at,
        }
    }

    /// Stores a memory of the caller, and returns its row.
    pub(crate) fn add(
        workspace: &Workspace,
        caller: &Caller,
        options: &AddOptions,
        has_vector: bool,
    ) -> Result<Self, Problem> {
        let report = if caller.is_agent() {
            notes::add_observed(workspace, options)?
        } else {
            notes::add_memory(workspace, options)?
        };
        let memory: Memory = workspace.store.get(&report.id)?;
        let embedding = has_vector.then(|| vector(workspace, &memory.content));
        Ok(Self::of(memory, embedding.transpose()?))
    }
}

/// `GET /rest/v1/agent_memory`
pub(crate) async fn memories(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Pairs(given): Pairs,
) -> Result<Response, Problem> {
    select(
        (server, caller),
        (given, headers),
        Some(Kind::Memory),
        |workspace, _| {
            let memories = workspace
                .store
                .list::<Memory>(&Selection::default())?
                .records;
            Ok(memories
                .into_iter()
                .map(|memory| MemoryRow::of(memory, None))
                .collect())
        },
    )
    .await
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
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Pairs(given): Pairs,
    Items(rows): Items<NewMemory>,
) -> Result<Response, Problem> {
    let query = Query::parse(given)?;
    at_most(rows.len())?;
    let mut all = Vec::new();
    for row in rows {
        if row.user_id.is_some_and(|user| user != caller.user.as_str()) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
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
    let who = caller.clone();
    let work = server.write(&caller, "serve agent_memory", move |workspace| {
        let stored = all
            .iter()
            .map(|options| MemoryRow::add(workspace, &who, options, has_vector));
        stored.collect::<Result<Vec<MemoryRow>, Problem>>()
    });
    query.inserted(&work.await?, &headers)
}

impl Query {
    /// Returns `true` if the client names a column; vectors are returned only then.
    fn names(&self, column: &str) -> bool {
        self.columns.iter().flatten().any(|name| name == column)
    }
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

/// `GET /rest/v1/agent_sessions`
pub(crate) async fn sessions(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Pairs(given): Pairs,
) -> Result<Response, Problem> {
    select(
        (server, caller),
        (given, headers),
        Some(Kind::Session),
        |workspace, _| {
            let sessions = workspace
                .store
                .list::<Session>(&Selection::default())?
                .records;
            let row = |session: Session| SessionRow {
                id: session.session_id.clone(),
                session,
            };
            Ok(sessions.into_iter().map(row).collect())
        },
    )
    .await
}

/// `GET /rest/v1/agent_execution_logs`: the log of one session. Lines belong to no domain, so a token for
/// some domains sees none.
pub(crate) async fn logs(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Pairs(given): Pairs,
) -> Result<Response, Problem> {
    select(
        (server, caller),
        (given, headers),
        None,
        |workspace, query| {
            let Some(session) = query.equal("session_id") else {
                return Err(Problem::unfit(
                    "the session is missing",
                    "give `session_id=eq.SESSION`",
                ));
            };
            let lines: Vec<ExecutionLog> = sessions::show(workspace, session, MOST)?.logs;
            Ok(lines)
        },
    )
    .await
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
    /// Null unless requested: embedding happens at the first search.
    embedding: Option<Vec<f32>>,
    created_dt: String,
    trust: Trust,
}

impl ProcedureRow {
    fn of(procedure: Procedure, embedding: Option<Vec<f32>>) -> Self {
        Self {
            trust: procedure.trust(),
            content: procedure.shown_content(),
            id: procedure.procedure_id,
            metadata: Metadata {
                status: procedure.status,
                data: procedure.data,
            },
            embedding,
            created_dt: procedure.created_at,
        }
    }
}

/// `GET /rest/v1/context_eng_memories`
pub(crate) async fn procedures(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Pairs(given): Pairs,
) -> Result<Response, Problem> {
    select(
        (server, caller),
        (given, headers),
        Some(Kind::Procedure),
        |workspace, _| {
            let procedures = workspace
                .store
                .list::<Procedure>(&Selection::default())?
                .records;
            Ok(procedures
                .into_iter()
                .map(|procedure| ProcedureRow::of(procedure, None))
                .collect())
        },
    )
    .await
}

/// `POST /rest/v1/context_eng_memories`: rows in the form of the source document's analyst, whose
/// `metadata` is the procedure.
pub(crate) async fn insert_procedures(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Pairs(given): Pairs,
    Items(rows): Items<NewProcedure>,
) -> Result<Response, Problem> {
    let query = Query::parse(given)?;
    at_most(rows.len())?;
    let documents: Result<Vec<Box<RawValue>>, _> =
        rows.iter().map(|row| to_raw_value(&row.metadata)).collect();
    let documents = documents.map_err(store::Error::from)?;
    let has_vector = query.names("embedding");
    let work = server.write(&caller, "serve context_eng_memories", move |workspace| {
        let mut stored = Vec::new();
        for document in &documents {
            let report = lessons::add_procedure(workspace, document)?;
            let procedure: Procedure = workspace.store.get(&report.id)?;
            let vector = has_vector.then(|| vector(workspace, &procedure.content()));
            stored.push(ProcedureRow::of(procedure, vector.transpose()?));
        }
        Ok(stored)
    });
    query.inserted(&work.await?, &headers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(given: &[(&str, &str)]) -> Result<Query, Problem> {
        let given = given.iter();
        Query::parse(
            given
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn rows_are_those_that_postgrest_would_return() {
        let rows = [
            json!({ "id": "a", "n": 9, "at": "2026-01-01T00:00:00+00:00", "end": null, "ok": true }),
            json!({ "id": "b", "n": 10, "at": "2026-01-01T01:30:00+02:00", "end": "x", "ok": false }),
            json!({ "id": "c,d", "n": 10, "at": "2026-03-01T00:00:00+00:00", "end": "y", "ok": true }),
        ];
        let check = |given: &[(&str, &str)], expected: &[&str]| {
            let found = query(given).unwrap().of(&rows).unwrap();
            let ids: Vec<&str> = found
                .iter()
                .map(|row| row["id"].as_str().unwrap())
                .collect();
            assert_eq!(ids, expected, "{given:?}");
        };
        check(&[], &["a", "b", "c,d"]);
        check(&[("select", "*"), ("id", "eq.a")], &["a"]);
        check(&[("id", "neq.a")], &["b", "c,d"]);
        check(&[("n", "gt.9")], &["b", "c,d"]);
        check(&[("n", "gte.9"), ("n", "lt.10")], &["a"]);
        check(&[("n", "lte.x")], &[]);
        check(&[("at", "lt.2026-01-01T00:00:00Z")], &["b"]);
        check(&[("end", "is.null")], &["a"]);
        check(&[("end", "neq.x")], &["c,d"]);
        check(&[("ok", "is.true"), ("ok", "eq.true")], &["a", "c,d"]);
        check(&[("id", "in.(a,\"b\")")], &["a", "b"]);
        check(&[("order", "n.desc,at.asc")], &["b", "c,d", "a"]);
        check(
            &[("order", "at.desc"), ("limit", "1"), ("offset", "1")],
            &["a"],
        );
        check(&[("limit", "0")], &[]);
    }

    #[test]
    fn what_is_not_understood_is_refused_and_never_ignored() {
        for (name, value) in [
            ("id", "a"),
            ("id", "like.a*"),
            ("id", "not.eq.a"),
            ("or", "(id.eq.a,id.eq.b)"),
            ("n", "is.maybe"),
            ("limit", "-1"),
            ("limit", "x"),
            ("offset", ""),
            ("order", "id.up"),
            ("id", "in.a,b"),
        ] {
            assert!(query(&[(name, value)]).is_err(), "{name}={value}");
        }
        let rows = [json!({ "id": "a" })];
        for given in [
            ("secret", "eq.1"),
            ("order", "secret"),
            ("select", "id,secret"),
        ] {
            assert!(query(&[given]).unwrap().of(&rows).is_err(), "{given:?}");
        }
    }
}
