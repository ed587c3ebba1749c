//! Recoveries that are no advice, from outside: they are kept for `memory why`, and no command
//! takes them for fixes before a person approves them.

use serde_json::{Value, json};

use crate::workspace::Workspace;

const PUSH: &str = "error: failed to push some refs to 'origin'";
const LISTING: &str = "store: error: the bucket does not exist";

/// Line of a session file.
fn step(input: &str, output: &str, ok: bool) -> String {
    json!({ "tool": "bash", "input": input, "output": output, "ok": ok }).to_string()
}

/// Session with a one-off, a dangerous recovery, a retry and a fix.
fn session(name: &str) -> String {
    let begin = json!({ "session": name, "cwd": "/home/anna/shop" }).to_string();
    let key = format!("gh{}{}", "p_", "a1B2c3D4e5".repeat(4));
    let secret = format!("store ls s3://acme-2024 --key {key} --home /home/anna/x");
    let lines = [
        begin,
        step(&secret, LISTING, false),
        step(&secret.replace("2024", "2025"), "x", true),
        step("git push", PUSH, false),
        step("git push --force", "ok", true),
        step("npm ci", "npm ERR! code ECONNRESET", false),
        step("npm ci", "added", true),
        step(
            "pip install x",
            "error: externally-managed-environment",
            false,
        ),
        step("pip install --user x", "ok", true),
    ];
    lines.join("\n")
}

fn learnt() -> Workspace {
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    workspace.write("a.jsonl", session("s-1"));
    let report = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(report["learned"], json!(["FIX-003", "PROC-001"]));
    assert_eq!(
        (&report["merged"], &report["kept"]),
        (&json!([]), &json!(2))
    );
    workspace
}

fn field<'a>(records: &'a Value, name: &str) -> Vec<&'a str> {
    let records = records.as_array().unwrap().iter();
    records
        .map(|record| record[name].as_str().unwrap())
        .collect()
}

fn hints(workspace: &Workspace, error: &str, command: &str) -> Vec<Value> {
    let report = workspace.json(&["hint", "--error", error, "--command", command]);
    report["hints"].as_array().unwrap().clone()
}

#[test]
fn an_episode_is_a_record_without_procedure_secrets_and_people() {
    let workspace = learnt();
    let fixes = workspace.stored("fixes.json");
    let entries = &fixes["entries"];
    assert_eq!(field(entries, "status"), ["episode", "episode", "active"]);
    assert_eq!(entries[0]["no_hint"], "one_off");
    assert_eq!(entries[1]["no_hint"], "dangerous");
    assert_eq!(entries[1]["failing_code"], "git push");
    assert_eq!(entries[1]["working_code"], "git push --force");
    assert_eq!(entries[1]["origins"][0]["session"], "s-1");
    assert_eq!(entries[0]["procedure_id"], Value::Null);
    assert_eq!(entries[2]["no_hint"], Value::Null);
    let text = fixes.to_string();
    assert!(
        text.contains("acme-2025") && !text.contains("a1B2c3D4e5"),
        "{text}"
    );
    assert!(!text.contains("anna"), "{text}");
    let report = workspace.json(&["learn", "--dry-run", "a.jsonl"]);
    let episodes = report["episodes"].as_array().unwrap();
    let reasons: Vec<_> = episodes
        .iter()
        .map(|e| (&e["no_fix"], e["fix"].is_null()))
        .collect();
    assert_eq!(
        reasons,
        [
            (&json!("one_off"), true),
            (&json!("dangerous"), true),
            (&json!("retry"), true),
            (&Value::Null, false),
        ]
    );
}

#[test]
fn a_session_that_is_read_again_adds_nothing() {
    let workspace = learnt();
    let stored = workspace.read(".agentura/fixes.local.json");
    std::fs::remove_dir_all(workspace.memory(".index")).unwrap();
    let again = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!((&again["learned"], &again["kept"]), (&json!([]), &json!(0)));
    assert_eq!(workspace.read(".agentura/fixes.local.json"), stored);
    // Another session with the same recoveries counts the episodes up, and reports the fix alone.
    workspace.write("b.jsonl", session("s-2"));
    let other = workspace.json(&["learn", "b.jsonl"]);
    assert_eq!(
        (&other["merged"], &other["kept"]),
        (&json!(["FIX-003"]), &json!(0))
    );
    let entries = &workspace.stored("fixes.json")["entries"];
    assert_eq!(entries.as_array().unwrap().len(), 3);
    assert_eq!(entries[0]["occurrences"], 2.0);
    // A dry run writes nothing.
    workspace.write("c.jsonl", session("s-3"));
    let stored = workspace.read(".agentura/fixes.local.json");
    workspace.json(&["learn", "--dry-run", "c.jsonl"]);
    assert_eq!(workspace.read(".agentura/fixes.local.json"), stored);
}

#[test]
fn no_reader_takes_an_episode_for_a_fix() {
    let workspace = learnt();
    assert_eq!(hints(&workspace, PUSH, "git push"), Vec::<Value>::new());
    assert_eq!(
        hints(&workspace, LISTING, "store ls s3://b"),
        Vec::<Value>::new()
    );
    for query in ["git push failed to push some refs", "bucket does not exist"] {
        let found = workspace.json(&["memory", "search", query]);
        let ids = field(&found["results"], "id");
        assert!(
            !ids.contains(&"FIX-001") && !ids.contains(&"FIX-002"),
            "{found}"
        );
    }
    let listed = workspace.json(&["memory", "list", "fixes"]);
    assert_eq!(field(&listed["records"], "id"), ["FIX-003"]);
    assert_eq!(listed["total"], 1);
    let asked = workspace.json(&["memory", "list", "--status", "episode"]);
    assert_eq!(field(&asked["records"], "id"), ["FIX-002", "FIX-001"]);
    assert_eq!(
        (&asked["total"], &asked["records"][0]["fix"]["no_hint"]),
        (&json!(2), &json!("dangerous"))
    );
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(
        (&status["fixes"], &status["episodes"]),
        (&json!(1), &json!(2))
    );
    let learning = &workspace.json(&["stats"])["learning"];
    assert_eq!(
        (&learning["fixes"], &learning["episodes"]),
        (&json!(1), &json!(2))
    );
    // The briefing tells of errors that were met in two sessions.
    for name in ["b", "c"] {
        let path = format!("{name}.jsonl");
        workspace.write(&path, session(name));
        workspace.run(&["learn", &path]).succeeds();
    }
    let event =
        json!({ "hook_event_name": "SessionStart", "session_id": "n", "cwd": workspace.root() });
    let briefing = crate::support::with_input(
        workspace.command().args(["hook", "claude-code"]),
        event.to_string().as_bytes(),
    );
    let told = &briefing.succeeds().stdout;
    assert!(told.contains("--user"), "{told}");
    assert!(
        !told.contains("--force") && !told.contains("acme"),
        "{told}"
    );
}

#[test]
fn why_says_what_a_session_overcame_and_why_it_is_no_hint() {
    let workspace = learnt();
    let report = workspace.json(&["memory", "why", "s-1"]);
    let links = report["chain"].as_array().unwrap();
    let told: Vec<_> = links
        .iter()
        .map(|link| {
            let text = |name: &str| link[name].as_str().unwrap_or_default();
            (text("id"), text("relation"), text("no_hint"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("s-1", "asked", ""),
            ("FIX-001", "overcame", "one_off"),
            ("FIX-002", "overcame", "dangerous"),
            ("FIX-003", "taught", ""),
        ]
    );
    let ran = workspace.run(&["memory", "why", "s-1"]);
    let page = &ran.succeeds().stdout;
    assert!(
        page.contains("FIX-002  episode, no hint: dangerous"),
        "{page}"
    );
    let of_fix = workspace.json(&["memory", "why", "FIX-001"]);
    assert_eq!(of_fix["chain"][0]["state"], "episode");
    assert_eq!(of_fix["chain"][1]["id"], "s-1");
    let shown = workspace.json(&["memory", "show", "FIX-002"]);
    assert_eq!(
        (&shown["status"], &shown["record"]["no_hint"]),
        (&json!("episode"), &json!("dangerous"))
    );
    workspace.run(&["memory", "why", "s-9"]).fails(2, "s-9");
}

#[test]
fn a_session_of_a_host_is_explained_by_its_record() {
    let workspace = learnt();
    let at = |n: u32| format!("2026-01-01T00:00:0{n}Z");
    let call = |n: u32, command: &str| {
        json!({ "type": "assistant", "sessionId": "9f1c", "cwd": "/w/shop", "timestamp": at(n), "message": { "role": "assistant",
            "content": [{ "type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": { "command": command } }] } })
    };
    let result = |n: u32, text: &str, failed: bool| {
        json!({ "type": "user", "sessionId": "9f1c", "cwd": "/w/shop", "timestamp": at(n), "message": { "role": "user",
            "content": [{ "type": "tool_result", "tool_use_id": format!("t{}", n - 1), "content": text, "is_error": failed }] } })
    };
    let lines = [
        call(1, "git push origin x"),
        result(2, PUSH, true),
        call(3, "git push origin x --force"),
        result(4, "ok", false),
    ];
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let path = workspace.write("host.jsonl", text.join("\n"));
    let event = json!({ "hook_event_name": "SessionEnd", "session_id": "9f1c", "cwd": workspace.root(),
        "transcript_path": path });
    let input = event.to_string();
    crate::support::with_input(
        workspace.command().args(["hook", "claude-code"]),
        input.as_bytes(),
    )
    .succeeds();
    crate::support::until("the session is learned", || {
        workspace.json(&["session", "list"])["total"] == 1
    });
    let sessions = workspace.json(&["session", "list"]);
    let id = sessions["sessions"][0]["session_id"].as_str().unwrap();
    let report = workspace.json(&["memory", "why", id]);
    let link = &report["chain"][1];
    assert_eq!(
        (&link["relation"], &link["no_hint"]),
        (&json!("overcame"), &json!("dangerous")),
        "{report}"
    );
}

#[test]
fn a_running_session_learns_its_fixes_alone() {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    let tell = |event: &str, command: &str, text: &str| {
        let event = json!({ "hook_event_name": event, "session_id": "s", "cwd": workspace.root(), "tool_name": "Bash",
            "tool_input": { "command": command }, "error": text, "tool_response": { "stdout": text } });
        crate::support::with_input(
            workspace.command().args(["hook", "claude-code"]),
            event.to_string().as_bytes(),
        )
        .succeeds();
    };
    tell("PostToolUseFailure", "git push", PUSH);
    tell("PostToolUse", "git push --force", "ok");
    let failed = "error: externally-managed-environment";
    tell("PostToolUseFailure", "pip install x", failed);
    tell("PostToolUse", "pip install --user x", "done");
    let entries = &workspace.stored("fixes.json")["entries"];
    assert_eq!(field(entries, "status"), ["active"]);
    assert_eq!(field(entries, "working_code"), ["pip install --user x"]);
}

#[test]
fn approval_makes_an_episode_a_hint_and_undo_takes_that_back() {
    let workspace = learnt();
    let before = workspace.read(".agentura/fixes.local.json");
    let approved = workspace.json(&["memory", "approve", "FIX-001"]);
    assert_eq!(
        (
            &approved["before"], &approved["trust"], &approved["warnings"]
        ),
        (&json!("episode"), &json!("approved"), &json!([]))
    );
    let command = "store ls s3://acme-2024";
    assert_eq!(hints(&workspace, LISTING, command)[0]["trust"], "approved");
    let ran = workspace.run(&["memory", "approve", "FIX-002"]);
    assert!(
        ran.succeeds().stdout.contains("FIX-002 episode → approved"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("`FIX-002` is dangerous (forces)"),
        "{ran:?}"
    );
    assert_eq!(hints(&workspace, PUSH, "git push")[0]["id"], "FIX-002");
    // The same recovery, seen again, is the approved fix.
    workspace.write("b.jsonl", session("s-2"));
    let again = workspace.json(&["learn", "b.jsonl"]);
    assert_eq!(again["merged"], json!(["FIX-001", "FIX-002", "FIX-003"]));
    assert_eq!(again["kept"], 0);
    let workspace = learnt();
    workspace.run(&["memory", "approve", "FIX-002"]).succeeds();
    workspace.run(&["memory", "undo"]).succeeds();
    assert_eq!(workspace.read(".agentura/fixes.local.json"), before);
    assert_eq!(hints(&workspace, PUSH, "git push"), Vec::<Value>::new());
}

#[test]
fn knowledge_of_a_project_that_nobody_names_waits_for_a_person() {
    const MISSING: &str = "tar: shop.tgz: Cannot open: No such file or directory";
    let session = |begin: &str| {
        let failed = step("tar xzf shop.tgz", MISSING, false);
        let worked = step("make pack && tar xzf shop.tgz", "ok", true);
        [begin, &failed, &worked].join("\n")
    };
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.write("a.jsonl", session(r#"{"session": "s-1"}"#));
    let report = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(report["episodes"][0]["no_fix"], "no_project", "{report}");
    assert_eq!(
        (&report["learned"], &report["kept"]),
        (&json!([]), &json!(1))
    );
    let told = |workspace: &Workspace| hints(workspace, MISSING, "tar xzf shop.tgz");
    assert_eq!(told(&workspace), Vec::<Value>::new());
    workspace.run(&["memory", "approve", "FIX-001"]).succeeds();
    assert_eq!(told(&workspace)[0]["id"], "FIX-001");
    // A session that names its project teaches that project alone.
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.write(
        "a.jsonl",
        session(r#"{"session": "s-1", "cwd": "/home/anna/shop"}"#),
    );
    let report = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(report["episodes"][0]["no_fix"], Value::Null, "{report}");
    assert_eq!(told(&workspace), Vec::<Value>::new());
}

#[test]
fn a_claim_in_the_file_makes_no_hint_of_an_episode() {
    let workspace = learnt();
    let claimed = workspace
        .read(".agentura/fixes.local.json")
        .replace("\"trust\": \"observed\"", "\"trust\": \"approved\"");
    workspace.write(".agentura/fixes.local.json", claimed);
    assert_eq!(hints(&workspace, PUSH, "git push"), Vec::<Value>::new());
    workspace.run(&["trust"]).succeeds();
    assert_eq!(hints(&workspace, PUSH, "git push"), Vec::<Value>::new());
}

#[test]
fn what_a_person_forgot_is_not_kept_again() {
    let workspace = learnt();
    workspace.run(&["memory", "forget", "FIX-002"]).succeeds();
    std::fs::remove_dir_all(workspace.memory(".index")).unwrap();
    let again = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!((&again["kept"], &again["buried"]), (&json!(0), &json!(0)));
    let listed = workspace.json(&["memory", "list", "--status", "episode"]);
    assert_eq!(field(&listed["records"], "id"), ["FIX-001"]);
}

#[test]
fn the_newest_episodes_stay() {
    const MOST: usize = 200;
    let workspace = Workspace::sample();
    workspace.run(&["init"]).succeeds();
    let mut lines = vec![json!({ "session": "long" }).to_string()];
    for n in 0..MOST + 5 {
        let letter = ('a'..='z').nth(n % 26).unwrap();
        let name = format!("tool{letter}").repeat(1 + n / 26);
        lines.push(step(
            &format!("{name} s3://acme-2024"),
            &format!("{name}: error: no bucket"),
            false,
        ));
        lines.push(step(&format!("{name} s3://acme-2025"), "x", true));
    }
    workspace.write("a.jsonl", lines.join("\n"));
    let report = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(report["kept"], MOST + 5);
    let ids = |workspace: &Workspace| {
        let stored = workspace.stored("fixes.json");
        let ids = field(&stored["entries"], "fix_id").into_iter();
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    let kept = ids(&workspace);
    assert_eq!((kept.len(), kept[0].as_str()), (MOST, "FIX-006"));
    // Those that were removed do not come back.
    std::fs::remove_dir_all(workspace.memory(".index")).unwrap();
    let again = workspace.json(&["learn", "a.jsonl"]);
    assert_eq!(again["kept"], 0);
    assert_eq!(ids(&workspace), kept);
}
