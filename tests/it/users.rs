//! Two users of one memory: neither sees the other's records.

use std::path::Path;

use chrono::{DateTime, Utc};
use memctl::model::{Kind, Memory, Scope, Session, Viewer};
use memctl::notes::{self, FindOptions};
use memctl::store::{Error, RemovalMode, Scoped, Selection};
use memctl_search::Fusion;
use serde_json::{Value, json};

use crate::workspace::{NOW, Workspace};

const MEMORIES: &str = ".agentura/memories.json";

/// A memory of each of two users, one of nobody in particular, and one of alice's that has expired.
const HAND_WRITTEN: &str = r#"{
  "entries": [
    {"id": "MEM-001", "user_id": "alice", "memory_type": "brand_memory", "content": "The saffron voice is calm", "metadata": {}, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "expires_at": null},
    {"id": "MEM-002", "user_id": "bob", "memory_type": "brand_memory", "content": "The saffron voice is loud", "metadata": {}, "created_at": "2026-01-02T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z", "expires_at": null},
    {"id": "MEM-003", "memory_type": "brand_memory", "content": "The saffron voice is ours", "metadata": {}, "created_at": "2026-01-03T00:00:00Z", "updated_at": "2026-01-03T00:00:00Z"},
    {"id": "MEM-004", "user_id": "alice", "memory_type": "brand_memory", "content": "The saffron voice was shy", "metadata": {}, "created_at": "2026-01-04T00:00:00Z", "updated_at": "2026-01-04T00:00:00Z", "expires_at": "2026-02-20T12:43:41Z"},
    {"id": "MEM-005", "user_id": "alice", "memory_type": "brand_memory", "content": "The saffron voice ends some day", "metadata": {}, "created_at": "2026-01-05T00:00:00Z", "updated_at": "2026-01-05T00:00:00Z", "expires_at": "some day"}
  ]
}"#;

fn shared() -> Workspace {
    let workspace = Workspace::empty();
    workspace.run(&["init"]).succeeds();
    workspace.write(MEMORIES, HAND_WRITTEN);
    workspace
}

fn now() -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(NOW).unwrap().to_utc()
}

fn store(dir: &Path, viewer: Viewer) -> Scoped {
    Scoped::new(dir, Scope::All).at(now()).seen_by(viewer)
}

fn user(id: &str) -> Viewer {
    Viewer::User(id.parse().unwrap())
}

fn memory(extra: &Value) -> Memory {
    let mut memory = json!({"memory_type": "brand_memory", "content": "calm"});
    memory
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    serde_json::from_value(memory).unwrap()
}

fn ids(store: &Scoped, kind: Kind) -> Vec<String> {
    let mut ids = Vec::new();
    let add = &mut |entry: memctl::store::Entry| ids.push(entry.id);
    store.each_entry(kind, &Selection::default(), add).unwrap();
    ids
}

#[test]
fn each_way_out_of_the_store_asks_whose_it_is() {
    let workspace = shared();
    let dir = workspace.root().join(".agentura");
    let check = |viewer: Viewer, seen: &[&str]| {
        let store = store(&dir, viewer.clone());
        assert_eq!(ids(&store, Kind::Memory), seen, "{viewer:?}");
        assert_eq!(store.count(Kind::Memory).unwrap(), seen.len() as u64);
        let newest = Selection {
            newest: Some(1),
            ..Selection::default()
        };
        let newest = store.list::<Memory>(&newest).unwrap().records;
        assert_eq!(newest.first().map(|m| m.id.as_str()), seen.last().copied());
        for id in ["MEM-001", "MEM-002", "MEM-003", "MEM-004", "MEM-005"] {
            let found = store.find(Kind::Memory, id).unwrap().is_some();
            assert_eq!(found, seen.contains(&id), "{viewer:?} {id}");
            let resolved = store.resolve(Kind::Memory, id, None).is_ok();
            assert_eq!(resolved, seen.contains(&id), "{viewer:?} {id}");
        }
        let latest = store.resolve(Kind::Memory, "latest", None).ok();
        assert_eq!(latest.as_deref(), seen.last().copied());
    };
    check(Viewer::Owner, &["MEM-001", "MEM-002", "MEM-003"]);
    check(user("alice"), &["MEM-001"]);
    check(user("bob"), &["MEM-002"]);
    check(user("Alice"), &[]);
    check(user("carol"), &[]);
    check(Viewer::Nobody, &[]);
    // Who was not told the time sees nothing that has an end.
    let timeless = Scoped::new(&dir, Scope::All);
    assert_eq!(ids(&timeless, Kind::Memory).len(), 3);
}

#[test]
fn nobody_writes_in_the_name_of_another_or_over_what_is_his() {
    let workspace = shared();
    let store = |viewer: Viewer| workspace.store().at(now()).seen_by(viewer);
    let before = workspace.read(MEMORIES);
    let mut random = || "r".to_owned();
    for viewer in [user("alice"), Viewer::Nobody] {
        let mut writer = store(viewer).write(&mut random).unwrap();
        let other = writer.append(memory(&json!({"user_id": "bob"})), now());
        assert!(matches!(other, Err(Error::OutOfScope(..))), "{other:?}");
        // An id is taken, whoever has it.
        let taken = writer.append(memory(&json!({"id": "MEM-004"})), now());
        assert!(taken.is_err());
        for id in ["MEM-002", "MEM-003", "MEM-004", "MEM-005"] {
            let changed = writer.update(Kind::Memory, id, &[("content", "mine")]);
            assert!(matches!(changed, Err(Error::NotFound(..))), "{id}");
            let removed = writer.remove(Kind::Memory, &[(id, "x")], now(), RemovalMode::Undoable);
            assert_eq!(removed.unwrap(), [], "{id}");
        }
        let given = writer.update(Kind::Memory, "MEM-001", &[("user_id", "bob")]);
        assert!(given.is_err());
        let all = ["MEM-002", "MEM-003"].map(|id| (id.to_owned(), vec![("content", "mine")]));
        writer.update_all(Kind::Memory, &all).unwrap();
    }
    assert_eq!(workspace.read(MEMORIES), before);
    let mut alice = store(user("alice")).write(&mut random).unwrap();
    let added = alice.append(memory(&json!({})), now()).unwrap();
    assert_eq!(
        (added.id.as_str(), added.user_id.as_deref()),
        ("MEM-006", Some("alice"))
    );
    let session: Session = serde_json::from_value(json!({"status": "planning"})).unwrap();
    let session = alice.append(session, now()).unwrap();
    assert_eq!(session.user_id.as_deref(), Some("alice"));
    alice
        .remove(
            Kind::Memory,
            &[("MEM-006", "calm")],
            now(),
            RemovalMode::Undoable,
        )
        .unwrap();
    drop(alice);
    let is_told = |viewer: Viewer| {
        let store = store(viewer);
        let by_id = store.tombstone(Kind::Memory, "MEM-006").unwrap().is_some();
        assert_eq!(
            by_id,
            store.tombstone_of(Kind::Memory, "calm").unwrap().is_some()
        );
        by_id
    };
    let viewers = [user("alice"), Viewer::Owner, user("bob"), Viewer::Nobody];
    assert_eq!(viewers.map(is_told), [true, true, false, false]);
    // The owner gives no identity, and so what he adds has none.
    let mut owner = store(Viewer::Owner).write(&mut random).unwrap();
    let added = owner.append(memory(&json!({})), now()).unwrap();
    assert_eq!((added.id.as_str(), added.user_id), ("MEM-007", None));
}

/// The ids that a search by meaning alone finds for this user.
fn found_by_meaning(workspace: &Workspace, viewer: Viewer, query: &str) -> Vec<String> {
    let engine = crate::index::engine(workspace.store().at(now()).seen_by(viewer));
    let options = FindOptions {
        weak: false,
        fusion: Fusion::Semantic,
        ..FindOptions::new(query.to_owned(), 9)
    };
    let report = notes::find(&engine, &options, &mut |_, _| {}).unwrap();
    report.results.into_iter().map(|found| found.id).collect()
}

#[test]
fn the_search_index_is_one_and_each_user_finds_his_own() {
    let workspace = shared();
    // Whoever makes it: it holds the words of all.
    workspace.json(&["index", "--user", "alice"]);
    let find = |args: &[&str]| {
        let search = ["memory", "search", "saffron voice", "-n", "9", "--explain"];
        let report = workspace.json(&[&search, args].concat());
        let results = report["results"].as_array().unwrap().iter();
        let mut ids: Vec<String> = results.map(|r| r["id"].as_str().unwrap().into()).collect();
        ids.sort_unstable();
        let asked = &report["asked"];
        assert_eq!(asked["documents"], ids.len(), "{report}");
        assert_eq!(asked["vectors"], ids.len(), "{report}");
        assert_eq!(asked["terms"][0]["documents"], ids.len(), "{report}");
        ids
    };
    assert_eq!(find(&[]), ["MEM-001", "MEM-002", "MEM-003"]);
    assert_eq!(find(&["--user", "alice"]), ["MEM-001"]);
    assert_eq!(find(&["--user", "bob", "--keyword"]), ["MEM-002"]);
    assert_eq!(find(&["--user", "carol"]), [""; 0]);
    // The vectors that alice made for the others' records are of their words.
    assert_eq!(
        found_by_meaning(&workspace, user("bob"), "saffron voice"),
        ["MEM-002"]
    );
    assert_eq!(
        found_by_meaning(&workspace, Viewer::Owner, "noisy and loud")[0],
        "MEM-002"
    );
}

#[test]
fn a_user_is_named_by_flag_variable_or_setting_and_never_blank() {
    let mut workspace = shared();
    let seen = |workspace: &Workspace, args: &[&str]| {
        let list = ["memory", "list", "memories"];
        workspace.json(&[&list, args].concat())["total"].clone()
    };
    assert_eq!(seen(&workspace, &[]), 3);
    assert_eq!(seen(&workspace, &["--user", "bob"]), 1);
    for blank in ["", " ", "\t"] {
        let ran = workspace.run(&["memory", "list", "memories", "--user", blank]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("is blank"), "{ran:?}");
    }
    workspace.write(".agentura/config.toml", "user = \"carol\"\n");
    assert_eq!(seen(&workspace, &[]), 0);
    assert_eq!(seen(&workspace, &["--user", "alice"]), 1);
    workspace.write(".agentura/config.toml", "user = \"\"\n");
    assert_eq!(workspace.run(&["memory", "status"]).code, 2);
    workspace.write(".agentura/config.toml", "");
    workspace.set("MEMCTL_USER", "");
    assert_eq!(workspace.run(&["memory", "status"]).code, 2);
    assert_eq!(seen(&workspace, &["--user", "bob"]), 1);
    workspace.set("MEMCTL_USER", "bob");
    assert_eq!(seen(&workspace, &[]), 1);
    let status = workspace.json(&["memory", "status"]);
    assert_eq!(
        (&status["memories"], &status["bytes"]),
        (&json!(1), &Value::Null)
    );
    assert_eq!(workspace.run(&["doctor"]).code, 5);
}

#[test]
fn an_end_that_nobody_can_read_hides_and_is_told_by_the_doctor() {
    let workspace = shared();
    let number = HAND_WRITTEN.replace("\"some day\"", "90");
    for (text, end) in [(HAND_WRITTEN, "\"some day\""), (&number, "90")] {
        workspace.write(MEMORIES, text);
        let list = workspace.json(&["memory", "list", "memories"]);
        assert!(!list.to_string().contains("MEM-005"), "{list}");
        let report = workspace.json(&["doctor"]);
        let problem = &report["problems"][0];
        let message = format!(
            "`expires_at` of `MEM-005` is {end}, which is not a time: the record is hidden until it is corrected"
        );
        assert_eq!(problem["message"], message, "{report}");
        assert_eq!(problem["line"], 7);
        assert_eq!(report["healthy"], true);
    }
}

#[test]
fn no_command_shows_or_changes_what_is_another_s() {
    let workspace = shared();
    let before = workspace.read(MEMORIES);
    for id in ["MEM-001", "MEM-003", "MEM-004"] {
        for args in [
            &["memory", "show", id][..],
            &["memory", "why", id],
            &["memory", "edit", id, "--set", "content=mine"],
            &["memory", "edit", id, "--set", "metadata.tone=[]"],
            &["memory", "forget", id],
        ] {
            let ran = workspace.run(&[args, &["--user", "bob", "--json"]].concat());
            let text = format!("{}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
            for others in ["calm", "ours", "shy", "alice"] {
                assert!(!text.contains(others), "{args:?}: {ran:?}");
            }
        }
    }
    assert_eq!(workspace.read(MEMORIES), before);
    // The beginning of an id, and `latest`, are resolved among his own.
    let shown = workspace.json(&["memory", "show", "mem-", "--user", "bob"]);
    assert_eq!(shown["id"], "MEM-002");
    for args in [
        &["memory", "list", "memories"][..],
        &["memory", "search", "saffron voice", "-n", "9"],
        &["memory", "status"],
        &["memory", "prune", "--dry-run"],
        &["stats"],
    ] {
        let report = workspace
            .json(&[args, &["--user", "bob"]].concat())
            .to_string();
        for others in [
            "calm", "ours", "shy", "alice", "MEM-001", "MEM-003", "MEM-004",
        ] {
            assert!(!report.contains(others), "{args:?}: {report}");
        }
    }
}
