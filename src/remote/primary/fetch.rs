//! Reading a memory from the database, and its changes.

use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;

use crate::model::Kind;
use crate::remote::connection::Connection;
use crate::remote::error::Error;
use crate::remote::primary::join;
use crate::remote::sync::{Table, table};
use crate::store::{Fetched, PrimaryChange};

/// Maximum number of rows and of bytes per batch.
const ROWS: usize = 2_000;
const BYTES: usize = 4 << 20;

/// All kinds; the index identifies the kind in the result of the union.
const ALL: [Kind; 6] = Kind::ALL;

/// Counter that grows with every write.
pub(super) async fn clock(connection: &Connection) -> Result<i64, Error> {
    let doing = "the shared store does not answer";
    let rows = connection.rows_typed(doing, "select memctl.clock()", &[]);
    let rows = rows.await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Joins one subquery per kind with `between`.
fn of_each(between: &str, of: impl Fn(usize, Table) -> String) -> String {
    let parts = ALL.into_iter().enumerate();
    let parts: Vec<String> = parts.map(|(n, kind)| of(n, table(kind))).collect();
    parts.join(between)
}

/// SQL expression for the sequence number of the user's last change.
pub(super) fn last_change() -> String {
    let last = of_each(", ", |_, Table { name, holder, .. }| {
        format!(
            "(select max(seq) from public.{name} where {holder} = (select memctl.current_user_id()))"
        )
    });
    format!("coalesce(greatest({last}), 0)")
}

/// SQL expression that is true if a memory (`$1`) has changes after a sequence number (`$2`).
pub(super) fn has_changed() -> String {
    of_each(" or ", |_, Table { name, holder, .. }| {
        format!(
            "exists (select from public.{name}
               where {holder} = (select memctl.current_user_id()) and origin = $1 and seq > $2)"
        )
    })
}

/// Sends all changes of a memory after sequence number `after`, in batches. If `after` is zero, the
/// records come in creation order.
pub(super) async fn changes(
    connection: &Connection,
    origin: &str,
    after: i64,
    batches: &tokio::sync::mpsc::Sender<Vec<PrimaryChange>>,
) -> Result<Fetched, Error> {
    let failed = connection.failed("the memory cannot be fetched");
    let client = &connection.client;
    let until = format!("select {}", last_change());
    // One round trip for both.
    let (until, disabled_users) = tokio::join!(
        client.query_one(&until, &[]),
        join::list(connection, origin)
    );
    let until: i64 = until.map_err(&failed)?.get(0);
    let disabled_users = disabled_users?;
    let fetched = |seq| Fetched {
        seq,
        disabled_users,
    };
    let union = of_each(" union all ", |n, Table { name, holder, .. }| {
        format!(
            "select {n}, seq, born, entry_id, entry, tombstone,
                    to_char(deleted_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"+00:00\"')
             from public.{name}
             where {holder} = (select memctl.current_user_id()) and origin = $1 and seq > $2 and seq <= $3"
        )
    });
    let order = if after == 0 { 3 } else { 2 };
    let query = format!("{union} order by 1, {order}");
    let parameters: [&(dyn ToSql + Sync); 3] = [&origin, &after, &until];
    let rows = client.query_raw(&query, parameters).await;
    let mut rows = std::pin::pin!(rows.map_err(&failed)?);
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        let number = usize::try_from(row.get::<_, i32>(0)).unwrap_or(usize::MAX);
        let Some(kind) = ALL.get(number).copied() else {
            continue;
        };
        let text: Option<String> = row.get(4);
        bytes += text.as_ref().map_or(0, String::len);
        batch.push(PrimaryChange {
            kind,
            id: row.get(3),
            text,
            tombstone: row.get(5),
            gone_at: row.get(6),
        });
        if batch.len() >= ROWS || bytes >= BYTES {
            bytes = 0;
            if batches.send(std::mem::take(&mut batch)).await.is_err() {
                // The receiver was dropped after an error, which it reports itself.
                return Ok(fetched(after));
            }
        }
    }
    if !batch.is_empty() {
        drop(batches.send(batch).await);
    }
    Ok(fetched(until))
}
