-- Rights, and what is done once.

-- Gives the rights on tables and functions, also to roles that Supabase or PostgREST bring along later:
-- `memctl remote init` calls this again.
--
-- Supabase gives every new table of `public` to everybody by default, so the rights are taken first. Nobody
-- executes a function of ours without being named here.
--
-- `lock table` in the modes that keep others out takes the right to update, delete or truncate the table as a
-- whole. A login has none of them: it may update each column, and what is to be deleted it marks
-- (`deleted_at`), or lets expire. Clients with a token (`authenticated`) have them; they have no way to hold
-- a lock.
create function memctl.grant_rights() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  name text;
  who name;
  columns text;
  signature regprocedure;
  is_super boolean := (select rolsuper from pg_roles where rolname = current_user);
  outsiders name[] := array(select rolname from pg_roles where rolname in ('anon', 'authenticated'));
  users name[] := array(select rolname from pg_roles where rolname in ('memctl_user', 'authenticated'));
  -- Not the id: whoever chooses numbers can take those that others are about to get.
  of_procedures text :=
    'content, metadata, embedding, embedding_model, created_dt, origin, entry_id, skill, entry, deleted_at, tombstone';
  for_users regprocedure[] := array[
    'memctl.current_user_id()', 'memctl.has_role(uuid, text)', 'memctl.open_admin_read(text)',
    'memctl.admin_may_read()', 'memctl.hosts(uuid)', 'memctl.clock()', 'memctl.begin_write()',
    'memctl.delete_expired()', 'memctl.searched_models(uuid)', 'memctl.keyword_candidates(text, integer)',
    'public.hybrid_search_context_eng_memories(text, @vector@.vector, integer, double precision, double precision, integer)',
    'public.match_memory(@vector@.vector, double precision, integer, text, uuid)'
  ];
  for_logins regprocedure[] := array[
    'memctl.host_user(text)', 'memctl.delete_logs(text, text)'
  ];
begin
  insert into memctl.token_roles
    select rolname from pg_roles where rolname in ('authenticator', 'supabase_admin')
    on conflict do nothing;
  if not is_super then
    execute format('grant memctl_definer to %I', current_user);
  end if;
  foreach name in array array[
    'executions', 'corrections', 'reflexions',
    'context_eng_memories', 'agent_memory', 'agent_sessions', 'agent_execution_logs'
  ] loop
    execute format('revoke all on public.%I from public', name);
    foreach who in array outsiders loop
      execute format('revoke all on public.%I from %I', name, who);
    end loop;
    select string_agg(quote_ident(attname), ', ') into columns from pg_attribute
      where attrelid = format('public.%I', name)::regclass and attnum > 0 and not attisdropped
        and attname not in ('domain', 'held_by');
    foreach who in array users loop
      if name = 'context_eng_memories' then
        execute format('grant select, insert (user_id, %s), update (%s) on public.%I to %I',
          of_procedures, of_procedures, name, who);
      elsif name = 'agent_execution_logs' then
        execute format('grant select, insert on public.%I to %I', name, who);
      elsif who = 'memctl_user' then
        execute format('grant select, insert, update (%s) on public.%I to %I', columns, name, who);
      else
        execute format('grant select, insert, update on public.%I to %I', name, who);
      end if;
      if who = 'authenticated' and name <> 'agent_execution_logs' then
        execute format('grant delete on public.%I to %I', name, who);
      end if;
    end loop;
  end loop;
  for signature in
    select oid::regprocedure from pg_proc
    where pronamespace = 'memctl'::regnamespace or oid = any (for_users)
      or oid = 'public.cleanup_expired_memory()'::regprocedure
  loop
    execute format('revoke all on function %s from public', signature);
    foreach who in array outsiders loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
    -- Whose policies ask who the owner of the tables is has to be able to.
    execute format('grant execute on function %s to current_user', signature);
  end loop;
  foreach who in array users loop
    execute format('grant usage on schema memctl to %I', who);
    execute format('grant usage on sequence memctl.changes to %I', who);
    execute format('grant select on memctl.hosted_users to %I', who);
    execute format('grant select, insert, update on memctl.embedders to %I', who);
    foreach signature in array for_users loop
      execute format('grant execute on function %s to %I', signature, who);
    end loop;
  end loop;
  foreach signature in array for_logins loop
    execute format('grant execute on function %s to memctl_user', signature);
  end loop;
  perform memctl.admit_service_role();
  if not is_super then
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;

-- Lets Supabase's `service_role` read and write for all users. It counts only if it bypasses row security
-- already, which a superuser has decided.
create function memctl.admit_service_role() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  name text;
begin
  if not exists (select from pg_roles where rolname = 'service_role' and rolbypassrls) then
    return;
  end if;
  grant usage on schema memctl to service_role;
  grant usage on sequence memctl.changes to service_role;
  grant select on memctl.embedders, memctl.hosted_users to service_role;
  foreach name in array array[
    'executions', 'corrections', 'reflexions',
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
end
$$;

select memctl.grant_rights();

-- The owner of what runs with other rights than its caller's. An administrator who is no superuser
-- needs membership, and memctl_definer the right to create in the schemas, for this moment.
do $$
declare
  is_super boolean := (select rolsuper from pg_catalog.pg_roles where rolname = current_user);
  signature regprocedure;
begin
  if not is_super then
    execute format('grant memctl_definer to %I', current_user);
    grant create on schema memctl, public to memctl_definer;
  end if;
  for signature in
    select oid::regprocedure from pg_catalog.pg_proc
    where prosecdef and (pronamespace = 'memctl'::regnamespace
      or oid = 'public.cleanup_expired_memory()'::regprocedure)
  loop
    execute format('alter function %s owner to memctl_definer', signature);
  end loop;
  if not is_super then
    revoke create on schema memctl, public from memctl_definer;
    execute format('revoke memctl_definer from %I', current_user);
  end if;
end
$$;

select memctl.keep_logs('1000 years');
select memctl.hide_statistics();
create policy "the clean-up sees what has expired" on public.agent_memory for select
  to memctl_definer using (expires_at < now());
create policy "the clean-up deletes what has expired" on public.agent_memory for delete
  to memctl_definer using (expires_at < now());

-- Every night, where pg_cron is; elsewhere the administrator calls the functions.
do $$
begin
  if to_regprocedure('cron.schedule(text, text, text)') is not null then
    perform cron.schedule('cleanup-expired-memory', '0 2 * * *', 'select public.cleanup_expired_memory()');
    perform cron.schedule('memctl-logs', '30 2 * * *', 'select memctl.keep_logs()');
    perform cron.schedule('memctl-audit', '40 2 * * *', 'select memctl.keep_audit()');
  end if;
end
$$;
