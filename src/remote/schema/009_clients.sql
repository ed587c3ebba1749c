-- Clients of the source documents: they name no embedding model, and their edge functions come with the key
-- of `service_role`.

-- The model of a user's own vectors, as the last `sync` or `remote join` stored them.
create table memctl.embedders (
  user_id uuid primary key default memctl.current_user_id() references auth.users (id) on delete cascade,
  model text not null
);
alter table memctl.embedders enable row level security, force row level security;
create policy "users keep their own" on memctl.embedders
  using (user_id = (select memctl.current_user_id()))
  with check (user_id = (select memctl.current_user_id()));

-- Models whose vectors a search compares: the one that the setting names; without it, vectors that name none
-- and those of the user's own model.
create function memctl.searched_models(me uuid) returns text[]
language sql stable security invoker
set search_path = pg_catalog, pg_temp
as $$
  select case
    when coalesce(current_setting('memctl.embedding_model', true), '') <> ''
      then array[current_setting('memctl.embedding_model', true)]
    else array[''] || array(
      select e.model from memctl.embedders e where e.user_id = me)
  end
$$;

-- The hybrid search over the rows of all users, for a caller that bypasses row security and is no user. The
-- source document's function knew no users.
create function memctl.hybrid_search_of_all(
  query_text text,
  query_embedding @vector@.vector(1536),
  wanted integer,
  full_text_weight double precision,
  semantic_weight double precision,
  k integer
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
language sql stable security invoker
set search_path = pg_catalog, pg_temp
set hnsw.iterative_scan = 'relaxed_order'
set hnsw.ef_search = 800
as $$
  with words as (
    select string_agg('''' || replace(replace(w.lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery as query
    from (
      select lexeme from unnest(to_tsvector('pg_catalog.english', left(query_text, 20000)))
      order by positions[1] limit 64
    ) w
  ), best as (
    select m.id, ts_rank_cd(m.fts, words.query) as likeness
    from public.context_eng_memories m, words
    where m.fts @@ words.query and m.deleted_at is null
    order by likeness desc, m.id
    limit wanted * 2
  ), full_text as (
    select best.id, row_number() over (order by best.likeness desc, best.id) as rank from best
  ), nearest as materialized (
    select m.id, m.embedding operator(@vector@.<=>) query_embedding as distance
    from public.context_eng_memories m
    where m.embedding is not null and m.deleted_at is null
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
  order by score desc, m.id
  limit wanted
$$;

-- Both searches as before, but for the models.
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
  models text[] := memctl.searched_models(me);
begin
  if me is null and (select r.rolbypassrls from pg_roles r where r.rolname = current_user) then
    return query select * from memctl.hybrid_search_of_all(
      query_text, query_embedding, wanted, full_text_weight, semantic_weight, k);
    return;
  end if;
  return query
  with full_text as (
    select c.id, c.rank from memctl.keyword_candidates(query_text, wanted * 2) c
  ), nearest as materialized (
    select m.id, m.embedding operator(@vector@.<=>) query_embedding as distance
    from public.context_eng_memories m
    where m.user_id = me and m.embedding is not null
      and coalesce(m.deleted_at is null and m.embedding_model = any (models), false)
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
  models text[] := memctl.searched_models(filter_user_id);
begin
  return query
  with nearest as materialized (
    select m.id, m.content, m.metadata, m.created_at,
      m.embedding operator(@vector@.<=>) query_embedding as distance
    from public.agent_memory m
    where m.user_id = filter_user_id
      and (match_memory.memory_type is null or m.memory_type = match_memory.memory_type)
      and m.embedding is not null
      and coalesce(m.deleted_at is null and m.embedding_model = any (models)
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

-- A backend that writes for users takes the turn of each of them, before `memctl_stamp` takes the number:
-- numbers of changes become visible in their order.
create function memctl.take_turn_of() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into memctl.clocks as c (user_id) values (new.user_id)
    on conflict (user_id) do update set writes = c.writes + 1;
  return new;
end
$$;
do $$
declare
  name text;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('create trigger memctl_first_turn before insert or update on public.%I for each row
      when (current_user = ''service_role'' and new.user_id is not null)
      execute function memctl.take_turn_of()', name);
  end loop;
end
$$;

-- Lets Supabase's `service_role` read and write for all users. It counts only if it bypasses row security
-- already, which a superuser has decided. `memctl remote init` calls this again.
create function memctl.admit_service_role() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  name text;
  is_super boolean := (select rolsuper from pg_roles where rolname = current_user);
begin
  if not exists (select from pg_roles where rolname = 'service_role' and rolbypassrls)
    or has_function_privilege('service_role', 'memctl.hybrid_search_of_all(text, @vector@.vector, integer,
      double precision, double precision, integer)', 'execute')
  then
    return;
  end if;
  if not is_super then
    execute format('grant memctl_definer to %I', current_user);
  end if;
  grant usage on schema memctl to service_role;
  grant usage on sequence memctl.changes to service_role;
  grant select on memctl.embedders to service_role;
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('grant select, insert, update, delete on public.%I to service_role', name);
  end loop;
  for name in
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace = 'memctl'::regnamespace
      and p.proname in ('current_user_id', 'searched_models', 'hybrid_search_of_all')
      or p.pronamespace = 'public'::regnamespace
      and p.proname in ('hybrid_search_context_eng_memories', 'match_memory')
  loop
    execute format('grant execute on function %s to service_role', name);
  end loop;
  -- The numbers of rows that `identity` or `serial` columns count.
  for name in
    select s.oid::regclass::text from pg_class s
      join pg_depend d on d.objid = s.oid and d.deptype in ('a', 'i')
      join pg_class t on t.oid = d.refobjid
    where s.relkind = 'S' and t.relnamespace = 'public'::regnamespace and t.relname = 'context_eng_memories'
  loop
    execute format('grant usage on sequence %s to service_role', name);
  end loop;
  if not is_super then
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;

do $$
declare
  signature text;
  who name;
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl to memctl_definer;
  end if;
  foreach signature in array array[
    'memctl.searched_models(uuid)', 'memctl.admit_service_role()', 'memctl.take_turn_of()',
    'memctl.hybrid_search_of_all(text, @vector@.vector, integer, double precision, double precision, integer)'
  ] loop
    execute format('revoke all on function %s from public', signature);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
  end loop;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
    execute format('grant execute on function memctl.searched_models(uuid) to %I', who);
    execute format('grant select, insert, update on memctl.embedders to %I', who);
  end loop;
  revoke all on memctl.embedders from public;
  alter function memctl.take_turn_of() owner to memctl_definer;
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    revoke create on schema memctl from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;

select memctl.hide_statistics();
select memctl.admit_service_role();
