//! Audit events in the database: those of all copies of a memory.
//!
//! An event never changes, so writers need no turn. Its id makes a second insertion harmless.

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};

use crate::store::{AuditLine, SharedLine};

use super::connection::{Connection, Parameter};
use super::error::Error;
use super::primary::{ANSWER_WITHIN, within};
use super::sync::{is_fit, time, without_nul};

const INSERT: &str = "
    insert into memctl.audit_events (origin, entry_id, entry, number, who, did, records, of_users, why, created_at)
    select $1, f->>'id', f->>'entry', (f->>'number')::bigint, f->>'who', f->>'did',
      array(select jsonb_array_elements_text(f->'records')), array(select jsonb_array_elements_text(f->'of')),
      f->>'why', (f->>'created')::timestamptz
    from unnest($2::text[]) as i (fields)
    cross join lateral (select i.fields::jsonb as f) as x
    on conflict (held_by, origin, entry_id) do nothing";

/// JSON object for the columns of an event; `None` if a column cannot hold it.
fn fields(line: &SharedLine) -> Option<String> {
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
pub(super) async fn put(
    connection: &Connection,
    origin: &str,
    lines: &[SharedLine],
) -> Result<(), Error> {
    let rows: Vec<String> = lines.iter().filter_map(fields).collect();
    let doing = "the audit log cannot be sent";
    connection.insert_lines(doing, INSERT, origin, &rows).await
}

/// Passes the events of a memory to `take`, oldest first. The time limit of an answer holds for each.
pub(super) async fn all(
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
