-- A procedure whose row names no content, as a workflow of n8n sends it, gets one: the texts of its fields, as the
-- source document describes the column. Without a content, no search finds the row.

create or replace function memctl.write_fts() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  fields jsonb := new.metadata -> 'data';
begin
  if new.content is null and jsonb_typeof(fields) = 'object' then
    select string_agg(v.said, E'\n' order by f.place, v.place) into new.content
      from unnest(array[
        'procedure_name', 'semantic_description', 'initial_failure_summary', 'identified_root_cause',
        'successful_intervention', 'learned_procedure_steps', 'critical_contextual_cues', 'example_scenario_abstract'
      ]) with ordinality as f (name, place)
      cross join jsonb_array_elements_text(
        case jsonb_typeof(fields -> f.name)
          when 'array' then fields -> f.name
          else jsonb_build_array(fields -> f.name)
        end
      ) with ordinality as v (said, place)
      where v.said <> '';
  end if;
  new.fts := to_tsvector('pg_catalog.english', left(coalesce(new.content, ''), 200000));
  return new;
end
$$;

alter table public.context_eng_memories no force row level security;
update public.context_eng_memories set content = null
  where content is null and deleted_at is null and jsonb_typeof(metadata -> 'data') = 'object';
alter table public.context_eng_memories force row level security;
