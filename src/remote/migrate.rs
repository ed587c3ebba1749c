//! Schema migrations.
//!
//! Each version is applied in one transaction together with its row in `memctl.migrations`, so it
//! is applied completely or not at all. A released version never changes; its checksum verifies that.
//!
//! Check for existing objects in a database before the first migration.
//!
//! Tables created from the seeds' SQL are compatible: they keep their rows and get the missing
//! columns. Any other object with one of our names belongs to another program, and the migration is
//! refused.

use memctl_files::hex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio_postgres::Transaction;

use crate::remote::address::Address;
use crate::remote::connection::{Connection, Server, failure};
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
const MIGRATIONS: [Migration; 1] = [migration(
    1,
    "baseline",
    concat!(
        include_str!("schema/identity.sql"),
        include_str!("schema/tables.sql"),
        include_str!("schema/triggers.sql"),
        include_str!("schema/search.sql"),
        include_str!("schema/care.sql"),
        include_str!("schema/policies.sql"),
        include_str!("schema/rights.sql"),
    ),
)];

const fn migration(version: i32, name: &'static str, sql: &'static str) -> Migration {
    Migration { version, name, sql }
}

impl Migration {
    fn checksum(&self) -> String {
        hex(&Sha256::digest(self.sql))
    }
}

/// Newest version that this program knows.
/// Hint for a schema of a later version.
const NEWER: &str = "install the newest memctl";

pub(super) const NEWEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

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
    let mut connection = Connection::open(address).await?;
    connection.lift_limits().await?;
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
    let failed = connection.failed("the lock of the schema cannot be had");
    let lock = "select pg_advisory_lock(hashtext('memctl remote init'))";
    connection.client.execute(lock, &[]).await.map_err(failed)?;

    let found = version(&connection).await?.unwrap_or(0);
    // Before the first migration, tables of these names belong to another program.
    if found == 0 {
        refuse_if_taken(&connection).await?;
    }
    let mut applied = Vec::new();
    for migration in MIGRATIONS.iter().filter(|m| m.version > found) {
        let transaction = connection.begin().await?;
        apply(address, &server, &transaction, migration).await?;
        let failed = |e| failure(address, "the migration cannot be completed", &e);
        transaction.commit().await.map_err(failed)?;
        applied.push(migration.clone());
    }
    // Columns and partitions that were added since then have statistics.
    let hide = "select memctl.hide_statistics()";
    let doing = "the planner cannot be made to forget values";
    connection.run(doing, hide, &[]).await?;
    // Partitions for the next months. Nothing is dropped without the request of a person.
    let keep = "select memctl.keep_logs('1000 years')";
    let doing = "partitions of the log cannot be made";
    connection.run(doing, keep, &[]).await?;
    // Roles of Supabase or PostgREST may be younger than the migration.
    let grant = "select memctl.grant_rights()";
    let doing = "roles cannot be given their rights";
    connection.run(doing, grant, &[]).await?;
    let server = connection.server().await?;
    let mut warnings = Vec::new();
    if connection.security == "plain" && !address.is_local() {
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
        // Supabase keeps extensions in the schema `extensions`, a plain server in `public`.
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
    // Pins the search path, so that names resolve the same for every administrator.
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

/// Schema version; `None` if there is no schema. Fails if a newer program created the schema, or if
/// the checksum of a migration differs.
pub(super) async fn version(connection: &Connection) -> Result<Option<i32>, Error> {
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
            return Err(Error::Taken {
                object: "memctl".to_owned(),
                reason: "the schema has no table of migrations".to_owned(),
            });
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

/// Tables of the seeds with their columns. A table is compatible if it has all of these and no
/// other column that must be filled.
const SEEDS: [(&str, &str); 4] = [
    (
        "context_eng_memories",
        "id bigint, content text, metadata jsonb, embedding vector(1536), fts tsvector, created_dt timestamptz",
    ),
    (
        "agent_memory",
        "id uuid, user_id uuid, memory_type text, content text, embedding vector(1536), metadata jsonb, \
         created_at timestamptz, updated_at timestamptz, expires_at timestamptz",
    ),
    (
        "agent_sessions",
        "id uuid, user_id uuid, status text, current_step text, progress_percentage integer, \
         total_steps integer, completed_steps text[], error_message text, session_data jsonb, \
         started_at timestamptz, completed_at timestamptz, created_at timestamptz, updated_at timestamptz",
    ),
    (
        "agent_execution_logs",
        "id uuid, session_id uuid, user_id uuid, step_name text, tool_name text, action_type text, \
         input_data jsonb, output_data jsonb, reasoning text, confidence_score numeric(3,2), \
         execution_time_ms integer, status text, error_message text, created_at timestamptz",
    ),
];

/// Tables that no seed creates. An existing table of this name belongs to another program.
const OURS: [&str; 3] = ["executions", "corrections", "reflexions"];

/// Policies of the seeds, which the migration replaces. Any other policy could grant access that
/// ours deny.
const SEED_POLICIES: [&str; 11] = [
    "Users can read their own memory",
    "Users can insert their own memory",
    "Users can update their own memory",
    "Users can delete their own memory",
    "Admins can view all memory",
    "Users can read their own sessions",
    "Users can insert their own sessions",
    "Users can update their own sessions",
    "Users can read their own logs",
    "Service role can insert logs",
    "Admins can view all logs",
];

/// Functions of the seeds, which the migration replaces. A replacement cannot change the return
/// type, so the administrator has to drop an existing one first.
const FUNCTIONS: [&str; 3] = [
    "hybrid_search_context_eng_memories",
    "match_memory",
    "cleanup_expired_memory",
];

/// Returns [`Error::Taken`] if an incompatible object uses one of our names.
pub(super) async fn refuse_if_taken(connection: &Connection) -> Result<(), Error> {
    let doing = "the tables of the database cannot be listed";
    let taken = |object: &str, reason: String| Error::Taken {
        object: format!("public.{object}"),
        reason,
    };
    for name in OURS {
        let there = "select to_regclass('public.' || quote_ident($1::text)) is not null";
        if connection.row(doing, there, &[&name]).await?.get(0) {
            return Err(taken(name, "it was there before".to_owned()));
        }
    }
    for (name, expected) in SEEDS {
        let columns = "select a.attname::text,
              replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
              a.attnotnull and not a.atthasdef and a.attidentity = ''
            from pg_catalog.pg_attribute a
            where a.attrelid = to_regclass('public.' || quote_ident($1::text))
              and a.attnum > 0 and not a.attisdropped";
        let columns = connection.rows(doing, columns, &[&name]).await?;
        if columns.is_empty() {
            continue;
        }
        let expected: Vec<(&str, &str)> = expected
            .split(", ")
            .filter_map(|column| column.split_once(' '))
            .collect();
        for &(column, kind) in &expected {
            let found = columns.iter().find(|row| row.get::<_, &str>(0) == column);
            // A type is qualified with its schema unless the schema is in the search path.
            let found = found.map(|row| row.get::<_, &str>(1));
            if found.is_none_or(|found| found.rsplit('.').next() != Some(kind)) {
                let reason = match found {
                    Some(found) => format!("its column `{column}` is {found}, not {kind}"),
                    None => format!("it has no column `{column}`"),
                };
                return Err(taken(name, reason));
            }
        }
        let known = |column: &str| expected.iter().any(|(name, _)| *name == column);
        let demanding = columns.iter().find(|row| row.get(2) && !known(row.get(0)));
        if let Some(row) = demanding {
            let column: &str = row.get(0);
            let reason = format!("its column `{column}` has to be filled");
            return Err(taken(name, reason));
        }
        let policies = "select polname::text from pg_catalog.pg_policy
            where polrelid = to_regclass('public.' || quote_ident($1::text)) order by polname";
        let policies = connection.rows(doing, policies, &[&name]).await?;
        let mut policies = policies.iter().map(|row| row.get::<_, &str>(0));
        if let Some(policy) = policies.find(|policy| !SEED_POLICIES.contains(policy)) {
            return Err(taken(
                name,
                format!("it has a policy `{policy}` of its own"),
            ));
        }
    }
    let functions = "select p.oid::regprocedure::text from pg_catalog.pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname = any($1)";
    let named = FUNCTIONS.as_slice();
    let functions = connection.rows(doing, functions, &[&named]).await?;
    if let Some(row) = functions.first() {
        let signature: String = row.get(0);
        let reason = format!("ours takes its place; drop it first: drop function {signature}");
        return Err(Error::Taken {
            object: signature,
            reason,
        });
    }
    Ok(())
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
