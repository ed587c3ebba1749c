-- Names of origins and entries, checked by their characters and length. A regular expression that counts to 127 has
-- a state for each number, and PostgreSQL builds the states anew for each row: half of what it took to write one.

do $$
declare
  found record;
begin
  for found in
    select c.conrelid::regclass as of_table, c.conname as name, a.attname as of_column,
        case when d.said like '%{0,127}%' then 128 else 64 end as longest
      from pg_catalog.pg_constraint c
      cross join lateral (select pg_get_constraintdef(c.oid) as said) d
      join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
      -- Those of partitions change with their table's.
      where c.contype = 'c' and c.coninhcount = 0 and cardinality(c.conkey) = 1
        and a.attname in ('origin', 'entry_id')
        and d.said similar to '%\^\[A-Za-z0-9\]\[A-Za-z0-9._-\]\{0,(63|127)\}$%'
        and c.connamespace in ('public'::regnamespace, 'memctl'::regnamespace)
  loop
    execute format(
      'alter table %s drop constraint %I, add constraint %I
         check (%I ~ ''^[A-Za-z0-9][A-Za-z0-9._-]*$'' and length(%I) <= %s)',
      found.of_table, found.name, found.name, found.of_column, found.of_column, found.longest);
  end loop;
end
$$;
