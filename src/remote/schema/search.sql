-- Search, with the seeds' signatures.

-- Models whose vectors a search compares: the one that the setting names; without it, vectors that name none,
-- those of the user's own model, and those of the models of servers that hold the user's rows.
create function memctl.searched_models(me uuid) returns text[]
language sql stable security invoker
set search_path = pg_catalog, pg_temp
as $$
  select case
    when coalesce(current_setting('memctl.embedding_model', true), '') <> ''
      then array[current_setting('memctl.embedding_model', true)]
    else array[''] || array(
      select e.model from memctl.embedders e
      where e.user_id = me or exists (
        select from memctl.hosted_users h where h.host_id = e.user_id and h.user_id = me))
  end
$$;

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

-- Reciprocal rank fusion of the words and the meaning:
--   full_text_weight / (rrf_k + keyword_rank) + semantic_weight / (rrf_k + semantic_rank)
-- where a list that does not have a row gives it nothing.
--
-- The searches are plpgsql, because that plans with the numbers that are asked for (at every call, by
-- `plan_cache_mode`): of a `limit` whose number it does not know the planner expects a tenth of the table,
-- and then leaves the index alone. The user stands in a variable for the same reason: the planner then
-- knows from its statistics how many rows are theirs.
--
-- The costs tell it what it does not know: that a distance reads 6 KB from elsewhere, and that a page of
-- an index is as near as any other. Without them it sorts all rows of a user who owns half of the table;
-- whoever owns a few thousand is searched exactly with them too.
--
-- Without statistics (see `hide_statistics`) the planner takes `deleted_at is null` and a comparison with the
-- model for something that hardly a row fulfils, and then leaves the index alone. Of a `coalesce` it expects
-- that half of the rows fulfil it.
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
