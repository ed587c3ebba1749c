//! Users for whom a memory in the database is disabled.

use tokio_postgres::types::{ToSql, Type};

use super::super::connection::Connection;
use super::super::error::Error;

/// Disables or enables a memory for a user. The statement counts as a write, so other copies fetch the list.
pub(super) async fn put(
    connection: &Connection,
    origin: &str,
    user: &str,
    is_disabled: bool,
) -> Result<(), Error> {
    let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
        (&origin, Type::TEXT),
        (&user, Type::TEXT),
        (&is_disabled, Type::BOOL),
    ];
    let put = connection.client.execute_typed(
        "insert into memctl.disabled_users (origin, sub, is_disabled) values ($1, $2, $3)
         on conflict (held_by, origin, sub) do update
           set is_disabled = excluded.is_disabled, changed_at = now()",
        &parameters,
    );
    let failed = connection.failed("the memory of a user cannot be switched");
    put.await.map(drop).map_err(failed)
}

/// Users for whom a memory is disabled.
pub(super) async fn list(connection: &Connection, origin: &str) -> Result<Vec<String>, Error> {
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&origin, Type::TEXT)];
    let rows = connection.client.query_typed(
        "select sub from memctl.disabled_users
         where held_by = (select memctl.current_user_id()) and origin = $1 and is_disabled",
        &parameters,
    );
    let failed = connection.failed("users without a memory cannot be listed");
    let rows = rows.await.map_err(failed)?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
