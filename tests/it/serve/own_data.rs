//! All data of the token's user: given out and deleted by one request each.

use serde_json::{Value, json};

use super::access::sign;
use super::{Reply, Served, bearer, execution, token};
use crate::hostile::tally::Tally;
use crate::workspace::Workspace;

pub(crate) const SECRET: &str = "a secret that is thirty-two bytes";

/// A memory of two users and of nobody, with sessions and log lines.
fn shared() -> (Workspace, Served) {
    let workspace = Workspace::sample();
    workspace.write("secret.txt", SECRET);
    let served = Served::start(&workspace, &["--jwt-secret-file", "secret.txt"]);
    for (user, said) in [("ada", "saffron"), ("bob", "copper")] {
        let token = of(user, "*", "user");
        for n in 0..2 {
            let body = json!({ "content": format!("{user} likes {said} {n}"), "memory_type": "brand_memory" });
            served
                .post(&token, "/functions/v1/agent-memory-write", &body)
                .is(200);
        }
        let started = workspace.json(&["session", "start", "--user", user]);
        let id = started["session_id"].as_str().unwrap();
        workspace.json(&[
            "session", "log", id, "--user", user, "--step", said, "--action", "decision",
            "--status", "success",
        ]);
    }
    workspace.json(&[
        "memory", "add", "--type", "brand_memory", "--content", "Everybody likes tea.",
    ]);
    execution(
        &served,
        &of("ada", "*", "user"),
        "hr/resume-screen",
        "shared",
    );
    // The vectors and the index.
    workspace.json(&["memory", "search", "saffron"]);
    (workspace, served)
}

pub(crate) fn of(user: &str, scope: &str, role: &str) -> String {
    let claims = json!({ "sub": user, "aud": "memctl", "exp": 9_999_999_999_u64, "domain_scope": scope, "role": role });
    sign(&claims, SECRET)
}

pub(crate) fn delete(served: &Served, token: &str, query: &str) -> Reply {
    let path = format!("/v1/users/me{query}");
    served.ask("DELETE", &path, &[&bearer(token)], "")
}

/// Names of the files below the memory that hold this text.
pub(crate) fn files_with(workspace: &Workspace, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![workspace.memory("")];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if memchr::memmem::find(&std::fs::read(&path).unwrap(), text.as_bytes())
                .is_some()
            {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn export_holds_everything_of_the_user_and_nothing_of_others() {
    let (workspace, served) = shared();
    let reply = served
        .get(&of("ada", "*", "user"), "/v1/users/me/export")
        .is(200);
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = reply
        .text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let counts = &lines[0]["counts"];
    assert_eq!(
        (
            &counts["memories"],
            &counts["sessions"],
            &counts["execution_logs.jsonl"]
        ),
        (&json!(2), &json!(1), &json!(4)),
        "{counts}"
    );
    assert!(counts["audit.jsonl"].as_u64().unwrap() >= 3, "{counts}");
    for word in ["copper", "bob", "tea", "shared"] {
        assert!(!reply.text.contains(word), "{word}: {}", reply.text);
    }
    assert!(reply.text.contains("ada likes saffron 1"));
    // The search of the owner showed records of both: the event stays, with those of the user.
    let searched = lines
        .iter()
        .map(|line| &line["entry"])
        .find(|event| event["why"] == "search")
        .unwrap();
    assert_eq!(searched["of"], json!(["ada"]), "{searched}");
    let mut read: Vec<&str> = searched["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    read.sort_unstable();
    assert_eq!(read, ["MEM-001", "MEM-002"]);
    // The export is in the audit, and can be imported elsewhere.
    let audit = workspace.read(".agentura/audit.jsonl");
    let exported = audit
        .lines()
        .find(|line| line.contains("everything of a user"));
    let exported: Value = serde_json::from_str(exported.unwrap()).unwrap();
    assert_eq!(
        (&exported["who"], &exported["did"], &exported["why"]),
        (&json!("ada"), &json!("exported"), &json!("serve export"))
    );
    let other = Workspace::empty();
    other.write("ada.jsonl", &reply.text);
    let imported = other.json(&["memory", "import", "ada.jsonl"]);
    assert_eq!(imported["by_kind"]["memories"], json!(2), "{imported}");
    // Who has nothing gets a header and no more than their own events.
    let reply = served
        .get(&of("carl", "*", "user"), "/v1/users/me/export")
        .is(200);
    assert!(!reply.text.contains("likes"), "{}", reply.text);
    served
        .get(&of("ada", "hr,dev", "user"), "/v1/users/me/export")
        .is(403);
}

#[test]
fn deletion_leaves_no_text_of_the_user_and_all_of_others() {
    let (workspace, served) = shared();
    let ada = of("ada", "*", "user");
    for (token, query, status) in [
        (&of("ada", "hr", "user"), "?confirm=ada", 403),
        (&of("ada", "*", "agent"), "?confirm=ada", 403),
        (&ada, "?confirm=bob", 422),
        (&ada, "?confirm=", 422),
        (&ada, "", 400),
        (&ada, "?confirm=ada&dry_run=1", 400),
    ] {
        delete(&served, token, query).is(status);
    }
    assert!(files_with(&workspace, "saffron").len() >= 2);
    let stored = || {
        let mut names = files_with(&workspace, "copper");
        // The index is written anew under another name.
        names.retain(|name| name.contains(".json"));
        names
    };
    let bob = stored();
    let reply = delete(&served, &ada, "?confirm=ada").is(200).json();
    assert_eq!(
        (&reply["user_id"], &reply["records"]),
        (&json!("ada"), &json!({ "memories": 2, "sessions": 1 }))
    );
    assert!(reply["log_lines"].as_u64().unwrap() >= 1, "{reply}");
    assert_eq!(files_with(&workspace, "saffron"), [""; 0]);
    assert_eq!(stored(), bob);
    let query = json!({ "query": "likes saffron", "match_threshold": -1 });
    let read = |token: &str| {
        let read = served
            .post(token, "/functions/v1/agent-memory-read", &query)
            .is(200)
            .json();
        read["results"].as_array().unwrap().len()
    };
    assert_eq!((read(&ada), read(&of("bob", "*", "user"))), (0, 2));
    // It stands in the audit, which still holds together, and cannot be taken back.
    let audit = workspace.read(".agentura/audit.jsonl");
    assert!(
        audit.contains("\"purged\"") && audit.contains("serve delete user"),
        "{audit}"
    );
    workspace.run(&["memory", "audit", "verify"]).succeeds();
    workspace
        .run(&["memory", "undo", "--user", "ada"])
        .succeeds();
    assert_eq!(files_with(&workspace, "saffron"), [""; 0]);
    // Again is no harm.
    let again = delete(&served, &ada, "?confirm=ada").is(200).json();
    assert_eq!(again["records"], json!({}));
    assert_eq!(workspace.json(&["doctor"])["problems"], json!([]));
}

#[test]
fn a_token_of_this_workspace_is_enough() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let token = token(&workspace, "ada", "*");
    let reply = delete(&served, &token, "?confirm=ada").is(200).json();
    assert_eq!(reply["records"], json!({}));
}

#[test]
fn memories_are_selected_as_rows_of_their_user() {
    let (workspace, served) = shared();
    let (ada, bob) = (of("ada", "*", "user"), of("bob", "*", "user"));
    let get = |token: &str, query: &str| {
        let path = format!("/rest/v1/agent_memory{query}");
        served
            .get(token, &path)
            .is(200)
            .json()
            .as_array()
            .unwrap()
            .clone()
    };
    let rows = get(&ada, "?select=*");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(
        (
            &rows[0]["user_id"], &rows[0]["content"], &rows[0]["embedding"]
        ),
        (&json!("ada"), &json!("ada likes saffron 0"), &Value::Null)
    );
    assert_eq!(get(&ada, "?limit=1&offset=1"), rows[1..]);
    assert_eq!(get(&ada, "?memory_type=eq.brand_memory"), rows);
    assert_eq!(get(&ada, "?memory_type=eq.task_memory").len(), 0);
    // Of others nothing is told.
    assert!(!format!("{:?}", get(&bob, "")).contains("saffron"));
    for query in [
        "limit=x",
        "memory_type=task_memory",
        "content=eq.x",
        "select=id",
        "order=id",
    ] {
        served
            .get(&ada, &format!("/rest/v1/agent_memory?{query}"))
            .is(400);
    }
    served.get(&ada, "/rest/v1/another").is(404);
    let single = [
        "Accept: application/vnd.pgrst.object+json",
        &bearer(&ada) as &str,
    ];
    served
        .ask("GET", "/rest/v1/agent_memory", &single, "")
        .is(406);
    // Reads are in the audit, as every read of a memory.
    let audit = workspace.json(&["memory", "audit", "--limit", "100"]);
    assert!(audit.to_string().contains("serve rows"), "{audit}");
}

#[test]
fn rows_are_inserted_as_supabase_js_does() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let ada = token(&workspace, "ada", "*");
    let insert = |body: &Value, headers: &[&str], path: &str| {
        let bearer = format!("Authorization: Bearer {ada}");
        let headers: Vec<&str> = [bearer.as_str()]
            .into_iter()
            .chain(headers.iter().copied())
            .collect();
        served.ask("POST", path, &headers, &body.to_string())
    };
    // `.from('agent_memory').insert({ … }).select().single()` of the source document.
    let row = json!({ "user_id": "ada", "content": "Voice: calm", "memory_type": "user_preferences",
        "embedding": null, "metadata": { "preference_type": "tone" }, "expires_at": null });
    let single = [
        "Prefer: return=representation",
        "Accept: application/vnd.pgrst.object+json",
    ];
    let path = "/rest/v1/agent_memory?columns=%22content%22&select=*";
    let stored = insert(&row, &single, path).is(201).json();
    assert_eq!(
        (
            &stored["content"], &stored["user_id"], &stored["metadata"], &stored["embedding"]
        ),
        (
            &json!("Voice: calm"),
            &json!("ada"),
            &json!({ "preference_type": "tone" }),
            &Value::Null
        ),
        "{stored}"
    );
    let two = json!([{ "content": "one", "memory_type": "brand_memory" },
        { "content": "two", "memory_type": "brand_memory" }]);
    assert_eq!(insert(&two, &[], "/rest/v1/agent_memory").is(201).text, "");
    let again = insert(&row, &single, "/rest/v1/agent_memory")
        .is(201)
        .json();
    assert_eq!(again["id"], stored["id"]);
    let listed = served.get(&ada, "/rest/v1/agent_memory?memory_type=eq.brand_memory");
    let listed = listed.is(200).json();
    assert_eq!(
        (&listed[0]["content"], &listed[1]["content"]),
        (&json!("one"), &json!("two"))
    );
    for (body, status) in [
        (
            json!({ "user_id": "bob", "content": "x", "memory_type": "brand_memory" }),
            403,
        ),
        (json!({ "content": "x", "memory_type": "odd" }), 422),
        (
            json!({ "content": " ", "memory_type": "brand_memory" }),
            422,
        ),
        (
            json!({ "content": "x", "memory_type": "user_preferences", "metadata": { "confidence_score": 2 } }),
            422,
        ),
        (json!([]), 422),
    ] {
        let reply = insert(&body, &[], "/rest/v1/agent_memory");
        assert_eq!(reply.status, status, "{body}: {reply:?}");
    }
}

#[test]
fn rows_are_stored_all_or_none_and_one_never_hides_the_others() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let ada = token(&workspace, "ada", "*");
    let rows = |path: &str| served.get(&ada, &format!("/rest/v1/{path}")).is(200).json();
    let post = |table: &str, body: &str, prefer: &str| {
        let (token, prefer) = (
            bearer(&ada),
            format!("Prefer: return=representation{prefer}"),
        );
        served.ask(
            "POST",
            &format!("/rest/v1/{table}"),
            &[&token, &prefer],
            body,
        )
    };
    let note = |more: &str| format!(r#"{{"content": "x", "memory_type": "brand_memory"{more}}}"#);
    let big = r#", "metadata": {"n": 12345678901234567890123}"#;
    // A second row that does not fit, a value that no reader takes, a column that is not there, an upsert.
    for (table, body, prefer) in [
        ("agent_memory", note(r#", "metadata": {"x": 1e400}"#), ""),
        ("agent_memory", note(r#", "metadata": {"x": "\ud800"}"#), ""),
        (
            "agent_memory",
            format!("[{}, {}]", note(""), note(r#", "expires_at": "soon""#)),
            "",
        ),
        ("agent_memory", note(r#", "expire_at": "2030-01-01""#), ""),
        ("agent_memory", note(r#", "id": "MEM-001""#), ""),
        ("agent_memory", note(""), ",resolution=merge-duplicates"),
    ] {
        let reply = post(table, &body, prefer);
        assert!((400..500).contains(&reply.status), "{body}: {reply:?}");
    }
    assert_eq!(rows("agent_memory"), json!([]));
    // Sessions and their logs are written by other ways.
    for table in ["agent_sessions", "agent_execution_logs"] {
        assert_eq!(post(table, "{}", "").status, 404, "{table}");
    }
    // A number of any length goes in and out as it is.
    let stored = post("agent_memory", &note(big), "").is(201);
    assert!(
        stored.text.contains("12345678901234567890123"),
        "{stored:?}"
    );
    // A row of another program with such a value is answered with the others.
    let file = workspace.read(".agentura/memories.json");
    workspace.write(
        ".agentura/memories.json",
        file.replace("12345678901234567890123", "1e400"),
    );
    post("agent_memory", &note("").replace("\"x\"", "\"y\""), "").is(201);
    let all = served.get(&ada, "/rest/v1/agent_memory").is(200);
    assert!(
        all.text.contains("1e400") && all.text.contains("\"y\""),
        "{all:?}"
    );
}

#[test]
fn each_use_of_a_memory_is_in_the_log_of_its_user() {
    let workspace = Workspace::sample();
    let served = Served::start(&workspace, &[]);
    let ada = token(&workspace, "ada", "*");
    let voice = json!({ "content": "Voice: calm, short sentences", "memory_type": "brand_memory" });
    let ask = json!({ "query": "calm voice", "match_threshold": -1 });
    let search = json!({ "query": "calm" });
    let note = json!({ "content": "The press is closed in May" });
    for (path, body) in [
        ("/functions/v1/agent-memory-write", &voice),
        ("/functions/v1/agent-memory-read", &ask),
        ("/v1/search", &search),
    ] {
        served.post(&ada, path, body).is(200);
    }
    served.tool(&ada, "remember", &note);
    served.tool(&ada, "search", &search);
    let log_of = |token: &str| {
        let export = served.get(token, "/v1/users/me/export").is(200).text;
        let lines = export.lines().map(|l| serde_json::from_str(l).unwrap());
        let entries = lines.map(|line: Value| line["entry"].clone());
        entries
            .filter(|entry| entry["action_type"].is_string())
            .collect::<Vec<_>>()
    };
    let log = log_of(&ada);
    let log = log.iter();
    let log: Vec<[&str; 3]> = log
        .map(|line| ["action_type", "step_name", "status"].map(|of| line[of].as_str().unwrap()))
        .collect();
    assert_eq!(
        log,
        [
            ["memory_write", "serve agent-memory-write", "success"],
            ["memory_read", "serve agent-memory-read", "success"],
            ["memory_read", "serve search", "success"],
            ["memory_write", "serve mcp remember", "success"],
            ["memory_read", "serve mcp search", "success"],
        ]
    );
    // Nobody else sees them.
    let bob = token(&workspace, "bob", "*");
    assert_eq!(log_of(&bob), Vec::<Value>::new());
}

#[test]
fn memory_of_one_user_is_switched_off_and_on() {
    let (workspace, served) = shared();
    let (ada, bob) = (of("ada", "*", "user"), of("bob", "*", "user"));
    let switch =
        |token: &str, to: &str| served.post(token, &format!("/v1/users/me/{to}"), &json!({}));
    switch(&of("ada", "hr", "user"), "disable").is(403);
    switch(&of("ada", "*", "agent"), "disable").is(403);
    let off = switch(&ada, "disable").is(200).json();
    assert_eq!(
        off,
        json!({ "user_id": "ada", "enabled": false, "changed": true })
    );
    assert_eq!(switch(&ada, "disable").is(200).json()["changed"], false);
    // Nothing is read or written for this user, over any interface, and all goes on for others.
    let query = json!({ "query": "likes", "match_threshold": -1 });
    let body = json!({ "content": "Ada likes more.", "memory_type": "brand_memory" });
    for (path, body) in [
        ("/functions/v1/agent-memory-read", &query),
        ("/functions/v1/agent-memory-write", &body),
        ("/v1/search", &json!({ "query": "saffron" })),
        ("/v1/hints", &json!({ "error": "x: not found" })),
    ] {
        let refused = served.post(&ada, path, body).is(403).json();
        assert!(
            refused.to_string().contains("switched off for this user"),
            "{path}: {refused}"
        );
        served.post(&bob, path, body).is(200);
    }
    let told = served.tool(&ada, "search", &json!({ "query": "saffron" }));
    let told = told.to_string();
    assert!(
        !told.contains("ada likes") && told.contains("disabled"),
        "{told}"
    );
    // Their data can still be had and deleted, and the switch stays off.
    let export = served.get(&ada, "/v1/users/me/export").is(200);
    assert!(
        export.text.contains("ada likes saffron 1"),
        "{}",
        export.text
    );
    delete(&served, &ada, "?confirm=ada").is(200);
    served
        .post(&ada, "/v1/search", &json!({ "query": "saffron" }))
        .is(403);
    assert_eq!(switch(&ada, "enable").is(200).json()["enabled"], true);
    served
        .post(&ada, "/v1/search", &json!({ "query": "saffron" }))
        .is(200);
    // Each is one audited request.
    let audit = workspace.json(&["memory", "audit", "--who", "ada", "-n", "100"]);
    let events = audit["lines"].as_array().unwrap().iter();
    let switched: Vec<(&str, &str)> = events
        .filter(|event| event["did"] == "edited")
        .map(|event| {
            (
                event["records"][0].as_str().unwrap(),
                event["why"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        switched,
        [
            ("memory of a user, on", "serve enable user"),
            ("memory of a user, off", "serve disable user"),
        ]
    );
    workspace.run(&["memory", "audit", "verify"]).succeeds();
}

#[test]
fn undo_without_a_name_reverts_ones_own_change() {
    let mut tally = Tally::of("`undo` on a server's store of what another user wrote last");
    let (workspace, served) = shared();
    for user in ["ada", "bob"] {
        let body =
            json!({ "content": format!("{user} likes walnuts"), "memory_type": "brand_memory" });
        served
            .post(
                &of(user, "*", "user"),
                "/functions/v1/agent-memory-write",
                &body,
            )
            .is(200);
    }
    // The last changes of the owner, whoever wrote after them.
    for _ in 0..3 {
        let undone = workspace.run(&["memory", "undo", "--json"]);
        let broke = files_with(&workspace, "ada likes walnuts").is_empty()
            || files_with(&workspace, "bob likes walnuts").is_empty();
        tally.attempt(&format!("{undone:?}"), broke);
    }
    let tea = files_with(&workspace, "Everybody likes tea.");
    assert!(!tea.iter().any(|name| name == "memories.json"), "{tea:?}");
    let undone = workspace.json(&["memory", "undo", "--user", "ada"]);
    assert_eq!(undone["who"], "ada", "{undone}");
    let left = files_with(&workspace, "bob likes walnuts").is_empty();
    tally.attempt("memory undo --user ada", left);
    tally.holds();
}
