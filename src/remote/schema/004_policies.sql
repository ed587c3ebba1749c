-- Row-level security: everybody sees and writes what is theirs, and nothing else.
--
-- Every policy compares with memctl.current_user_id(), in a sub-select, so that it is asked once a
-- statement and not once a row. FORCE holds the owner of the tables to it too.

do $$
declare
  name text;
  old text;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('alter table public.%I enable row level security, force row level security', name);
    -- Those of the seeds, on tables that were taken over; `init` refuses others.
    for old in select polname from pg_catalog.pg_policy
      where polrelid = format('public.%I', name)::regclass
    loop
      execute format('drop policy %I on public.%I', old, name);
    end loop;
    execute format('create policy "users read their own" on public.%I for select
      using (user_id = (select memctl.current_user_id()))', name);
    -- The seed let anybody write log lines in anybody''s name ("service role": `with check (true)` for
    -- everybody).
    execute format('create policy "users add their own" on public.%I for insert
      with check (user_id = (select memctl.current_user_id()))', name);
    -- Log lines stay as they were written.
    if name <> 'agent_execution_logs' then
      execute format('create policy "users change their own" on public.%I for update
        using (user_id = (select memctl.current_user_id()))
        with check (user_id = (select memctl.current_user_id()))', name);
      execute format('create policy "users delete their own" on public.%I for delete
        using (user_id = (select memctl.current_user_id()))', name);
    end if;
  end loop;
end
$$;

-- "Admins can view all memory (for support)", after the reason has been written down.
create policy "administrators view it, on record" on public.agent_memory for select
  using ((select memctl.admin_may_read()));
create policy "administrators view it, on record" on public.agent_execution_logs for select
  using ((select memctl.admin_may_read()));

-- What the two definer functions that touch rows may see of them.
create policy "the keyword search ranks it" on public.context_eng_memories for select
  to memctl_definer using (true);
grant select (id, user_id, fts, deleted_at) on public.context_eng_memories to memctl_definer;
create policy "the clean-up sees what has expired" on public.agent_memory for select
  to memctl_definer using (expires_at < now());
create policy "the clean-up deletes what has expired" on public.agent_memory for delete
  to memctl_definer using (expires_at < now());
grant select (id, expires_at), delete on public.agent_memory to memctl_definer;

-- Rights. Supabase gives every new table of `public` to everybody by default, so they are taken first.
do $$
declare
  name text;
  who name;
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'fixes',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('revoke all on public.%I from public', name);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on public.%I from %I', name, who);
    end loop;
    for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
      if name = 'context_eng_memories' then
        -- Not the id: whoever chooses numbers can take those that others are about to get.
        execute format('grant select, delete,
          insert (user_id, content, metadata, embedding, embedding_model, created_dt, origin, entry_id, skill, entry, deleted_at),
          update (content, metadata, embedding, embedding_model, created_dt, origin, entry_id, skill, entry, deleted_at)
          on public.%I to %I', name, who);
      elsif name = 'agent_execution_logs' then
        execute format('grant select, insert on public.%I to %I', name, who);
      else
        execute format('grant select, insert, update, delete on public.%I to %I', name, who);
      end if;
    end loop;
  end loop;
end
$$;
