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
        (&json!(2), &json!(1), &json!(1)),
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
fn memories_sessions_and_logs_are_listed_for_their_user() {
    let (workspace, served) = shared();
    let ada = of("ada", "*", "user");
    let get = |token: &str, path: &str| served.get(token, path).is(200).json();
    let listed = get(&ada, "/v1/memories?limit=1");
    assert_eq!(listed["total"], json!(2), "{listed}");
    assert_eq!(listed["memories"].as_array().unwrap().len(), 1);
    assert!(
        listed.to_string().contains("ada likes saffron 1"),
        "{listed}"
    );
    assert_eq!(
        get(&ada, "/v1/memories?memory_type=task_memory")["total"],
        json!(0)
    );
    let sessions = get(&ada, "/v1/sessions?status=initializing");
    assert_eq!(sessions["total"], json!(1), "{sessions}");
    assert_eq!(
        get(&ada, "/v1/sessions?status=completed")["sessions"],
        json!([])
    );
    let id = sessions["sessions"][0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/sessions/{id}");
    let shown = get(&ada, &path);
    assert_eq!(shown["logs"][0]["step_name"], json!("saffron"), "{shown}");
    assert_eq!(
        get(&ada, "/v1/sessions/latest")["session"]["session_id"],
        json!(id)
    );
    // Of others nothing is told, and a token for some domains sees no log.
    let bob = of("bob", "*", "user");
    let sessions_of_bob = get(&bob, "/v1/sessions");
    let id_of_bob = sessions_of_bob["sessions"][0]["session_id"]
        .as_str()
        .unwrap();
    assert_eq!(sessions_of_bob["total"], json!(1));
    served
        .get(&ada, &format!("/v1/sessions/{id_of_bob}"))
        .is(404);
    assert_ne!(id_of_bob, id);
    assert!(!get(&bob, "/v1/memories").to_string().contains("saffron"));
    assert_eq!(get(&of("ada", "hr", "user"), &path)["logs"], json!([]));
    for (path, status) in [
        ("/v1/memories?memory_type=odd", 400),
        ("/v1/memories?limit=0", 422),
        ("/v1/sessions?status=odd", 422),
        ("/v1/sessions/SESS-1", 404),
        ("/v1/sessions/latest?x=1", 400),
    ] {
        let reply = served.get(&ada, path);
        assert_eq!(reply.status, status, "{path}: {reply:?}");
    }
    let reply = served.get(&ada, "/v1/memories?limt=1").is(400).json();
    let message = reply["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "the query parameters do not match: limt: unknown field `limt`, expected `memory_type` or `limit`"
    );
    drop(workspace);
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
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "search", "arguments": { "query": "saffron" } } });
    for (path, body) in [
        ("/functions/v1/agent-memory-read", &query),
        ("/functions/v1/agent-memory-write", &body),
        ("/v1/search", &json!({ "query": "saffron" })),
        ("/v1/hints", &json!({ "error": "x: not found" })),
        ("/v1/operations/search", &json!({ "query": "saffron" })),
    ] {
        let refused = served.post(&ada, path, body).is(403).json();
        assert!(
            refused.to_string().contains("switched off for this user"),
            "{path}: {refused}"
        );
        served.post(&bob, path, body).is(200);
    }
    served.get(&ada, "/v1/events").is(403);
    let headers = [
        bearer(&ada),
        "Accept: application/json, text/event-stream".to_owned(),
        "Content-Type: application/json".to_owned(),
    ];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let told = served.ask("POST", "/mcp", &headers, &call.to_string());
    assert!(
        !told.text.contains("ada likes") && told.text.contains("disabled"),
        "{}",
        told.text
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
