//! Isolation check: reads the catalogue (`catalogue.sql`) and tries forbidden reads and writes (`probe`).
//!
//! The check runs as the user of the given URL, in a transaction that is rolled back. It needs no
//! second login: `memctl.probe` turns the session into a user who owns no rows
//! (`schema/identity.sql`).

mod probe;

use serde::Serialize;

use crate::remote::address::Address;
use crate::remote::connection::Connection;
use crate::remote::error::Error;
use crate::remote::migrate;

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
    let connection = Connection::open(address).await?;
    let mut report = CheckReport {
        database: address.shown(),
        role: probe::role(&connection).await?,
        user_id: None,
        passed: true,
        checks: Vec::new(),
    };
    // First, since the other checks are meaningless in a session that changes between statements.
    let trouble = probe::are_shared(&connection).await?.then(|| {
        "a pooler in transaction mode: settings and prepared statements are lost; use its session mode, or \
         connect to the server itself"
            .to_owned()
    });
    report.add(
        "sessions",
        trouble,
        "each connection has a session of its own",
    );
    if !report.passed {
        return Ok(report);
    }
    let server = connection.server().await?;
    report.add(
        "server",
        server.trouble(),
        &format!("PostgreSQL {}", server.version),
    );
    let pgvector = match &server.pgvector {
        None => Some("pgvector is not installed in this database".to_owned()),
        Some(_) => server.pgvector_trouble(),
    };
    report.add(
        "pgvector",
        pgvector,
        &format!("pgvector {}", server.pgvector.as_deref().unwrap_or("–")),
    );
    match migrate::demand(&connection).await {
        // There is nothing to check in a database without the schema of memctl.
        Err(error @ Error::Foreign(_)) => return Err(error),
        Err(error) => report.add("schema", Some(error.to_string()), ""),
        Ok(()) => {
            report.add("schema", None, &format!("version {}", migrate::NEWEST));
            connection.batch(DOING, "begin").await?;
            match behaviour(&connection, &mut report).await {
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
    let claims =
        "set local request.jwt.claims = '{\"sub\":\"11111111-2222-4333-8444-555555555555\"}'";
    connection.batch(DOING, claims).await?;
    let claimed = identity(connection).await?;
    let trouble = (claimed != user_id)
        .then(|| "a claim that anybody can write changes who the session is".to_owned());
    report.add("forged claims", trouble, "a claim changes nothing");
    if claimed != user_id {
        return Ok(());
    }
    let wrong = probe::forged_owner(connection).await?;
    report.none_of("forged owner", &wrong, "rows in another's name are refused");
    let wrong = probe::probe(connection).await?;
    report.none_of(
        "probe",
        &wrong,
        "rows of one user are neither seen nor changed by another",
    );
    Ok(())
}

async fn identity(connection: &Connection) -> Result<Option<String>, Error> {
    let identity = "select memctl.current_user_id()::text";
    Ok(connection.row(DOING, identity, &[]).await?.get(0))
}
