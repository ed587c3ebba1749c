-- What was removed stays as a row, of which other copies hear at their next fetch. Nobody else is shown it: a query for
-- executions or memories means what is there. Sessions of memctl set `memctl.shows_removed`.
--
-- The transaction that marks a row still sees it: PostgreSQL refuses an update whose row its own role would not see.
--
-- Not for memctl_definer, whose keyword search goes through an index that such a policy would close. Made after
-- `hide_statistics`, which gives columns a type, and none that a policy names can be given one. `memctl remote init`
-- makes them again, for roles that came later.
do $$
declare
  name text;
  readers text := (select string_agg(quote_ident(rolname), ', ') from pg_catalog.pg_roles
    where rolname in ('memctl_user', 'authenticated'));
begin
  foreach name in array array[
    'executions', 'corrections', 'reflexions', 'context_eng_memories', 'agent_memory', 'agent_sessions'
  ] loop
    execute format('drop policy if exists "what was removed is not shown" on public.%I', name);
    execute format('create policy "what was removed is not shown" on public.%I as restrictive for select to %s
      using (coalesce(deleted_at >= now(), true)
        or (select coalesce(current_setting(''memctl.shows_removed'', true), '''') = ''on''))', name, readers);
  end loop;
end
$$;
