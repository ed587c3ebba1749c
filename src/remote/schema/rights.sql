-- Rights on functions, and what is done once.

-- Nobody executes a function of ours without being named here.
do $$
declare
  signature regprocedure;
  who name;
  for_users regprocedure[] := array[
    'memctl.current_user_id()', 'memctl.has_role(uuid, text)', 'memctl.open_admin_read(text)',
    'memctl.admin_may_read()', 'memctl.hosts(uuid)', 'memctl.clock()', 'memctl.begin_write()',
    'memctl.delete_expired()', 'memctl.searched_models(uuid)', 'memctl.keyword_candidates(text, integer)',
    'public.hybrid_search_context_eng_memories(text, @vector@.vector, integer, double precision, double precision, integer)',
    'public.match_memory(@vector@.vector, double precision, integer, text, uuid)'
  ];
  for_logins regprocedure[] := array[
    'memctl.host_user(text)', 'memctl.delete_logs(text, text)', 'memctl.delete_hints(text)',
    'memctl.match_held_memory(@vector@.vector, integer, text, text)'
  ];
begin
  for signature in
    select oid::regprocedure from pg_catalog.pg_proc
    where pronamespace = 'memctl'::regnamespace or oid = any (for_users)
      or oid = 'public.cleanup_expired_memory()'::regprocedure
  loop
    execute format('revoke all on function %s from public', signature);
    for who in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop
      execute format('revoke all on function %s from %I', signature, who);
    end loop;
    -- Whose policies ask who the owner of the tables is has to be able to.
    execute format('grant execute on function %s to current_user', signature);
  end loop;
  for who in select rolname from pg_catalog.pg_roles where rolname in ('memctl_user', 'authenticated') loop
    foreach signature in array for_users loop
      execute format('grant execute on function %s to %I', signature, who);
    end loop;
  end loop;
  foreach signature in array for_logins loop
    execute format('grant execute on function %s to memctl_user', signature);
  end loop;
end
$$;

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
select memctl.admit_service_role();

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
