-- What the database keeps up by itself: numbers of changes, hashes, search texts, times, messages.

-- A user's writers take turns (see memctl.clocks).
create function memctl.take_turn() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if memctl.current_user_id() is not null then
    insert into memctl.clocks as c (user_id) values (memctl.current_user_id())
      on conflict (user_id) do update set writes = c.writes + 1;
  end if;
  return null;
end
$$;

create function memctl.stamp() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  new.seq := nextval('memctl.changes');
  new.hash := encode(sha256(convert_to(new.entry, 'UTF8')), 'hex');
  return new;
end
$$;

-- The beginning of a long text: a tsvector holds one megabyte at most, and what is too long for it
-- must be stored all the same.
create function memctl.write_fts() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  new.fts := to_tsvector('pg_catalog.english', left(coalesce(new.content, ''), 200000));
  return new;
end
$$;

create function memctl.update_updated_at_column() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  new.updated_at := now();
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
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('create trigger memctl_take_turn before insert or update on public.%I
      for each statement execute function memctl.take_turn()', name);
    execute format('create trigger memctl_stamp before insert or update on public.%I
      for each row execute function memctl.stamp()', name);
  end loop;
end
$$;

create trigger memctl_write_fts before insert or update on public.context_eng_memories
  for each row execute function memctl.write_fts();

drop trigger if exists update_agent_memory_updated_at on public.agent_memory;
create trigger update_agent_memory_updated_at before update on public.agent_memory
  for each row execute function memctl.update_updated_at_column();
drop trigger if exists update_agent_sessions_updated_at on public.agent_sessions;
create trigger update_agent_sessions_updated_at before update on public.agent_sessions
  for each row execute function memctl.update_updated_at_column();

drop trigger if exists agent_memory_updated on public.agent_memory;
create trigger agent_memory_updated after insert or update or delete on public.agent_memory
  for each row execute function memctl.notify_memory_update();

-- Supabase's realtime, where it is.
do $$
declare
  name text;
begin
  if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
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
