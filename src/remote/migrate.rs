//! Schema migrations, and a check of the existing objects before the first one.
//!
//! Each version is applied in one transaction together with its row in `memctl.migrations`, so it
//! is applied completely or not at all. A released version never changes; its checksum verifies that.
//!
//! Tables created from the seeds' SQL are compatible: they keep their rows and get the missing
//! columns. Any other object with one of our names belongs to another program, and the migration is
//! refused.

use memctl_files::hex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::remote::address::Address;
use crate::remote::connection::{Connection, Server};
use crate::remote::error::Error;

/// Schema migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Migration {
    /// Version number, counted from 1 without gaps.
    pub version: i32,
    /// Short name.
    pub name: &'static str,
    #[serde(skip)]
    sql: &'static str,
}

/// All migrations in order.
const MIGRATIONS: [Migration; 1] = [Migration {
    version: 1,
    name: "baseline",
    sql: concat!(
        include_str!("schema/identity.sql"),
        include_str!("schema/tables.sql"),
        include_str!("schema/triggers.sql"),
        include_str!("schema/search.sql"),
        include_str!("schema/care.sql"),
        include_str!("schema/policies.sql"),
        include_str!("schema/rights.sql"),
        include_str!("schema/removed.sql"),
    ),
}];

/// Newest version that this program knows.
pub(super) const NEWEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Hint for a schema of a later version.
const NEWER: &str = "install the newest memctl";

impl Migration {
    fn checksum(&self) -> String {
        hex(&Sha256::digest(self.sql))
    }
}

/// Result of `remote init`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct InitReport {
    /// Host, port and name.
    pub database: String,
    /// Schema version after the run.
    pub schema: i32,
    /// Migrations applied in this run.
    pub applied: Vec<Migration>,
    /// PostgreSQL version.
    pub server: String,
    /// pgvector version.
    pub pgvector: String,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Applies all missing migrations.
pub async fn init(address: &Address) -> Result<InitReport, Error> {
    let connection = Connection::open(address).await?;
    // A migration works on all rows.
    let unlimited = "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0";
    connection
        .batch("time limits cannot be set", unlimited)
        .await?;
    let server = connection.server().await?;
    let trouble = server.trouble().or_else(|| server.pgvector_trouble());
    if let Some(reason) = trouble {
        return Err(Error::stopped(
            format!("`{}` cannot be used: {reason}", address.shown()),
            "install PostgreSQL 15 and pgvector 0.8 or newer",
        ));
    }
    // The advisory lock serialises concurrent runs and ends with the session. Any role can hold it,
    // so the wait has a limit.
    let lock = "select pg_advisory_lock(hashtext('memctl remote init'))";
    let doing = "the lock of the schema cannot be had";
    connection.run(doing, lock, &[]).await?;

    let found = version(&connection).await?.unwrap_or(0);
    // Before the first migration, tables of these names belong to another program.
    if found == 0 {
        let doing = "the tables of the database cannot be listed";
        let taken = include_str!("schema/taken.sql");
        let taken = connection.rows(doing, taken, &[]).await?;
        if let Some(row) = taken.first() {
            return Err(Error::taken(row.get(0), row.get(1)));
        }
    }
    let mut applied = Vec::new();
    for migration in MIGRATIONS.iter().filter(|m| m.version > found) {
        apply(&server, &connection, migration).await?;
        applied.push(migration.clone());
    }
    // Columns and partitions that were added since then have statistics. Partitions are for the next
    // months, and nothing is dropped without the request of a person. Roles of Supabase or PostgREST may be
    // younger than the migration.
    for care in [
        "select memctl.hide_statistics()",
        "select memctl.keep_logs('1000 years')",
        "select memctl.grant_rights()",
        include_str!("schema/removed.sql"),
    ] {
        let doing = "the schema cannot be brought up to date";
        connection.run(doing, care, &[]).await?;
    }
    let server = connection.server().await?;
    let mut warnings = Vec::new();
    if address.trusted.is_none() && !address.is_local() {
        warnings.push("the connection is not encrypted".to_owned());
    }
    Ok(InitReport {
        database: address.shown(),
        schema: NEWEST,
        applied,
        server: server.version,
        pgvector: server.pgvector.unwrap_or_default(),
        warnings,
    })
}

/// Applies one migration, and installs pgvector first if it is missing.
async fn apply(
    server: &Server,
    connection: &Connection,
    migration: &Migration,
) -> Result<(), Error> {
    let Migration { version, name, .. } = migration;
    let doing = format!("the migration {version} `{name}` failed");
    connection.batch(&doing, "begin").await?;
    if server.pgvector.is_none() {
        // Supabase keeps extensions in the schema `extensions`, a plain server in `public`.
        let install = "do $$ begin
            if to_regnamespace('extensions') is not null then
              create extension if not exists vector with schema extensions;
            else
              create extension if not exists vector with schema public;
            end if;
          end $$";
        connection
            .batch("pgvector cannot be installed", install)
            .await?;
    }
    let schema = connection.vector_schema().await?;
    // Pins the search path, so that names resolve the same for every administrator.
    let pin = "set local search_path = pg_catalog, pg_temp; set local check_function_bodies = on";
    connection.batch(&doing, pin).await?;
    let sql = migration.sql.replace("@vector@", &schema);
    connection.batch(&doing, &sql).await?;
    let line = "insert into memctl.migrations (version, name, checksum) values ($1, $2, $3)";
    connection
        .run(&doing, line, &[version, name, &migration.checksum()])
        .await?;
    connection.batch(&doing, "commit").await
}

/// Schema version; `None` if there is no schema. Fails if a newer program created the schema, or if
/// the checksum of a migration differs.
async fn version(connection: &Connection) -> Result<Option<i32>, Error> {
    let doing = "the version of the schema cannot be read";
    let there = "select to_regnamespace('memctl') is not null, to_regclass('memctl.migrations') is not null,
        coalesce(has_schema_privilege(to_regnamespace('memctl'), 'usage')
          and has_table_privilege(to_regclass('memctl.migrations'), 'select'), false)";
    let there = connection.row(doing, there, &[]).await?;
    match (there.get(0), there.get(1), there.get(2)) {
        (false, _, _) => return Ok(None),
        (true, true, true) => {}
        (true, true, false) => {
            return Err(Error::Statement {
                doing: doing.to_owned(),
                message: "this role is no user of the store".to_owned(),
                denied: true,
            });
        }
        (true, false, _) => {
            return Err(Error::taken(
                "memctl",
                "the schema has no table of migrations",
            ));
        }
    }
    let applied = "select version, name, checksum from memctl.migrations order by version";
    let rows = connection.rows(doing, applied, &[]).await?;
    let mut newest = 0;
    for row in rows {
        let (version, name, checksum): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        newest = newest.max(version);
        let ours = MIGRATIONS.iter().find(|m| m.version == version);
        if ours.is_some_and(|m| m.checksum() != checksum) {
            return Err(Error::stopped(
                format!("the migration {version} `{name}` was applied with different SQL"),
                NEWER,
            ));
        }
    }
    if newest > NEWEST {
        let database = connection.address.shown();
        return Err(Error::stopped(
            format!("`{database}` has the schema {newest}; this memctl knows {NEWEST}"),
            NEWER,
        ));
    }
    Ok(Some(newest))
}

/// Returns `true` if the database has our schema and the login is a user of it, `false` if it has none.
///
/// # Errors
///
/// Fails if the database cannot be reached or used.
pub async fn is_ours(address: &Address) -> Result<bool, Error> {
    let connection = Connection::open(address).await?;
    match demand(&connection).await {
        Err(Error::Foreign(_)) => Ok(false),
        demanded => {
            demanded?;
            connection.name().await.map(|_| true)
        }
    }
}

/// Fails unless the schema has exactly the newest version.
pub(super) async fn demand(connection: &Connection) -> Result<(), Error> {
    match version(connection).await? {
        None => Err(Error::Foreign(connection.address.shown())),
        Some(NEWEST) => Ok(()),
        Some(found) => {
            let database = connection.address.shown();
            Err(Error::stopped(
                format!("`{database}` has the schema {found}; this memctl needs {NEWEST}"),
                "memctl remote init --url ADMIN_URL",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_up_without_a_gap() {
        let versions: Vec<i32> = MIGRATIONS.iter().map(|m| m.version).collect();
        assert_eq!(versions, (1..=NEWEST).collect::<Vec<_>>());
    }

    #[test]
    fn every_function_has_its_search_path_pinned() {
        for migration in &MIGRATIONS {
            let made = |words| migration.sql.matches(words).count();
            let functions = made("create function ") + made("create or replace function ");
            let pinned = migration
                .sql
                .matches("set search_path = pg_catalog, pg_temp")
                .count();
            assert_eq!(functions, pinned, "{}", migration.name);
        }
    }
}
