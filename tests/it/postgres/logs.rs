//! The log of agents in the database: of all copies of a memory, kept apart by user, and for a time.

use serde_json::{Value, json};

use super::{ANN, Store};
use crate::serve::own_data::delete;
use crate::serve::{Served, token};
use crate::workspace::Workspace;

fn log(copy: &Workspace, session: &str, step: &str) {
    copy.json(&[
        "session", "log", session, "--step", step, "--action", "decision", "--status", "success",
    ]);
}

/// Steps of a session as a copy shows them, oldest first.
fn steps(copy: &Workspace, session: &str) -> Vec<String> {
    let shown = copy.json(&["session", "show", session]);
    let logs = shown["logs"].as_array().unwrap().iter();
    logs.map(|line| line["step_name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_copy_shows_what_agents_did_at_any_of_them() {
    let Some(store) = Store::new() else { return };
    let (one, mut two) = (store.server(), store.server());
    two.set("MEMCTL_NOW", "2026-02-20T12:50:00+00:00");
    let started = one.json(&["session", "start", "--user", "ada"]);
    let session = started["session_id"].as_str().unwrap();
    log(&one, session, "research");
    log(&two, session, "writing");
    for copy in [&one, &two] {
        assert_eq!(steps(copy, session), ["research", "writing"]);
    }
    // Rows of the user, in the session, for those who watch the table.
    let ada = store.login_of("ada", &store.hosted("ada"));
    let rows = "select l.step_name from agent_execution_logs l join agent_sessions s on s.id = l.session_id
        order by l.created_at";
    assert_eq!(ada.run(rows).concat(), ["research", "writing"]);
    let count = "select count(*) from agent_execution_logs";
    assert_eq!(
        (
            ada.value(count),
            store.ben.value(count),
            store.ann.value(count)
        ),
        ("2".into(), "0".into(), "2".into())
    );
    for (who, user, holder) in [
        (&store.ben, store.hosted("ada"), super::BEN),
        (&store.ben, super::BEN.to_owned(), ANN),
        (&ada, store.hosted("ada"), ANN),
    ] {
        who.refused(
            "42501",
            &format!(
            "insert into agent_execution_logs (user_id, held_by, step_name, action_type, status)
             values ('{user}', '{holder}', 'forged', 'decision', 'success')"
        ),
        );
    }
    // A line that was written without the database comes with the next sync, once.
    let now = store
        .ann
        .value("select to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"')");
    let line = json!({ "id": "7c0c3c1e-0000-4000-8000-000000000001", "session_id": session, "user_id": "ada",
        "step_name": "a hook", "action_type": "tool_call", "status": "success", "created_at": now });
    let old = json!({ "id": "7c0c3c1e-0000-4000-8000-000000000002", "session_id": "claude-code/1", "step_name": "old",
        "action_type": "tool_call", "status": "success", "created_at": "2020-01-01T00:00:00+00:00" });
    let mut text = std::fs::read_to_string(two.memory("execution_logs.jsonl")).unwrap();
    text.push_str(&format!(
        "{line}\n{old}\n{{\"id\": \"x\", \"step_name\": \"no action\"}}\n"
    ));
    std::fs::write(two.memory("execution_logs.jsonl"), text).unwrap();
    assert_eq!(steps(&one, session).len(), 2);
    for _ in 0..2 {
        two.run(&["sync"]).succeeds();
        assert_eq!(steps(&one, session), ["research", "writing", "a hook"]);
        assert_eq!(ada.value(count), "3");
    }
    // Without a database nothing is acknowledged.
    store.database.close(true);
    one.run(&[
        "session", "log", session, "--step", "lost", "--action", "decision", "--status", "success",
    ])
    .fails(6, "");
    store.database.close(false);
    assert_eq!(steps(&one, session).len(), 3);
    assert_eq!(one.run(&["remote", "check"]).code, 0);
}

#[test]
fn lines_of_a_user_are_deleted_with_the_user() {
    let Some(store) = Store::new() else { return };
    let one = store.server();
    for user in ["ada", "bob"] {
        let started = one.json(&["session", "start", "--user", user]);
        log(&one, started["session_id"].as_str().unwrap(), user);
    }
    let served = Served::start(&one, &[]);
    delete(&served, &token(&one, "ada", "*"), "?confirm=ada").is(200);
    let left = "select step_name from agent_execution_logs";
    assert_eq!(store.ann.run(left).concat(), ["bob"]);
    drop(served);
    one.run(&["memory", "purge", "--yes"]).succeeds();
    assert_eq!(store.ann.run(left), Vec::<Vec<String>>::new());
}

#[test]
fn old_lines_are_dropped_by_the_month() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    let insert = |at: &str| {
        store.ann.run(&format!(
            "insert into agent_execution_logs (step_name, action_type, status, created_at)
             values ('x', 'decision', 'success', {at})"
        ));
    };
    admin.run(
        "create table memctl.logs_2020_01 partition of public.agent_execution_logs
           for values from ('2020-01-01 00:00+00') to ('2020-02-01 00:00+00')",
    );
    for at in [
        "timestamptz '2020-01-15'",
        "timestamptz '2019-01-01'",
        "now()",
        "now() + interval '3 months'",
    ] {
        insert(at);
    }
    let partitions =
        "select count(*) from pg_inherits where inhparent = 'agent_execution_logs'::regclass";
    assert_eq!(admin.value(partitions), "6");
    let count = "select count(*) from agent_execution_logs";
    assert_eq!(store.ann.value(count), "4");
    // A partition that somebody makes by hand is not forgotten by the check.
    let (code, found) = store.check(&store.login(ANN));
    assert!(
        code == 1 && found.to_string().contains("logs_2020_01"),
        "{found}"
    );
    let mut prune = Workspace::empty();
    prune.set("DATABASE_URL", &store.database.url);
    prune
        .run(&["memory", "prune", "--remote", "--dry-run"])
        .succeeds();
    assert_eq!(store.ann.value(count), "4");
    prune.run(&["memory", "prune", "--remote"]).succeeds();
    assert_eq!(
        (store.ann.value(count), admin.value(partitions)),
        ("2".into(), "5".into())
    );
    assert_eq!(store.check(&store.login(ANN)).0, 0);
    // The administrator says for how long.
    assert_eq!(admin.value("select memctl.keep_logs('1 month')"), "0");
    let plan = store.ann.run(
        "explain select * from agent_execution_logs where created_at > now() - interval '1 day'
        and created_at < now() + interval '1 day'",
    );
    let scanned = plan
        .concat()
        .iter()
        .filter(|line| line.contains("Scan on logs_"))
        .count();
    assert!(scanned <= 3, "{plan:?}");
}

/// Clients that watch the table hear of it under its name, whatever the partition is.
#[test]
fn subscribers_name_the_table_and_not_the_month() {
    let Some(server) = super::server() else {
        return;
    };
    let database = server.database();
    let admin = database.admin();
    admin.run("create publication supabase_realtime");
    Workspace::empty()
        .run(&["remote", "init", "--url", &database.url])
        .succeeds();
    let published = admin.run(
        "select tablename from pg_publication_tables where pubname = 'supabase_realtime' order by 1",
    );
    assert_eq!(
        published.concat(),
        ["agent_execution_logs", "agent_memory", "agent_sessions"]
    );
}

/// The text of a line, as its writer knows it.
#[test]
fn odd_lines_do_not_reach_the_columns() {
    let Some(store) = Store::new() else { return };
    let one = store.server();
    let started = one.json(&["session", "start"]);
    let session = started["session_id"].as_str().unwrap();
    one.json(&[
        "session",
        "log",
        session,
        "--step",
        "a \u{1} b",
        "--action",
        "tool_call",
        "--status",
        "error",
        "--input",
        r#"{"n": 1062.0, "z": "\u0000"}"#,
        "--confidence",
        "0.125",
    ]);
    let row =
        "select input_data ->> 'n' || ' ' || (input_data ->> 'z' = '') from agent_execution_logs";
    assert_eq!(store.ann.value(row), "1062.0 true");
    let kept: Value = one.json(&["session", "show", session])["logs"][0].clone();
    assert_eq!(kept["input_data"]["n"], json!(1062.0));
    assert_eq!(
        store
            .ann
            .value("select confidence_score from agent_execution_logs"),
        "0.13"
    );
}
