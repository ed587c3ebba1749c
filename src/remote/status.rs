//! Status of the shared store, and row counts of a user.

use serde::Serialize;

use crate::remote::address::Address;
use crate::remote::connection::Connection;
use crate::remote::error::Error;
use crate::remote::{TABLES, migrate};

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
        connection: connection.security,
        server: server.version,
        pgvector: server.pgvector,
        schema: migrate::NEWEST,
        newest_schema: migrate::NEWEST,
        role: server.role,
        user_id,
        tables,
    })
}
