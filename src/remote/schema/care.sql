-- Clean-up, retention, and what `memctl remote init` calls each time.

-- Deletes what has expired, of all users; its policies show it nothing else. For pg_cron or the
-- administrator.
create function public.cleanup_expired_memory() returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from public.agent_memory where expires_at is not null and expires_at < now()
$$;

-- Deletes what has expired and another program wrote: for its user, who then holds it. Answers how many rows.
create function memctl.delete_expired() returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from public.agent_memory m
    where m.held_by = (select memctl.current_user_id()) and m.expires_at < now() and m.origin is null
    returning m.id
  )
  select count(*) from gone
$$;

-- Makes the partitions of this month and of the next three, and drops those that are older than `keep`. For the
-- administrator or pg_cron; `memctl remote init` and `memctl memory prune --remote` call it. Answers how many
-- partitions were dropped.
create function memctl.keep_logs(keep interval default '12 months') returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  begins timestamptz;
  ends timestamptz;
  name text;
  is_new boolean := false;
  dropped integer := 0;
begin
  -- Row security of the partition would hide the rows from its owner.
  alter table memctl.logs_other no force row level security;
  for n in 0..3 loop
    begins := date_trunc('month', now() at time zone 'utc') at time zone 'utc' + make_interval(months => n);
    ends := begins + interval '1 month';
    name := 'logs_' || to_char(begins at time zone 'utc', 'YYYY_MM');
    if to_regclass('memctl.' || name) is not null then
      continue;
    end if;
    execute format('create table memctl.%I (like public.agent_execution_logs including defaults including constraints)', name);
    execute format('revoke all on memctl.%I from public', name);
    execute format('with moved as (
      delete from memctl.logs_other where created_at >= $1 and created_at < $2 returning *
    ) insert into memctl.%I select * from moved', name) using begins, ends;
    -- Before it is attached: the check of the key to sessions would see the lines, and not the sessions, where an
    -- owner who is no superuser is held to row security.
    execute format('alter table memctl.%I enable row level security, force row level security', name);
    execute format('alter table public.agent_execution_logs attach partition memctl.%I
      for values from (%L) to (%L)', name, begins, ends);
    is_new := true;
  end loop;
  delete from memctl.logs_other where created_at < now() - keep;
  alter table memctl.logs_other force row level security;
  for name in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.agent_execution_logs'::regclass and c.relname ~ '^logs_\d{4}_\d{2}$'
  loop
    ends := (to_date(substr(name, 6), 'YYYY_MM')::timestamp at time zone 'utc') + interval '1 month';
    if ends < now() - keep then
      execute format('drop table memctl.%I', name);
      dropped := dropped + 1;
    end if;
  end loop;
  if is_new then
    perform memctl.hide_statistics();
  end if;
  return dropped;
end
$$;

-- Deletes the lines of a memory that the caller holds: those of one user, by the name in the tokens, or all.
create function memctl.delete_logs(_origin text, _sub text) returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from public.agent_execution_logs l
    where l.held_by = (select memctl.current_user_id()) and l.origin = _origin
      and (_sub is null or l.user_id = (
        select h.user_id from memctl.hosted_users h
        where h.host_id = memctl.current_user_id() and h.sub = _sub))
    returning 1
  )
  select count(*) from gone
$$;

-- Deletes the audit events that are older than `keep`. For the administrator or pg_cron, as
-- `memctl.keep_logs`; `memctl memory prune --remote` calls it. Answers how many were deleted.
create function memctl.keep_audit(keep interval default '24 months') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  events bigint;
begin
  -- Row security would hide the rows from an owner who is no superuser.
  alter table memctl.audit_events no force row level security;
  delete from memctl.audit_events where created_at < now() - keep;
  get diagnostics events = row_count;
  alter table memctl.audit_events force row level security;
  return events;
end
$$;

-- Takes away what the planner knows of values. Its estimates come from the rows of all users, and everybody
-- sees those of their own queries: most-common values and histograms can be asked for one guess after the
-- other, until a neighbour's text is there. Row-level security only keeps operators from them that are not
-- leak-proof, and those that compare texts, times and numbers are. Three columns keep theirs:
--   user_id: search by meaning goes through the index or not by how many rows are the caller's. It tells
--     which user ids there are, and how many rows each has; no policy trusts who knows an id.
--   seq: fetching what is new takes the index by it. Numbers of changes, counted over all users.
--   memory_type: five fixed words; how many rows are of a type says whether the index by meaning finds enough.
-- New tables, partitions and columns have statistics: `memctl remote init` calls this again, and
-- `memctl remote check` finds them.
create function memctl.hide_statistics() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  is_super boolean := (select rolsuper from pg_roles where rolname = current_user);
  ours oid[];
  found record;
  said text;
begin
  with recursive tables (id) as (
    select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and (n.nspname = 'memctl' or n.nspname = 'public' and c.relname in (
      'executions', 'corrections', 'reflexions',
      'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'))
    union
    select i.inhrelid from pg_inherits i join tables t on t.id = i.inhparent
  )
  select array_agg(id) into ours from tables;

  -- What several columns have in common.
  for found in
    select format('%I.%I', n.nspname, s.stxname) as name
    from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace
    where s.stxrelid = any(ours)
  loop
    execute format('drop statistics %s', found.name);
  end loop;

  -- What indexes know of expressions.
  for found in
    select x.indexrelid::regclass as name, k.place, c.reltuples > 0 as is_known
    from pg_index x join pg_class c on c.oid = x.indexrelid,
      unnest(x.indkey::int2[]) with ordinality k (attribute, place)
    where x.indrelid = any(ours) and k.attribute = 0
      and coalesce((select a.attstattarget from pg_attribute a
        where a.attrelid = x.indexrelid and a.attnum = k.place), -1) <> 0
  loop
    if found.is_known and not is_super then
      raise exception 'the index % keeps values of other users: drop it, and make it again afterwards', found.name;
    end if;
    execute format('alter index %s alter column %s set statistics 0', found.name, found.place);
  end loop;

  for found in
    select a.attrelid::regclass as name, a.attname, format_type(a.atttypid, a.atttypmod) as kind,
      c.reltuples > 0 as is_known, c.relispartition
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where a.attrelid = any(ours) and a.attnum > 0 and not a.attisdropped
      and a.attname not in ('user_id', 'seq', 'memory_type')
      and coalesce(a.attstattarget, -1) <> 0
    order by c.relispartition, a.attrelid, a.attnum
  loop
    execute format('alter table %s alter column %I set statistics 0', found.name, found.attname);
    -- What has been collected stays until somebody removes it. To give a column the type that it has
    -- rewrites nothing, keeps the indexes, and forgets it; partitions follow their table.
    if found.is_known and not is_super and not found.relispartition then
      begin
        execute format('alter table %s alter column %I type %s', found.name, found.attname, found.kind);
      exception when feature_not_supported then
        get stacked diagnostics said = pg_exception_detail;
        raise exception 'the values of %.% are known to the planner, and cannot be forgotten: % (%)',
          found.name, found.attname, sqlerrm, said;
      end;
    end if;
  end loop;

  if is_super then
    delete from pg_statistic s using pg_attribute a
    where a.attrelid = s.starelid and a.attnum = s.staattnum and a.attstattarget = 0
      and (s.starelid = any(ours)
        or s.starelid in (select x.indexrelid from pg_index x where x.indrelid = any(ours)));
  end if;
end
$$;
