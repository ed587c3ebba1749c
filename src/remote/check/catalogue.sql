-- Faults that the catalogue shows: the name of a check, and what is wrong.
with tables as (
  -- Tables of the store, and their partitions.
  select c.oid as id, n.nspname as schema, c.relname as name, c.relowner, c.relrowsecurity, c.relforcerowsecurity
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p') and (n.nspname = 'memctl' or n.nspname = 'public' and c.relname in (
    'executions', 'corrections', 'reflexions',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'))
),
parts as (
  with recursive part (id) as (
    select id from tables
    union
    select i.inhrelid from pg_catalog.pg_inherits i join part p on p.id = i.inhparent
  )
  select id from part
),
-- Signature or name of each function, and `true` for `security definer`.
expected (name, is_definer) as (values
  ('memctl.current_user_id()', true),
  ('memctl.has_role(uuid,text)', true),
  ('memctl.open_admin_read(text)', true),
  ('memctl.admin_may_read()', true),
  ('memctl.take_turn()', true),
  ('memctl.clock()', true),
  ('memctl.begin_write()', true),
  ('memctl.keyword_candidates(text,integer)', true),
  ('memctl.delete_expired()', true),
  ('memctl.take_turn_of()', true),
  ('memctl.hosts(uuid)', true),
  ('memctl.host_user(text)', true),
  ('memctl.hold()', true),
  ('memctl.delete_logs(text,text)', true),
  ('memctl.keep_logs(interval)', false),
  ('memctl.keep_audit(interval)', false),
  ('memctl.bind_login()', false),
  ('memctl.searched_models(uuid)', false),
  ('memctl.admit_service_role()', false),
  ('memctl.grant_rights()', false),
  ('memctl.hybrid_search_of_all', false),
  ('memctl.hide_statistics()', false),
  ('memctl.stamp()', false),
  ('memctl.write_fts()', false),
  ('memctl.update_updated_at_column()', false),
  ('memctl.notify_memory_update()', false),
  ('public.cleanup_expired_memory()', true),
  ('auth.uid()', false),
  ('public.hybrid_search_context_eng_memories', false),
  ('public.match_memory', false)
),
functions as (
  select n.nspname || '.' || p.proname as name,
    n.nspname || '.' || p.proname || '(' || replace(
      (select coalesce(string_agg(format_type(t, null), ','), '') from unnest(p.proargtypes) t), ' ', '') || ')'
      as signature,
    p.prosecdef as is_definer,
    coalesce('search_path=pg_catalog, pg_temp' = any(p.proconfig), false) as is_pinned,
    exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) as is_public,
    o.rolname = 'memctl_definer' and not (o.rolsuper or o.rolbypassrls or o.rolcanlogin)
      and not exists (select from pg_catalog.pg_auth_members m where m.roleid = o.oid and not m.admin_option)
      as has_plain_owner
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  join pg_catalog.pg_roles o on o.oid = p.proowner
  where n.nspname = 'memctl'
     or n.nspname = 'public' and p.proname in
          ('hybrid_search_context_eng_memories', 'match_memory', 'cleanup_expired_memory')
)
-- Attributes that let the role, or a role that it is a member of, bypass row-level security.
select 'role', format('`%s` %s', r.rolname, case when r.rolsuper then 'is a superuser' else 'bypasses row security' end)
from pg_catalog.pg_roles r
where (r.rolsuper or r.rolbypassrls)
  and (r.rolname in (session_user, current_user) or pg_has_role(session_user, r.oid, 'member'))
  -- A superuser counts as a member of everything; one line says enough.
  and (r.rolname = session_user or not (select rolsuper from pg_catalog.pg_roles where rolname = session_user))
union all
-- Tables whose owner the role is or can become: an owner can disable row-level security.
(select 'owner', format('it can act for `%s`, the owner of `%s.%s`', pg_get_userbyid(c.relowner), n.nspname, c.relname)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and pg_has_role(session_user, c.relowner, 'member')
  and (n.nspname = 'memctl' or n.nspname = 'public' and exists (
    select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and t.tgname = 'memctl_stamp'))
limit 3)
union all
select 'row security', format('`%s.%s` has it %s', schema, name, case when relrowsecurity then 'on, but not forced' else 'off' end)
from tables where not (relrowsecurity and relforcerowsecurity)
union all
select 'functions', fault.message
from functions f left join expected e on e.name in (f.name, f.signature),
  lateral (values
    (e.name is null, format('`%s` is not ours', f.signature)),
    (f.is_definer <> e.is_definer, format('`%s` runs with the rights of the wrong role', f.signature)),
    (e.is_definer and not f.has_plain_owner, format('the owner of `%s` may do more than it needs', f.signature)),
    (e.name is not null and not f.is_pinned, format('`%s` has no pinned search path', f.signature)),
    (e.name is not null and f.is_public, format('everybody may call `%s`', f.signature))
  ) as fault (is_there, message)
where fault.is_there
union all
-- Supabase provides its own `auth.uid()`, which is not checked.
select 'functions', format('`%s` is missing', e.name)
from expected e
where e.name <> 'auth.uid()' and not exists (select from functions f where e.name in (f.name, f.signature))
union all
-- Columns, indexes and extended statistics whose values the planner stores. Every role can query them through the
-- planner. The three columns that keep their statistics reveal no content.
select 'statistics', format('the planner knows values of `%s`.`%s`', p.id::regclass, a.attname)
from parts p join pg_catalog.pg_attribute a on a.attrelid = p.id
where a.attnum > 0 and not a.attisdropped and coalesce(a.attstattarget, -1) <> 0
  and a.attname not in ('user_id', 'seq', 'memory_type')
union all
select 'statistics', format('the planner knows values of the index `%s`', x.indexrelid::regclass)
from parts p join pg_catalog.pg_index x on x.indrelid = p.id,
  unnest(x.indkey::int2[]) with ordinality k (attribute, place)
where k.attribute = 0 and coalesce((select a.attstattarget from pg_catalog.pg_attribute a
  where a.attrelid = x.indexrelid and a.attnum = k.place), -1) <> 0
union all
select 'statistics', format('the planner knows values of `%s` together: `%s`', p.id::regclass, s.stxname)
from parts p join pg_catalog.pg_statistic_ext s on s.stxrelid = p.id
union all
-- Time limits that are not in force, for example behind a pooler that drops settings.
select 'time limits', format('`%s` is not in force, as behind a pooler in transaction mode', name)
from unnest(array['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) name
where current_setting(name) = '0'
