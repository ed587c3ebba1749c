//! Audit events in the database: those of all copies and workspaces of a user.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{ANN, BEN, Store};
use crate::serve::{Served, token};
use crate::workspace::Workspace;

const EVENTS: &str = "select count(*) from memctl.audit_events";

/// Waits for a value; a long-running program sends every second.
fn soon(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn laptops_send_their_events_once_and_who_purges_leaves_them() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    laptop.json(&[
        "memory", "add", "--type", "brand_memory", "--content", "The voice is calm.",
    ]);
    assert_eq!(
        laptop.json(&["sync", "--dry-run"])["lines"]["audit_events"],
        0
    );
    let sent = laptop.json(&["sync"])["lines"]["audit_events"].as_u64();
    assert!(sent > Some(0), "{sent:?}");
    let count = || store.ann.value(EVENTS);
    assert_eq!(Some(count()), sent.map(|sent| sent.to_string()));
    // Without the derived notes everything is sent again, and nothing is there twice.
    let before: u64 = count().parse().unwrap();
    std::fs::remove_file(laptop.memory(".index/sent.json")).unwrap();
    let again = laptop.json(&["sync"])["lines"]["audit_events"].as_u64();
    assert!(again > Some(before), "{again:?}");
    assert_eq!(Some(count()), again.map(|sent| sent.to_string()));
    laptop.run(&["memory", "purge", "--yes"]).succeeds();
    laptop.run(&["sync", "--yes"]).succeeds();
    let purged = "select count(*) from memctl.audit_events where did = 'purged'";
    assert_eq!(store.ann.value(purged), "1");
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
    let events = one.json(&["memory", "audit"]);
    let of_record = events["lines"].as_array().unwrap().iter();
    let of_record = of_record.filter(|event| event["records"] == json!([id]));
    let did: Vec<&str> = of_record.map(|e| e["did"].as_str().unwrap()).collect();
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
            "alter table memctl.audit_events no force row level security",
            "alter table memctl.audit_events force row level security",
        ),
    ] {
        admin.run(breaks);
        assert_eq!(store.check(&store.login(ANN)).0, 1, "{breaks}");
        admin.run(mends);
        assert_eq!(store.check(&store.login(ANN)).0, 0, "{mends}");
    }
}

#[test]
fn old_events_are_dropped() {
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
