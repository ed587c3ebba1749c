//! Isolation check: reads the catalogue (`rights`) and tries forbidden reads and writes (`probe`).
//!
//! The check runs as the user of the given URL, in a transaction that is rolled back. It needs no
//! second login: `memctl.probe` turns the session into a user who owns no rows
//! (`schema/001_identity.sql`).

mod probe;

use serde::Serialize;
use tokio_postgres::Transaction;

use crate::remote::address::Address;
use crate::remote::connection::{Connection, Server, failure};
use crate::remote::error::Error;
use crate::remote::migrate;

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
    let wrong = list(transaction, ROLE).await.map_err(failed)?;
    checks.none_of(
        "role",
        &wrong,
        &format!("`{}` is an ordinary role", server.role),
    );
    let is_ordinary = wrong.is_empty();
    let wrong = list(transaction, OWNER).await.map_err(failed)?;
    checks.none_of("owner", &wrong, "it owns no table of the store");
    let wrong = list(transaction, TABLES_WITHOUT).await.map_err(failed)?;
    checks.none_of("row security", &wrong, "on and forced for every table");
    let wrong = functions(transaction).await.map_err(failed)?;
    checks.none_of(
        "functions",
        &wrong,
        "search paths pinned, rights as they must be, nothing for everybody",
    );

    let wrong = list(transaction, STATISTICS).await.map_err(failed)?;
    let wrong = remedied(wrong, "memctl remote init");
    checks.none_of("statistics", &wrong, "the planner knows no content");
    let wrong = list(transaction, NO_LIMITS).await.map_err(failed)?;
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

/// Expected functions: signature or name, and `true` for `security definer`.
const FUNCTIONS: [(&str, bool); 30] = [
    ("memctl.current_user_id()", true),
    ("memctl.has_role(uuid,text)", true),
    ("memctl.open_admin_read(text)", true),
    ("memctl.admin_may_read()", true),
    ("memctl.take_turn()", true),
    ("memctl.clock()", true),
    ("memctl.begin_write()", true),
    ("memctl.keyword_candidates(text,integer)", true),
    ("memctl.delete_expired()", true),
    ("memctl.take_turn_of()", true),
    ("memctl.hosts(uuid)", true),
    ("memctl.host_user(text)", true),
    ("memctl.hold()", true),
    ("memctl.delete_logs(text,text)", true),
    ("memctl.keep_logs(interval)", false),
    ("memctl.keep_audit(interval)", false),
    ("memctl.bind_login()", false),
    ("memctl.searched_models(uuid)", false),
    ("memctl.admit_service_role()", false),
    ("memctl.grant_rights()", false),
    ("memctl.hybrid_search_of_all", false),
    ("memctl.hide_statistics()", false),
    ("memctl.stamp()", false),
    ("memctl.write_fts()", false),
    ("memctl.update_updated_at_column()", false),
    ("memctl.notify_memory_update()", false),
    ("public.cleanup_expired_memory()", true),
    ("auth.uid()", false),
    ("public.hybrid_search_context_eng_memories", false),
    ("public.match_memory", false),
];

/// Attributes that let the role, or a role that it is a member of, bypass row-level security.
const ROLE: &str = "
    select format('`%s` %s', r.rolname, case when r.rolsuper then 'is a superuser' else 'bypasses row security' end)
    from pg_catalog.pg_roles r
    where (r.rolsuper or r.rolbypassrls)
      and (r.rolname in (session_user, current_user) or pg_has_role(session_user, r.oid, 'member'))
      -- A superuser counts as a member of everything; one line says enough.
      and (r.rolname = session_user or not (select rolsuper from pg_catalog.pg_roles where rolname = session_user))";

/// Tables whose owner the role is or can become: an owner can disable row-level security.
const OWNER: &str = "
    select format('it can act for `%s`, the owner of `%s.%s`', pg_get_userbyid(c.relowner), n.nspname, c.relname)
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and pg_has_role(session_user, c.relowner, 'member')
      and (n.nspname = 'memctl' or n.nspname = 'public' and exists (
        select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and t.tgname = 'memctl_stamp'))
    limit 3";

/// Tables of the store without enabled and forced row-level security.
const TABLES_WITHOUT: &str = "
    select format('`%s.%s` has it %s', n.nspname, c.relname,
      case when c.relrowsecurity then 'on, but not forced' else 'off' end)
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not (c.relrowsecurity and c.relforcerowsecurity)
      and (n.nspname = 'memctl' or n.nspname = 'public' and c.relname in (
        'executions', 'corrections', 'reflexions',
        'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'))";

/// Columns, indexes and extended statistics whose values the planner stores. Every role can query
/// them through the planner. The three columns that keep their statistics reveal no content
/// (`schema/007_neighbours.sql`).
const STATISTICS: &str = "
    with recursive tables (id) as (
      select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and (n.nspname = 'memctl' or n.nspname = 'public' and c.relname in (
        'executions', 'corrections', 'reflexions',
        'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'))
      union
      select i.inhrelid from pg_catalog.pg_inherits i join tables t on t.id = i.inhparent
    )
    select format('the planner knows values of `%s`.`%s`', t.id::regclass, a.attname)
    from tables t join pg_catalog.pg_attribute a on a.attrelid = t.id
    where a.attnum > 0 and not a.attisdropped and coalesce(a.attstattarget, -1) <> 0
      and a.attname not in ('user_id', 'seq', 'memory_type')
    union all
    select format('the planner knows values of the index `%s`', x.indexrelid::regclass)
    from tables t join pg_catalog.pg_index x on x.indrelid = t.id,
      unnest(x.indkey::int2[]) with ordinality k (attribute, place)
    where k.attribute = 0 and coalesce((select a.attstattarget from pg_catalog.pg_attribute a
      where a.attrelid = x.indexrelid and a.attnum = k.place), -1) <> 0
    union all
    select format('the planner knows values of `%s` together: `%s`', t.id::regclass, s.stxname)
    from tables t join pg_catalog.pg_statistic_ext s on s.stxrelid = t.id";

/// Time limits that are not in force, for example behind a pooler that drops settings.
const NO_LIMITS: &str = "
    select format('`%s` is not in force, as behind a pooler in transaction mode', name)
    from unnest(array['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) name
    where current_setting(name) = '0'";

/// Lists problems of functions: missing, unknown, wrong owner rights, no pinned search path, or
/// executable by `PUBLIC`.
async fn functions(transaction: &Transaction<'_>) -> Answer<Vec<String>> {
    let rows = transaction
        .query(
            "select n.nspname || '.' || p.proname,
                    n.nspname || '.' || p.proname || '(' || replace(
                      (select coalesce(string_agg(format_type(t, null), ','), '') from unnest(p.proargtypes) t), ' ', '') || ')',
                    p.prosecdef,
                    coalesce('search_path=pg_catalog, pg_temp' = any(p.proconfig), false),
                    exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0),
                    o.rolname = 'memctl_definer' and not (o.rolsuper or o.rolbypassrls or o.rolcanlogin)
                      and not exists (select from pg_catalog.pg_auth_members m where m.roleid = o.oid and not m.admin_option)
             from pg_catalog.pg_proc p
             join pg_catalog.pg_namespace n on n.oid = p.pronamespace
             join pg_catalog.pg_roles o on o.oid = p.proowner
             where n.nspname = 'memctl'
                or n.nspname = 'public' and p.proname in
                     ('hybrid_search_context_eng_memories', 'match_memory', 'cleanup_expired_memory')",
            &[],
        )
        .await?;
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for row in &rows {
        let (name, signature): (&str, &str) = (row.get(0), row.get(1));
        let expected = FUNCTIONS
            .iter()
            .find(|(known, _)| *known == signature || *known == name);
        let Some((known, is_definer)) = expected else {
            wrong.push(format!("`{signature}` is not ours"));
            continue;
        };
        seen.push(*known);
        if row.get::<_, bool>(2) != *is_definer {
            wrong.push(format!(
                "`{signature}` runs with the rights of the wrong role"
            ));
        }
        if *is_definer && !row.get::<_, bool>(5) {
            wrong.push(format!(
                "the owner of `{signature}` may do more than it needs"
            ));
        }
        if !row.get::<_, bool>(3) {
            wrong.push(format!("`{signature}` has no pinned search path"));
        }
        if row.get(4) {
            wrong.push(format!("everybody may call `{signature}`"));
        }
    }
    // Supabase provides its own `auth.uid()`, which is not checked.
    let missing = FUNCTIONS
        .iter()
        .filter(|(name, _)| *name != "auth.uid()" && !seen.contains(name));
    wrong.extend(missing.map(|(name, _)| format!("`{name}` is missing")));
    Ok(wrong)
}
