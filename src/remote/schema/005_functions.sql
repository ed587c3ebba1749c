-- Search and clean-up, with the seeds' signatures.

-- The ids of the caller's procedures that hold a word of the query, best first.
--
-- This runs with the rights of memctl_definer for one reason: under row-level security PostgreSQL
-- cannot use an index for an operator that is not leak-proof, and `@@` is none, so that as the caller
-- it would read every row of the table. It takes no user, asks memctl.current_user_id() itself, and
-- answers nothing but ids; the text is then read under the caller's own policies.
--
-- Any word will do, rare ones and those that stand together rank first. The seed's neighbour
-- `websearch_to_tsquery` demands all words, and a rewritten, wordy query finds nothing by it.
create function memctl.keyword_candidates(query_text text, candidates integer)
returns table (id bigint, rank bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with words as (
    -- Lexemes are text, not syntax: each is quoted as one.
    select string_agg('''' || replace(replace(w.lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery as query
    from (
      select lexeme from unnest(to_tsvector('pg_catalog.english', left(query_text, 20000)))
      order by positions[1] limit 64
    ) w
  ), best as (
    select m.id, ts_rank_cd(m.fts, words.query) as likeness
    from public.context_eng_memories m, words
    where m.fts @@ words.query
      and m.user_id = (select memctl.current_user_id())
      and m.deleted_at is null
    order by likeness desc, m.id
    limit candidates
  )
  select best.id, row_number() over (order by best.likeness desc, best.id) from best
$$;

-- Reciprocal rank fusion of the words and the meaning:
--   full_text_weight / (rrf_k + keyword_rank) + semantic_weight / (rrf_k + semantic_rank)
-- where a list that does not have a row gives it nothing. Vectors count if their model is that of the
-- setting `memctl.embedding_model`.
--
-- Both searches are plpgsql, because that plans with the numbers that are asked for (at every call, by
-- `plan_cache_mode`): of a `limit` whose number it does not know the planner expects a tenth of the table,
-- and then leaves the index alone. The user stands in a variable for the same reason: the planner then
-- knows from its statistics how many rows are theirs.
--
-- The costs tell it what it does not know: that a distance reads 6 KB from elsewhere, and that a page of
-- an index is as near as any other. Without them it sorts all rows of a user who owns half of the table;
-- whoever owns a few thousand is searched exactly with them too.
create function public.hybrid_search_context_eng_memories(
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
    where m.deleted_at is null and m.embedding is not null
      and m.user_id = me and m.embedding_model = model
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

-- The seed's ran with its owner's rights and believed the caller's `filter_user_id`, so that everybody
-- could read everybody; and it failed in any case, because `memory_type` meant both the argument and
-- the column. Here another user's id finds nothing, except for an administrator on record.
create function public.match_memory(
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
      and (m.expires_at is null or m.expires_at > now())
      and m.deleted_at is null and m.embedding is not null and m.embedding_model = model
    order by m.embedding operator(@vector@.<=>) query_embedding
    limit wanted
  )
  select n.id, n.content, 1 - n.distance, n.metadata, n.created_at
  from nearest n
  where 1 - n.distance > match_threshold
  order by n.distance, n.id;
end
$$;

-- Deletes what has expired, of all users; its policies show it nothing else. For pg_cron or the
-- administrator.
create function public.cleanup_expired_memory() returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from public.agent_memory where expires_at is not null and expires_at < now()
$$;

-- Nobody executes a function of ours without being named here.
do $$
declare
  signature regprocedure;
  who name;
  for_users regprocedure[] := array[
    'memctl.current_user_id()', 'memctl.has_role(uuid, text)', 'memctl.open_admin_read(text)',
    'memctl.admin_may_read()', 'memctl.keyword_candidates(text, integer)',
    'public.hybrid_search_context_eng_memories(text, @vector@.vector, integer, double precision, double precision, integer)',
    'public.match_memory(@vector@.vector, double precision, integer, text, uuid)'
  ];
begin
  for signature in
    select oid::regprocedure from pg_catalog.pg_proc
    where pronamespace = 'memctl'::regnamespace
    union all select for_users[6]
    union all select for_users[7]
    union all select 'public.cleanup_expired_memory()'::regprocedure
  loop
    execute format('revoke all on function %s from public', signature);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
    -- Whose policies ask who the owner of the tables is has to be able to.
    execute format('grant execute on function %s to current_user', signature);
  end loop;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
    execute format('grant usage on schema memctl to %I', who);
    execute format('grant usage on sequence memctl.changes to %I', who);
    foreach signature in array for_users loop
      execute format('grant execute on function %s to %I', signature, who);
    end loop;
  end loop;
end
$$;

-- The owner of what runs with other rights than its caller's. An administrator who is no superuser
-- needs membership, and memctl_definer the right to create in the schemas, for this moment.
do $$
declare
  is_super boolean := (select rolsuper from pg_catalog.pg_roles where rolname = current_user);
  signature text;
begin
  if not is_super then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl, public to memctl_definer;
  end if;
  foreach signature in array array[
    'memctl.current_user_id()', 'memctl.has_role(uuid, text)', 'memctl.open_admin_read(text)',
    'memctl.admin_may_read()', 'memctl.take_turn()',
    'memctl.keyword_candidates(text, integer)', 'public.cleanup_expired_memory()'
  ] loop
    execute format('alter function %s owner to memctl_definer', signature);
  end loop;
  if not is_super then
    revoke create on schema memctl, public from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;

-- At two every night, where pg_cron is; elsewhere the administrator calls the function.
do $$
begin
  if to_regprocedure('cron.schedule(text, text, text)') is not null then
    perform cron.schedule('cleanup-expired-memory', '0 2 * * *', 'select public.cleanup_expired_memory()');
  end if;
end
$$;
