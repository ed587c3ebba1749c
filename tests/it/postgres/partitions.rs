//! Tables that are partitioned by user: as `docs/scale.md` says, and as before for everybody who uses them.

use super::sync::{correct, records};
use super::{ANN, BEN, Store, vector};

/// The tables that can be partitioned by user.
const TABLES: [&str; 5] = [
    "executions", "corrections", "reflexions", "fixes", "context_eng_memories",
];

#[test]
fn a_partitioned_store_is_used_as_before() {
    let Some(store) = Store::new() else { return };
    let [one, two] = [ANN, ANN].map(|user| store.laptop(user));
    let other = store.laptop(BEN);
    correct(&one, &["Always name the licence of a nurse."]);
    for laptop in [&one, &other] {
        laptop.json(&["learn", "fixtures/sessions"]);
        laptop.json(&["sync"]);
    }
    let search =
        "select content from hybrid_search_context_eng_memories('error', null, 50) order by 1";
    let before = store.ann.run(search);
    assert!(!before.is_empty());
    let rows = |table: &str| format!("select count(*), sum(seq), max(born) from {table}");
    let counts = TABLES.map(|table| (store.ann.run(&rows(table)), store.ben.run(&rows(table))));
    let ids = "select max(id) from context_eng_memories";
    let last: i64 = store.database.admin().value(ids).parse().unwrap();

    let admin = store.database.admin();
    for table in TABLES {
        admin.run(&format!("select memctl.partition_by_user('{table}', 4)"));
    }
    assert_eq!(
        TABLES.map(|table| (store.ann.run(&rows(table)), store.ben.run(&rows(table)))),
        counts
    );
    assert_eq!(store.ann.run(search), before);
    // Rights, policies and statistics are as they must be.
    for user in [ANN, BEN] {
        let (code, found) = store.check(&store.login(user));
        assert_eq!(code, 0, "{found}");
    }
    for n in 0..4 {
        store.ann.refused(
            "42501",
            &format!("select * from memctl.context_eng_memories_{n}"),
        );
    }
    store
        .ben
        .refused("42501", "delete from context_eng_memories");
    store
        .ben
        .refused("42501", &super::sample("context_eng_memories", ANN));
    store
        .ben
        .refused("42501", "begin; lock table executions in exclusive mode");
    store.ben.run("rollback");
    // A sync moves nothing, and then what is new.
    for laptop in [&one, &other] {
        assert_eq!(laptop.json(&["sync"])["by_kind"], serde_json::json!({}));
    }
    correct(&one, &["Interviews must be offered within five days."]);
    one.json(&["memory", "forget", "REFL-001"]);
    one.json(&["sync", "--yes"]);
    two.json(&["sync"]);
    let origin = one.stored("workspace.json")["origin"]
        .as_str()
        .unwrap()
        .to_owned();
    let there = records(&two, &format!("remote/{origin}/"));
    assert_eq!(
        there["reflexion_entries.json"],
        records(&one, "")["reflexion_entries.json"]
    );
    // Rows of other programs get the next number.
    let insert = format!(
        "insert into context_eng_memories (content, embedding) values ('by hand', {}) returning id",
        vector(1.0)
    );
    assert!(store.ann.value(&insert).parse::<i64>().unwrap() > last);
    // A search reads the partition of its user and no other.
    let plan = store.ann.run(&format!(
        "explain select * from context_eng_memories where user_id = '{ANN}'"
    ));
    let scanned = plan
        .concat()
        .iter()
        .filter(|line| line.contains(" on context_eng_memories_"))
        .count();
    assert_eq!(scanned, 1, "{plan:?}");
    // Again is refused, and so is what cannot be.
    for (table, parts, why) in [
        ("executions", "4", "is partitioned already"),
        ("agent_memory", "4", "cannot be partitioned by user"),
        ("nothing", "4", "cannot be partitioned by user"),
        ("fixes", "1", "from 2 to 256"),
        ("fixes", "null", "from 2 to 256"),
    ] {
        let said = admin.query(&format!(
            "select memctl.partition_by_user('{table}', {parts})"
        ));
        assert!(
            said.as_ref().is_err_and(|said| said.contains(why)),
            "{table}: {said:?}"
        );
    }
    // `remote init` goes on with such a store.
    store
        .workspace
        .json(&["remote", "init", "--url", &store.database.url]);
}
