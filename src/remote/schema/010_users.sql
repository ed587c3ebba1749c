-- Users of a memory that a server answers for: `serve` writes the memories and sessions of a token's user as rows
-- of that user, so that row security keeps them apart, too.
--
-- `user_id` is the user whose row it is. `held_by` is the user whose login wrote it and whose memory it is part of:
-- for rows of `serve` that of the server, for all others the same as `user_id`. The holder reads and writes the row,
-- its user reads it, and nobody else sees it.

-- Users for whom a holder may write rows: the name in the tokens (`sub`), and the user in the database.
create table memctl.hosted_users (
  host_id uuid not null references auth.users (id) on delete cascade,
  sub text not null check (length(sub) between 1 and 200),
  user_id uuid not null references auth.users (id) on delete cascade,
  created_at timestamptz not null default now(),
  primary key (host_id, sub)
);
create index on memctl.hosted_users (user_id, host_id);
alter table memctl.hosted_users enable row level security, force row level security;
create policy "the administrator keeps it" on memctl.hosted_users to current_user using (true) with check (true);
create policy "holders are looked up" on memctl.hosted_users for select to memctl_definer using (true);
create policy "holders get users" on memctl.hosted_users for insert to memctl_definer with check (true);
create policy "holders and users know of each other" on memctl.hosted_users for select
  using (host_id = (select memctl.current_user_id()) or user_id = (select memctl.current_user_id()));
revoke all on memctl.hosted_users from public;
grant select, insert on memctl.hosted_users to memctl_definer;

-- A new user of a token needs a row in `auth.users`. Where that table is Supabase's, an administrator may have no
-- right to grant this; users that exist already are found all the same.
do $$
begin
  grant usage on schema auth to memctl_definer;
  grant insert (id) on auth.users to memctl_definer;
  if (select relrowsecurity from pg_catalog.pg_class where oid = 'auth.users'::regclass) then
    create policy "holders add users" on auth.users for insert to memctl_definer with check (true);
  end if;
exception when insufficient_privilege then
  raise notice 'new users cannot be added to auth.users by servers';
end
$$;

do $$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl to memctl_definer;
  end if;
end
$$;

-- Whether the caller holds rows of a user. Volatile, so that it sees a user that the same statement has made.
create function memctl.hosts(_user_id uuid) returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from memctl.hosted_users h
    where h.user_id = _user_id and h.host_id = memctl.current_user_id())
$$;

-- The user of a name in the caller's tokens, made at its first use; null for no name.
--
-- Such a user is new, and nobody's but the caller's: a name alone must not give access to the rows of somebody who
-- exists already. Only a login in `memctl.token_roles`, which the administrator trusts to verify tokens, may name
-- an existing user by id.
create function memctl.host_user(sub text) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  me uuid := memctl.current_user_id();
  found_id uuid;
begin
  if me is null or coalesce(host_user.sub, '') = '' then
    return null;
  end if;
  select h.user_id into found_id from memctl.hosted_users h where h.host_id = me and h.sub = host_user.sub;
  if found_id is not null then
    return found_id;
  end if;
  if host_user.sub ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    if host_user.sub::uuid = me then
      return me;
    end if;
    if exists (select from memctl.token_roles t where t.role_name = session_user) then
      begin
        insert into memctl.hosted_users (host_id, sub, user_id) values (me, host_user.sub, host_user.sub::uuid);
        return host_user.sub::uuid;
      exception when foreign_key_violation then
        -- No user has this id.
        null;
      end;
    end if;
  end if;
  found_id := gen_random_uuid();
  begin
    insert into auth.users (id) values (found_id);
    insert into memctl.hosted_users (host_id, sub, user_id) values (me, host_user.sub, found_id);
  exception when unique_violation then
    -- Another session was first.
    select h.user_id into strict found_id
      from memctl.hosted_users h where h.host_id = me and h.sub = host_user.sub;
  end;
  return found_id;
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

do $$
declare
  name text;
  own text;
begin
  -- Sessions that pass to another user take their log along.
  alter table public.agent_execution_logs drop constraint agent_execution_logs_own_session;
  alter table public.agent_execution_logs
    add constraint agent_execution_logs_own_session foreign key (session_id, user_id)
      references public.agent_sessions (id, user_id) on update cascade on delete cascade;
  foreach name in array array['agent_memory', 'agent_sessions'] loop
    execute format('alter table public.%I
      add column held_by uuid references auth.users (id) on delete cascade', name);
    execute format('alter table public.%I disable trigger user, no force row level security', name);
    execute format('update public.%I set held_by = user_id', name);
    execute format('alter table public.%I enable trigger user, force row level security,
      alter column held_by set default memctl.current_user_id(),
      alter column held_by set not null,
      alter column held_by set statistics 0', name);
    -- Names of records are unique within the memory that holds them, and no longer within a user: two servers may
    -- hold rows of one.
    for own in select x.indexrelid::regclass::text from pg_catalog.pg_index x
      where x.indrelid = format('public.%I', name)::regclass and x.indisunique
        and pg_get_indexdef(x.indexrelid) like '%(user_id, origin, entry_id)%'
    loop
      execute format('drop index %s', own);
    end loop;
    execute format('create unique index on public.%I (held_by, origin, entry_id)', name);
    execute format('create index on public.%I (held_by, seq)', name);
    execute format('create trigger memctl_hold before insert or update on public.%I
      for each row execute function memctl.hold()', name);
    execute format('drop policy "users read their own" on public.%I', name);
    execute format('drop policy "users add their own" on public.%I', name);
    execute format('drop policy "users change their own" on public.%I', name);
    execute format('drop policy "users delete their own" on public.%I', name);
    execute format('create policy "users and holders read it" on public.%I for select
      using (user_id = (select memctl.current_user_id()) or held_by = (select memctl.current_user_id()))', name);
    execute format('create policy "holders add it" on public.%I for insert
      with check (held_by = (select memctl.current_user_id())
        and (user_id = (select memctl.current_user_id()) or memctl.hosts(user_id)))', name);
    execute format('create policy "holders change it" on public.%I for update
      using (held_by = (select memctl.current_user_id()))
      with check (held_by = (select memctl.current_user_id())
        and (user_id = (select memctl.current_user_id()) or memctl.hosts(user_id)))', name);
    execute format('create policy "holders delete it" on public.%I for delete
      using (held_by = (select memctl.current_user_id()))', name);
  end loop;
end
$$;
grant select (held_by) on public.agent_memory to memctl_definer;

-- Rows that servers have written already pass to the users that their records name.
create function pg_temp.user_of(entry text) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return nullif(left(entry::jsonb ->> 'user_id', 200), '');
exception when others then
  return null;
end
$$;
do $$
declare
  name text;
  found record;
  person uuid;
begin
  foreach name in array array['agent_memory', 'agent_sessions'] loop
    execute format('alter table public.%I disable trigger user, no force row level security', name);
    for found in execute format('
      select distinct t.held_by, pg_temp.user_of(t.entry) as sub from public.%I t
      join memctl.origins o on o.user_id = t.held_by and o.origin = t.origin and o.tombstone_key is not null
      where pg_temp.user_of(t.entry) is not null and pg_temp.user_of(t.entry) <> t.held_by::text', name)
    loop
      select h.user_id into person from memctl.hosted_users h
        where h.host_id = found.held_by and h.sub = found.sub;
      if person is null then
        person := gen_random_uuid();
        insert into auth.users (id) values (person);
        insert into memctl.hosted_users (host_id, sub, user_id) values (found.held_by, found.sub, person);
      end if;
      execute format('update public.%I t set user_id = $1 from memctl.origins o
        where o.user_id = t.held_by and o.origin = t.origin and o.tombstone_key is not null
          and t.held_by = $2 and pg_temp.user_of(t.entry) = $3', name)
        using person, found.held_by, found.sub;
    end loop;
    execute format('alter table public.%I enable trigger user, force row level security', name);
  end loop;
end
$$;
drop function pg_temp.user_of(text);

-- Searches of a user compare the vectors of the user's own model, as before, and those of the models of servers
-- that hold the user's rows.
create policy "users know the models of their holders" on memctl.embedders for select
  using (exists (
    select from memctl.hosted_users h
    where h.host_id = embedders.user_id and h.user_id = (select memctl.current_user_id())));
create or replace function memctl.searched_models(me uuid) returns text[]
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

-- Deletes what has expired and another program wrote: for its user, who then holds it.
create or replace function memctl.delete_expired() returns bigint
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

-- As before, and with `hosted_users`. Lets Supabase's `service_role` read and write for all users. It counts only if it bypasses row security
-- already, which a superuser has decided. `memctl remote init` calls this again.
create or replace function memctl.admit_service_role() returns void
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
  grant select on memctl.embedders, memctl.hosted_users to service_role;
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
  foreach signature in array array[
    'memctl.hosts(uuid)', 'memctl.host_user(text)', 'memctl.hold()'
  ] loop
    execute format('revoke all on function %s from public', signature);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
    -- Whose policies ask it has to be able to.
    execute format('grant execute on function %s to current_user', signature);
    execute format('alter function %s owner to memctl_definer', signature);
  end loop;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
    execute format('grant execute on function memctl.hosts(uuid) to %I', who);
    execute format('grant select on memctl.hosted_users to %I', who);
  end loop;
  if exists (select from pg_catalog.pg_roles where rolname = 'service_role')
    and has_table_privilege('service_role', 'memctl.embedders', 'select') then
    grant select on memctl.hosted_users to service_role;
  end if;
  grant execute on function memctl.host_user(text) to memctl_user;
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    revoke create on schema memctl from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;

select memctl.hide_statistics();
