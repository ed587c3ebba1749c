-- Audit events and outcomes of hints: lines of the files `audit.jsonl` and `hints.jsonl` of all copies and
-- workspaces, each with its text (`entry`).
--
-- A line never changes, so a login may add and read, and nothing else. The user whose login has added a line holds
-- it. The tables lie in the schema `memctl`, which no API shows.

create table memctl.audit_events (
  held_by uuid not null default memctl.current_user_id() references auth.users (id) on delete cascade,
  origin text not null check (origin ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  -- Hash of the line in the chain of its file. Two copies of a memory have a line in common only if time, caller,
  -- records and all lines before are the same.
  entry_id text not null check (entry_id ~ '^[0-9a-f]{64}$'),
  entry text not null,
  -- Number in its file.
  number bigint not null,
  who text not null,
  did text not null,
  records text[] not null,
  -- Other users that the records belong to.
  of_users text[] not null,
  why text not null,
  -- The role that has added it: the login of a server or a laptop.
  role_name name not null default session_user,
  created_at timestamptz not null,
  primary key (held_by, origin, entry_id)
);
create index on memctl.audit_events (held_by, origin, created_at, number);
create index on memctl.audit_events (created_at);

create table memctl.hint_outcomes (
  held_by uuid not null default memctl.current_user_id() references auth.users (id) on delete cascade,
  origin text not null check (origin ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  -- Hash of the line, and its number among those with the same text.
  entry_id text not null check (entry_id ~ '^[0-9a-f]{32}(-[0-9]{1,9})?$'),
  entry text not null,
  session text not null,
  error_key text not null,
  -- Ids of the fixes that were told, or withheld by an experiment.
  hints text[] not null,
  withheld boolean not null,
  -- A call with the same goal succeeded; it succeeded in the way of a hint.
  overcome boolean not null,
  helped boolean not null,
  repeats bigint not null,
  steps bigint not null,
  created_at timestamptz not null,
  primary key (held_by, origin, entry_id)
);
create index on memctl.hint_outcomes (created_at);

do $$
declare
  name text;
  who name;
begin
  foreach name in array array['audit_events', 'hint_outcomes'] loop
    execute format('alter table memctl.%I enable row level security, force row level security', name);
    execute format('create policy "holders read it" on memctl.%I for select
      using (held_by = (select memctl.current_user_id()))', name);
    execute format('create policy "holders add it" on memctl.%I for insert
      with check (held_by = (select memctl.current_user_id()))', name);
    execute format('revoke all on memctl.%I from public', name);
    execute format('grant select, insert on memctl.%I to memctl_user', name);
  end loop;
end
$$;

-- Nobody adds an event in the name of another login.
create policy "logins name themselves" on memctl.audit_events as restrictive for insert
  with check (role_name = session_user);

-- Users of a server see who has seen or changed their records, and what they did themselves.
create policy "users read of their own" on memctl.audit_events for select
  using (exists (
    select from memctl.hosted_users h
    where h.host_id = audit_events.held_by and h.user_id = (select memctl.current_user_id())
      and (h.sub = audit_events.who or h.sub = any (audit_events.of_users))));

-- Outcomes of a memory go with the memory. The audit stays: it tells who has removed it.
create policy "holders delete it by name" on memctl.hint_outcomes
  to memctl_definer using (held_by = (select memctl.current_user_id()));
grant select (held_by, origin), delete on memctl.hint_outcomes to memctl_definer;
create function memctl.delete_hints(_origin text) returns bigint
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from memctl.hint_outcomes o
    where o.held_by = (select memctl.current_user_id()) and o.origin = _origin
    returning 1
  )
  select count(*) from gone
$$;

-- Deletes the events and outcomes that are older than `keep`. For the administrator or pg_cron, as
-- `memctl.keep_logs`; `memctl memory prune --remote` calls it. Answers how many lines were deleted.
create function memctl.keep_audit(keep interval default '24 months') returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  events bigint;
  outcomes bigint;
begin
  -- Row security would hide the rows from an owner who is no superuser.
  alter table memctl.audit_events no force row level security;
  alter table memctl.hint_outcomes no force row level security;
  delete from memctl.audit_events where created_at < now() - keep;
  get diagnostics events = row_count;
  delete from memctl.hint_outcomes where created_at < now() - keep;
  get diagnostics outcomes = row_count;
  alter table memctl.audit_events force row level security;
  alter table memctl.hint_outcomes force row level security;
  return events + outcomes;
end
$$;

do $$
declare
  who name;
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl to memctl_definer;
  end if;
  revoke all on function memctl.keep_audit(interval) from public;
  revoke all on function memctl.delete_hints(text) from public;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
    execute format('revoke all on function memctl.keep_audit(interval) from %I', who);
    execute format('revoke all on function memctl.delete_hints(text) from %I', who);
  end loop;
  grant execute on function memctl.delete_hints(text) to memctl_user;
  alter function memctl.delete_hints(text) owner to memctl_definer;
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    revoke create on schema memctl from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
  if to_regprocedure('cron.schedule(text, text, text)') is not null then
    perform cron.schedule('memctl-audit', '40 2 * * *', 'select memctl.keep_audit()');
  end if;
end
$$;

select memctl.hide_statistics();
