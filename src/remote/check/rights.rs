//! Catalogue queries for the rights of the role, the tables and the functions.

use tokio_postgres::Transaction;

use super::Answer;

/// Expected functions: signature or name, and `true` for `security definer`.
const FUNCTIONS: [(&str, bool); 31] = [
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
    ("memctl.match_held_memory", false),
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
pub(super) const ROLE: &str = "
    select format('`%s` %s', r.rolname, case when r.rolsuper then 'is a superuser' else 'bypasses row security' end)
    from pg_catalog.pg_roles r
    where (r.rolsuper or r.rolbypassrls)
      and (r.rolname in (session_user, current_user) or pg_has_role(session_user, r.oid, 'member'))
      -- A superuser counts as a member of everything; one line says enough.
      and (r.rolname = session_user or not (select rolsuper from pg_catalog.pg_roles where rolname = session_user))";

/// Tables whose owner the role is or can become: an owner can disable row-level security.
pub(super) const OWNER: &str = "
    select format('it can act for `%s`, the owner of `%s.%s`', pg_get_userbyid(c.relowner), n.nspname, c.relname)
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and pg_has_role(session_user, c.relowner, 'member')
      and (n.nspname = 'memctl' or n.nspname = 'public' and exists (
        select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and t.tgname = 'memctl_stamp'))
    limit 3";

/// Tables of the store without enabled and forced row-level security.
pub(super) const TABLES_WITHOUT: &str = "
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
pub(super) const STATISTICS: &str = "
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
pub(super) const NO_LIMITS: &str = "
    select format('`%s` is not in force, as behind a pooler in transaction mode', name)
    from unnest(array['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) name
    where current_setting(name) = '0'";

/// Lists problems of functions: missing, unknown, wrong owner rights, no pinned search path, or
/// executable by `PUBLIC`.
pub(super) async fn functions(transaction: &Transaction<'_>) -> Answer<Vec<String>> {
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
