//! Audit events and outcomes of hints in the database: those of all copies and workspaces of a user.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ANN, BEN, Store};
use crate::serve::{Served, token};
use crate::workspace::Workspace;

const ERROR: &str = "TypeError: unsupported operand type(s) for +: 'int' and 'str'";
const OUTCOMES: &str = "select count(*) from memctl.hint_outcomes";
const EVENTS: &str = "select count(*) from memctl.audit_events";

/// A fix that everybody who shares with this workspace gets.
fn learn(workspace: &Workspace) {
    workspace
        .run(&[
            "record", "failure", "--error", ERROR, "--code", "total = 1 + '2'",
        ])
        .succeeds();
    workspace
        .run(&[
            "record", "success", "--code", "total = 1 + int('2')", "--output", "3",
        ])
        .succeeds();
}

/// The error comes again in a session of Claude Code, the hint is told, and following it helps.
fn helped(workspace: &Workspace, session: &str) {
    let event = |name: &str, call: &str, rest: Value| {
        let mut event = json!({ "session_id": session, "cwd": workspace.root(), "hook_event_name": name,
            "tool_name": "Bash", "tool_input": { "command": call } });
        event
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        crate::hosts::hook(workspace, "claude-code", event.to_string())
    };
    let failed = event(
        "PostToolUseFailure",
        "total = 1 + '2'",
        json!({ "error": ERROR }),
    );
    assert!(failed.stdout.contains("CORRECT"), "{failed:?}");
    let told = event(
        "PostToolUse",
        "total = 1 + int('2')",
        json!({ "tool_response": { "stdout": "3" } }),
    );
    assert_eq!(told.code, 0, "{told:?}");
}

/// Hints that helped, of those shown, by the statistics of a workspace.
fn hints(workspace: &Workspace) -> (u64, u64) {
    let stats = workspace.json(&["stats"]);
    let precision = &stats["hints"]["precision"];
    assert_eq!(stats["hints"]["shown"], precision["of"], "{stats}");
    (
        precision["count"].as_u64().unwrap(),
        precision["of"].as_u64().unwrap(),
    )
}

/// Waits for a value; a long-running program sends every second.
fn soon(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn hints_that_helped_at_one_copy_count_at_every_other() {
    let Some(store) = Store::new() else { return };
    let (one, two) = (store.server(), store.server());
    learn(&one);
    two.run(&["stats"]).succeeds();
    helped(&one, "s1");
    assert_eq!(hints(&one), (1, 1));
    assert_eq!(hints(&two), (1, 1));
    helped(&two, "s2");
    // What hooks have left without waiting for the database comes with the next command there.
    assert_eq!(hints(&one), (1, 1));
    two.run(&["status"]).succeeds();
    for copy in [&one, &two] {
        assert_eq!(hints(copy), (2, 2));
    }
    let row = "select session || ' ' || array_to_string(hints, ',') || ' ' || helped
        from memctl.hint_outcomes order by created_at limit 1";
    assert_eq!(store.ann.value(row), "claude-code/s1 PROC-001 true");
    assert_eq!(
        (store.ann.value(OUTCOMES), store.ben.value(OUTCOMES)),
        ("2".into(), "0".into())
    );
    // Without the derived notes everything is sent again, and nothing is there twice.
    std::fs::remove_file(one.memory(".index/sent.json")).unwrap();
    assert_eq!(hints(&one), (2, 2));
    assert_eq!(store.ann.value(OUTCOMES), "2");
    // A purge takes the outcomes along; the audit stays, and tells of it.
    one.run(&["memory", "purge", "--yes"]).succeeds();
    assert_eq!(store.ann.value(OUTCOMES), "0");
    let purged = "select count(*) from memctl.audit_events where did = 'purged'";
    assert_eq!(store.ann.value(purged), "1");
}

#[test]
fn laptops_share_outcomes_by_sync() {
    let Some(store) = Store::new() else { return };
    let laptop = || {
        let mut laptop = Workspace::sample();
        laptop.set("DATABASE_URL", &store.login(ANN));
        laptop
    };
    let (one, two) = (laptop(), laptop());
    learn(&one);
    helped(&one, "s1");
    helped(&one, "s2");
    let plan = one.json(&["sync", "--dry-run"]);
    assert_eq!(plan["lines"]["outcomes_pushed"], 0, "{plan}");
    let sent = one.json(&["sync"]);
    assert_eq!(sent["lines"]["outcomes_pushed"], 2, "{sent}");
    assert!(
        sent["lines"]["audit_events"].as_u64().unwrap() > 0,
        "{sent}"
    );
    let fetched = two.json(&["sync"]);
    assert_eq!(fetched["lines"]["outcomes_pulled"], 2, "{fetched}");
    assert_eq!(hints(&two), (2, 2));
    for laptop in [&one, &two] {
        laptop.run(&["sync"]).succeeds();
        let again = laptop.json(&["sync"]);
        let moved = (
            &again["lines"]["outcomes_pushed"],
            &again["lines"]["outcomes_pulled"],
        );
        assert_eq!(moved, (&json!(0), &json!(0)), "{again}");
    }
    // Who purges takes the outcomes back from everybody.
    one.run(&["memory", "purge", "--yes"]).succeeds();
    one.run(&["sync", "--yes"]).succeeds();
    two.run(&["sync", "--yes"]).succeeds();
    assert_eq!(
        (store.ann.value(OUTCOMES), hints(&two)),
        ("0".into(), (0, 0))
    );
}

#[test]
fn audit_has_the_events_of_all_copies_and_nobody_changes_one() {
    let Some(store) = Store::new() else { return };
    let (one, two) = (store.server(), store.server());
    let add = |copy: &Workspace, content: &str| {
        let added = copy.json(&[
            "memory", "add", "--type", "brand_memory", "--content", content,
        ]);
        added["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{added}"))
            .to_owned()
    };
    let id = add(&one, "The voice is calm.");
    two.run(&["show", &id]).succeeds();
    let events = one.json(&["memory", "audit", "--record", &id]);
    let did: Vec<&str> = events["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["did"].as_str().unwrap())
        .collect();
    assert_eq!(did, ["read", "added"], "{events}");
    assert_eq!(one.json(&["memory", "audit", "verify"])["flaws"], json!([]));
    // A server sends what it reads while it runs, and users see who has seen their records.
    let served = Served::start(&one, &[]);
    let body = json!({ "content": "Ada's voice is loud.", "memory_type": "brand_memory" });
    let kept = served
        .post(
            &token(&one, "ada", "*"),
            "/functions/v1/agent-memory-write",
            &body,
        )
        .is(200);
    let of_ada = kept.json()["memory"]["id"].as_str().unwrap().to_owned();
    let count =
        format!("select count(*) from memctl.audit_events where '{of_ada}' = any (records)");
    soon("the event of a write", || store.ann.value(&count) == "1");
    drop(served);
    let ada = store.login_of("ada", &store.hosted("ada"));
    assert_eq!(
        ada.value("select string_agg(distinct who, ',') from memctl.audit_events"),
        "ada"
    );
    assert_eq!(store.ben.value(EVENTS), "0");
    // Lines are added and read, and nothing else.
    for change in [
        "update memctl.audit_events set who = 'nobody'",
        "delete from memctl.audit_events",
        "update memctl.hint_outcomes set helped = true",
        "delete from memctl.hint_outcomes",
        "truncate memctl.audit_events",
    ] {
        for who in [&store.ann, &store.ben, &ada] {
            who.refused("42501", change);
        }
    }
    for (who, holder) in [(&store.ben, ANN), (&ada, ANN), (&store.ann, BEN)] {
        who.refused("42501", &event(holder, "now()"));
    }
    let of_another = event(ANN, "now()").replace("created_at)", "created_at, role_name)");
    store
        .ann
        .refused("42501", &of_another.replace("now())", "now(), 'postgres')"));
    let (code, checks) = store.check(&store.login(ANN));
    assert_eq!(code, 0, "{checks}");
}

/// An event that nobody's file has.
fn event(holder: &str, at: &str) -> String {
    format!(
        "insert into memctl.audit_events (held_by, origin, entry_id, entry, number, who, did, records, of_users, why, created_at)
         values ('{holder}', 'served', repeat('a', 64), '{{}}', 1, 'x', 'read', '{{}}', '{{}}', 'x', {at})"
    )
}

#[test]
fn check_finds_a_log_that_others_can_read() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    for (breaks, mends) in [
        (
            "create policy \"open\" on memctl.audit_events for select using (true)",
            "drop policy \"open\" on memctl.audit_events",
        ),
        (
            "alter table memctl.hint_outcomes no force row level security",
            "alter table memctl.hint_outcomes force row level security",
        ),
    ] {
        admin.run(breaks);
        assert_eq!(store.check(&store.login(ANN)).0, 1, "{breaks}");
        admin.run(mends);
        assert_eq!(store.check(&store.login(ANN)).0, 0, "{mends}");
    }
}

#[test]
fn old_events_and_outcomes_are_dropped() {
    let Some(store) = Store::new() else { return };
    store.ann.run(&event(ANN, "now() - interval '25 months'"));
    store
        .ann
        .run(&event(ANN, "now()").replace("repeat('a', 64)", "repeat('b', 64)"));
    assert_eq!(store.ann.value(EVENTS), "2");
    let mut prune = Workspace::empty();
    prune.set("DATABASE_URL", &store.database.url);
    prune.run(&["memory", "prune", "--remote"]).succeeds();
    assert_eq!(store.ann.value(EVENTS), "1");
    let keep = "select memctl.keep_audit('1 month')";
    assert_eq!(store.database.admin().value(keep), "0");
    store.ann.refused("42501", keep);
}
