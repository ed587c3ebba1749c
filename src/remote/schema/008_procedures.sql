-- Procedures carry what the source document's own functions write: `metadata` is the status and the data.
-- Rows that were sent before get them from their text. Numbers of changes and hashes stay, so that no copy
-- fetches them again.

create function pg_temp.parsed(text) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return $1::jsonb;
exception when others then
  return null;
end
$$;

alter table public.context_eng_memories disable trigger user;
alter table public.context_eng_memories no force row level security;
update public.context_eng_memories m
set metadata = coalesce(m.metadata, '{}')
  || jsonb_build_object('status', coalesce(p.entry -> 'status', '""'), 'data', p.entry -> 'data')
from (select r.id, pg_temp.parsed(r.entry) as entry from public.context_eng_memories r
      where r.entry is not null and r.deleted_at is null) p
where p.id = m.id and jsonb_typeof(p.entry -> 'data') = 'object';
alter table public.context_eng_memories force row level security;
alter table public.context_eng_memories enable trigger user;

drop function pg_temp.parsed(text);
