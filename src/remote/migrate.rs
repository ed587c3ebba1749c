//! The schema in its versions: what is there, and what is still to be applied.
//!
//! Each file is applied in one transaction with the line that says so, so that a version is there as a
//! whole or not at all. A file never changes once it has been released; its checksum proves that.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Transaction;

use super::address::Address;
use super::connection::{Connection, Server, failure};
use super::error::Error;
use super::foreign;
use super::limits;

/// A version of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// Its number, counted from 1 without a gap.
    pub version: i32,
    /// What it is about.
    pub name: &'static str,
    #[serde(skip)]
    sql: &'static str,
}

/// All of them, in their order.
const MIGRATIONS: [Migration; 7] = [
    migration(1, "identity", include_str!("schema/001_identity.sql")),
    migration(2, "tables", include_str!("schema/002_tables.sql")),
    migration(3, "triggers", include_str!("schema/003_triggers.sql")),
    migration(4, "policies", include_str!("schema/004_policies.sql")),
    migration(5, "functions", include_str!("schema/005_functions.sql")),
    migration(6, "primary", include_str!("schema/006_primary.sql")),
    migration(7, "neighbours", include_str!("schema/007_neighbours.sql")),
];

/// The one that makes the tables; before it, tables of those names are not ours.
const TABLES_ARE_OURS_FROM: i32 = 2;

const fn migration(version: i32, name: &'static str, sql: &'static str) -> Migration {
    Migration { version, name, sql }
}

impl Migration {
    fn checksum(&self) -> String {
        format!("{:x}", Sha256::digest(self.sql))
    }
}

/// The newest version that this program knows.
pub(super) const NEWEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// What `remote init` did.
#[derive(Debug, Serialize)]
pub struct InitReport {
    /// Host and name.
    pub database: String,
    /// The version that the schema has now.
    pub schema: i32,
    /// What has been applied now.
    pub applied: Vec<Migration>,
    /// The server's version.
    pub server: String,
    /// pgvector's version.
    pub pgvector: String,
    /// What deserves attention.
    pub warnings: Vec<String>,
}

/// Brings the schema of a database to the newest version, or finds that it is.
pub async fn init(address: &Address) -> Result<InitReport, Error> {
    match Box::pin(migrated(address)).await {
        Err(error) => Err(limits::name_holder(address, error, true).await),
        done => done,
    }
}

async fn migrated(address: &Address) -> Result<InitReport, Error> {
    let mut connection = Connection::open(address).await?;
    limits::let_work(&connection).await?;
    let server = connection.server().await?;
    let trouble = server.trouble().or_else(|| server.pgvector_trouble());
    if let Some(reason) = trouble {
        return Err(Error::Unsuitable {
            database: address.shown(),
            reason,
        });
    }
    // Two of us take turns; the lock ends with the session. Anybody may hold it, so the wait has a limit.
    let failed = connection.failed("the lock of the schema cannot be had");
    let lock = format!("select pg_advisory_lock({})", limits::INIT_LOCK);
    connection
        .client
        .execute(&lock, &[])
        .await
        .map_err(failed)?;

    let found = version(&connection).await?.unwrap_or(0);
    if found < TABLES_ARE_OURS_FROM {
        foreign::refuse_if_taken(&connection).await?;
    }
    let mut applied = Vec::new();
    for migration in MIGRATIONS.iter().filter(|m| m.version > found) {
        let transaction = connection.begin().await?;
        apply(address, &server, &transaction, migration).await?;
        let failed = |e| failure(address, "the migration cannot be completed", &e);
        transaction.commit().await.map_err(failed)?;
        applied.push(migration.clone());
    }
    // Columns and partitions that somebody has added since have statistics.
    let failed = connection.failed("the planner cannot be made to forget values");
    let hide = "select memctl.hide_statistics()";
    connection.client.execute(hide, &[]).await.map_err(failed)?;
    let server = connection.server().await?;
    let mut warnings = Vec::new();
    if connection.security == "plain" && !address.is_here() {
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

/// Applies one migration, and pgvector before it where that is missing.
async fn apply(
    address: &Address,
    server: &Server,
    transaction: &Transaction<'_>,
    migration: &Migration,
) -> Result<(), Error> {
    let doing = format!(
        "the migration {} `{}` failed",
        migration.version, migration.name
    );
    let failed = |e| failure(address, &doing, &e);
    if server.pgvector.is_none() {
        // Where Supabase keeps extensions, and where a plain server does.
        let install = "do $$ begin
            if to_regnamespace('extensions') is not null then
              create extension if not exists vector with schema extensions;
            else
              create extension if not exists vector with schema public;
            end if;
          end $$";
        let failed = |e| failure(address, "pgvector cannot be installed", &e);
        transaction.batch_execute(install).await.map_err(failed)?;
    }
    let schema: String = transaction
        .query_one(
            "select quote_ident(n.nspname) from pg_catalog.pg_extension e
             join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'",
            &[],
        )
        .await
        .map_err(failed)?
        .get(0);
    // Whatever stands first in the search path of the administrator, names mean the same.
    transaction
        .batch_execute(
            "set local search_path = pg_catalog, pg_temp; set local check_function_bodies = on",
        )
        .await
        .map_err(failed)?;
    let sql = migration.sql.replace("@vector@", &schema);
    transaction.batch_execute(&sql).await.map_err(failed)?;
    let line = "insert into memctl.migrations (version, name, checksum) values ($1, $2, $3)";
    transaction
        .execute(
            line,
            &[&migration.version, &migration.name, &migration.checksum()],
        )
        .await
        .map_err(failed)?;
    Ok(())
}

/// The version of the schema; `None` where there is none. Fails where it was made by a newer program,
/// or from other files than ours.
pub(super) async fn version(connection: &Connection) -> Result<Option<i32>, Error> {
    let failed = connection.failed("the version of the schema cannot be read");
    let there = connection
        .client
        .query_one(
            "select to_regnamespace('memctl') is not null, to_regclass('memctl.migrations') is not null,
                    coalesce(has_schema_privilege(to_regnamespace('memctl'), 'usage')
                      and has_table_privilege(to_regclass('memctl.migrations'), 'select'), false)",
            &[],
        )
        .await
        .map_err(&failed)?;
    match (there.get(0), there.get(1), there.get(2)) {
        (false, _, _) => return Ok(None),
        (true, true, true) => {}
        (true, true, false) => {
            return Err(Error::Statement {
                doing: "the version of the schema cannot be read".to_owned(),
                message: "this role is no user of the store".to_owned(),
                denied: true,
            });
        }
        (true, false, _) => {
            return Err(Error::Taken {
                object: "memctl".to_owned(),
                reason: "the schema has no table of migrations".to_owned(),
            });
        }
    }
    let rows = connection
        .client
        .query(
            "select version, name, checksum from memctl.migrations order by version",
            &[],
        )
        .await
        .map_err(&failed)?;
    let mut newest = 0;
    for row in rows {
        let (version, name, checksum): (i32, String, String) = (row.get(0), row.get(1), row.get(2));
        newest = newest.max(version);
        let ours = MIGRATIONS.iter().find(|m| m.version == version);
        if ours.is_some_and(|m| m.checksum() != checksum) {
            return Err(Error::Changed { version, name });
        }
    }
    if newest > NEWEST {
        return Err(Error::Newer {
            database: connection.address.shown(),
            found: newest,
            known: NEWEST,
        });
    }
    Ok(Some(newest))
}

/// Fails unless the schema is exactly the newest one.
pub(super) async fn demand(connection: &Connection) -> Result<(), Error> {
    match version(connection).await? {
        None => Err(Error::Foreign(connection.address.shown())),
        Some(NEWEST) => Ok(()),
        Some(found) => Err(Error::Older {
            database: connection.address.shown(),
            found,
            known: NEWEST,
        }),
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
