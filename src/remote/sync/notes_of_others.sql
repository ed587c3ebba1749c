-- Notes that other programs wrote, as records with their ids ($1, of rows) and at most $2 bytes. The claim of a row
-- about its trust and its user does not count.
select 'MEM-' || id, jsonb_build_object(
    'id', 'MEM-' || id,
    'memory_type', memory_type,
    'content', content,
    'metadata', coalesce(nullif(metadata, 'null'), '{}'),
    'created_at', to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
    'updated_at', to_char(updated_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
    'expires_at', to_char(expires_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
    'trust', 'observed')::text
from @own@ and origin is null and deleted_at is null and id = any ($1::uuid[]) and content ~ '\S'
  and octet_length(content) + coalesce(octet_length(metadata::text), 0) <= $2
order by seq
