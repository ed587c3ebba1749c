//! Detection of a pooler in transaction mode, which gives each transaction any of its sessions.
//!
//! Only unprepared statements are used here: behind such a pooler a prepared statement may be lost, or be the
//! one that another program prepared under the same name.

use tokio_postgres::SimpleQueryMessage;

use super::super::address::Address;
use super::super::connection::{Connection, failure};
use super::super::error::Error;

/// Number of times that the sessions are compared. Once is not enough: while other programs take and give
/// back sessions of the pooler, the first connection may get its own again by chance.
const ROUNDS: usize = 4;

/// Returns `true` if `first` gets another session while a second connection holds one.
pub(super) async fn are_shared(address: &Address, first: &Connection) -> Result<bool, Error> {
    let second = Connection::open(address).await?;
    let own = ask(address, first, PROCESS).await?;
    for _ in 0..ROUNDS {
        // The transaction keeps the session that it gets, and what the first gave back last is next in turn.
        let held = ask(address, &second, "begin; select pg_backend_pid()").await?;
        ask(address, &second, "rollback").await?;
        if held == own || ask(address, first, PROCESS).await? != own {
            return Ok(true);
        }
    }
    Ok(false)
}

const PROCESS: &str = "select pg_backend_pid()";

/// Role of a connection.
pub(super) async fn role(address: &Address, connection: &Connection) -> Result<String, Error> {
    ask(address, connection, "select current_user").await
}

/// First value of the answer; empty without one.
async fn ask(address: &Address, connection: &Connection, sql: &str) -> Result<String, Error> {
    let failed = |e| failure(address, "the session cannot be inspected", &e);
    let answers = connection.client.simple_query(sql).await.map_err(failed)?;
    let row = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(row.unwrap_or_default().to_owned())
}
