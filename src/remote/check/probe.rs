//! Probes that write in another user's name and try to read or change another user's rows.
//!
//! Detection of a pooler in transaction mode, which gives each transaction any of its sessions.
//!
//! Only unprepared statements are used here: behind such a pooler a prepared statement may be lost, or be the
//! one that another program prepared under the same name.

use tokio_postgres::SimpleQueryMessage;

use crate::remote::TABLES;
use crate::remote::check::DOING;
use crate::remote::connection::Connection;
use crate::remote::error::Error;

/// The id of a user that does not exist.
const STRANGER: &str = "11111111-2222-4333-8444-555555555555";

/// Name of a table in a message.
fn shown(table: &str) -> &str {
    table.strip_prefix("public.").unwrap_or(table)
}

/// All tables of records and logs, with their schemas.
fn tables() -> impl Iterator<Item = &'static str> {
    let tables = TABLES.iter().map(|(table, _)| *table);
    tables.chain(["memctl.disabled_users"])
}

/// `INSERT` statement of a sample row for a table, owned by `user` (an SQL expression).
fn sample(table: &str, user: &str) -> String {
    match table {
        "public.context_eng_memories" => format!(
            "insert into {table} (user_id, content) values ({user}, 'memctl remote check')"
        ),
        "public.agent_memory" => format!(
            "insert into {table} (user_id, memory_type, content)
             values ({user}, 'task_memory', 'memctl remote check')"
        ),
        "public.agent_sessions" => format!("insert into {table} (user_id) values ({user})"),
        "public.agent_execution_logs" => format!(
            "insert into {table} (user_id, session_id, step_name, action_type, status)
             select {user}, id, 'memctl remote check', 'decision', 'success'
             from public.agent_sessions order by created_at desc limit 1"
        ),
        "memctl.audit_events" => format!(
            "insert into {table} (held_by, origin, entry_id, entry, number, who, did, records, of_users, why, created_at)
             values ({user}, 'memctl-check', repeat('0', 64), '{{}}', 1, '', 'read', '{{}}', '{{}}', '', now())"
        ),
        "memctl.disabled_users" => format!(
            "insert into {table} (held_by, origin, sub, is_disabled)
             values ({user}, 'memctl-check', 'probe', false)"
        ),
        _ => format!(
            "insert into {table} (user_id, origin, entry_id, entry)
             values ({user}, 'memctl-check', 'probe', '{{}}')"
        ),
    }
}

/// Lists the tables that accept a row in another user's name. Each attempt is rolled back.
pub(super) async fn forged_owner(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    for table in tables() {
        connection.batch(DOING, "savepoint forged").await?;
        // A log row needs an existing session.
        if table == "public.agent_execution_logs" {
            let session = sample("public.agent_sessions", "memctl.current_user_id()");
            connection.batch(DOING, &session).await?;
        }
        let forged = sample(table, &format!("'{STRANGER}'"));
        match connection.batch(DOING, &forged).await {
            Err(Error::Statement { denied: true, .. }) => {}
            // Other errors of a statement, such as a missing user, occur only after the policies
            // allowed the row.
            Ok(()) | Err(Error::Statement { .. }) => {
                wrong.push(format!("`{}` takes rows in another's name", shown(table)));
            }
            Err(error) => return Err(error),
        }
        connection
            .batch(DOING, "rollback to savepoint forged")
            .await?;
    }
    Ok(wrong)
}

/// Writes a row into each table, then tries to read and change it as another user.
pub(super) async fn probe(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    for table in tables() {
        let own = sample(table, "memctl.current_user_id()");
        connection.batch(DOING, &own).await?;
    }
    let own = count(connection).await?;
    connection
        .batch(DOING, "set local memctl.probe = 'on'")
        .await?;
    let of_another = count(connection).await?;
    for table in tables() {
        let column = if table == "memctl.disabled_users" {
            "is_disabled"
        } else {
            "entry"
        };
        for change in [
            format!("update {table} set {column} = {column}"),
            format!("delete from {table}"),
        ] {
            connection.batch(DOING, "savepoint change").await?;
            let changed = connection.run(DOING, &change, &[]).await;
            if changed.is_ok_and(|rows| rows > 0) {
                wrong.push(format!("another user can change `{}`", shown(table)));
            }
            connection
                .batch(DOING, "rollback to savepoint change")
                .await?;
        }
    }
    connection
        .batch(DOING, "set local memctl.probe = 'off'")
        .await?;
    for ((table, own), of_another) in tables().zip(own).zip(of_another) {
        let table = shown(table);
        if own == 0 {
            wrong.push(format!("a row of `{table}` is not seen by its own user"));
        }
        if of_another > 0 {
            wrong.push(format!("another user sees {of_another} rows of `{table}`"));
        }
    }
    Ok(wrong)
}

/// Number of visible rows per table, at most 1,000.
async fn count(connection: &Connection) -> Result<Vec<i64>, Error> {
    let mut counts = Vec::new();
    for table in tables() {
        // The limit keeps the count fast on large tables.
        let sql = format!("select count(*) from (select from {table} limit 1000) seen");
        counts.push(connection.row(DOING, &sql, &[]).await?.get(0));
    }
    Ok(counts)
}

/// Number of times that the sessions are compared. Once is not enough: while other programs take and give
/// back sessions of the pooler, the first connection may get its own again by chance.
const ROUNDS: usize = 4;

/// Returns `true` if `first` gets another session while a second connection holds one.
pub(super) async fn are_shared(first: &Connection) -> Result<bool, Error> {
    let second = Connection::open(&first.address).await?;
    let own = ask(first, PROCESS).await?;
    for _ in 0..ROUNDS {
        // The transaction keeps the session that it gets, and what the first gave back last is next in turn.
        let held = ask(&second, "begin; select pg_backend_pid()").await?;
        ask(&second, "rollback").await?;
        if held == own || ask(first, PROCESS).await? != own {
            return Ok(true);
        }
    }
    Ok(false)
}

const PROCESS: &str = "select pg_backend_pid()";

/// Role of a connection.
pub(super) async fn role(connection: &Connection) -> Result<String, Error> {
    ask(connection, "select current_user").await
}

/// First value of the answer; empty without one.
async fn ask(connection: &Connection, sql: &str) -> Result<String, Error> {
    let failed = connection.failed("the session cannot be inspected");
    let answers = connection.client.simple_query(sql).await.map_err(failed)?;
    let row = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(row.unwrap_or_default().to_owned())
}
