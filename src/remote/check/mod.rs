//! Isolation check: reads the catalogue (`catalogue.sql`) and tries forbidden reads and writes.
//!
//! The check runs as the user of the given URL, in a transaction that is rolled back. It needs no
//! second login: `memctl.probe` turns the session into a user who owns no rows
//! (`schema/identity.sql`). Probes write in another user's name and try to read or change another user's rows.
//!
//! It also detects a pooler in transaction mode, which gives each transaction any of its sessions. Only
//! unprepared statements are used for that: behind such a pooler a prepared statement may be lost, or be the
//! one that another program prepared under the same name.

use serde::Serialize;
use tokio_postgres::SimpleQueryMessage;

use crate::remote::address::Address;
use crate::remote::connection::Connection;
use crate::remote::error::Error;
use crate::remote::migrate;
use crate::remote::tables::TABLES;

/// Step of an error.
const DOING: &str = "the check cannot be made";

/// Result of the isolation check.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CheckReport {
    /// Host, port and name.
    pub database: String,
    /// The role that logged in.
    pub role: String,
    /// User id of the session; `None` if the role maps to no user.
    pub user_id: Option<String>,
    /// `true` if all checks passed.
    pub passed: bool,
    /// Checks in the order in which they ran.
    pub checks: Vec<Check>,
}

/// Result of one check.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Check {
    /// Short name, such as `row security`.
    pub name: &'static str,
    /// `true` if the check passed.
    pub ok: bool,
    /// Details of the failure, or of the state that passed.
    pub detail: String,
}

/// Checks that no user can see or change rows of another user.
pub async fn check(address: &Address) -> Result<CheckReport, Error> {
    examine(&Connection::open(address).await?).await
}

/// As [`check`], with an open session.
pub(super) async fn examine(connection: &Connection) -> Result<CheckReport, Error> {
    let mut report = CheckReport {
        database: connection.address.shown(),
        role: ask(connection, "select current_user").await?,
        user_id: None,
        passed: true,
        checks: Vec::new(),
    };
    // First, since the other checks are meaningless in a session that changes between statements.
    let trouble = are_shared(connection).await?.then(|| {
        "a pooler in transaction mode: settings and prepared statements are lost; use its session mode, or \
         connect to the server itself"
            .to_owned()
    });
    let holds = "each connection has a session of its own";
    report.add("sessions", trouble, holds);
    if !report.passed {
        return Ok(report);
    }
    let server = connection.server().await?;
    let version = format!("PostgreSQL {}", server.version);
    report.add("server", server.trouble(), &version);
    let pgvector = match &server.pgvector {
        None => Some("pgvector is not installed in this database".to_owned()),
        Some(_) => server.pgvector_trouble(),
    };
    let version = server.pgvector.as_deref().unwrap_or("–");
    report.add("pgvector", pgvector, &format!("pgvector {version}"));
    match migrate::demand(connection).await {
        // There is nothing to check in a database without the schema of memctl.
        Err(error @ Error::Foreign(_)) => return Err(error),
        Err(error) => report.add("schema", Some(error.to_string()), ""),
        Ok(()) => {
            report.add("schema", None, &format!("version {}", migrate::NEWEST));
            connection.batch(DOING, "begin").await?;
            match behaviour(connection, &mut report).await {
                Ok(()) => {}
                // A statement that fails counts as a failed check.
                Err(Error::Statement { message, .. }) => report.add("behaviour", Some(message), ""),
                Err(error) => return Err(error),
            }
            let doing = "the check cannot be taken back";
            connection.batch(doing, "rollback").await?;
        }
    }
    Ok(report)
}

impl CheckReport {
    /// Adds a check that passes if `trouble` is `None`.
    fn add(&mut self, name: &'static str, trouble: Option<String>, holds: &str) {
        self.passed &= trouble.is_none();
        self.checks.push(Check {
            name,
            ok: trouble.is_none(),
            detail: trouble.unwrap_or_else(|| holds.to_owned()),
        });
    }

    /// Adds a check that passes if `wrong` is empty.
    fn none_of(&mut self, name: &'static str, wrong: &[String], holds: &str) {
        let trouble = (!wrong.is_empty()).then(|| wrong.join("; "));
        self.add(name, trouble, holds);
    }
}

/// Runs all checks that need the schema, and takes the user id of the session down.
async fn behaviour(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let rows = connection.rows(DOING, include_str!("catalogue.sql"), &[]);
    let rows = rows.await?;
    let mut is_ordinary = true;
    for (name, holds) in [
        ("role", &*format!("`{}` is an ordinary role", report.role)),
        ("owner", "it owns no table of the store"),
        ("row security", "on and forced for every table"),
        (
            "functions",
            "search paths pinned, rights as they must be, nothing for everybody",
        ),
        ("statistics", "the planner knows no content"),
        ("time limits", "no statement waits for ever"),
    ] {
        let wrong = rows.iter().filter(|row| row.get::<_, &str>(0) == name);
        let mut wrong: Vec<String> = wrong.map(|row| row.get(1)).collect();
        match (name, wrong.last_mut()) {
            ("role", Some(_)) => is_ordinary = false,
            ("statistics", Some(last)) => last.push_str(": `memctl remote init --url ADMIN_URL`"),
            _ => {}
        }
        report.none_of(name, &wrong, holds);
    }

    let user_id = identity(connection).await?;
    report.user_id.clone_from(&user_id);
    let role = &report.role;
    let trouble = user_id
        .is_none()
        .then(|| format!("`{role}` is no user: make a login with `memctl remote user add`"));
    report.add("identity", trouble, user_id.as_deref().unwrap_or_default());
    if user_id.is_none() || !is_ordinary {
        return Ok(());
    }
    let claims = format!("set local request.jwt.claims = '{{\"sub\":\"{STRANGER}\"}}'");
    connection.batch(DOING, &claims).await?;
    let claimed = identity(connection).await?;
    let trouble = (claimed != user_id)
        .then(|| "a claim that anybody can write changes who the session is".to_owned());
    report.add("forged claims", trouble, "a claim changes nothing");
    if claimed != user_id {
        return Ok(());
    }
    probe(connection, report).await
}

async fn identity(connection: &Connection) -> Result<Option<String>, Error> {
    let identity = "select memctl.current_user_id()::text";
    Ok(connection.row(DOING, identity, &[]).await?.get(0))
}

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

/// Writes a row into each table, in another user's name and in this one's, then tries to read and change the
/// latter as another user.
async fn probe(connection: &Connection, report: &mut CheckReport) -> Result<(), Error> {
    let (mut forged, mut probed) = (Vec::new(), Vec::new());
    for table in tables() {
        let in_anothers_name = sample(table, &format!("'{STRANGER}'"));
        match undone(connection, &in_anothers_name).await {
            Err(Error::Statement { denied: true, .. }) => {}
            // Other errors of a statement, such as a missing user, occur only after the policies
            // allowed the row.
            Ok(_) | Err(Error::Statement { .. }) => {
                forged.push(format!("`{}` takes rows in another's name", shown(table)));
            }
            Err(error) => return Err(error),
        }
        // A row of a log needs the session that is in the table before it.
        let own = sample(table, "memctl.current_user_id()");
        connection.batch(DOING, &own).await?;
    }
    let own = count(connection).await?;
    // An index finds that there are none; without it, PostgreSQL reads all rows of all users.
    let on = "set local memctl.probe = 'on'; set local enable_seqscan = off";
    connection.batch(DOING, on).await?;
    let of_another = count(connection).await?;
    for table in tables() {
        let column = match table {
            "memctl.disabled_users" => "is_disabled",
            _ => "entry",
        };
        for change in [
            format!("update {table} set {column} = {column}"),
            format!("delete from {table}"),
        ] {
            if undone(connection, &change).await.is_ok_and(|rows| rows > 0) {
                probed.push(format!("another user can change `{}`", shown(table)));
            }
        }
    }
    let off = "set local memctl.probe = 'off'";
    connection.batch(DOING, off).await?;
    for ((table, own), of_another) in tables().zip(own).zip(of_another) {
        let table = shown(table);
        if own == 0 {
            probed.push(format!("a row of `{table}` is not seen by its own user"));
        }
        if of_another > 0 {
            probed.push(format!("another user sees {of_another} rows of `{table}`"));
        }
    }
    let holds = "rows in another's name are refused";
    report.none_of("forged owner", &forged, holds);
    let holds = "rows of one user are neither seen nor changed by another";
    report.none_of("probe", &probed, holds);
    Ok(())
}

/// Runs a statement and reverts it. Returns the number of rows.
async fn undone(connection: &Connection, statement: &str) -> Result<u64, Error> {
    connection.batch(DOING, "savepoint attempt").await?;
    let done = connection.run(DOING, statement, &[]).await;
    let revert = "rollback to savepoint attempt";
    connection.batch(DOING, revert).await?;
    done
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
async fn are_shared(first: &Connection) -> Result<bool, Error> {
    let second = Connection::open(&first.address).await?;
    let own = ask(first, PROCESS).await?;
    for _ in 0..ROUNDS {
        // The transaction keeps the session that it gets, and what the first gave back last is next in turn.
        let backend = ask(&second, "begin; select pg_backend_pid()").await?;
        ask(&second, "rollback").await?;
        if backend == own || ask(first, PROCESS).await? != own {
            return Ok(true);
        }
    }
    Ok(false)
}

const PROCESS: &str = "select pg_backend_pid()";

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
