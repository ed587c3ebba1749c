//! Two users, a real server, real roles: whatever one of them tries, the other's rows stay their own.

use super::{ANN, BEN, Client, Store, TABLES, sample, vector};

/// `insufficient_privilege`: a right is missing, or a policy does not allow the row.
const DENIED: &str = "42501";

#[test]
fn no_table_shows_or_takes_what_is_anothers() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let (ann, ben) = (&store.ann, &store.ben);
    for table in TABLES {
        assert_eq!(
            ann.value(&format!("select count(*) from {table}")),
            "1",
            "{table}"
        );
        assert_eq!(
            ben.value(&format!("select count(*) from {table}")),
            "0",
            "{table}"
        );
        let copied = ben.query(&format!("select * from {table} where user_id = '{ANN}'"));
        assert_eq!(copied, Ok(Vec::new()), "{table}");

        // Ben's changes meet nothing, or are not his to make.
        let own_lines = table == "agent_execution_logs";
        let expected = if own_lines {
            Err(DENIED.to_owned())
        } else {
            Ok(0)
        };
        let change = format!("update {table} set skill = 'ben/was-here'");
        assert_eq!(ben.changed(&change), expected, "{change}");
        ben.refused(DENIED, &format!("delete from {table}"));
        ben.refused(DENIED, &format!("truncate {table}"));
        ben.refused(DENIED, &format!("drop table {table}"));
        ben.refused(
            DENIED,
            &format!("alter table {table} disable row level security"),
        );
        ben.refused(
            DENIED,
            &format!("create policy mine on {table} using (true)"),
        );
        ben.refused(
            DENIED,
            &format!("create trigger mine after insert on {table} execute function memctl.stamp()"),
        );
        ben.refused(
            DENIED,
            &format!("set row_security = off; select * from {table}"),
        );
        ben.query("reset row_security").unwrap();

        // Ben's rows are Ben's: not made, and not turned, into Ann's.
        if own_lines {
            ben.run(&sample("agent_sessions", BEN));
        }
        ben.refused(DENIED, &sample(table, ANN));
        ben.run(&sample(table, BEN));
        let turned = ben.changed(&format!("update {table} set user_id = '{ANN}'"));
        assert_eq!(turned, Err(DENIED.to_owned()), "{table}");
    }
    // With the same origins and ids in both hands, each has exactly what is theirs.
    for table in TABLES {
        for (client, user) in [(ann, ANN), (ben, BEN)] {
            let rows = client.run(&format!("select distinct user_id from {table}"));
            assert_eq!(rows, [[user]], "{table}");
            let shown = client
                .run(&format!("select t::text from {table} t"))
                .concat()
                .concat();
            let other = if user == ANN { BEN } else { ANN };
            assert!(!shown.contains(other), "{table}: {shown}");
            assert!(!shown.contains("was-here"), "{table}: {shown}");
        }
    }
}

#[test]
fn our_own_tables_are_nobodys_to_read_or_write() {
    let Some(store) = Store::new() else { return };
    for table in ["logins", "token_roles", "roles", "admin_reads", "clocks"] {
        store
            .ben
            .refused(DENIED, &format!("select * from memctl.{table}"));
        store
            .ben
            .refused(DENIED, &format!("delete from memctl.{table}"));
    }
    store.ben.refused(
        DENIED,
        &format!("insert into memctl.roles values ('{BEN}', 'admin')"),
    );
    store.ben.refused(
        DENIED,
        "insert into memctl.token_roles values (session_user)",
    );
    store.ben.refused(
        DENIED,
        "insert into memctl.migrations values (99, 'mine', 'x')",
    );
    store.ben.refused(DENIED, "select * from auth.users");
    store.ben.refused(DENIED, "create table memctl.mine ()");
    store.ben.refused(
        DENIED,
        "create function memctl.mine() returns int language sql as 'select 1'",
    );
    // The version is no secret.
    assert_ne!(
        store.ben.value("select count(*) from memctl.migrations"),
        "0"
    );
}

#[test]
fn no_function_does_for_a_user_what_a_table_refuses() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let ben = &store.ben;
    let near = vector(1.0);
    // The controls: Ann finds what is hers by both.
    let hybrid =
        format!("select content from hybrid_search_context_eng_memories('secret', {near}, 10)");
    assert_eq!(store.ann.run(&hybrid).len(), 1);
    let matched = format!("select content from match_memory({near})");
    assert_eq!(store.ann.run(&matched).len(), 1);

    assert_eq!(ben.run(&hybrid), Vec::<Vec<String>>::new());
    assert_eq!(ben.run(&matched), Vec::<Vec<String>>::new());
    let forged = format!("select content from match_memory({near}, -1, 1000, null, '{ANN}')");
    assert_eq!(ben.run(&forged), Vec::<Vec<String>>::new());
    assert_eq!(store.ann.run(&forged).len(), 1);
    assert_eq!(
        ben.run("select * from memctl.keyword_candidates('secret', 100)"),
        Vec::<Vec<String>>::new()
    );
    assert_eq!(
        store
            .ann
            .run("select * from memctl.keyword_candidates('secret', 100)")
            .len(),
        1
    );

    // How much a user writes is nobody else's business.
    let clock = |client: &Client| client.value("select memctl.clock()");
    let (before, of_ben) = (clock(&store.ann), clock(ben));
    store
        .ann
        .run(&sample("reflexions", ANN).replace("CORR-001", "REFL-009"));
    assert_ne!(clock(&store.ann), before);
    assert_eq!(clock(ben), of_ben);

    assert_eq!(ben.value("select memctl.current_user_id()"), BEN);
    assert_eq!(ben.value("select auth.uid()"), BEN);
    assert_eq!(
        ben.value(&format!("select memctl.has_role('{BEN}', 'admin')")),
        "f"
    );
    ben.refused(DENIED, "select cleanup_expired_memory()");
    ben.refused(DENIED, "select memctl.open_admin_read('I am curious')");
    ben.refused(
        DENIED,
        "select * from memctl.hybrid_search_of_all('secret', null, 9, 1, 1, 50)",
    );
    ben.refused(DENIED, "select memctl.keep_logs()");
    ben.refused(DENIED, "select memctl.keep_audit()");
    ben.refused(DENIED, "select memctl.grant_rights()");
    ben.refused(DENIED, "select * from memctl.logs_other");
    // Whom another one holds rows for is not told, and a name makes a new user.
    assert_eq!(ben.value(&format!("select memctl.hosts('{ANN}')")), "f");
    assert_ne!(ben.value(&format!("select memctl.host_user('{ANN}')")), ANN);
    assert_eq!(ben.value("select memctl.host_user('')"), "∅");
    // Models of others are not told.
    assert_eq!(
        ben.value(&format!(
            "select memctl.searched_models('{ANN}') = array['']"
        )),
        "t"
    );
    for of_triggers in [
        "take_turn",
        "stamp",
        "write_fts",
        "update_updated_at_column",
        "notify_memory_update",
        "bind_login",
        "hide_statistics",
        "admit_service_role",
        "take_turn_of",
        "hold",
    ] {
        ben.refused(DENIED, &format!("select memctl.{of_triggers}()"));
    }
    // Every function that there is was named above.
    let all = store
        .database
        .admin()
        .run("select proname from pg_proc where pronamespace = 'memctl'::regnamespace order by 1");
    assert_eq!(
        all.concat(),
        [
            "admin_may_read",
            "admit_service_role",
            "begin_write",
            "bind_login",
            "clock",
            "current_user_id",
            "delete_expired",
            "delete_logs",
            "grant_rights",
            "has_role",
            "hide_statistics",
            "hold",
            "host_user",
            "hosts",
            "hybrid_search_of_all",
            "keep_audit",
            "keep_logs",
            "keyword_candidates",
            "notify_memory_update",
            "open_admin_read",
            "searched_models",
            "stamp",
            "take_turn",
            "take_turn_of",
            "update_updated_at_column",
            "write_fts",
        ]
    );
    // A role of the server that is no user may do none of it.
    let nobody = Client::connect(&store.role("nobody", ""));
    nobody.refused(DENIED, "select memctl.current_user_id()");
    nobody.refused(DENIED, &hybrid);
    nobody.refused(DENIED, &matched);
    // A member of the group that belongs to no user sees nothing.
    let unmapped = Client::connect(&store.role("unmapped", "in role memctl_user"));
    assert_eq!(unmapped.value("select memctl.current_user_id()"), "∅");
    assert_eq!(unmapped.value("select count(*) from agent_memory"), "0");
    unmapped.refused(DENIED, &sample("agent_memory", ANN));
    assert_eq!(unmapped.run(&hybrid).len(), 0);
}

#[test]
fn login_cannot_change_its_user() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let claims = format!(r#"{{"sub":"{ANN}","role":"service_role"}}"#);
    for forged in [
        format!("set request.jwt.claims = '{claims}'"),
        format!("select set_config('request.jwt.claims', '{claims}', false)"),
        format!("set request.jwt.claim.sub = '{ANN}'"),
        format!("set application_name = '{ANN}'"),
        format!("set memctl.user_id = '{ANN}'"),
    ] {
        store.ben.run(&forged);
        assert_eq!(
            store.ben.value("select memctl.current_user_id()"),
            BEN,
            "{forged}"
        );
        assert_eq!(
            store.ben.value("select count(*) from agent_memory"),
            "0",
            "{forged}"
        );
    }
    let url = store.role("carl", "in role memctl_user");
    let with_options = Client::connect(&format!(
        "{url}?options=-c%20request.jwt.claims%3D%7B%22sub%22:%22{ANN}%22%7D"
    ));
    assert_eq!(
        with_options.value("select current_setting('request.jwt.claims')"),
        format!(r#"{{"sub":"{ANN}"}}"#)
    );
    assert_eq!(with_options.value("select memctl.current_user_id()"), "∅");

    for other in [
        "set role memctl_definer",
        "set role postgres",
        "set session authorization postgres",
        "set session_replication_role = replica",
        "grant memctl_definer to current_user",
        "alter role current_user bypassrls",
        "alter role current_user superuser",
        "alter role current_user set request.jwt.claims = '{}'",
    ] {
        store.ben.refused(DENIED, other);
    }
    let ann = format!("memctl_ann_{}", store.database.number);
    store.ben.refused(DENIED, &format!("set role {ann}"));
    store
        .ben
        .refused(DENIED, &format!("set session authorization {ann}"));
    // Becoming the group changes nothing.
    store.ben.run("set role memctl_user");
    assert_eq!(store.ben.value("select memctl.current_user_id()"), BEN);
    assert_eq!(store.ben.value("select count(*) from agent_memory"), "0");
    store.ben.run("reset role");
    // What the self-test uses takes rights away, and gives none.
    store.ann.run("begin; set local memctl.probe = 'on'");
    assert_eq!(store.ann.value("select count(*) from agent_memory"), "0");
    store.ann.refused(
        "23503",
        &sample("agent_memory", "00000000-0000-4000-8000-000000000000"),
    );
    store.ann.run("rollback");
}

#[test]
fn claims_count_for_those_who_verify_tokens() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let url = store.role("verifier", "noinherit in role memctl_user");
    let verifier = Client::connect(&url);
    verifier.run("set role memctl_user");
    let who = "select memctl.current_user_id()";
    let claim = |text: &str| {
        verifier.run(&format!(
            "select set_config('request.jwt.claims', '{text}', false)"
        ))
    };
    claim(&format!(r#"{{"sub":"{ANN}"}}"#));
    assert_eq!(verifier.value(who), "∅");
    let name = format!("verifier_{}", store.database.number);
    store
        .database
        .admin()
        .run(&format!("insert into memctl.token_roles values ('{name}')"));
    assert_eq!(verifier.value(who), ANN);
    assert_eq!(
        verifier.value("select content from agent_memory"),
        format!("the secret of {ANN}")
    );
    claim(&format!(r#"{{"sub":"{BEN}"}}"#));
    assert_eq!(verifier.value("select count(*) from agent_memory"), "0");
    for nobody in [
        "{}", r#"{"sub":null}"#, r#"{"sub":"ann"}"#, r#"{"sub":[1]}"#, "[]", "null", "",
    ] {
        claim(nobody);
        assert_eq!(verifier.value(who), "∅", "{nobody}");
        assert_eq!(
            verifier.value("select count(*) from agent_memory"),
            "0",
            "{nobody}"
        );
    }
    claim("{not json");
    verifier.refused("22P02", who);
    verifier.refused("22P02", "select count(*) from agent_memory");
}

#[test]
fn an_administrator_reads_on_record_and_writes_nothing() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let (admin, boss) = (store.database.admin(), &store.ben);
    admin.run(&format!(
        "insert into memctl.roles values ('{BEN}', 'admin')"
    ));
    assert_eq!(
        boss.value(&format!("select memctl.has_role('{BEN}', 'admin')")),
        "t"
    );
    // Of others nobody is told.
    assert_eq!(
        store
            .ann
            .value(&format!("select memctl.has_role('{BEN}', 'admin')")),
        "f"
    );
    // Without a line in the log there is nothing to see.
    assert_eq!(boss.value("select count(*) from agent_memory"), "0");
    boss.refused("23514", "select memctl.open_admin_read('why')");
    boss.refused("23502", "select memctl.open_admin_read(null)");
    // Nor with one that could still be taken back.
    boss.run("begin; select memctl.open_admin_read('a ticket of Ann')");
    assert_eq!(boss.value("select count(*) from agent_memory"), "0");
    boss.run("savepoint s");
    assert_eq!(boss.value("select count(*) from agent_memory"), "0");
    boss.run("rollback");
    assert_eq!(boss.value("select count(*) from agent_memory"), "0");
    // With a line that stays, there is; and it stays whatever becomes of the reading.
    boss.run("select memctl.open_admin_read('a ticket of Ann')");
    boss.run("begin");
    assert_eq!(
        boss.value("select content from agent_memory"),
        format!("the secret of {ANN}")
    );
    assert_eq!(boss.value("select count(*) from agent_execution_logs"), "1");
    let near = vector(1.0);
    assert_eq!(
        boss.run(&format!(
            "select id from match_memory({near}, -1, 9, null, '{ANN}')"
        ))
        .len(),
        1
    );
    boss.run("rollback");
    let logged = admin.run("select user_id, reason, until > now() from memctl.admin_reads");
    assert_eq!(logged, [[BEN, "a ticket of Ann", "t"]]);
    // What the seed does not name stays closed, and nothing can be changed.
    for table in [
        "context_eng_memories", "agent_sessions", "executions", "corrections", "reflexions",
    ] {
        assert_eq!(
            boss.value(&format!("select count(*) from {table}")),
            "0",
            "{table}"
        );
    }
    assert_eq!(
        boss.changed("update agent_memory set content = 'mine'"),
        Ok(0)
    );
    boss.refused(DENIED, "delete from agent_memory");
    assert_eq!(
        boss.run(&format!(
            "select id from hybrid_search_context_eng_memories('secret', {near}, 9)"
        ))
        .len(),
        0
    );
    // Then the time is over.
    admin.run("update memctl.admin_reads set until = now()");
    assert_eq!(boss.value("select count(*) from agent_memory"), "0");
    assert_eq!(
        store.ann.value("select content from agent_memory"),
        format!("the secret of {ANN}")
    );
}

#[test]
fn names_mean_what_they_meant_when_we_wrote_them() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let ben = &store.ben;
    let near = vector(1.0);
    // Tables, functions and operators of Ben's own, as far as the server lets him make them, and then
    // as far as one lets him whose `public` is open to all, as it was before PostgreSQL 15.
    ben.refused(DENIED, "create schema memctl2");
    store
        .database
        .admin()
        .run("grant create, usage on schema public to public");
    ben.run(&format!(
        "create temp table agent_memory as select '{ANN}'::uuid as id;
         create temp table context_eng_memories (id bigint, content text);
         create temp table logins (role_name name, user_id uuid);
         insert into logins values (session_user, '{ANN}');
         create function pg_temp.current_user_id() returns uuid language sql as $$ select '{ANN}'::uuid $$;
         create function public.current_user_id() returns uuid language sql as $$ select '{ANN}'::uuid $$;
         create function public.current_setting(text, boolean) returns text language sql as $$ select 'on' $$;
         create function public.to_tsvector(text, text) returns tsvector language sql as $$ select ''::tsvector $$;
         create function public.nextval(text) returns bigint language sql as $$ select 7::bigint $$;
         create function public.mine(uuid, uuid) returns boolean language sql as $$ select true $$;
         create operator public.= (leftarg = uuid, rightarg = uuid, function = public.mine);
         set search_path = pg_temp, public, pg_catalog"
    ));
    assert_eq!(ben.value("select memctl.current_user_id()"), BEN);
    assert_eq!(ben.value("select count(*) from public.agent_memory"), "0");
    assert_eq!(
        ben.value("select count(*) from public.context_eng_memories"),
        "0"
    );
    let hybrid =
        format!("select id from public.hybrid_search_context_eng_memories('secret', {near}, 10)");
    assert_eq!(ben.run(&hybrid).len(), 0);
    let matched = format!("select id from public.match_memory({near}, -1, 10, null, '{ANN}')");
    assert_eq!(ben.run(&matched).len(), 0);
    // Ben's traps in `public` are no traps for Ann either.
    assert_eq!(store.ann.value("select memctl.current_user_id()"), ANN);
    store
        .ann
        .run("insert into context_eng_memories (content) values ('another secret')");
    assert_eq!(store.ann.run(&hybrid).len(), 2);
    assert_eq!(
        store
            .ann
            .value("select count(*) from context_eng_memories where seq = 7"),
        "0"
    );
}

#[test]
fn a_cheap_function_is_not_shown_the_rows_of_others() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let ben = &store.ben;
    // The planner puts cheap conditions first; row security has to come before them all the same.
    ben.run(
        "create temp table seen (what text);
         create function pg_temp.leak(text) returns boolean language plpgsql cost 0.0000001 as
           $$ begin insert into seen values ($1); return true; end $$;",
    );
    for table in TABLES {
        ben.run(&format!(
            "select count(*) from {table} t where pg_temp.leak(t::text)"
        ));
    }
    assert_eq!(ben.value("select count(*) from seen"), "0");
    ben.run(&sample("agent_memory", BEN));
    ben.run("select count(*) from agent_memory t where pg_temp.leak(t::text)");
    assert_eq!(ben.value("select count(*) from seen"), "1");
}

#[test]
fn text_is_never_a_statement() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let near = vector(1.0);
    let hostile = [
        "'; drop table public.agent_memory; --",
        "' or '1'='1",
        "\\'; select 1; --",
        "$$; delete from public.executions; $$",
        "!(a <-> b):*C & | ' \\ \" ) ( <",
        "secret':*A | 'x",
        "%s %I %L \u{202e}\u{feff} \u{1f4a3}",
        "a'||pg_sleep(9)||'",
        ")} ]] {{ }} \\\\ \\x00",
        // The parts of an address are words, with the quotation marks in them.
        "http://x.com/a'b?c='d' | www.x.de/~'a\\ www.x.de/'||'",
    ];
    for text in hostile {
        let quoted = format!("'{}'", text.replace('\'', "''"));
        for client in [&store.ann, &store.ben] {
            client.run(&format!(
                "select * from hybrid_search_context_eng_memories({quoted}, {near}, 5)"
            ));
            client.run(&format!(
                "select * from hybrid_search_context_eng_memories({quoted}, null, 5)"
            ));
            client.run(&format!(
                "select * from memctl.keyword_candidates({quoted}, 5)"
            ));
            assert_eq!(
                client
                    .run(&format!(
                        "select * from match_memory({near}, -1, 5, {quoted})"
                    ))
                    .len(),
                0
            );
            client.run(&format!(
                "select set_config('memctl.embedding_model', {quoted}, false)"
            ));
            client.run(&format!("select * from match_memory({near})"));
            client.run("reset memctl.embedding_model");
        }
        // As a record it comes back as it was given.
        store.ann.run(&format!(
            "insert into context_eng_memories (content, skill, metadata) values ({quoted}, {quoted}, to_jsonb({quoted}::text))"
        ));
        let back = store
            .ann
            .value("select content from context_eng_memories order by id desc limit 1");
        assert_eq!(back, text);
        for column in ["origin", "entry_id"] {
            let other = if column == "origin" {
                "entry_id"
            } else {
                "origin"
            };
            store.ann.refused(
                "23514",
                &format!(
                    "insert into reflexions ({column}, {other}, entry) values ({quoted}, 'x', '{{}}')"
                ),
            );
        }
        // On the command line, too.
        let url = &store.database.url;
        let ran = store
            .workspace
            .run(&["remote", "user", "add", text, "--url", url]);
        ran.fails(2, "name of a user");
        let ran = store.workspace.run(&[
            "remote", "user", "add", "dora", "--user-id", text, "--url", url,
        ]);
        ran.fails(2, "is not a user id");
    }
    for table in TABLES {
        assert_ne!(
            store.ann.value(&format!("select count(*) from {table}")),
            "0",
            "{table}"
        );
        assert_eq!(
            store.ben.value(&format!("select count(*) from {table}")),
            "0",
            "{table}"
        );
    }
}

#[test]
fn errors_tell_nothing_of_others() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let session = store.ann.value("select id from agent_sessions");
    let log = |session: &str| {
        format!(
            "insert into agent_execution_logs (session_id, step_name, action_type, status) values ('{session}', 's', 'decision', 'success')"
        )
    };
    let nowhere = "99999999-0000-4000-8000-000000000009";
    let there = store.ben.query(&log(&session)).unwrap_err();
    let not_there = store.ben.query(&log(nowhere)).unwrap_err();
    assert_eq!(there, not_there);
    assert!(there.starts_with("23503"), "{there}");
    // Nobody chooses numbers, and so nobody takes those of others or finds out which are taken.
    store.ben.refused(
        DENIED,
        "insert into context_eng_memories (id, content) values (1, 'mine')",
    );
    store.ben.refused(
        DENIED,
        "insert into context_eng_memories (id, content) overriding system value values (1, 'mine')",
    );
    // The same keys as Ann's are free for Ben.
    store.ben.run(&sample("corrections", BEN));
}

#[test]
fn a_message_tells_who_wrote_and_nothing_of_what() {
    let Some(store) = Store::new() else { return };
    let heard = store.database.heard("memory_updated", || {
        store.ann.run(&sample("agent_memory", ANN));
        store.ann.run("update agent_memory set content = 'changed'");
        store.database.admin().run("delete from agent_memory");
    });
    let expected = |operation: &str| serde_json::json!({"user_id": ANN, "memory_type": "brand_memory", "operation": operation});
    let heard: Vec<serde_json::Value> = heard
        .iter()
        .map(|m| serde_json::from_str(m).unwrap())
        .collect();
    assert_eq!(
        heard,
        [expected("INSERT"), expected("UPDATE"), expected("DELETE")]
    );
}

#[test]
fn only_expired_rows_are_removed() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    for client in [&store.ann, &store.ben] {
        client.run(
            "insert into agent_memory (memory_type, content, expires_at) values
               ('task_memory', 'over', now() - interval '1 day'),
               ('task_memory', 'not yet', now() + interval '1 day'),
               ('brand_memory', 'never', null)",
        );
    }
    admin.run("select cleanup_expired_memory()");
    for client in [&store.ann, &store.ben] {
        let left = client.run("select content from agent_memory order by 1");
        assert_eq!(left.concat(), ["never", "not yet"]);
    }
}
