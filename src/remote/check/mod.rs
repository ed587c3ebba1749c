//! Isolation check: reads the catalogue (`rights`) and tries forbidden reads and writes (`probe`).
//!
//! The check runs as the user of the given URL, in a transaction that is rolled back. It needs no
//! second login: `memctl.probe` turns the session into a user who owns no rows
//! (`schema/001_identity.sql`).

mod probe;
mod rights;

use serde::Serialize;
use tokio_postgres::Transaction;

use super::address::Address;
use super::connection::{Connection, Server, failure};
use super::error::Error;
use super::migrate;

/// Detail of the failed check of sessions.
const TRANSACTION_MODE: &str = "a pooler in transaction mode: settings and prepared \
    statements are lost; use its session mode, or connect to the server itself";

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
    let mut connection = Connection::open(address).await?;
    let mut checks = Checks::default();
    // First, since the other checks are meaningless in a session that changes between statements.
    if probe::are_shared(address, &connection).await? {
        checks.add("sessions", Some(TRANSACTION_MODE.to_owned()), "");
        let role = probe::role(address, &connection).await?;
        return Ok(report(address, role, None, checks));
    }
    checks.add("sessions", None, "each connection has a session of its own");
    let server = connection.server().await?;
    checks.add(
        "server",
        server.trouble(),
        &format!("PostgreSQL {}", server.version),
    );
    let pgvector = match &server.pgvector {
        None => Some("pgvector is not installed in this database".to_owned()),
        Some(_) => server.pgvector_trouble(),
    };
    checks.add(
        "pgvector",
        pgvector,
        &format!("pgvector {}", server.pgvector.as_deref().unwrap_or("–")),
    );
    let mut user_id = None;
    match migrate::demand(&connection).await {
        // There is nothing to check in a database without the schema of memctl.
        Err(error @ Error::Foreign(_)) => return Err(error),
        Err(error) => checks.add("schema", Some(error.to_string()), ""),
        Ok(()) => {
            checks.add("schema", None, &format!("version {}", migrate::NEWEST));
            let transaction = connection.begin().await?;
            match behaviour(address, &server, &transaction, &mut checks).await {
                Ok(id) => user_id = id,
                // A statement that fails counts as a failed check.
                Err(Error::Statement { message, .. }) => checks.add("behaviour", Some(message), ""),
                Err(error) => return Err(error),
            }
            let failed = |e| failure(address, "the check cannot be taken back", &e);
            transaction.rollback().await.map_err(failed)?;
        }
    }
    Ok(report(address, server.role, user_id, checks))
}

fn report(address: &Address, role: String, user_id: Option<String>, checks: Checks) -> CheckReport {
    CheckReport {
        database: address.shown(),
        role,
        user_id,
        passed: checks.0.iter().all(|check| check.ok),
        checks: checks.0,
    }
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    /// Adds a check that passes if `trouble` is `None`.
    fn add(&mut self, name: &'static str, trouble: Option<String>, holds: &str) {
        self.0.push(Check {
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

/// Runs all checks that need the schema. Returns the user id of the session.
async fn behaviour(
    address: &Address,
    server: &Server,
    transaction: &Transaction<'_>,
    checks: &mut Checks,
) -> Result<Option<String>, Error> {
    let failed = |e| failure(address, "the check cannot be made", &e);
    let wrong = list(transaction, rights::ROLE).await.map_err(failed)?;
    checks.none_of(
        "role",
        &wrong,
        &format!("`{}` is an ordinary role", server.role),
    );
    let is_ordinary = wrong.is_empty();
    let wrong = list(transaction, rights::OWNER).await.map_err(failed)?;
    checks.none_of("owner", &wrong, "it owns no table of the store");
    let wrong = list(transaction, rights::TABLES_WITHOUT)
        .await
        .map_err(failed)?;
    checks.none_of("row security", &wrong, "on and forced for every table");
    let wrong = rights::functions(transaction).await.map_err(failed)?;
    checks.none_of(
        "functions",
        &wrong,
        "search paths pinned, rights as they must be, nothing for everybody",
    );

    let wrong = list(transaction, rights::STATISTICS)
        .await
        .map_err(failed)?;
    let wrong = remedied(wrong, "memctl remote init");
    checks.none_of("statistics", &wrong, "the planner knows no content");
    let wrong = list(transaction, rights::NO_LIMITS).await.map_err(failed)?;
    checks.none_of("time limits", &wrong, "no statement waits for ever");

    let user_id = identity(transaction).await.map_err(failed)?;
    let trouble = user_id.is_none().then(|| {
        format!(
            "`{}` is no user: make a login with `memctl remote user add`",
            server.role
        )
    });
    checks.add("identity", trouble, user_id.as_deref().unwrap_or_default());
    if user_id.is_none() || !is_ordinary {
        return Ok(user_id);
    }
    let claims =
        "set local request.jwt.claims = '{\"sub\":\"11111111-2222-4333-8444-555555555555\"}'";
    transaction.batch_execute(claims).await.map_err(failed)?;
    let claimed = identity(transaction).await.map_err(failed)?;
    let trouble = (claimed != user_id)
        .then(|| "a claim that anybody can write changes who the session is".to_owned());
    checks.add("forged claims", trouble, "a claim changes nothing");
    if claimed != user_id {
        return Ok(user_id);
    }
    let wrong = probe::forged_owner(transaction).await.map_err(failed)?;
    checks.none_of("forged owner", &wrong, "rows in another's name are refused");
    let wrong = probe::probe(transaction).await.map_err(failed)?;
    checks.none_of(
        "probe",
        &wrong,
        "rows of one user are neither seen nor changed by another",
    );
    Ok(user_id)
}

/// Appends the repair command for administrators to the last message.
fn remedied(mut wrong: Vec<String>, command: &str) -> Vec<String> {
    if let Some(last) = wrong.last_mut() {
        last.extend([": `", command, " --url ADMIN_URL`"]);
    }
    wrong
}

type Answer<T> = Result<T, tokio_postgres::Error>;

async fn list(transaction: &Transaction<'_>, sql: &str) -> Answer<Vec<String>> {
    let rows = transaction.query(sql, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

async fn identity(transaction: &Transaction<'_>) -> Answer<Option<String>> {
    let row = transaction
        .query_one("select memctl.current_user_id()::text", &[])
        .await?;
    Ok(row.get(0))
}
