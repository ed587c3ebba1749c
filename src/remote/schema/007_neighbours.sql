-- Neighbours: logins of other users of the same database. They learn nothing from the planner, cannot lock
-- a table, and do not become somebody else by taking the name of a login that is gone.

-- A login is a role, and not only its name: a role of that name that was made later is another one, and
-- nobody. After a database was restored on another server: update memctl.logins set role_name = role_name.
alter table memctl.logins add column role_oid oid;

create function memctl.bind_login() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  new.role_oid := to_regrole(quote_ident(new.role_name));
  return new;
end
$$;
create trigger memctl_bind_login before insert or update on memctl.logins
  for each row execute function memctl.bind_login();
update memctl.logins set role_name = role_name;

-- What follows makes functions of memctl_definer's, and changes one: an administrator who is no superuser
-- needs membership for that, and memctl_definer the right to create, for this moment.
do $$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl to memctl_definer;
  end if;
end
$$;

-- As before, but for the role's own number.
create or replace function memctl.current_user_id() returns uuid
language plpgsql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  found_id uuid;
  claimed text;
begin
  if current_setting('memctl.probe', true) = 'on' then
    return '00000000-0000-4000-8000-000000000000';
  end if;
  select l.user_id into found_id from memctl.logins l
    where l.role_name = session_user and l.role_oid = to_regrole(quote_ident(session_user));
  if found_id is not null then
    return found_id;
  end if;
  if not exists (select from memctl.token_roles t where t.role_name = session_user) then
    return null;
  end if;
  -- Claims that are no JSON are an error, and an error shows no row.
  claimed := nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub';
  if claimed ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    return claimed::uuid;
  end if;
  return null;
end
$$;

-- `lock table` in the modes that keep others out takes the right to update, delete or truncate the table as
-- a whole. A login has none of them: it may update each column, and what is to be deleted it marks
-- (`deleted_at`), or lets expire. Clients with a token (`authenticated`) keep theirs; they have no way to
-- hold a lock.
do $$
declare
  name text;
  columns text;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('revoke delete on public.%I from memctl_user', name);
    if name not in ('context_eng_memories', 'agent_execution_logs') then
      select string_agg(quote_ident(attname), ', ') into columns from pg_catalog.pg_attribute
        where attrelid = format('public.%I', name)::regclass and attnum > 0 and not attisdropped
          and attgenerated = '';
      execute format('revoke update on public.%I from memctl_user', name);
      execute format('grant update (%s) on public.%I to memctl_user', columns, name);
    end if;
  end loop;
end
$$;

-- Deletes what has expired of the caller's, where another program wrote it; answers how many rows.
create function memctl.delete_expired() returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from public.agent_memory m
    where m.user_id = (select memctl.current_user_id()) and m.expires_at < now() and m.origin is null
    returning m.id
  )
  select count(*) from gone
$$;
grant select (user_id, origin) on public.agent_memory to memctl_definer;

-- The domain of a skill is written by the trigger, and no longer a generated column: no column that
-- another one is generated from can be rid of its statistics by those who are no superusers.
do $$
declare
  name text;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('alter table public.%I alter column domain drop expression', name);
  end loop;
end
$$;

create or replace function memctl.stamp() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  new.seq := nextval('memctl.changes');
  new.hash := encode(sha256(convert_to(new.entry, 'UTF8')), 'hex');
  new.domain := split_part(new.skill, '/', 1);
  return new;
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
      'executions', 'corrections', 'reflexions', 'fixes',
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

-- No column that a policy names can be given a type, so these two come afterwards.
drop policy "the clean-up sees what has expired" on public.agent_memory;
drop policy "the clean-up deletes what has expired" on public.agent_memory;
select memctl.hide_statistics();
create policy "the clean-up sees what has expired" on public.agent_memory for select
  to memctl_definer using (expires_at < now());
create policy "the clean-up deletes what has expired" on public.agent_memory for delete
  to memctl_definer using (expires_at < now());

-- Both searches as before, but for `coalesce`: without statistics the planner takes `deleted_at is null` and
-- a comparison with the model for something that hardly a row fulfils, and then leaves the index alone. Of a
-- `coalesce` it expects that half of the rows fulfil it.
create or replace function public.hybrid_search_context_eng_memories(
  query_text text,
  query_embedding @vector@.vector(1536),
  match_count integer,
  full_text_weight double precision default 1,
  semantic_weight double precision default 1,
  rrf_k integer default 50
)
returns table (
  id bigint,
  content text,
  metadata jsonb,
  created_dt timestamptz,
  rrf_score double precision,
  keyword_rank bigint,
  semantic_rank bigint
)
language plpgsql stable security invoker
set search_path = pg_catalog, pg_temp
set hnsw.iterative_scan = 'relaxed_order'
set hnsw.ef_search = 800
set random_page_cost = 1.1
set cpu_operator_cost = 0.1
set plan_cache_mode = 'force_custom_plan'
as $$
#variable_conflict use_column
declare
  wanted integer := least(greatest(coalesce(match_count, 10), 0), 200);
  k integer := greatest(coalesce(rrf_k, 50), 0);
  me uuid := memctl.current_user_id();
  model text := coalesce(current_setting('memctl.embedding_model', true), '');
begin
  return query
  with full_text as (
    select c.id, c.rank from memctl.keyword_candidates(query_text, wanted * 2) c
  ), nearest as materialized (
    select m.id, m.embedding operator(@vector@.<=>) query_embedding as distance
    from public.context_eng_memories m
    where m.user_id = me and m.embedding is not null
      and coalesce(m.deleted_at is null and m.embedding_model = model, false)
    order by m.embedding operator(@vector@.<=>) query_embedding
    limit wanted * 2
  ), semantic as (
    select n.id, row_number() over (order by n.distance, n.id) as rank
    from nearest n where query_embedding is not null
  )
  select m.id, m.content, m.metadata, m.created_dt,
    coalesce(full_text_weight / (k + f.rank), 0) + coalesce(semantic_weight / (k + s.rank), 0) as score,
    f.rank, s.rank
  from full_text f
  full outer join semantic s on s.id = f.id
  join public.context_eng_memories m on m.id = coalesce(f.id, s.id)
  where m.user_id = me
  order by score desc, m.id
  limit wanted;
end
$$;

create or replace function public.match_memory(
  query_embedding @vector@.vector(1536),
  match_threshold double precision default 0.7,
  match_count integer default 5,
  memory_type text default null,
  filter_user_id uuid default memctl.current_user_id()
)
returns table (
  id uuid,
  content text,
  similarity double precision,
  metadata jsonb,
  created_at timestamptz
)
language plpgsql stable security invoker
set search_path = pg_catalog, pg_temp
set hnsw.iterative_scan = 'relaxed_order'
set hnsw.ef_search = 800
set random_page_cost = 1.1
set cpu_operator_cost = 0.1
set plan_cache_mode = 'force_custom_plan'
as $$
#variable_conflict use_column
declare
  wanted integer := least(greatest(coalesce(match_count, 5), 0), 1000);
  model text := coalesce(current_setting('memctl.embedding_model', true), '');
begin
  return query
  with nearest as materialized (
    select m.id, m.content, m.metadata, m.created_at,
      m.embedding operator(@vector@.<=>) query_embedding as distance
    from public.agent_memory m
    where m.user_id = filter_user_id
      and (match_memory.memory_type is null or m.memory_type = match_memory.memory_type)
      and m.embedding is not null
      and coalesce(m.deleted_at is null and m.embedding_model = model
        and (m.expires_at is null or m.expires_at > now()), false)
    order by m.embedding operator(@vector@.<=>) query_embedding
    limit wanted
  )
  select n.id, n.content, 1 - n.distance, n.metadata, n.created_at
  from nearest n
  where 1 - n.distance > match_threshold
  order by n.distance, n.id;
end
$$;

do $$
declare
  signature text;
  who name;
begin
  foreach signature in array array[
    'memctl.bind_login()', 'memctl.hide_statistics()', 'memctl.delete_expired()'
  ] loop
    execute format('revoke all on function %s from public', signature);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
  end loop;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
    execute format('grant execute on function memctl.delete_expired() to %I', who);
  end loop;
  alter function memctl.delete_expired() owner to memctl_definer;
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    revoke create on schema memctl from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;
