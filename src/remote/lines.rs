//! Lines of the audit log and of the hint log in the database: insertion, and those of a memory.
//!
//! A line never changes, so writers need no turn. Its id makes a second insertion harmless.

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use tokio_postgres::types::{ToSql, Type};

use crate::model::Trial;
use crate::store::{AuditLine, SharedLine, SharedLog};

use super::connection::Connection;
use super::error::Error;
use super::sync::{is_fit, time, without_nul};

/// Maximum number of lines per statement, and per batch.
const LINES: usize = 500;

const INSERT_EVENTS: &str = "
    insert into memctl.audit_events (origin, entry_id, entry, number, who, did, records, of_users, why, created_at)
    select $1, f->>'id', f->>'entry', (f->>'number')::bigint, f->>'who', f->>'did',
      array(select jsonb_array_elements_text(f->'records')), array(select jsonb_array_elements_text(f->'of')),
      f->>'why', (f->>'created')::timestamptz
    from unnest($2::text[]) as i (fields)
    cross join lateral (select i.fields::jsonb as f) as x
    on conflict (held_by, origin, entry_id) do nothing";

const INSERT_OUTCOMES: &str = "
    insert into memctl.hint_outcomes (origin, entry_id, entry, session, error_key, hints, overcome, helped,
      repeats, steps, created_at)
    select $1, f->>'id', f->>'entry', f->>'session', f->>'error_key',
      array(select jsonb_array_elements_text(f->'hints')), (f->>'overcome')::boolean,
      (f->>'helped')::boolean, (f->>'repeats')::bigint, (f->>'steps')::bigint, (f->>'created')::timestamptz
    from unnest($2::text[]) as i (fields)
    cross join lateral (select i.fields::jsonb as f) as x
    on conflict (held_by, origin, entry_id) do nothing";

/// JSON object for the columns of a line; `None` if a column cannot hold it.
fn fields(log: SharedLog, line: &SharedLine) -> Option<String> {
    if !is_fit(&line.id, &line.text) {
        return None;
    }
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let of_column = match log {
        SharedLog::Audit => {
            let event: AuditLine = serde_json::from_str(&line.text).ok()?;
            json!({
                "id": line.id,
                "entry": line.text,
                "number": number(event.seq),
                "who": event.who,
                "did": event.did,
                "records": event.records,
                "of": event.of,
                "why": event.why,
                "created": Value::from(time(&event.at)?),
            })
        }
        SharedLog::Hints => {
            let trial: Trial = serde_json::from_str(&line.text).ok()?;
            json!({
                "id": line.id,
                "entry": line.text,
                "session": trial.session,
                "error_key": trial.error_key,
                "hints": trial.hints,
                "overcome": trial.overcome,
                "helped": trial.helped,
                "repeats": number(trial.repeats),
                "steps": number(trial.steps),
                "created": Value::from(time(&trial.at)?),
            })
        }
    };
    Some(without_nul(&of_column.to_string()))
}

/// Adds lines. Lines that are there stay, and those that no column can hold are left out.
pub(super) async fn put(
    connection: &Connection,
    origin: &str,
    log: SharedLog,
    lines: &[SharedLine],
) -> Result<(), Error> {
    let (insert, doing) = match log {
        SharedLog::Audit => (INSERT_EVENTS, "the audit log cannot be sent"),
        SharedLog::Hints => (INSERT_OUTCOMES, "outcomes of hints cannot be sent"),
    };
    let failed = connection.failed(doing);
    let rows: Vec<String> = lines.iter().filter_map(|line| fields(log, line)).collect();
    for rows in rows.chunks(LINES) {
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&origin, Type::TEXT), (&rows, Type::TEXT_ARRAY)];
        let done = connection.client.execute_typed(insert, &parameters).await;
        done.map_err(&failed)?;
    }
    Ok(())
}

/// Sends the lines of a memory in batches, oldest first.
pub(super) async fn all(
    connection: &Connection,
    origin: &str,
    log: SharedLog,
    batches: &tokio::sync::mpsc::Sender<Vec<SharedLine>>,
) -> Result<(), Error> {
    let (query, doing) = match log {
        SharedLog::Audit => (
            "select entry_id, entry from memctl.audit_events
             where held_by = (select memctl.current_user_id()) and origin = $1
             order by created_at, number",
            "the audit log cannot be read",
        ),
        SharedLog::Hints => (
            "select entry_id, entry from memctl.hint_outcomes
             where held_by = (select memctl.current_user_id()) and origin = $1
             order by created_at, entry_id",
            "outcomes of hints cannot be read",
        ),
    };
    let failed = connection.failed(doing);
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&origin, Type::TEXT)];
    let rows = connection
        .client
        .query_typed_raw(query, parameters.map(|(value, kind)| (value, kind)));
    let mut rows = std::pin::pin!(rows.await.map_err(&failed)?);
    let mut batch = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        batch.push(SharedLine {
            id: row.get(0),
            text: row.get(1),
        });
        // The receiver is dropped after an error, which it reports itself.
        if batch.len() >= LINES && batches.send(std::mem::take(&mut batch)).await.is_err() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        drop(batches.send(batch).await);
    }
    Ok(())
}
