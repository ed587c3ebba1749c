//! What a user has in the shared store, and how it stands.

use serde::Serialize;

use super::TABLES;
use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::limits;
use super::migrate;

/// The standing of a database, seen by the user who logged in.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// Host and name.
    pub database: String,
    /// `verified`, `encrypted` or `plain`.
    pub connection: &'static str,
    /// The server's version.
    pub server: String,
    /// pgvector's version.
    pub pgvector: Option<String>,
    /// The version of the schema.
    pub schema: i32,
    /// The newest version that this program knows.
    pub newest_schema: i32,
    /// The role that logged in.
    pub role: String,
    /// The user that it is; `None` for an administrator's role, which is nobody.
    pub user_id: Option<String>,
    /// The user's rows.
    pub tables: Vec<TableCount>,
}

/// How many rows of a table are the user's.
#[derive(Debug, Serialize)]
pub struct TableCount {
    /// The table.
    pub table: &'static str,
    /// Rows, without those that were deleted.
    pub rows: i64,
}

/// Looks at a database. Changes nothing.
pub async fn status(address: &Address) -> Result<StatusReport, Error> {
    limits::named(address, counted(address)).await
}

async fn counted(address: &Address) -> Result<StatusReport, Error> {
    let connection = Connection::open(address).await?;
    let server = connection.server().await?;
    let Some(schema) = migrate::version(&connection).await? else {
        return Err(Error::Foreign(address.shown()));
    };
    migrate::demand(&connection).await?;
    let failed = connection.failed("the rows cannot be counted");
    let identity = "select memctl.current_user_id()::text";
    let row = connection
        .client
        .query_one(identity, &[])
        .await
        .map_err(&failed)?;
    let user_id: Option<String> = row.get(0);
    let mut tables = Vec::new();
    for table in TABLES {
        // Names of ours: nothing that anybody has typed.
        let count = format!(
            "select count(*) from public.{table}
             where deleted_at is null and user_id = (select memctl.current_user_id())"
        );
        let row = connection
            .client
            .query_one(&count, &[])
            .await
            .map_err(&failed)?;
        tables.push(TableCount {
            table,
            rows: row.get(0),
        });
    }
    Ok(StatusReport {
        database: address.shown(),
        connection: connection.security,
        server: server.version,
        pgvector: server.pgvector,
        schema,
        newest_schema: migrate::NEWEST,
        role: server.role,
        user_id,
        tables,
    })
}
