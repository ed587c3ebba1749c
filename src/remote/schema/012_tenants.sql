-- Partitions by user, for databases with many rows of many users. Nothing is partitioned unless the administrator
-- calls this.

-- Turns a table into one that is partitioned by the hash of the user, and moves its rows. Takes the time of a copy
-- and of all indexes, in which nobody reads or writes the table. Rights, policies, triggers and keys stay; a key
-- that does not hold the user gets it as its last column.
--
-- Not for `agent_memory` and `agent_sessions`: their keys hold the user whose login wrote a row (`held_by`), and
-- searches ask for the user whose row it is.
create function memctl.partition_by_user(_table text, _parts integer default 16) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  name text := format('public.%I', _table);
  before text := format('public.%I', _table || '_before');
  part text;
  columns text;
  statement text;
  statements text[] := '{}';
  indexes text[];
  found record;
begin
  if _table is null
    or _table not in ('executions', 'corrections', 'reflexions', 'fixes', 'context_eng_memories') then
    raise exception 'the table "%" cannot be partitioned by user', _table;
  end if;
  if coalesce(_parts not between 2 and 256, true) then
    raise exception 'the number of partitions is from 2 to 256';
  end if;
  if (select relkind from pg_class where oid = name::regclass) = 'p' then
    raise exception 'the table "%" is partitioned already', _table;
  end if;
  execute format('lock table %s in access exclusive mode', name);

  -- What belongs to the table, as it is now; the names in it mean the new one afterwards.
  select array_agg(case
      when x.indisprimary and d.has_user then format('alter table %s add %s', name, pg_get_constraintdef(k.oid))
      when x.indisunique and not d.has_user then regexp_replace(d.definition, '\)$', ', user_id)')
      else d.definition end)
    into indexes
    from pg_index x
    cross join lateral (select
      regexp_replace(pg_get_indexdef(x.indexrelid), ' INDEX \S+ ON ', ' INDEX ON ') as definition,
      exists (select from pg_attribute a where a.attrelid = x.indrelid and a.attname = 'user_id'
        and a.attnum = any (x.indkey::int2[])) as has_user) d
    left join pg_constraint k on k.conindid = x.indexrelid and k.contype = 'p'
    where x.indrelid = name::regclass;
  for found in
    select format('alter table %s add %s', name, pg_get_constraintdef(oid)) as said
      from pg_constraint where conrelid = name::regclass and contype = 'f'
    union all
    select pg_get_triggerdef(oid) from pg_trigger where tgrelid = name::regclass and not tgisinternal
    union all
    select format('create policy %I on %s as %s for %s to %s %s %s', p.polname, name,
        case when p.polpermissive then 'permissive' else 'restrictive' end,
        case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
          else 'all' end,
        (select string_agg(case when r = 0 then 'public' else r::regrole::text end, ', ') from unnest(p.polroles) r),
        coalesce('using (' || pg_get_expr(p.polqual, p.polrelid) || ')', ''),
        coalesce('with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', ''))
      from pg_policy p where p.polrelid = name::regclass
    union all
    select format('grant %s on %s to %s', a.privilege_type, name,
        case when a.grantee = 0 then 'public' else a.grantee::regrole::text end)
      from pg_class c, aclexplode(c.relacl) a where c.oid = name::regclass and a.grantee <> c.relowner
    union all
    select format('grant %s (%I) on %s to %s', a.privilege_type, t.attname, name,
        case when a.grantee = 0 then 'public' else a.grantee::regrole::text end)
      from pg_attribute t, aclexplode(t.attacl) a where t.attrelid = name::regclass and not t.attisdropped
  loop
    statements := statements || found.said;
  end loop;

  execute format('alter table %s rename to %I', name, _table || '_before');
  execute format('create table %s (like %s including defaults including constraints) partition by hash (user_id)',
    name, before);
  execute format('revoke all on %s from public', name);
  for found in select rolname from pg_roles where rolname in ('anon', 'authenticated', 'service_role') loop
    execute format('revoke all on %s from %I', name, found.rolname);
  end loop;
  for n in 0 .. _parts - 1 loop
    part := format('memctl.%I', _table || '_' || n);
    execute format('create table %s partition of %s for values with (modulus %s, remainder %s)', part, name, _parts, n);
    execute format('revoke all on %s from public', part);
    execute format('alter table %s enable row level security, force row level security', part);
  end loop;
  execute format('alter table %s no force row level security', before);
  select string_agg(quote_ident(attname), ', ' order by attnum) into columns
    from pg_attribute where attrelid = before::regclass and attnum > 0 and not attisdropped;
  execute format('insert into %s (%s) select %s from %s', name, columns, columns, before);

  -- Partitioned tables have no identity before PostgreSQL 17, so the numbers come from a sequence.
  for found in select attname from pg_attribute where attrelid = before::regclass and attidentity <> '' loop
    part := format('public.%I', _table || '_' || found.attname || '_numbers');
    execute format('create sequence %s owned by %s.%I', part, name, found.attname);
    execute format('select setval(%L, (select coalesce(max(%I), 0) + 1 from %s), false)', part, found.attname, before);
    execute format('alter table %s alter column %I set default nextval(%L)', name, found.attname, part);
    execute format('revoke all on sequence %s from public', part);
    foreach statement in array array['memctl_user', 'authenticated', 'service_role'] loop
      if exists (select from pg_roles where rolname = statement)
        and has_any_column_privilege(statement, before, 'insert') then
        execute format('grant usage on sequence %s to %I', part, statement);
      end if;
    end loop;
  end loop;

  foreach statement in array indexes loop
    execute statement;
  end loop;
  execute format('drop table %s', before);
  foreach statement in array statements loop
    execute statement;
  end loop;
  execute format('alter table %s enable row level security, force row level security', name);
  perform memctl.hide_statistics();
end
$$;
revoke all on function memctl.partition_by_user(text, integer) from public;
do $$
declare
  who name;
begin
  for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
    execute format('revoke all on function memctl.partition_by_user(text, integer) from %I', who);
  end loop;
end
$$;
