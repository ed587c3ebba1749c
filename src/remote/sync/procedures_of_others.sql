-- Procedures that other programs wrote, as records with their ids ($1, of rows) and at most $2 bytes: the document in
-- `metadata`, as the source documents' analyst writes it, or else the content alone. The claim of a row about its trust
-- does not count.
select 'PROC-' || id, jsonb_build_object(
    'procedure_id', 'PROC-' || id,
    'skill', nullif(skill, ''),
    'created_at', created,
    'status', case when jsonb_typeof(metadata->'status') = 'string' then metadata->>'status' else 'procedure_learned' end,
    'data', data,
    'distilled_by', 'postgres',
    'occurrences', 1,
    'last_seen', created,
    'trust', 'observed')::text
from (
  select id, seq, skill, metadata,
    coalesce(to_char(created_dt at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'), '') as created,
    case
      when jsonb_typeof(metadata->'data') = 'object' and metadata->'data' <> '{}' then metadata->'data'
      when content ~ '\S' then jsonb_build_object(
        'procedure_name', left(split_part(content, E'\n', 1), 120),
        'semantic_description', content,
        'initial_failure_summary', '',
        'identified_root_cause', '',
        'successful_intervention', '',
        'learned_procedure_steps', '[]'::jsonb,
        'critical_contextual_cues', '[]'::jsonb,
        'example_scenario_abstract', '')
    end as data
  from @own@ and origin is null and deleted_at is null and id = any ($1::bigint[])
    and coalesce(octet_length(content), 0) + coalesce(octet_length(metadata::text), 0) <= $2
) as found
where data is not null
order by seq
