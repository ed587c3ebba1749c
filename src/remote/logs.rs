//! Lines of logs in the database, those of all copies of a memory: the log of agents, and audit events.
//!
//! A line never changes, so writers need no turn. Its id makes a second insertion harmless.

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};

use crate::model::{ActionType, ExecutionLog, LogStatus};
use crate::store::{AuditLine, SharedLine};

use super::connection::{ANSWER_WITHIN, Connection, Parameter, within};
use super::error::Error;
use super::tables::{is_fit, time, without_nul};

/// Adds lines. The session is that of the record, if the memory has it and it is of the same user.
const INSERT_ACTIONS: &str = "
    insert into public.agent_execution_logs (origin, entry_id, entry, user_id, session, session_id, step_name,
      tool_name, action_type, input_data, output_data, reasoning, confidence_score, execution_time_ms, status,
      error_message, created_at)
    select $1, f->>'id', f->>'entry', u.id, f->>'session', s.id, f->>'step', f->>'tool', f->>'action',
      f->'input', f->'output', f->>'reasoning', (f->>'confidence')::numeric, (f->>'took')::integer,
      f->>'status', f->>'error', (f->>'created')::timestamptz
    from unnest($2::text[]) as i (fields)
    cross join lateral (select i.fields::jsonb as f) as x
    cross join lateral (
      select coalesce(memctl.host_user(f->>'user'), memctl.current_user_id()) as id) as u
    left join public.agent_sessions s on s.held_by = (select memctl.current_user_id()) and s.origin = $1
      and s.entry_id = f->>'session' and s.user_id = u.id
    on conflict (held_by, origin, entry_id, created_at) do nothing";

/// JSON object for the columns of a line; `None` if a column cannot hold it.
fn action_fields(text: &str) -> Option<String> {
    let line: ExecutionLog = serde_json::from_str(text).ok()?;
    let is_known = |name: &str, names: &[&str]| names.contains(&name);
    if !is_fit(&line.id, text)
        || !is_known(line.action_type.as_str(), ActionType::NAMES)
        || !is_known(line.status.as_str(), LogStatus::NAMES)
    {
        return None;
    }
    let fields = json!({
        "id": line.id,
        "entry": text,
        "user": line.user_id,
        "session": line.session_id,
        "step": line.step_name,
        "tool": line.tool_name,
        "action": line.action_type.as_str(),
        "input": line.input_data,
        "output": line.output_data,
        "reasoning": line.reasoning,
        "confidence": line.confidence_score.filter(|score| (0.0..=1.0).contains(score)),
        "took": line.execution_time_ms.map(|took| i32::try_from(took).unwrap_or(i32::MAX)),
        "status": line.status.as_str(),
        "error": line.error_message,
        "created": Value::from(time(&line.created_at)?),
    });
    Some(without_nul(&fields.to_string()))
}

/// Adds lines. Lines that are there stay, and those that no column can hold are left out.
pub(super) async fn put_actions(
    connection: &Connection,
    origin: &str,
    lines: &[String],
) -> Result<(), Error> {
    let rows: Vec<String> = lines
        .iter()
        .filter_map(|line| action_fields(line))
        .collect();
    let doing = "the log of agents cannot be sent";
    connection
        .insert_lines(doing, INSERT_ACTIONS, origin, &rows)
        .await
}

/// Returns the newest lines of sessions, or of all if there are none, and of a user or of all, newest first.
pub(super) async fn newest_actions(
    connection: &Connection,
    origin: &str,
    sessions: &[String],
    user: Option<&str>,
    limit: usize,
) -> Result<Vec<String>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let newest = "select entry from public.agent_execution_logs
        where held_by = (select memctl.current_user_id()) and origin = $1
          and (cardinality($2) = 0 or session = any ($2)) and ($3::text is null or entry::jsonb ->> 'user_id' = $3)
          and entry is not null
        order by created_at desc, born desc limit $4";
    let doing = "the log of agents cannot be read";
    let rows = connection
        .rows(doing, newest, &[&origin, &sessions, &user, &limit])
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Deletes the lines of a user, or all of the memory.
pub(super) async fn delete_actions(
    connection: &Connection,
    origin: &str,
    user: Option<&str>,
) -> Result<(), Error> {
    let sql = "select memctl.delete_logs($1, $2)";
    let doing = "the log of agents cannot be deleted";
    let deleted = connection.rows(doing, sql, &[&origin, &user]).await;
    deleted.map(drop)
}

const INSERT_EVENTS: &str = "
    insert into memctl.audit_events (origin, entry_id, entry, number, who, did, records, of_users, why, created_at)
    select $1, f->>'id', f->>'entry', (f->>'number')::bigint, f->>'who', f->>'did',
      array(select jsonb_array_elements_text(f->'records')), array(select jsonb_array_elements_text(f->'of')),
      f->>'why', (f->>'created')::timestamptz
    from unnest($2::text[]) as i (fields)
    cross join lateral (select i.fields::jsonb as f) as x
    on conflict (held_by, origin, entry_id) do nothing";

/// JSON object for the columns of an event; `None` if a column cannot hold it.
fn event_fields(line: &SharedLine) -> Option<String> {
    let event: AuditLine = serde_json::from_str(&line.text).ok()?;
    let fields = json!({
        "id": line.id,
        "entry": line.text,
        "number": i64::try_from(event.seq).unwrap_or(i64::MAX),
        "who": event.who,
        "did": event.did,
        "records": event.records,
        "of": event.of,
        "why": event.why,
        "created": Value::from(time(&event.at)?),
    });
    is_fit(&line.id, &line.text).then(|| without_nul(&fields.to_string()))
}

/// Adds events. Those that are there stay, and those that no column can hold are left out.
pub(super) async fn put_events(
    connection: &Connection,
    origin: &str,
    lines: &[SharedLine],
) -> Result<(), Error> {
    let rows: Vec<String> = lines.iter().filter_map(event_fields).collect();
    let doing = "the audit log cannot be sent";
    connection
        .insert_lines(doing, INSERT_EVENTS, origin, &rows)
        .await
}

/// Passes the events of a memory to `take`, oldest first. The time limit of an answer holds for each.
pub(super) async fn events(
    connection: &Connection,
    origin: &str,
    take: &mut dyn FnMut(SharedLine),
) -> Result<(), Error> {
    let query = "select entry_id, entry from memctl.audit_events
        where held_by = (select memctl.current_user_id()) and origin = $1
        order by created_at, number";
    let doing = "the audit log cannot be read";
    let parameters: [&dyn Parameter; 1] = [&origin];
    let rows = connection.stream(doing, query, &parameters);
    let mut rows = within(ANSWER_WITHIN, rows).await?;
    while let Some(row) = within(ANSWER_WITHIN, rows.try_next()).await? {
        take(SharedLine {
            id: row.get(0),
            text: row.get(1),
        });
    }
    Ok(())
}
