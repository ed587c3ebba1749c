//! A neighbour in the database asks the planner for what it must not read: it explains its own queries, and
//! takes the estimates for answers.

use crate::postgres::{BEN, Client, Store, TABLES};

/// Columns that keep their statistics, and reveal no content by them.
const KEPT: [&str; 3] = ["memory_type", "seq", "user_id"];

/// Rows of each table: enough that an estimate of half of them stands out.
const ROWS: u32 = 2_000;

/// Fills every column of every table with values that statistics would keep: half of the rows say the same,
/// and a part of them are tombstones.
fn fill(client: &Client) {
    let shared = "origin, entry_id, skill, entry, deleted_at, tombstone";
    let values = "'merger-acme', 'ID-' || g, case when g % 2 = 0 then 'hr/merger-acme' else 'hr/s' || g end,
        case when g % 5 > 0 then case when g % 2 = 0 then '{\"text\": \"merger with acme\"}' else '{\"n\":' || g || '}' end end,
        case when g % 5 = 0 then now() - g * interval '1 s' end,
        case when g % 5 = 0 then 'stone of ' || g % 3 end";
    let text = "case when g % 2 = 0 then 'merger with acme' else 'note ' || g end";
    let json = "case when g % 2 = 0 then '{\"secret\": \"acme\"}'::jsonb else json_build_object('n', g)::jsonb end";
    let vector = "case when g % 9 = 0 then array_fill((g % 7)::real, array[1536])::vector end";
    let rows = format!("from generate_series(1, {ROWS}) g");
    // Earlier schemas do not have it.
    let session = "select count(*) from pg_attribute
        where attrelid = 'agent_execution_logs'::regclass and attname = 'session'";
    let (session, named) = if client.value(session) == "1" {
        ("session, ", format!("{text}, "))
    } else {
        ("", String::new())
    };
    let time = "now() - g * interval '1 m'";
    let of_records = [
        (
            "executions",
            "execution_id, \"timestamp\", input_summary, output_summary, outcome, cost_usd, latency_ms, model_used",
            format!("{text}, {time}, {json}, {json}, {text}, g % 100, g, {text}"),
        ),
        (
            "corrections",
            "correction_id, execution_id, \"timestamp\", original_output, user_correction",
            format!("{text}, {text}, {time}, {json}, {text}"),
        ),
        (
            "reflexions",
            "reflexion_id, created_at, correction_id, mistake, root_cause, rule, applies_when, confidence,
             validated_by_test, generated_test_ids",
            format!("{text}, {time}, {text}, {text}, {text}, {text}, {text}, g % 100, true, {json}"),
        ),
    ];
    for (table, columns, own) in of_records {
        client.run(&format!(
            "insert into {table} ({columns}, {shared}) select {own}, {values} {rows}"
        ));
    }
    client.run(&format!(
        "insert into context_eng_memories (content, metadata, embedding, embedding_model, created_dt, {shared})
           select {text}, {json}, {vector}, 'model-of-acme', now() - g * interval '1 m', {values} {rows};
         insert into agent_memory (memory_type, content, metadata, embedding, embedding_model, expires_at, {shared})
           select 'brand_memory', {text}, {json}, {vector}, 'model-of-acme', now() + g * interval '1 d', {values} {rows};
         insert into agent_sessions (current_step, progress_percentage, completed_steps, error_message,
             session_data, completed_at, {shared})
           select {text}, g % 100, array[{text}], {text}, {json}, now() - g * interval '1 m', {values} {rows};
         insert into agent_execution_logs (session_id, {session}step_name, tool_name, action_type, input_data,
             output_data, reasoning, confidence_score, execution_time_ms, status, error_message, {shared})
           select (select id from agent_sessions limit 1), {named}{text}, {text}, 'decision', {json}, {json}, {text},
             (g % 100) / 100.0, g, 'success', {text}, {values} {rows}"
    ));
}

/// Questions about a column, `$` for a value. A type without questions fails the test: it needs some.
fn questions(kind: &str) -> &'static [&'static str] {
    match kind {
        "text" => &[
            "COLUMN = $",
            "COLUMN < $",
            "COLUMN >= $",
            "COLUMN <> $",
            "COLUMN in ($)",
            "COLUMN between $ and $",
            "COLUMN like $ || '%'",
            "COLUMN ilike '%' || $",
            "starts_with(COLUMN, $)",
            "COLUMN is not distinct from $",
        ],
        "jsonb" => &[
            "COLUMN = $",
            "COLUMN @> $",
            "COLUMN <@ $",
            "COLUMN < $",
            "COLUMN->>'secret' = ($)->>'secret'",
        ],
        "tsvector" => &[
            "COLUMN @@ to_tsquery('simple', $)",
            "COLUMN = $::tsvector",
            "COLUMN < $::tsvector",
        ],
        "text[]" => &["COLUMN = $", "COLUMN @> $", "COLUMN && $", "COLUMN < $"],
        "uuid"
        | "timestamp with time zone"
        | "bigint"
        | "integer"
        | "numeric(3,2)"
        | "boolean"
        | "double precision" => &["COLUMN = $", "COLUMN < $", "COLUMN > $", "COLUMN in ($)"],
        "vector(1536)" => &["COLUMN = $", "COLUMN < $"],
        other => panic!("no questions about a column of the type {other}"),
    }
}

/// A value that is there, and one that no row has; of texts one that is as long, since the planner looks at
/// the length of a pattern.
fn values(admin: &Client, table: &str, name: &str, kind: &str) -> [String; 2] {
    // The one that most rows have, which is what statistics know best.
    let there = admin.run(&format!(
        "select quote_literal({name}::text), quote_literal(repeat('~', length({name}::text)))
         from public.{table} where {name} is not null
         group by {name} order by count(*) desc, {name} limit 1"
    ));
    assert_eq!(there.len(), 1, "{table}.{name} is not filled by this test");
    let [there, as_long] = there[0].as_slice() else {
        panic!("{there:?}")
    };
    let absent = match kind {
        "text" => as_long,
        "jsonb" => "'{\"secret\": \"none\"}'",
        // Words, and not what a text is made of.
        "tsvector" => return ["'merger'", "'nobody'"].map(str::to_owned),
        "text[]" => "array['zzzz nobody has']",
        "uuid" => "'ffffffff-ffff-4fff-8fff-ffffffffffff'",
        "timestamp with time zone" => "'1970-01-02'",
        "numeric(3,2)" => "9.99",
        "boolean" => "false",
        "vector(1536)" => "array_fill(77::real, array[1536])",
        _ => "2000000000",
    };
    [format!("{there}::{kind}"), format!("{absent}::{kind}")]
}

/// Numbers of a plan: what it expects of each step, and what that costs.
fn estimates(client: &Client, table: &str, condition: &str) -> Vec<String> {
    let plan = client.run(&format!(
        "explain select 1 from public.{table} where {condition}"
    ));
    let lines = plan.concat();
    let numbers = lines.iter().filter_map(|line| line.split_once("  (cost="));
    // The conditions stand in other lines; in these is the kind of the step.
    numbers
        .map(|(step, numbers)| format!("{step} {numbers}"))
        .collect()
}

/// Questions whose two forms get different estimates: the planner tells whether a value is there.
fn leaks(admin: &Client, neighbour: &Client) -> (Vec<String>, usize) {
    let mut leaks = Vec::new();
    let mut asked = 0;
    // Partitions that a plan leaves out for the limits of a column or of a month are known from the schema, which
    // everybody may read, and not from rows.
    neighbour.run("set constraint_exclusion = off; set enable_partition_pruning = off");
    for table in TABLES {
        let columns = admin.run(&format!(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute
             where attrelid = 'public.{table}'::regclass and attnum > 0 and not attisdropped order by attnum"
        ));
        for column in columns {
            let [name, kind] = column.as_slice() else {
                panic!("{column:?}")
            };
            if KEPT.contains(&name.as_str()) {
                continue;
            }
            let [there, absent] = values(admin, table, name, kind);
            for question in questions(kind) {
                let with = |value: &str| {
                    let condition = question.replace("COLUMN", name).replace('$', value);
                    estimates(neighbour, table, &condition)
                };
                asked += 2;
                let (found, not_found) = (with(&there), with(&absent));
                assert!(!found.is_empty());
                if found != not_found {
                    leaks.push(format!(
                        "{table}.{name} {question}: {found:?} and {not_found:?}"
                    ));
                }
            }
        }
    }
    (leaks, asked)
}

/// Columns whose values the planner knows.
fn known(admin: &Client) -> Vec<String> {
    let known =
        "select tablename || '.' || attname from pg_stats where schemaname in ('public', 'memctl')
                 and attname not in ('user_id', 'seq', 'memory_type') order by 1";
    admin.run(known).concat()
}

#[test]
fn the_planner_answers_every_guess_alike() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    fill(&store.ann);
    admin.run("analyze");
    assert_eq!(known(&admin), Vec::<String>::new());
    let (found, asked) = leaks(&admin, &store.ben);
    assert_eq!(found, Vec::<String>::new());
    assert!(asked > 600, "{asked}");

    // The same questions find a table that was left open, a column that was added, an index on what a text
    // says, and what columns have in common; so does `remote check`, and `remote init` shuts them again.
    admin.run(
        "alter table executions alter column entry set statistics 100;
         alter table corrections add column verdict text default 'guilty';
         create index reflexions_by_word on reflexions (lower(entry));
         create statistics together on skill, entry from executions;
         analyze",
    );
    let (found, _) = leaks(&admin, &store.ben);
    assert!(
        found
            .iter()
            .any(|leak| leak.starts_with("executions.entry")),
        "{found:?}"
    );
    let url = store.login(BEN);
    let (code, report) = store.check(&url);
    let checks = report["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["name"] == "statistics")
        .unwrap();
    let detail = check["detail"].as_str().unwrap();
    assert_eq!((code, &check["ok"]), (1, &false.into()), "{report}");
    for said in [
        "executions`.`entry", "corrections`.`verdict", "reflexions_by_word", "together",
        "remote init",
    ] {
        assert!(detail.contains(said), "{said}: {detail}");
    }
    store
        .workspace
        .json(&["remote", "init", "--url", &store.database.url]);
    admin.run("analyze");
    assert_eq!(known(&admin), Vec::<String>::new());
    assert_eq!(
        admin.value("select count(*) from pg_stats where tablename = 'reflexions_by_word'"),
        "0"
    );
    assert_eq!(leaks(&admin, &store.ben).0, Vec::<String>::new());
    assert_eq!(store.check(&url).0, 0);
}
