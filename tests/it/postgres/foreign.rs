//! Databases that are not ours, or not ours alone, or ours of another time.

use super::{Client, Store, done, server};
use crate::workspace::Workspace;

/// Everything that a database holds, as far as somebody else could notice a change.
fn everything(client: &Client) -> Vec<Vec<String>> {
    client.run(
        "select 'r', oid::text, relname::text, coalesce(relacl::text, '') from pg_class where relkind in ('r','v','i','S')
         union all select 'n', oid::text, nspname, coalesce(nspacl::text, '') from pg_namespace where nspname not like 'pg_t%'
         union all select 'p', oid::text, proname, '' from pg_proc
         union all select 'e', oid::text, extname, extversion from pg_extension
         union all select 'd', oid::text, datname, coalesce(datacl::text, '') from pg_database where datname = current_database()
         order by 1, 2",
    )
}

#[test]
fn a_foreign_database_is_not_touched() {
    let Some(server) = server() else { return };
    let database = server.database();
    let admin = database.admin();
    admin.run(
        "create table invoices (id int primary key, amount numeric); insert into invoices values (1, 9.5);
         create table executions (id int, prisoner text); insert into executions values (1, 'Anne')",
    );
    let mut workspace = Workspace::sample();
    workspace.set("DATABASE_URL", &database.url);
    let before = everything(&admin);
    for (command, code) in [
        (&["remote", "status"][..], 6),
        (&["remote", "check"], 6),
        (&["remote", "user", "add", "ann", "--url", &database.url], 6),
        (&["remote", "init", "--url", &database.url], 6),
        (&["init"], 0),
        (
            &[
                "run",
                "hr/resume-screen",
                "--input",
                "fixtures/sample_input.json",
            ],
            0,
        ),
        (&["memory", "status"], 0),
        (&["memory", "search", "design"], 0),
    ] {
        let ran = workspace.run(command);
        assert_eq!(ran.code, code, "{command:?}: {ran:?}");
    }
    workspace
        .run(&["remote", "init", "--url", &database.url])
        .fails(
            6,
            "`public.executions` exists and belongs to another program: it was there before; nothing was changed",
        );
    workspace
        .run(&["remote", "check"])
        .fails(6, "has no memctl schema");
    assert_eq!(everything(&admin), before);
    assert_eq!(admin.value("select prisoner from executions"), "Anne");
}

#[test]
fn a_table_of_a_seeds_name_has_to_be_a_seeds_table() {
    let Some(server) = server() else { return };
    let workspace = Workspace::empty();
    for (made, said) in [
        (
            "create table agent_memory (id uuid, user_id uuid)",
            "it has no column `memory_type`",
        ),
        (
            "create table agent_sessions (id text)",
            "its column `id` is text, not uuid",
        ),
        (
            "create table reflexions ()",
            "`public.reflexions` exists and belongs to another program",
        ),
        (
            "create function match_memory() returns int language sql as 'select 1'",
            "drop function match_memory()",
        ),
        (
            "create schema memctl",
            "`memctl` exists and belongs to another program",
        ),
    ] {
        let database = server.database();
        let admin = database.admin();
        admin.run(made);
        let before = everything(&admin);
        workspace
            .run(&["remote", "init", "--url", &database.url])
            .fails(6, said);
        assert_eq!(everything(&admin), before, "{made}");
    }
}

/// The seed's own table, as somebody has it who followed it before us, with rows of two users.
const SEED: &str = "
    create extension vector;
    create schema auth; create table auth.users (id uuid primary key);
    create function auth.uid() returns uuid language sql as $$ select null::uuid $$;
    insert into auth.users values ('aaaaaaaa-0000-4000-8000-00000000000a'), ('bbbbbbbb-0000-4000-8000-00000000000b');
    create table public.agent_memory (
      id uuid primary key default gen_random_uuid(),
      user_id uuid references auth.users(id) on delete cascade not null,
      memory_type text not null,
      content text not null,
      embedding vector(1536),
      metadata jsonb default '{}'::jsonb,
      created_at timestamp with time zone default now() not null,
      updated_at timestamp with time zone default now() not null,
      expires_at timestamp with time zone
    );
    alter table agent_memory enable row level security;
    create policy \"Users can read their own memory\" on agent_memory for select using (auth.uid() = user_id);
    insert into agent_memory (user_id, memory_type, content) values
      ('aaaaaaaa-0000-4000-8000-00000000000a', 'brand_memory', 'old, of Ann'),
      ('bbbbbbbb-0000-4000-8000-00000000000b', 'brand_memory', 'old, of Ben');
    create table public.context_eng_memories (
      id bigint primary key generated by default as identity, content text, metadata jsonb,
      embedding vector(1536), fts tsvector, created_dt timestamptz default now()
    );
    insert into context_eng_memories (content) values ('of nobody');
    create table public.agent_sessions (
      id uuid primary key default gen_random_uuid(), user_id uuid references auth.users(id) not null,
      status text not null default 'initializing', current_step text, progress_percentage integer default 0,
      total_steps integer default 8, completed_steps text[] default array[]::text[], error_message text,
      session_data jsonb default '{}'::jsonb, started_at timestamptz default now() not null,
      completed_at timestamptz, created_at timestamptz default now() not null,
      updated_at timestamptz default now() not null
    );
    create table public.agent_execution_logs (
      id uuid primary key default gen_random_uuid(),
      session_id uuid references public.agent_sessions(id) on delete cascade not null,
      user_id uuid references auth.users(id) not null, step_name text not null, tool_name text,
      action_type text not null, input_data jsonb, output_data jsonb, reasoning text,
      confidence_score numeric(3,2), execution_time_ms integer, status text not null, error_message text,
      created_at timestamptz default now() not null
    );
    insert into agent_sessions (user_id) values ('aaaaaaaa-0000-4000-8000-00000000000a');
    insert into agent_execution_logs (user_id, session_id, step_name, action_type, status, created_at)
      select s.user_id, s.id, t.step, 'decision', 'success', t.at
      from agent_sessions s, (values ('now', now()), ('before', '2020-01-15'::timestamptz)) t (step, at);";

#[test]
fn the_rows_of_a_seeds_table_stay() {
    let Some(server) = server() else { return };
    let workspace = Workspace::empty();
    let database = server.database();
    let admin = database.admin();
    admin.run(SEED);
    admin.run("create policy mine on agent_memory using (true)");
    workspace
        .run(&["remote", "init", "--url", &database.url])
        .fails(6, "it has a policy `mine` of its own");
    admin.run("drop policy mine on agent_memory");
    done(&workspace.run(&["remote", "init", "--json", "--url", &database.url]));
    let name = format!("ann_{}", database.number);
    let id = "aaaaaaaa-0000-4000-8000-00000000000a";
    let added = workspace.json(&[
        "remote", "user", "add", &name, "--user-id", id, "--url", &database.url,
    ]);
    let url = added["url"].as_str().unwrap();
    let ann = Client::connect(url);
    assert_eq!(
        ann.run("select content from agent_memory").concat(),
        ["old, of Ann"]
    );
    assert_eq!(ann.value("select count(*) from context_eng_memories"), "0");
    // The log has its rows in the partition of their month; those of months without one stay as well.
    let parts = "select step_name, tableoid::regclass::text = 'memctl.logs_' || to_char(now() at time zone 'utc', 'YYYY_MM'),
        held_by = user_id, session_id is not null from agent_execution_logs order by 1";
    let row = |step: &str, is_now: &str| [step, is_now, "t", "t"].map(str::to_owned).to_vec();
    assert_eq!(ann.run(parts), [row("before", "f"), row("now", "t")]);
    assert_eq!(
        admin.value("select content from context_eng_memories"),
        "of nobody"
    );
    done(&workspace.run(&["remote", "check", "--json", "--url", url]));
}

#[test]
fn a_schema_of_another_time_is_told_from_ours() {
    let Some(store) = Store::new() else { return };
    let (url, admin) = (&store.database.url, store.database.admin());
    let init = || store.workspace.run(&["remote", "init", "--url", url]);
    admin.run("insert into memctl.migrations values (99, 'of tomorrow', 'x')");
    init().fails(6, "has the schema 99; this memctl knows ");
    store
        .workspace
        .run(&["remote", "user", "add", "x", "--url", url])
        .fails(6, "schema 99");
    let (code, found) = store.check(url);
    assert!(
        code == 1 && found.to_string().contains("schema 99"),
        "{found}"
    );
    admin.run("delete from memctl.migrations where version = 99");

    admin.run("update memctl.migrations set checksum = 'x' where version = 1");
    init().fails(
        6,
        "the migration 1 `baseline` was applied with different SQL",
    );
    let (code, found) = store.check(url);
    assert!(
        code == 1 && found.to_string().contains("different SQL"),
        "{found}"
    );
}

#[test]
fn a_migration_is_there_as_a_whole_or_not_at_all() {
    let Some(server) = server() else { return };
    let workspace = Workspace::empty();
    let database = server.database();
    let admin = database.admin();
    // It cannot be applied, most of the way through.
    admin.run(
        "create function pg_temp.no() returns int language sql as 'select 1';
         create function public.refuse() returns event_trigger language plpgsql as
           $$ begin if tg_tag = 'CREATE POLICY' and exists (
                select from pg_policies where policyname = 'the clean-up sees what has expired') then
                raise exception 'the disk is full'; end if; end $$;
         create event trigger refuse on ddl_command_end execute function public.refuse()",
    );
    workspace
        .run(&["remote", "init", "--url", &database.url])
        .fails(6, "the migration 1 `baseline` failed: the disk is full");
    assert_eq!(admin.value("select to_regnamespace('memctl') is null"), "t");
    assert_eq!(
        admin.value("select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"),
        "0"
    );
    workspace
        .run(&["remote", "status", "--url", &database.url])
        .fails(6, "has no memctl schema");
    admin.run("drop event trigger refuse");
    let report = workspace.json(&["remote", "init", "--url", &database.url]);
    assert_eq!(report["applied"][0]["name"], "baseline", "{report}");
}
