-- What the database keeps up by itself: numbers of changes, hashes, search texts, times, messages.

-- A user's writers take turns (see memctl.clocks). Tells those who listen that there is something to fetch:
-- whose it is, and nothing else.
create function memctl.take_turn() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if memctl.current_user_id() is not null then
    insert into memctl.clocks as c (user_id) values (memctl.current_user_id())
      on conflict (user_id) do update set writes = c.writes + 1;
    perform pg_notify('memctl_written', memctl.current_user_id()::text);
  end if;
  return null;
end
$$;

-- How often the caller's rows have been written to: who has seen this number has nothing to fetch.
create function memctl.clock() returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select c.writes from memctl.clocks c where c.user_id = memctl.current_user_id()), 0)
$$;

-- Waits until no other transaction is writing rows of the caller's, and keeps the others waiting until
-- the end of this one. What is then read is what is there.
create function memctl.begin_write() returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into memctl.clocks as c (user_id)
    select memctl.current_user_id() where memctl.current_user_id() is not null
    on conflict (user_id) do update set writes = c.writes + 1
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

-- A row without a holder is held by its user. A row that is held for another user takes that user's turn, so that
-- numbers of changes become visible to that user in their order.
create function memctl.hold() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  new.held_by := coalesce(new.held_by, new.user_id);
  if new.held_by is distinct from new.user_id then
    insert into memctl.clocks as c (user_id) values (new.user_id)
      on conflict (user_id) do update set writes = c.writes + 1;
  end if;
  return new;
end
$$;

-- The domain of a skill is no generated column: no column that another one is generated from can be rid of
-- its statistics by those who are no superusers.
create function memctl.stamp() returns trigger
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

-- The beginning of a long text: a tsvector holds one megabyte at most, and what is too long for it must be
-- stored all the same. A procedure whose row names no content, as a workflow of n8n sends it, gets one: the
-- texts of its fields, as the source document describes the column. Without a content, no search finds it.
create function memctl.write_fts() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  fields jsonb := new.metadata -> 'data';
begin
  if new.content is null and jsonb_typeof(fields) = 'object' then
    select string_agg(v.said, E'\n' order by f.place, v.place) into new.content
      from unnest(array[
        'procedure_name', 'semantic_description', 'initial_failure_summary', 'identified_root_cause',
        'successful_intervention', 'learned_procedure_steps', 'critical_contextual_cues', 'example_scenario_abstract'
      ]) with ordinality as f (name, place)
      cross join jsonb_array_elements_text(
        case jsonb_typeof(fields -> f.name)
          when 'array' then fields -> f.name
          else jsonb_build_array(fields -> f.name)
        end
      ) with ordinality as v (said, place)
      where v.said <> '';
  end if;
  new.fts := to_tsvector('pg_catalog.english', left(coalesce(new.content, ''), 200000));
  return new;
end
$$;

create function memctl.update_updated_at_column() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A vector that memctl makes for a text is no change of it.
  if coalesce(current_setting('memctl.vectors', true), '') <> 'on' then
    new.updated_at := now();
  end if;
  return new;
end
$$;

-- The seed's reads NEW, which a deletion does not have, and so told nobody's id and type then. It
-- needs no rights of a definer. A message says who wrote and what kind, never what: any role of a
-- database can listen.
create function memctl.notify_memory_update() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  row_ public.agent_memory := case when tg_op = 'DELETE' then old else new end;
begin
  perform pg_notify('memory_updated', json_build_object(
    'user_id', row_.user_id, 'memory_type', row_.memory_type, 'operation', tg_op)::text);
  return null;
end
$$;

do $$
declare
  name text;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('create trigger memctl_stamp before insert or update on public.%I
      for each row execute function memctl.stamp()', name);
    if name = 'agent_execution_logs' then
      continue;
    end if;
    execute format('create trigger memctl_take_turn before insert or update on public.%I
      for each statement execute function memctl.take_turn()', name);
    execute format('create trigger memctl_first_turn before insert or update on public.%I for each row
      when (current_user = ''service_role'' and new.user_id is not null)
      execute function memctl.take_turn_of()', name);
    if name in ('agent_memory', 'agent_sessions') then
      execute format('create trigger memctl_hold before insert or update on public.%I
        for each row execute function memctl.hold()', name);
      execute format('drop trigger if exists update_%s_updated_at on public.%I', name, name);
      execute format('create trigger update_%s_updated_at before update on public.%I
        for each row execute function memctl.update_updated_at_column()', name, name);
    end if;
  end loop;
end
$$;
-- Copies of a memory fetch the list, as after a write of records.
create trigger memctl_take_turn before insert or update on memctl.disabled_users
  for each statement execute function memctl.take_turn();
create trigger memctl_write_fts before insert or update on public.context_eng_memories
  for each row execute function memctl.write_fts();
drop trigger if exists agent_memory_updated on public.agent_memory;
create trigger agent_memory_updated after insert or update or delete on public.agent_memory
  for each row execute function memctl.notify_memory_update();

-- Rows of a seed's table get their content and search text.
update public.context_eng_memories set content = content;

-- Supabase's realtime, where it is. Subscribers name the table of the log and not the month.
do $$
declare
  name text;
begin
  if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime' and not puballtables) then
    alter publication supabase_realtime set (publish_via_partition_root = true);
    foreach name in array array['agent_memory', 'agent_sessions', 'agent_execution_logs'] loop
      if not exists (
        select from pg_catalog.pg_publication_tables
        where pubname = 'supabase_realtime' and schemaname = 'public' and tablename = name
      ) then
        execute format('alter publication supabase_realtime add table public.%I', name);
      end if;
    end loop;
  end if;
end
$$;
