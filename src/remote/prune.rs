//! Removes from the shared store what has expired.
//!
//! A user's rows leave tombstones, so that they go from every workspace that has pulled them; rows that
//! other programs wrote go altogether. An administrator, who has no rows, cleans up for everybody as `pg_cron`
//! does.

use serde::Serialize;

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::limits;
use super::migrate;

/// What was removed.
#[derive(Debug, Serialize)]
pub struct RemotePruneReport {
    /// Host and name.
    pub database: String,
    /// How many rows; of all users, where an administrator asked.
    pub removed: u64,
    /// Whether they are those of all users.
    pub of_all: bool,
    /// Whether nothing was removed.
    pub dry_run: bool,
}

/// Removes what has expired; `dry_run` counts it.
pub async fn prune(address: &Address, dry_run: bool) -> Result<RemotePruneReport, Error> {
    limits::named(address, pruned(address, dry_run)).await
}

async fn pruned(address: &Address, dry_run: bool) -> Result<RemotePruneReport, Error> {
    let mut connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let failed = connection.failed("what has expired cannot be removed");
    let who = "select memctl.current_user_id() is null";
    let of_all: bool = connection
        .client
        .query_one(who, &[])
        .await
        .map_err(&failed)?
        .get(0);
    let expired = "expires_at < now()";
    let count = format!("select count(*) from public.agent_memory where {expired}");
    let transaction = connection.begin().await?;
    let before: i64 = transaction
        .query_one(&count, &[])
        .await
        .map_err(&failed)?
        .get(0);
    let mut removed = u64::try_from(before).unwrap_or_default();
    if of_all && !dry_run {
        let clean = "select public.cleanup_expired_memory()";
        transaction.execute(clean, &[]).await.map_err(&failed)?;
    } else if !dry_run {
        let own = "user_id = (select memctl.current_user_id())";
        let bury = format!(
            "update public.agent_memory
             set entry = null, deleted_at = now(), content = '', metadata = '{{}}', embedding = null, expires_at = null
             where {own} and {expired} and origin is not null and deleted_at is null"
        );
        removed = transaction.execute(&bury, &[]).await.map_err(&failed)?;
        // A login has no right to delete: with it, it could lock the table against everybody.
        let delete = "select memctl.delete_expired()";
        let row = transaction.query_one(delete, &[]).await;
        let deleted: i64 = row.map_err(&failed)?.get(0);
        removed += u64::try_from(deleted).unwrap_or_default();
    }
    transaction.commit().await.map_err(&failed)?;
    Ok(RemotePruneReport {
        database: address.shown(),
        removed,
        of_all,
        dry_run,
    })
}
