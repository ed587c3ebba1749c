-- Memories that lie here, and whose files elsewhere are copies that several programs write through.

-- The key under which such a memory hashes what was removed; every copy needs the same. Null where a
-- workspace only shares what lies in its own files.
alter table memctl.origins add column tombstone_key text
  check (length(tombstone_key) between 16 and 200);
-- The lock of the row is the turn of a writer. It takes the right to change something of it.
grant update (tombstone_key, claimed_at) on memctl.origins to memctl_user;

-- `born` is the order in which records were made, where `seq` is that of their last changes. `tombstone`
-- is what is kept of a record that was removed: its id, the time, and a hash of its content under the key.
do $$
declare
  name text;
  who name;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('alter table public.%I
      add column born bigint not null default nextval(''memctl.changes''),
      add column tombstone text', name);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
      if name = 'context_eng_memories' then
        execute format('grant insert (tombstone), update (tombstone) on public.%I to %I', name, who);
      end if;
    end loop;
  end loop;
end
$$;

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

-- As before, and tells those who listen that there is something to fetch: whose it is, and nothing else.
create or replace function memctl.take_turn() returns trigger
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

do $$
declare
  signature text;
  who name;
begin
  foreach signature in array array['memctl.clock()', 'memctl.begin_write()'] loop
    execute format('revoke all on function %s from public', signature);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
    for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
      execute format('grant execute on function %s to %I', signature, who);
    end loop;
    execute format('alter function %s owner to memctl_definer', signature);
  end loop;
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    revoke create on schema memctl from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;
