-- Objects of other programs that have one of our names, before the first migration. Tables created from the
-- seeds' SQL are compatible: they have all columns of the seed, no other column that has to be filled, and no
-- policy but the seed's, since any other could grant access that ours deny. Functions of the seeds are replaced;
-- a replacement cannot change the return type, so the administrator has to drop an existing one first.
with seeds (place, name, kind, position) as (
  select t.place, t.name, c.kind, c.position
  from (values
    (1, 'context_eng_memories',
     'id bigint, content text, metadata jsonb, embedding vector(1536), fts tsvector, created_dt timestamptz'),
    (2, 'agent_memory',
     'id uuid, user_id uuid, memory_type text, content text, embedding vector(1536), metadata jsonb, '
     'created_at timestamptz, updated_at timestamptz, expires_at timestamptz'),
    (3, 'agent_sessions',
     'id uuid, user_id uuid, status text, current_step text, progress_percentage integer, '
     'total_steps integer, completed_steps text[], error_message text, session_data jsonb, '
     'started_at timestamptz, completed_at timestamptz, created_at timestamptz, updated_at timestamptz'),
    (4, 'agent_execution_logs',
     'id uuid, session_id uuid, user_id uuid, step_name text, tool_name text, action_type text, '
     'input_data jsonb, output_data jsonb, reasoning text, confidence_score numeric(3,2), '
     'execution_time_ms integer, status text, error_message text, created_at timestamptz')
  ) as t (place, name, columns),
  lateral regexp_split_to_table(t.columns, ', ') with ordinality as c (kind, position)
),
wanted as (
  select place, name, position, split_part(kind, ' ', 1) as attribute, split_part(kind, ' ', 2) as kind,
    to_regclass('public.' || quote_ident(name)) as id
  from seeds
),
columns as (
  select a.attrelid as id, a.attname::text as attribute, a.attnum,
    -- A type is qualified with its schema unless the schema is in the search path.
    regexp_replace(replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
      '^.*\.', '') as kind,
    a.attnotnull and not a.atthasdef and a.attidentity = '' as has_to_be_filled
  from pg_catalog.pg_attribute a
  where a.attrelid in (select id from wanted) and a.attnum > 0 and not a.attisdropped
),
found (step, place, position, object, reason) as (
  select 1, 0, 0, 'public.' || name, 'it was there before'
  from unnest(array['executions', 'corrections', 'reflexions']) as name
  where to_regclass('public.' || quote_ident(name)) is not null
  union all
  select 2, w.place, w.position, 'public.' || w.name, case
      when c.attribute is null then format('it has no column `%s`', w.attribute)
      else format('its column `%s` is %s, not %s', w.attribute, c.kind, w.kind)
    end
  from wanted w left join columns c on c.id = w.id and c.attribute = w.attribute
  where w.id is not null and c.kind is distinct from w.kind
  union all
  select 2, t.place, 1000 + c.attnum, 'public.' || t.name, format('its column `%s` has to be filled', c.attribute)
  from (select distinct place, name, id from wanted) t join columns c on c.id = t.id
  where c.has_to_be_filled
    and not exists (select from wanted w where w.id = t.id and w.attribute = c.attribute)
  union all
  select 2, t.place, 10000, 'public.' || t.name, format('it has a policy `%s` of its own', p.polname)
  from (select distinct place, name, id from wanted) t join pg_catalog.pg_policy p on p.polrelid = t.id
  where p.polname not in (
    'Users can read their own memory', 'Users can insert their own memory', 'Users can update their own memory',
    'Users can delete their own memory', 'Admins can view all memory', 'Users can read their own sessions',
    'Users can insert their own sessions', 'Users can update their own sessions',
    'Users can read their own logs', 'Service role can insert logs', 'Admins can view all logs')
  union all
  select 3, 0, 0, p.oid::regprocedure::text,
    format('ours takes its place; drop it first: drop function %s', p.oid::regprocedure)
  from pg_catalog.pg_proc p
  where p.pronamespace = 'public'::regnamespace and p.proname in
    ('hybrid_search_context_eng_memories', 'match_memory', 'cleanup_expired_memory')
)
select object, reason from found order by step, place, position limit 1
