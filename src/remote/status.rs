//! Rows of the shared store: the counts of a user, and the removal of those that have expired.
//!
//! A user's expired rows become tombstones, so that every workspace that pulled them removes them
//! too. Rows that other programs wrote are deleted. An administrator owns no rows and removes those
//! of all users, as `pg_cron` does.

use serde::Serialize;

use crate::remote::address::Address;
use crate::remote::connection::Connection;
use crate::remote::error::Error;
use crate::remote::migrate;
use crate::remote::tables::TABLES;

/// Status of a database, seen by the user who logged in.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct StatusReport {
    /// Host, port and name.
    pub database: String,
    /// `verified`, `encrypted` or `plain`.
    pub connection: &'static str,
    /// PostgreSQL version.
    pub server: String,
    /// pgvector version; `None` if not installed.
    pub pgvector: Option<String>,
    /// Schema version.
    pub schema: i32,
    /// Newest schema version that this program knows.
    pub newest_schema: i32,
    /// Role that logged in.
    pub role: String,
    /// User id; `None` for an administrator's role, which is not mapped to a user.
    pub user_id: Option<String>,
    /// Row counts of the user.
    pub tables: Vec<TableCount>,
}

/// Number of the user's rows in one table.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct TableCount {
    /// Table name.
    pub table: &'static str,
    /// Number of rows without tombstones.
    pub rows: i64,
}

/// Reads the status. Changes nothing.
pub async fn status(address: &Address) -> Result<StatusReport, Error> {
    let connection = Connection::open(address).await?;
    let server = connection.server().await?;
    migrate::demand(&connection).await?;
    let doing = "the rows cannot be counted";
    let identity = "select memctl.current_user_id()::text";
    let user_id: Option<String> = connection.row(doing, identity, &[]).await?.get(0);
    let mut tables = Vec::new();
    for (table, holder) in TABLES {
        // Only constant names are interpolated, no user input.
        let (schema, name) = table.split_once('.').unwrap_or_default();
        let is_record = if schema == "public" {
            "deleted_at is null"
        } else {
            "true"
        };
        let count = format!(
            "select count(*) from {table}
             where {holder} = (select memctl.current_user_id()) and {is_record}"
        );
        let rows = connection.row(doing, &count, &[]).await?.get(0);
        tables.push(TableCount { table: name, rows });
    }
    Ok(StatusReport {
        database: address.shown(),
        connection: address.security(),
        server: server.version,
        pgvector: server.pgvector,
        schema: migrate::NEWEST,
        newest_schema: migrate::NEWEST,
        role: server.role,
        user_id,
        tables,
    })
}

/// Result of [`prune`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RemotePruneReport {
    /// Host, port and name.
    pub database: String,
    /// Number of removed rows; of all users if an administrator runs it.
    pub removed: u64,
    /// `true` if the count covers all users.
    pub of_all: bool,
    /// `true` if nothing was removed.
    pub dry_run: bool,
}

/// Removes expired rows; with `dry_run`, only counts them.
pub async fn prune(address: &Address, dry_run: bool) -> Result<RemotePruneReport, Error> {
    let connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let doing = "what has expired cannot be removed";
    let who = "select memctl.current_user_id() is null";
    let of_all: bool = connection.row(doing, who, &[]).await?.get(0);
    let expired = "expires_at < now()";
    // A user's rows that a server holds expire there.
    let own = "held_by = (select memctl.current_user_id())";
    let counted = if of_all { "true" } else { own };
    let count = format!("select count(*) from public.agent_memory where {counted} and {expired}");
    connection.batch(doing, "begin").await?;
    let before: i64 = connection.row(doing, &count, &[]).await?.get(0);
    let mut removed = u64::try_from(before).unwrap_or_default();
    if of_all && !dry_run {
        let clean = "select public.cleanup_expired_memory(); select memctl.keep_logs();
            select memctl.keep_audit()";
        connection.batch(doing, clean).await?;
    } else if !dry_run {
        let bury = format!(
            "update public.agent_memory
             set entry = null, deleted_at = now(), content = '', metadata = '{{}}', embedding = null, expires_at = null
             where {own} and {expired} and origin is not null and deleted_at is null"
        );
        removed = connection.run(doing, &bury, &[]).await?;
        // Logins have no right to delete, since that right would also allow locking the table.
        let delete = "select memctl.delete_expired()";
        let deleted: i64 = connection.row(doing, delete, &[]).await?.get(0);
        removed += u64::try_from(deleted).unwrap_or_default();
    }
    connection.batch(doing, "commit").await?;
    Ok(RemotePruneReport {
        database: address.shown(),
        removed,
        of_all,
        dry_run,
    })
}
