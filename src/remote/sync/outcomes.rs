//! Audit events and outcomes of hints in a sync: those of this workspace are sent, and outcomes of other
//! workspaces fetched.
//!
//! Outcomes are compared, as records are: the database tells the number and the hash of the ids of each
//! origin, and what differs is fetched as a whole. Audit events are sent only.

use std::collections::HashSet;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::{ToSql, Type};

use crate::store::{Puller, Scoped, SharedLine, SharedLog, is_origin};
use memctl_files::hex;

use super::super::connection::Connection;
use super::super::error::Error;
use super::super::lines;

/// Age of the oldest outcome that is sent again, in days. Older ones may have been dropped there on purpose.
const DAYS: i32 = 360;

/// Number of lines of logs that a sync has moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MovedLines {
    /// Audit events sent.
    pub audit_events: u64,
    /// Outcomes of hints sent.
    pub outcomes_pushed: u64,
    /// Outcomes of hints fetched from other workspaces.
    pub outcomes_pulled: u64,
}

/// Sends the lines that the database does not have. For a copy of a memory in the database these are the
/// lines of one of several files.
pub(super) async fn push(
    connection: &Connection,
    store: &Scoped,
    origin: &str,
    is_copy: bool,
) -> Result<MovedLines, Error> {
    let mut moved = MovedLines::default();
    let database = format!("{} {origin}", connection.name().await?);
    for log in SharedLog::ALL {
        if log == SharedLog::Hints && !is_copy {
            continue;
        }
        let unsent = store.unsent(log, &database)?;
        lines::put(connection, origin, log, &unsent.lines).await?;
        store.note_sent(log, &database, &unsent);
        let count = unsent.lines.len() as u64;
        match log {
            SharedLog::Audit => moved.audit_events = count,
            SharedLog::Hints => moved.outcomes_pushed = count,
        }
    }
    if !is_copy {
        moved.outcomes_pushed = push_outcomes(connection, store, origin).await?;
    }
    Ok(moved)
}

/// Makes the outcomes in the database those of this workspace.
async fn push_outcomes(
    connection: &Connection,
    store: &Scoped,
    origin: &str,
) -> Result<u64, Error> {
    let own = store.hint_lines()?;
    let failed = connection.failed("outcomes of hints cannot be compared");
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&origin, Type::TEXT)];
    let there = connection.client.query_typed(
        "select entry_id from memctl.hint_outcomes
         where held_by = (select memctl.current_user_id()) and origin = $1",
        &parameters,
    );
    let there = there.await.map_err(&failed)?;
    let mut there: HashSet<String> = there.iter().map(|row| row.get(0)).collect();
    let ids: HashSet<&str> = own.iter().map(|line| line.id.as_str()).collect();
    if there.iter().any(|id| !ids.contains(id.as_str())) {
        // A purge has removed outcomes here.
        let delete = connection
            .client
            .query_typed("select memctl.delete_hints($1)", &parameters);
        delete.await.map_err(&failed)?;
        there.clear();
    }
    let since = connection.client.query_typed(
        "select to_char((now() - make_interval(days => $1)) at time zone 'utc', 'YYYY-MM-DD')",
        &[(&DAYS, Type::INT4)],
    );
    let since = since.await.map_err(&failed)?;
    let since: String = since.first().map(|row| row.get(0)).unwrap_or_default();
    let is_missing = |line: &SharedLine| {
        let at = memctl_files::json::string_field(line.text.as_bytes(), "at").unwrap_or_default();
        !there.contains(&line.id) && *at >= *since
    };
    let missing: Vec<SharedLine> = own.into_iter().filter(is_missing).collect();
    lines::put(connection, origin, SharedLog::Hints, &missing).await?;
    Ok(missing.len() as u64)
}

/// Fetches the outcomes of all other origins that differ from those here.
pub(super) async fn pull(
    connection: &Connection,
    puller: &Puller,
    own: &str,
) -> Result<u64, Error> {
    let failed = connection.failed("outcomes of hints cannot be fetched");
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&own, Type::TEXT)];
    let there = connection.client.query_typed(
        "select origin, encode(sha256(convert_to(
           string_agg(entry_id, ' ' order by entry_id collate \"C\"), 'UTF8')), 'hex')
         from memctl.hint_outcomes
         where held_by = (select memctl.current_user_id()) and origin <> $1 group by origin",
        &parameters,
    );
    let there = there.await.map_err(&failed)?;
    let mut known = HashSet::new();
    let mut new_outcomes = 0;
    for row in &there {
        let (origin, digest): (String, String) = (row.get(0), row.get(1));
        if !is_origin(&origin) {
            continue;
        }
        if digest_of(&puller.outcomes(&origin)?) != digest {
            let (send, mut receive) = tokio::sync::mpsc::channel(2);
            let taking = async {
                let mut all: Vec<SharedLine> = Vec::new();
                while let Some(batch) = receive.recv().await {
                    all.extend::<Vec<SharedLine>>(batch);
                }
                all
            };
            // Ends the channel when it is done.
            let fetching = async {
                let send = send;
                lines::all(connection, &origin, SharedLog::Hints, &send).await
            };
            let (done, all) = tokio::join!(fetching, taking);
            done?;
            new_outcomes += puller.replace_outcomes(&origin, &all)?;
        }
        known.insert(origin);
    }
    for origin in puller.origins() {
        if origin != own && !known.contains(&origin) {
            puller.replace_outcomes(&origin, &[])?;
        }
    }
    Ok(new_outcomes)
}

fn digest_of(lines: &[SharedLine]) -> String {
    let mut ids: Vec<&str> = lines.iter().map(|line| line.id.as_str()).collect();
    ids.sort_unstable();
    hex(&Sha256::digest(ids.join(" ")))
}
