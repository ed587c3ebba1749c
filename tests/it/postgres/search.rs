//! The functions of the seeds: their scores, what they find, and that they use the indexes.

use std::time::Instant;

use super::{Client, Store, vector};

#[test]
fn scores_are_those_of_the_seed() {
    let Some(store) = Store::new() else { return };
    let ann = &store.ann;
    ann.run(&format!(
        "insert into context_eng_memories (content, embedding) values
           ('Procedure: add a last_name column to the users table, then backfill it', {}),
           ('Procedure: rotate the keys of the payment provider', {}),
           ('Notes on the weather in spring', array_fill(-0.1::real, array[1536])::vector)",
        vector(5.0),
        vector(-5.0)
    ));
    let query = "Procedure for adding a new last_name column to the users table";
    let search = |arguments: &str| {
        ann.run(&format!(
            "select left(content, 14), round(rrf_score::numeric, 7), keyword_rank, semantic_rank
             from hybrid_search_context_eng_memories('{query}', {arguments})"
        ))
    };
    let near = vector(5.0);
    // Rank 1 in both lists: 2/51. A wordy query finds by any of its words.
    let found = search(&format!("{near}, 3"));
    assert_eq!(found[0], ["Procedure: add", "0.0392157", "1", "1"]);
    assert_eq!(found[1][2], "2", "{found:?}");
    // A list that does not have it gives nothing.
    assert_eq!(found[2][..2], ["Notes on the w", "0.0188679"]);
    assert_eq!(found[2][2], "∅");
    assert_eq!(
        search("null, 1"),
        [["Procedure: add", "0.0196078", "1", "∅"]]
    );
    assert_eq!(
        search(&format!("{near}, 1, 0, 2, 10")),
        [["Procedure: add", "0.1818182", "1", "1"]]
    );
    assert_eq!(search(&format!("{near}, 0")).len(), 0);
    assert_eq!(search(&format!("{near}, -5")).len(), 0);
    assert_eq!(search(&format!("{near}, 3, 1, 1, -7"))[0][1], "2.0000000");
    let empty = ann.run(&format!(
        "select semantic_rank from hybrid_search_context_eng_memories('', {near}, 9)"
    ));
    assert_eq!(empty.concat(), ["1", "2", "3"]);
    let nothing = ann.run("select 1 from hybrid_search_context_eng_memories(null, null, null)");
    assert_eq!(nothing.len(), 0);
}

#[test]
fn models_never_meet_and_what_is_gone_is_not_found() {
    let Some(store) = Store::new() else { return };
    let ann = &store.ann;
    let near = vector(1.0);
    for table in [
        "context_eng_memories (content, embedding, embedding_model",
        "agent_memory (memory_type, content, embedding, embedding_model",
    ] {
        let kind = if table.starts_with("agent") {
            "'task_memory', "
        } else {
            ""
        };
        ann.run(&format!(
            "insert into {table}) values ({kind}'unstamped', {near}, default), ({kind}'built in', {near}, 'minilm')"
        ));
    }
    ann.run(&format!(
        "insert into agent_memory (memory_type, content, embedding, expires_at) values ('task_memory', 'over', {near}, now() - interval '1 s');
         insert into agent_memory (memory_type, content, embedding, origin, entry_id, deleted_at) values ('task_memory', 'forgotten', {near}, 'a', 'MEM-001', now());
         insert into agent_memory (memory_type, content, embedding) values ('brand_memory', 'of a brand', {near});
         insert into context_eng_memories (content, embedding, origin, entry_id, deleted_at) values ('forgotten', {near}, 'a', 'PROC-001', now())"
    ));
    let found = |sql: &str| {
        let mut found = ann.run(sql).concat();
        found.sort_unstable();
        found
    };
    let hybrid = format!("select content from hybrid_search_context_eng_memories(null, {near}, 9)");
    let matched = format!("select content from match_memory({near}, 0.5, 9)");
    let of_type =
        format!("select content from match_memory({near}, memory_type => 'brand_memory')");
    assert_eq!(found(&hybrid), ["unstamped"]);
    assert_eq!(found(&matched), ["of a brand", "unstamped"]);
    assert_eq!(found(&of_type), ["of a brand"]);
    assert_eq!(
        found(&format!(
            "select round(similarity::numeric, 6) from match_memory({near}, 0.9, 1)"
        )),
        ["1.000000"]
    );
    let far = vector(-50.0);
    assert_eq!(
        found(&format!("select content from match_memory({far})")).len(),
        0
    );
    ann.run("set memctl.embedding_model = 'minilm'");
    assert_eq!(found(&hybrid), ["built in"]);
    assert_eq!(found(&matched), ["built in"]);
    assert_eq!(
        found("select content from hybrid_search_context_eng_memories('forgotten', null, 9)").len(),
        0
    );
}

#[test]
fn rows_of_many_others_do_not_hide_ones_own() {
    let Some(store) = Store::new() else { return };
    // Ben's thousands all lie nearer to the question than Ann's few; an index that gives up after the
    // nearest forty would find none of hers.
    let rows = |client: &Client, content: &str, first: f64, count: u32| {
        client.run(&format!(
            "insert into agent_memory (memory_type, content, embedding)
             select 'task_memory', '{content}', ({first}::real
                || (select array_agg((random() - 0.5)::real) from generate_series(1, 48 + 0 * g))
                || array_fill(0::real, array[1487]))::vector
             from generate_series(1, {count}) g"
        ));
    };
    rows(&store.ben, "of ben", 9.0, 3000);
    rows(&store.ann, "of ann", 3.0, 20);
    store.database.admin().run("analyze agent_memory");
    store
        .ann
        .run("set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off");
    let found = store.ann.run(&format!(
        "select content from match_memory({}, 0, 10)",
        vector(5.0)
    ));
    assert_eq!(found.concat(), vec!["of ann"; 10]);
}

/// The statement of a function, or the part of it between two texts, with these words put in the place
/// of its variables.
fn statement(
    store: &Store,
    function: &str,
    part: Option<(&str, &str)>,
    words: &[(&str, &str)],
) -> String {
    let find = format!("select prosrc from pg_proc where proname = '{function}'");
    let mut text = store.database.admin().value(&find);
    if let Some((from, to)) = part {
        let (_, rest) = text.split_once(from).unwrap();
        text = rest.split_once(to).unwrap().0.to_owned();
    }
    for (variable, value) in words {
        assert!(text.contains(variable), "{variable}: {text}");
        text = text.replace(variable, value);
    }
    text
}

#[test]
#[ignore = "takes some minutes: make test-remote-scale"]
fn indexes_are_used_at_a_hundred_thousand_rows() {
    let Some(store) = Store::new() else { return };
    // ROWS=20000 for a smaller form.
    let rows = std::env::var("ROWS").map_or(100_000, |rows| rows.parse::<u32>().unwrap());
    let admin = store.database.admin();
    let begun = Instant::now();
    // Texts of a vocabulary with common and rare words; vectors of 64 dimensions that mean something,
    // padded with zeros, as those of a smaller model are. Two users in turn.
    admin.run(&format!(
        "select setseed(0.42);
         drop index context_eng_memories_embedding_hnsw;
         alter table context_eng_memories disable trigger memctl_stamp;
         insert into context_eng_memories (user_id, content, embedding)
         select case when g % 2 = 0 then '{}'::uuid else '{}'::uuid end,
           (select string_agg('word' || floor(20000 * random() ^ 3)::int, ' ') from generate_series(1, 12 + 0 * g)),
           ((select array_agg((random() + random() + random() - 1.5)::real) from generate_series(1, 64 + 0 * g))
              || array_fill(0::real, array[1472]))::vector
         from generate_series(1, {rows}) g;
         alter table context_eng_memories enable trigger memctl_stamp;",
        super::ANN, super::BEN
    ));
    println!("{rows} rows in {:.0} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    admin.run(
        "set maintenance_work_mem = '1GB';
         create index context_eng_memories_embedding_hnsw on context_eng_memories using hnsw (embedding vector_cosine_ops)",
    );
    admin.run("vacuum analyze context_eng_memories");
    println!("the HNSW index in {:.0} s", begun.elapsed().as_secs_f64());

    // What the planner does with the very statements of the functions, as the very users, with the
    // settings of the search; the words' function is called within it, and has them too.
    let ann = &store.ann;
    let settings = admin.run(
        "select format('set %s = %L', split_part(setting, '=', 1), split_part(setting, '=', 2))
         from (select unnest(proconfig) as setting from pg_proc where proname = 'hybrid_search_context_eng_memories') s
         where setting not like 'search_path=%'",
    );
    let settings = settings.concat().join("; ");
    admin.run(&settings);
    ann.run(&settings);
    let words = [("query_text", "'word19000 word17'"), ("candidates", "20")];
    let keyword = statement(&store, "keyword_candidates", None, &words);
    admin.run("set role memctl_definer");
    let plan = admin.run(&format!("explain {keyword}")).concat().join("\n");
    admin.run("reset all; reset role");
    println!("{plan}\n");
    assert!(plan.contains("context_eng_memories_fts_gin"), "{plan}");
    let sample = ann.value("select embedding::text from context_eng_memories limit 1");
    let near = format!("'{sample}'");
    let own = format!("= '{}' ", super::ANN);
    let words = [
        ("query_embedding", near.as_str()),
        ("wanted", "10"),
        ("= me ", own.as_str()),
        ("= any (models)", "= ''"),
    ];
    let part = Some(("nearest as materialized (", "), semantic"));
    let nearest = statement(&store, "hybrid_search_context_eng_memories", part, &words);
    let plan = ann.run(&format!("explain {nearest}")).concat();
    ann.run("reset all");
    let plan: Vec<String> = plan
        .iter()
        .map(|line| line.chars().take(120).collect())
        .collect();
    let plan = plan.join("\n");
    println!("{plan}\n");
    assert!(
        plan.contains("context_eng_memories_embedding_hnsw"),
        "{plan}"
    );

    // And what the functions do: the counters of both indexes move.
    let scans = |index: &str| -> u64 {
        admin.run("select pg_stat_force_next_flush(); select pg_stat_clear_snapshot()");
        admin
            .value(&format!(
                "select idx_scan from pg_stat_user_indexes where indexrelname = '{index}'"
            ))
            .parse()
            .unwrap()
    };
    let indexes = [
        "context_eng_memories_embedding_hnsw",
        "context_eng_memories_fts_gin",
    ];
    let before = indexes.map(scans);
    let begun = Instant::now();
    for _ in 0..20 {
        ann.run(&format!("select id from hybrid_search_context_eng_memories('word19000 word18000', '{sample}', 10)"));
    }
    println!(
        "hybrid search: {:.1} ms",
        begun.elapsed().as_secs_f64() * 50.0
    );
    ann.run("select pg_stat_force_next_flush()");
    let after = indexes.map(scans);
    assert!(
        after[0] > before[0] && after[1] > before[1],
        "{before:?} {after:?}"
    );

    // Recall@10 over fifty questions near what is there, against all rows.
    let (mut found, mut of) = (0, 0);
    for n in 0..50 {
        let question = ann.value(&format!(
            "select (embedding + ((select array_agg(((random() - 0.5) * 0.5)::real) from generate_series(1, 64)) || array_fill(0::real, array[1472]))::vector)::text
             from context_eng_memories order by id offset {} limit 1", n * 997 * (rows / 100_000)
        ));
        let ids = |sql: &str| ann.run(sql).concat();
        let by_index = ids(&format!(
            "select id from hybrid_search_context_eng_memories(null, '{question}', 10)"
        ));
        let exact = ids(&format!(
            "set enable_indexscan = off; select id from context_eng_memories order by embedding <=> '{question}' limit 10"
        ));
        ann.run("reset enable_indexscan");
        of += exact.len();
        found += exact.iter().filter(|id| by_index.contains(id)).count();
    }
    let recall = f64::from(u32::try_from(found).unwrap()) / f64::from(u32::try_from(of).unwrap());
    println!("recall@10: {recall:.3}");
    assert!(recall >= 0.95, "{recall}");
}
