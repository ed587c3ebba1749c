//! The database for those who ask in SQL: the fields of the source document are columns, each row has its own
//! user, and roles that come later get their rights.

use serde_json::json;

use super::{ANN, Store, done};
use crate::serve::{Served, token};
use crate::support::until;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";
const RUNS: &str = "select execution_id, skill, outcome, cost_usd, latency_ms > 0, model_used,
    input_summary ->> 'candidate', jsonb_typeof(output_summary), \"timestamp\" > '2020-01-01' from executions";
const RULES: &str = "select r.reflexion_id, r.correction_id, r.rule, r.confidence between 0 and 1, r.validated_by_test,
    jsonb_typeof(r.generated_test_ids), r.created_at is not null, c.user_correction, c.execution_id = e.execution_id
    from reflexions r join corrections c using (correction_id) join executions e using (execution_id)";

/// Runs and corrects; returns the id of the run.
fn run(workspace: &Workspace) -> String {
    let ran = workspace.json(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    let id = ran["execution_id"].as_str().unwrap().to_owned();
    workspace.json(&[
        "correct",
        SKILL,
        "--execution-id",
        &id,
        "--correction",
        "Always name the licence of a nurse.",
    ]);
    id
}

fn check(store: &Store, workspace: &Workspace, id: &str) {
    let input = workspace.read("fixtures/sample_input.json");
    let input: serde_json::Value = serde_json::from_str(&input).unwrap();
    let candidate = input["candidate"].as_str().unwrap_or("∅");
    let shown = workspace.json(&["show", id]);
    let record = &shown["record"];
    let cost = record["cost_usd"].to_string();
    let row = store.ann.run(RUNS).concat();
    let expected = [
        id,
        SKILL,
        record["outcome"].as_str().unwrap(),
        &cost,
        "t",
        record["model_used"].as_str().unwrap(),
        candidate,
        "object",
        "t",
    ];
    assert_eq!(
        (&row[..3], &row[4..]),
        (
            &expected.map(str::to_owned)[..3],
            &expected.map(str::to_owned)[4..]
        )
    );
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert!((number(&row[3]) - number(&cost)).abs() < 1e-9, "{row:?}");
    let rule = store.ann.run(RULES).concat();
    let words = "Always name the licence of a nurse.";
    assert_eq!(
        rule,
        [
            "REFL-001", "CORR-001", words, "t", "f", "array", "t", words, "t"
        ]
    );
}

#[test]
fn fields_of_the_document_are_columns_after_a_sync_and_in_a_joined_memory() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    let id = run(&laptop);
    done(&laptop.run(&["sync", "--json"]));
    check(&store, &laptop, &id);
    // What a removed record said is gone from its columns.
    laptop.json(&["forget", "REFL-001"]);
    done(&laptop.run(&["sync", "--json", "--yes"]));
    assert_eq!(store.ann.value("select count(*) from reflexions"), "0");
    store.ann.run("set memctl.shows_removed = 'on'");
    let gone = "select rule is null and mistake is null and root_cause is null and applies_when is null from reflexions";
    assert_eq!(store.ann.value(gone), "t");

    let Some(store) = Store::new() else { return };
    let server = store.server();
    let id = run(&server);
    check(&store, &server, &id);
}

#[test]
fn sync_keeps_the_user_of_each_memory_and_sends_the_log_of_agents() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    let add = |user: &[&str], content: &str| {
        let command = [
            "memory", "add", "--type", "brand_memory", "--content", content,
        ];
        laptop.json(&[&command[..], user].concat());
    };
    add(&[], "of nobody");
    add(&["--user", "ada"], "of ada");
    add(&["--user", "bob"], "of bob");
    let session = laptop.json(&["session", "start", "--user", "ada"])["session_id"].clone();
    let session = session.as_str().unwrap();
    // The clock of the tests stands still, and `sync` sends the lines of the last month.
    let now = store
        .ann
        .value("select to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"')");
    let line = json!({ "id": "7c0c3c1e-0000-4000-8000-000000000001", "session_id": session, "user_id": "ada",
        "step_name": "research", "action_type": "tool_call", "status": "success", "created_at": now });
    laptop.write(".agentura/execution_logs.jsonl", format!("{line}\n"));
    let sent = laptop.json(&["sync"]);
    assert_eq!(sent["lines"]["execution_logs"], json!(1), "{sent}");
    let (ada, bob) = (store.hosted("ada"), store.hosted("bob"));
    assert!(ada != bob && ada != ANN, "{ada} {bob}");
    let rows = "select content, user_id::text from agent_memory order by content";
    let row = |content: &str, user: &str| vec![content.to_owned(), user.to_owned()];
    assert_eq!(
        store.ann.run(rows),
        [
            row("of ada", &ada),
            row("of bob", &bob),
            row("of nobody", ANN)
        ]
    );
    // Row-level security keeps them apart, and the log belongs to the session of its user.
    let as_ada = store.login_of("ada", &ada);
    assert_eq!(
        as_ada.run("select content from agent_memory").concat(),
        ["of ada"]
    );
    let log = "select l.step_name, s.entry_id from agent_execution_logs l join agent_sessions s on s.id = l.session_id";
    assert_eq!(as_ada.run(log), [row("research", session)]);
    // Again sends nothing, and another laptop of the login gets each with its user.
    let again = laptop.json(&["sync"]);
    assert_eq!(
        (&again["pushed"], &again["lines"]["execution_logs"]),
        (&json!(0), &json!(0)),
        "{again}"
    );
    let other = store.laptop(ANN);
    other.json(&["sync"]);
    let pulled = other.json(&["search", "of ada", "--user", "ada"]);
    assert!(pulled["results"].to_string().contains("of ada"), "{pulled}");
    let pulled = other.json(&["search", "of ada", "--user", "bob"]);
    assert!(
        !pulled["results"].to_string().contains("of ada"),
        "{pulled}"
    );
}

#[test]
fn a_memory_that_is_written_to_the_database_is_found_there_by_its_meaning() {
    let Some(store) = Store::new() else { return };
    let server = store.server();
    server.json(&[
        "memory",
        "add",
        "--type",
        "brand_memory",
        "--content",
        "Our voice is calm and friendly.",
    ]);
    let vectors =
        "select count(*) from agent_memory where embedding is not null and embedding_model <> ''";
    assert_eq!(store.ann.value(vectors), "1");
    let near = "select content from match_memory((select embedding from agent_memory where content like 'Our voice%'), 0.2)";
    assert_eq!(
        store.ann.run(near).concat(),
        ["Our voice is calm and friendly."]
    );
    // A server makes them right after its answers, for its users too, whatever a client sends.
    let http = Served::start(&server, &[]);
    let ada = token(&server, "ada", "*");
    let body = json!({ "content": "A friendly and quiet tone.", "memory_type": "brand_memory" });
    http.post(&ada, "/functions/v1/agent-memory-write", &body)
        .is(200);
    until("the vector of a server's memory", || {
        store.ann.value(vectors) == "2"
    });
    let row = json!({ "content": "Invoices are due in May", "memory_type": "brand_memory", "embedding": [1] });
    http.post(&ada, "/rest/v1/agent_memory", &row).is(201);
    until("the vector of its own for an inserted row", || {
        store.ann.value(vectors) == "3"
    });
    let as_ada = store.login_of("ada", &store.hosted("ada"));
    let log = "select action_type, step_name, output_data ->> 'memories' from agent_execution_logs order by created_at";
    until("the log of the server", || as_ada.run(log).len() == 2);
    assert_eq!(
        as_ada.run(log)[0],
        ["memory_write", "serve agent-memory-write", "[\"MEM-002\"]"]
    );
}

#[test]
fn a_second_init_gives_roles_that_came_later_their_rights() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    let own = format!("later_{}", store.database.number);
    admin.run(
        "do $$ begin create role authenticated nologin; exception when duplicate_object or unique_violation then null; end $$",
    );
    // As if the role had not been there at the first time.
    admin.run(
        "revoke all on all tables in schema public from authenticated;
         revoke all on all functions in schema public, memctl from authenticated;
         revoke all on schema memctl from authenticated",
    );
    let login = store.role("later", "");
    admin.run(&format!("grant authenticated to {own}"));
    let may = "select has_table_privilege('authenticated', 'public.agent_memory', 'select')
        and has_function_privilege('authenticated', 'public.match_memory(vector, float, int, text, uuid)', 'execute')
        and has_schema_privilege('authenticated', 'memctl', 'usage')";
    assert_eq!(admin.value(may), "f");
    store
        .workspace
        .json(&["remote", "init", "--url", &store.database.url]);
    assert_eq!(admin.value(may), "t");
    // It may read what is its own, which is nothing.
    let client = super::Client::connect(&login);
    assert_eq!(client.value("select count(*) from agent_memory"), "0");
    assert_eq!(store.check(&store.login(ANN)).0, 0);
}

#[test]
fn removed_records_are_no_rows_for_those_who_ask_in_sql() {
    let Some(store) = Store::new() else { return };
    let (one, two) = (store.copy(ANN, "support"), store.copy(ANN, "support"));
    let id = run(&one);
    let note = one.json(&[
        "memory", "add", "--type", "brand_memory", "--content", "Our voice is calm.",
    ]);
    two.json(&["list", "notes"]);
    one.json(&["forget", &id]);
    one.json(&["forget", "REFL-001"]);
    one.json(&["forget", note["id"].as_str().unwrap()]);
    for table in ["executions", "reflexions", "agent_memory"] {
        let count = format!("select count(*) from {table}");
        assert_eq!(store.ann.value(&count), "0", "{table}");
    }
    assert_eq!(two.json(&["list", "notes"])["total"], 0);
    assert_eq!(two.json(&["list", "executions"])["total"], 0);
    // What is taken back is a row again.
    one.run(&["undo"]).succeeds();
    assert_eq!(
        store.ann.value("select content from agent_memory"),
        "Our voice is calm."
    );
    // A login may not delete a row of its own: it marks it, and no longer sees it.
    let add = "insert into agent_memory (memory_type, content) values ('brand_memory', 'Our font is plain.')";
    store.ann.run(add);
    assert_eq!(store.ann.value("select count(*) from agent_memory"), "2");
    store
        .ann
        .run("update agent_memory set deleted_at = now() where content = 'Our font is plain.'");
    assert_eq!(store.ann.value("select count(*) from agent_memory"), "1");
}
