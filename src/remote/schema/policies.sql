-- Row-level security: everybody sees and writes what is theirs, and nothing else.
--
-- Every policy compares with memctl.current_user_id(), in a sub-select, so that it is asked once a
-- statement and not once a row. FORCE holds the owner of the tables to it too.

do $$
declare
  name text;
  old text;
  mine text := '= (select memctl.current_user_id())';
  for_hosted text;
begin
  for_hosted := format('held_by %s and (user_id %s or memctl.hosts(user_id))', mine, mine);
  foreach name in array array[
    'executions', 'corrections', 'reflexions',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('alter table public.%I enable row level security, force row level security', name);
    -- Those of the seeds, on tables that were taken over; `init` refuses others.
    for old in select polname from pg_catalog.pg_policy
      where polrelid = format('public.%I', name)::regclass
    loop
      execute format('drop policy %I on public.%I', old, name);
    end loop;
    if name in ('agent_memory', 'agent_sessions', 'agent_execution_logs') then
      execute format('create policy "users and holders read it" on public.%I for select
        using (user_id %s or held_by %s)', name, mine, mine);
      -- The seed let anybody write log lines in anybody''s name ("service role": `with check (true)` for
      -- everybody).
      execute format('create policy "holders add it" on public.%I for insert with check (%s)', name, for_hosted);
      -- Log lines stay as they were written.
      if name <> 'agent_execution_logs' then
        execute format('create policy "holders change it" on public.%I for update
          using (held_by %s) with check (%s)', name, mine, for_hosted);
        execute format('create policy "holders delete it" on public.%I for delete using (held_by %s)', name, mine);
      end if;
    else
      execute format('create policy "users read their own" on public.%I for select using (user_id %s)', name, mine);
      execute format('create policy "users add their own" on public.%I for insert
        with check (user_id %s)', name, mine);
      execute format('create policy "users change their own" on public.%I for update
        using (user_id %s) with check (user_id %s)', name, mine, mine);
      execute format('create policy "users delete their own" on public.%I for delete
        using (user_id %s)', name, mine);
    end if;
  end loop;
end
$$;
alter table memctl.logs_other enable row level security, force row level security;

-- "Admins can view all memory (for support)", after the reason has been written down.
create policy "administrators view it, on record" on public.agent_memory for select
  using ((select memctl.admin_may_read()));
create policy "administrators view it, on record" on public.agent_execution_logs for select
  using ((select memctl.admin_may_read()));

-- What the definer functions that touch rows may see of them. No column that a policy names can be given a
-- type, which `hide_statistics` does; those of the clean-up are made after it, in `rights`.
create policy "the keyword search ranks it" on public.context_eng_memories for select
  to memctl_definer using (true);
create policy "holders delete it by name" on public.agent_execution_logs
  to memctl_definer using (held_by = (select memctl.current_user_id()));
grant select (id, user_id, fts, deleted_at) on public.context_eng_memories to memctl_definer;
grant select (id, expires_at, user_id, origin, held_by), delete on public.agent_memory to memctl_definer;
grant select (held_by, origin, user_id), delete on public.agent_execution_logs to memctl_definer;

-- Tables of ours beside the seeds'.
do $$
declare
  name text;
begin
  foreach name in array array['embedders', 'audit_events', 'disabled_users'] loop
    execute format('alter table memctl.%I enable row level security, force row level security', name);
    execute format('revoke all on memctl.%I from public', name);
    if name <> 'embedders' then
      execute format('create policy "holders read it" on memctl.%I for select
        using (held_by = (select memctl.current_user_id()))', name);
      execute format('create policy "holders add it" on memctl.%I for insert
        with check (held_by = (select memctl.current_user_id()))', name);
      execute format('grant select, insert on memctl.%I to memctl_user', name);
    end if;
  end loop;
end
$$;
create policy "users keep their own" on memctl.embedders
  using (user_id = (select memctl.current_user_id()))
  with check (user_id = (select memctl.current_user_id()));
create policy "users know the models of their holders" on memctl.embedders for select
  using (exists (
    select from memctl.hosted_users h
    where h.host_id = embedders.user_id and h.user_id = (select memctl.current_user_id())));
-- Nobody adds an event in the name of another login.
create policy "logins name themselves" on memctl.audit_events as restrictive for insert
  with check (role_name = session_user);

-- Users of a server see who has seen or changed their records, and what they did themselves.
create policy "users read of their own" on memctl.audit_events for select
  using (exists (
    select from memctl.hosted_users h
    where h.host_id = audit_events.held_by and h.user_id = (select memctl.current_user_id())
      and (h.sub = audit_events.who or h.sub = any (audit_events.of_users))));

create policy "holders change it" on memctl.disabled_users for update
  using (held_by = (select memctl.current_user_id()))
  with check (held_by = (select memctl.current_user_id()));
create policy "users know of themselves" on memctl.disabled_users for select
  using (exists (
    select from memctl.hosted_users h
    where h.host_id = disabled_users.held_by and h.user_id = (select memctl.current_user_id())
      and h.sub = disabled_users.sub));
grant update (is_disabled, changed_at) on memctl.disabled_users to memctl_user;
