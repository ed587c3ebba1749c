//! Check for existing objects in a database before the first migration.
//!
//! Tables created from the seeds' SQL are compatible: they keep their rows and get the missing
//! columns. Any other object with one of our names belongs to another program, and the migration is
//! refused.

use super::connection::Connection;
use super::error::Error;

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
