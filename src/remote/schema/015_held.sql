-- Search of the memories that the caller holds for others: those of the users of a server.

-- The nearest memories that the caller holds for one user of its tokens, or for all of them. `match_memory` has those
-- of the caller. Comparable vectors and the settings of the planner are as in `match_memory`.
create function memctl.match_held_memory(
  query_embedding @vector@.vector(1536),
  match_count integer,
  memory_type text,
  sub text
)
returns table (id uuid, similarity double precision)
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
  me uuid := memctl.current_user_id();
  person uuid;
  wanted integer := least(greatest(coalesce(match_count, 5), 0), 1000);
  models text[] := memctl.searched_models(me);
begin
  if match_held_memory.sub is not null then
    select h.user_id into person from memctl.hosted_users h
      where h.host_id = me and h.sub = match_held_memory.sub;
    return query
    select m.id, 1 - (m.embedding operator(@vector@.<=>) query_embedding)
    from public.agent_memory m
    where m.user_id = person and m.held_by = me and m.user_id <> me
      and (match_held_memory.memory_type is null or m.memory_type = match_held_memory.memory_type)
      and m.embedding is not null
      and coalesce(m.deleted_at is null and m.embedding_model = any (models)
        and (m.expires_at is null or m.expires_at > now()), false)
    order by m.embedding operator(@vector@.<=>) query_embedding
    limit wanted;
    return;
  end if;
  return query
  select m.id, 1 - (m.embedding operator(@vector@.<=>) query_embedding)
  from public.agent_memory m
  where m.held_by = me and m.user_id <> me
    and (match_held_memory.memory_type is null or m.memory_type = match_held_memory.memory_type)
    and m.embedding is not null
    and coalesce(m.deleted_at is null and m.embedding_model = any (models)
      and (m.expires_at is null or m.expires_at > now()), false)
  order by m.embedding operator(@vector@.<=>) query_embedding
  limit wanted;
end
$$;

do $$
declare
  signature text := 'memctl.match_held_memory(@vector@.vector, integer, text, text)';
  who name;
begin
  execute format('revoke all on function %s from public', signature);
  for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
    execute format('revoke all on function %s from %I', signature, who);
  end loop;
  execute format('grant execute on function %s to memctl_user', signature);
end
$$;
