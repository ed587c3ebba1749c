-- The log of what agents did: one table with a partition a month, and retention.
--
-- Partitions lie in the schema `memctl`, which no API shows, and nobody has a right on them: rows are read and
-- written through the table, under its policies.

alter table public.agent_execution_logs rename to agent_execution_logs_before;
create table public.agent_execution_logs (
  like public.agent_execution_logs_before including defaults including constraints
) partition by range (created_at);

alter table public.agent_execution_logs
  -- A session of an agent host need not be a record.
  alter column session_id drop not null,
  -- The session as the lines name it.
  add column session text,
  -- As in `agent_memory`; null for rows of a backend that names the user alone.
  add column held_by uuid default memctl.current_user_id() references auth.users (id) on delete cascade,
  add primary key (id, created_at),
  add foreign key (user_id) references auth.users (id) on delete cascade,
  add constraint agent_execution_logs_own_session foreign key (session_id, user_id)
    references public.agent_sessions (id, user_id) on update cascade on delete cascade;
create unique index on public.agent_execution_logs (held_by, origin, entry_id, created_at);
create index on public.agent_execution_logs (session_id, created_at);
create index on public.agent_execution_logs (user_id, created_at desc);
create index on public.agent_execution_logs (held_by, session, created_at);

-- Rows of months that have no partition.
create table memctl.logs_other partition of public.agent_execution_logs default;
revoke all on memctl.logs_other from public;

do $$
declare
  columns text;
begin
  select string_agg(quote_ident(attname), ', ' order by attnum) into columns from pg_catalog.pg_attribute
    where attrelid = 'public.agent_execution_logs_before'::regclass and attnum > 0 and not attisdropped;
  alter table public.agent_execution_logs_before no force row level security;
  execute format('insert into public.agent_execution_logs (%s, held_by) select %s, user_id
    from public.agent_execution_logs_before', columns, columns);
end
$$;
drop table public.agent_execution_logs_before;

create trigger memctl_stamp before insert or update on public.agent_execution_logs
  for each row execute function memctl.stamp();

alter table public.agent_execution_logs enable row level security, force row level security;
alter table memctl.logs_other enable row level security, force row level security;
create policy "users and holders read it" on public.agent_execution_logs for select
  using (user_id = (select memctl.current_user_id()) or held_by = (select memctl.current_user_id()));
create policy "holders add it" on public.agent_execution_logs for insert
  with check (held_by = (select memctl.current_user_id())
    and (user_id = (select memctl.current_user_id()) or memctl.hosts(user_id)));
create policy "administrators view it, on record" on public.agent_execution_logs for select
  using ((select memctl.admin_may_read()));
create policy "holders delete it by name" on public.agent_execution_logs
  to memctl_definer using (held_by = (select memctl.current_user_id()));
grant select (held_by, origin, user_id), delete on public.agent_execution_logs to memctl_definer;

do $$
declare
  who name;
begin
  revoke all on public.agent_execution_logs from public;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
    execute format('revoke all on public.agent_execution_logs from %I', who);
  end loop;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
    execute format('grant select, insert on public.agent_execution_logs to %I', who);
  end loop;
  if exists (select from pg_catalog.pg_roles where rolname = 'service_role')
    and has_table_privilege('service_role', 'memctl.embedders', 'select') then
    grant select, insert, update, delete on public.agent_execution_logs to service_role;
  end if;
  -- Subscribers name the table and not the month.
  if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime' and not puballtables) then
    alter publication supabase_realtime set (publish_via_partition_root = true);
    alter publication supabase_realtime add table public.agent_execution_logs;
  end if;
end
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

do $$
declare
  who name;
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl to memctl_definer;
  end if;
  revoke all on function memctl.keep_logs(interval) from public;
  revoke all on function memctl.delete_logs(text, text) from public;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
    execute format('revoke all on function memctl.keep_logs(interval) from %I', who);
    execute format('revoke all on function memctl.delete_logs(text, text) from %I', who);
  end loop;
  grant execute on function memctl.delete_logs(text, text) to memctl_user;
  alter function memctl.delete_logs(text, text) owner to memctl_definer;
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    revoke create on schema memctl from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
  if to_regprocedure('cron.schedule(text, text, text)') is not null then
    perform cron.schedule('memctl-logs', '30 2 * * *', 'select memctl.keep_logs()');
  end if;
end
$$;

select memctl.keep_logs('1000 years');
select memctl.hide_statistics();
