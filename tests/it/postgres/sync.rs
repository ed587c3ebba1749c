//! `sync` between workspaces and a real server: what arrives, what stays apart, and what a cut leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ANN, BEN, Store};
use crate::support::correction;
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

/// The kinds, by their files: the root key, the id's field, and the table of their rows.
const FILES: [(&str, &str, &str, &str); 6] = [
    (
        "episodic_memory.json", "entries", "execution_id", "executions",
    ),
    (
        "corrections.json", "corrections", "correction_id", "corrections",
    ),
    (
        "reflexion_entries.json", "entries", "reflexion_id", "reflexions",
    ),
    (
        "procedural_memory.json", "entries", "procedure_id", "context_eng_memories",
    ),
    ("memories.json", "entries", "id", "agent_memory"),
    ("sessions.json", "entries", "session_id", "agent_sessions"),
];

/// Ends every session of a user; answers how many.
pub(super) const CUT: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and usename like 'memctl\\_login%'";

/// Ends the cutting, however the test ends.
pub(super) struct Done<'a>(pub(super) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Store {
    /// One more login of a user: its URL.
    pub(crate) fn login(&self, user: &str) -> String {
        static LOGINS: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "{}_{}",
            LOGINS.fetch_add(1, Ordering::Relaxed),
            self.database.number
        );
        let name = format!("login_{name}");
        let url = &self.database.url;
        self.workspace.json(&[
            "remote", "user", "add", &name, "--user-id", user, "--url", url,
        ]);
        self.database.cheap_url_of(&format!("memctl_{name}"))
    }

    /// Ends sessions of users, `longest` milliseconds apart at most and in no order, until it is done. Answers in
    /// `cuts` how many there were. They grow rarer with time, so that a machine that is too busy to finish a write
    /// between two of them gets one done.
    pub(super) fn cut(&self, longest: u64, done: &AtomicBool, cuts: &AtomicU32) {
        let admin = self.database.admin();
        let (mut wait, start) = (1_u64, Instant::now());
        while !done.load(Ordering::Relaxed) {
            wait = wait * 48_271 % 2_147_483_647;
            let slow = u64::try_from(start.elapsed().as_millis()).unwrap() / 50;
            std::thread::sleep(Duration::from_millis(wait % (longest + slow)));
            cuts.fetch_add(admin.value(CUT).parse().unwrap(), Ordering::Relaxed);
        }
    }

    /// A workspace whose syncs go here, as this user.
    pub(crate) fn laptop(&self, user: &str) -> Workspace {
        let mut laptop = Workspace::sample();
        laptop.set("DATABASE_URL", &self.login(user));
        laptop.run(&["init"]).succeeds();
        laptop
    }
}

/// Runs and corrects, so often.
pub(super) fn correct(laptop: &Workspace, what: &[&str]) {
    for words in what {
        laptop.json(&["run", SKILL]);
        laptop.json(&correction(words));
    }
}

/// Every record below a directory: its id and what it says, by file.
pub(super) fn records(
    laptop: &Workspace,
    below: &str,
) -> BTreeMap<&'static str, BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for (file, root, id, _) in FILES {
        let local = file.replace(".json", ".local.json");
        let mut entries = Vec::new();
        for name in [file, &local] {
            let path = laptop.memory(&format!("{below}{name}"));
            if let Ok(text) = std::fs::read_to_string(path) {
                let mut document: Value = serde_json::from_str(&text).unwrap();
                entries.append(document[root].as_array_mut().unwrap());
            }
        }
        let ids = |entry: &Value| (entry[id].as_str().unwrap().to_owned(), entry.to_string());
        let of_file: BTreeMap<_, _> = entries.iter().map(ids).collect();
        assert_eq!(
            of_file.len(),
            entries.len(),
            "{file}: an id stands there twice"
        );
        found.insert(file, of_file);
    }
    found.retain(|_, entries| !entries.is_empty());
    found
}

fn origin(laptop: &Workspace) -> String {
    laptop.stored("workspace.json")["origin"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// What `to` has of `from` is what `from` has.
fn assert_shared(from: &Workspace, to: &Workspace) {
    let there = records(to, &format!("remote/{}/", origin(from)));
    assert_eq!(there, records(from, ""));
}

#[test]
fn two_laptops_that_made_the_same_ids_offline_keep_both() {
    let Some(store) = Store::new() else { return };
    let [one, two, three] = [ANN, ANN, ANN].map(|user| store.laptop(user));
    correct(
        &one,
        &[
            "When a career gap exceeds two years, ALWAYS score below 60.",
            "Always name the licence of a nurse.",
            "Never reject a candidate for a missing photo.",
        ],
    );
    correct(
        &two,
        &[
            "Interviews must be offered within five days.",
            "When a degree is missing, ask for years of practice.",
            "Always list languages with their level.",
        ],
    );
    one.json(&["learn", "fixtures/sessions"]);
    two.json(&[
        "memory",
        "add",
        "--type",
        "task_memory",
        "--content",
        "the quarterly review is due",
    ]);
    assert_eq!(records(&one, "")["corrections.json"].len(), 3);
    assert!(records(&two, "")["corrections.json"].contains_key("CORR-003"));

    let plan = one.json(&["sync", "--dry-run"]);
    assert_eq!(store.ann.value("select count(*) from corrections"), "0");
    let first = one.json(&["sync"]);
    assert_eq!(
        (&plan["pushed"], &plan["by_kind"]),
        (&first["pushed"], &first["by_kind"])
    );
    let all: usize = records(&one, "").values().map(BTreeMap::len).sum();
    assert_eq!(first["pushed"], json!(all));
    let second = two.json(&["sync"]);
    assert_eq!(second["pulled"], json!(all), "{second}");
    one.json(&["sync"]);
    three.json(&["sync"]);
    assert_shared(&one, &two);
    assert_shared(&two, &one);
    assert_shared(&one, &three);
    assert_shared(&two, &three);
    // Nothing is left to do, and nothing is done.
    for laptop in [&one, &two, &three] {
        let again = laptop.json(&["sync"]);
        assert_eq!(
            (
                &again["pushed"], &again["pulled"], &again["tombstones"], &again["by_kind"]
            ),
            (&json!(0), &json!(0), &json!(0), &json!({}))
        );
    }
    for laptop in [&one, &two, &three] {
        laptop.run(&["doctor"]).succeeds();
        laptop.run(&["memory", "audit", "verify"]).succeeds();
        references_hold(laptop);
    }
    // The columns of the seeds' tables say it again, and what has content has a vector.
    assert_eq!(
        store
            .ann
            .value("select memory_type || ': ' || content from agent_memory"),
        "task_memory: the quarterly review is due"
    );
    for table in ["agent_memory", "context_eng_memories"] {
        let with = format!("select count(*) = count(embedding) and count(*) > 0 from {table}");
        assert_eq!(store.ann.value(&with), "t", "{table}");
    }
    // What came is listed beside one's own.
    for (kind, total) in [("rules", 6), ("corrections", 6), ("notes", 1)] {
        assert_eq!(three.json(&["list", kind])["total"], total, "{kind}");
    }
    // It is changed where it comes from.
    let rules = three.json(&["list", "rules"]);
    let theirs = rules["records"][0]["id"].as_str().unwrap();
    for verb in ["approve", "reject", "forget"] {
        let ran = three.run(&[verb, theirs]);
        ran.fails(2, "belongs to another workspace");
        assert!(ran.stderr.contains("then `memctl sync`"), "{ran:?}");
    }
    // What came is found at once, beside one's own, and says whose it is.
    let found = three.json(&["memory", "search", "licence of a nurse", "--keyword"]);
    let best = &found["results"][0];
    assert_eq!(
        (&best["origin"], &best["pulled"]),
        (&json!(origin(&one)), &json!(true)),
        "{found}"
    );
    let id = format!("{}@{}", best["id"].as_str().unwrap(), &origin(&one)[..8]);
    assert!(
        three.json(&["memory", "show", &id])["record"]
            .to_string()
            .contains("licence")
    );
    let rule = format!("REFL-002@{}", &origin(&one)[..8]);
    let why = three.json(&["memory", "why", &rule]);
    assert_eq!(why["chain"][1]["id"], "CORR-002", "{why}");
    three
        .run(&["memory", "show", "CORR-001@nobody"])
        .fails(2, "no single pulled workspace has a name");
    // The next run obeys rules of both.
    let prompt = three.json(&["memory", "prompt", SKILL]);
    let injected = prompt["injected"].as_array().unwrap();
    assert_eq!(injected.len(), 6, "{prompt}");
    assert!(injected.iter().any(|rule_of| rule_of["id"] == json!(rule)));
    let shared = one.json(&["memory", "status"]);
    assert_eq!(
        (&shared["store"], &shared["corrections"]),
        (&json!("CompositeStore"), &json!(3))
    );
    assert_eq!(shared["pulled"]["workspaces"], 1, "{shared}");
    assert!(one.run(&["memory", "status"]).stdout.contains("Pulled: "));
    // Another tenant has none of it.
    let ben = store.laptop(BEN);
    assert_eq!(ben.json(&["sync"])["pulled"], 0);
    assert_eq!(store.ben.value("select count(*) from corrections"), "0");
}

/// Every id that a record of a workspace names is an id of a record of that workspace.
fn references_hold(laptop: &Workspace) {
    let mut places = vec![String::new()];
    let remote = std::fs::read_dir(laptop.memory("remote"))
        .into_iter()
        .flatten()
        .flatten();
    places.extend(
        remote
            .filter(|entry| entry.path().is_dir())
            .map(|entry| format!("remote/{}/", entry.file_name().to_string_lossy())),
    );
    for place in places {
        let records = records(laptop, &place);
        let ids: BTreeSet<&String> = records.values().flat_map(BTreeMap::keys).collect();
        for (file, field) in [
            ("corrections.json", "execution_id"),
            ("reflexion_entries.json", "correction_id"),
        ] {
            for text in records.get(file).into_iter().flat_map(BTreeMap::values) {
                let entry: Value = serde_json::from_str(text).unwrap();
                let named = entry[field].as_str().unwrap().to_owned();
                assert!(ids.contains(&named), "{place}{file}: {named}");
            }
        }
    }
}

#[test]
fn changes_and_removals_arrive_and_come_back() {
    let Some(store) = Store::new() else { return };
    let [one, two] = [ANN, ANN].map(|user| store.laptop(user));
    let rules: Vec<String> = (0..12)
        .map(|n| format!("Always name the licence number {n} of a nurse."))
        .collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    correct(&one, &rules);
    one.json(&["sync"]);
    two.json(&["sync"]);
    one.run(&["memory", "forget", "CORR-002"]).succeeds();
    one.json(&[
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "rule=Never ask for a photo.",
    ]);
    let moved = one.json(&["sync"]);
    assert_eq!(
        (&moved["pushed"], &moved["tombstones"]),
        (&json!(1), &json!(1)),
        "{moved}"
    );
    let came = two.json(&["sync"]);
    assert_eq!(
        (&came["pulled"], &came["tombstones"]),
        (&json!(1), &json!(1)),
        "{came}"
    );
    assert_shared(&one, &two);
    // A tombstone is shown to nobody who does not ask for it, and says nothing of what was there.
    let count = "select count(*) from corrections where entry_id = 'CORR-002'";
    assert_eq!(store.ann.value(count), "0");
    store.ann.run("set memctl.shows_removed = 'on'");
    let row = store.ann.value("select coalesce(entry, '∅') || (deleted_at is not null)::text from corrections where entry_id = 'CORR-002'");
    assert_eq!(row, "∅true");
    // Who comes later hears of no removal of what it never had.
    let three = store.laptop(ANN);
    assert_eq!(three.json(&["sync"])["tombstones"], 0);
    assert_shared(&one, &three);
    // What is taken back is there again.
    one.run(&["memory", "undo"]).succeeds();
    one.run(&["memory", "undo"]).succeeds();
    one.json(&["sync"]);
    two.json(&["sync"]);
    assert_shared(&one, &two);
    assert!(records(&one, "")["corrections.json"].contains_key("CORR-002"));
}

#[test]
fn the_shared_store_is_rid_of_what_has_expired() {
    let Some(store) = Store::new() else { return };
    let [one, two] = [ANN, ANN].map(|user| store.laptop(user));
    for (content, end) in [
        (
            "Scripts are spoken by a calm, friendly voice.",
            "2999-01-01",
        ),
        ("The spring campaign uses the colour green.", "2026-03-01"),
    ] {
        one.json(&[
            "memory", "add", "--type", "brand_memory", "--content", content, "--expires-at", end,
        ]);
    }
    one.json(&["sync"]);
    let ben = store.laptop(BEN);
    two.json(&["sync"]);
    assert_eq!(
        one.json(&["memory", "prune", "--remote", "--dry-run"])["removed"],
        1
    );
    assert_eq!(ben.json(&["memory", "prune", "--remote"])["removed"], 0);
    assert_eq!(one.json(&["memory", "prune", "--remote"])["removed"], 1);
    let rows = "select count(*) from agent_memory";
    assert_eq!(store.ann.value(rows), "1");
    store.ann.run("set memctl.shows_removed = 'on'");
    assert_eq!(store.ann.value(rows), "2");
    two.json(&["sync", "--yes"]);
    assert!(
        !std::fs::read_to_string(two.memory(&format!("remote/{}/memories.json", origin(&one))))
            .unwrap()
            .contains("colour green")
    );
    // An administrator cleans up for all, and what expired is not sent again.
    store
        .ann
        .run("update agent_memory set expires_at = '2026-03-01' where deleted_at is null");
    let mut admin = Workspace::empty();
    admin.set("DATABASE_URL", &store.database.url);
    let report = admin.json(&["memory", "prune", "--remote"]);
    assert_eq!(
        (&report["removed"], &report["of_all"]),
        (&json!(1), &json!(true))
    );
}

#[test]
fn much_does_not_go_unasked() {
    let Some(store) = Store::new() else { return };
    let [one, two] = [ANN, ANN].map(|user| store.laptop(user));
    correct(
        &one,
        &[
            "Always name the licence of a nurse.",
            "Never ask for a photo.",
        ],
    );
    one.json(&["sync"]);
    two.json(&["sync"]);
    let before = records(&two, &format!("remote/{}/", origin(&one)));
    std::fs::write(one.memory("corrections.json"), "{\"corrections\": []}").unwrap();
    one.run(&["sync"])
        .fails(2, "2 of 6 records that this workspace shares would go");
    assert_eq!(
        store
            .ann
            .value("select count(*) from corrections where deleted_at is null"),
        "2"
    );
    assert_eq!(one.json(&["sync", "--dry-run"])["tombstones"], 2);
    one.json(&["sync", "--yes"]);
    assert_eq!(
        store
            .ann
            .value("select count(*) from corrections where deleted_at is null"),
        "0"
    );
    two.run(&["sync"]).fails(
        2,
        "2 of 6 records that others share would go from this memory",
    );
    assert_eq!(records(&two, &format!("remote/{}/", origin(&one))), before);
    two.json(&["sync", "--yes"]);
    assert_shared(&one, &two);
}

#[test]
fn a_copy_of_a_workspace_takes_nothing_away() {
    let Some(store) = Store::new() else { return };
    let one = store.laptop(ANN);
    correct(&one, &["Always name the licence of a nurse."]);
    one.json(&["sync"]);
    // As a clone of a repository that the memory is committed to.
    let two = store.laptop(ANN);
    for name in [
        "workspace.json", "episodic_memory.json", "corrections.json", "reflexion_entries.json",
    ] {
        std::fs::copy(one.memory(name), two.memory(name)).unwrap();
    }
    // As a backup, which has the name of the copy, too.
    std::fs::copy(one.memory("replica"), two.memory("replica")).unwrap();
    correct(&one, &["Never ask for a photo."]);
    correct(&two, &["Always list languages with their level."]);
    one.json(&["sync"]);
    let report = two.json(&["sync"]);
    assert_eq!(report["tombstones"], 0, "{report}");
    assert!(
        report["warnings"][0]
            .as_str()
            .unwrap()
            .contains("another copy of this workspace")
    );
    assert_eq!(
        report["origin"],
        json!(
            std::fs::read_to_string(two.memory("replica"))
                .unwrap()
                .trim()
        )
    );
    let three = store.laptop(ANN);
    three.json(&["sync"]);
    for (laptop, name) in [
        (&one, origin(&one)),
        (&two, report["origin"].as_str().unwrap().to_owned()),
    ] {
        assert_eq!(
            records(&three, &format!("remote/{name}/")),
            records(laptop, "")
        );
    }
}

#[test]
fn nothing_is_sent_to_where_users_are_not_apart() {
    let Some(store) = Store::new() else { return };
    let one = store.laptop(ANN);
    correct(&one, &["Always name the licence of a nurse."]);
    let admin = store.database.url.clone();
    one.run(&["sync", "--url", &admin])
        .fails(6, "does not isolate users");
    let bypass = store.role("sly", "bypassrls in role memctl_user");
    one.run(&["sync", "--url", &bypass])
        .fails(6, "bypasses row security");
    store
        .database
        .admin()
        .run("alter table public.corrections no force row level security");
    one.run(&["sync"])
        .fails(6, "`public.corrections` has it on, but not forced");
    store
        .database
        .admin()
        .run("alter table public.corrections force row level security");
    assert_eq!(store.ann.value("select count(*) from executions"), "0");
    // A scope and a user see a part, and a part cannot be kept in step.
    one.run(&["sync", "--scope", "hr"])
        .fails(5, "is outside the scope");
    one.json(&["sync"]);
}

#[test]
fn a_first_push_sends_each_id_once_and_says_what_it_leaves_out() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    let execution = |id: &str, score: u32| {
        json!({"execution_id": id, "skill": SKILL, "timestamp": "2026-01-01T00:00:00+00:00",
               "input": {}, "output": {"score": score}})
    };
    let entries = [
        execution("EXEC-1", 1),
        execution("an odd id", 2),
        execution("EXEC-2", 3),
        execution("EXEC-1", 4),
    ];
    let path = laptop.memory("episodic_memory.json");
    std::fs::write(path, json!({ "entries": entries }).to_string()).unwrap();
    for args in [&["sync", "push", "--dry-run"][..], &["sync", "push"]] {
        let report = laptop.json(args);
        assert_eq!(report["by_kind"]["executions"]["pushed"], 2, "{report}");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("a zero byte: `an odd id`"), "{report}");
    }
    let rows = store
        .database
        .admin()
        .run("select entry_id, entry::jsonb->'output'->>'score' from executions order by 1");
    assert_eq!(rows, [["EXEC-1", "4"], ["EXEC-2", "3"]]);
    assert_eq!(laptop.json(&["sync", "push"])["pushed"], 0);

    // An id in two batches: the last record wins there, too.
    let laptop = store.laptop(BEN);
    let between = (2..2_500).map(|n| execution(&format!("EXEC-{n}"), n));
    let entries = [execution("EXEC-1", 1)].into_iter().chain(between);
    let entries: Vec<Value> = entries.chain([execution("EXEC-1", 9)]).collect();
    let path = laptop.memory("episodic_memory.json");
    std::fs::write(path, json!({ "entries": entries }).to_string()).unwrap();
    laptop.json(&["sync", "push"]);
    let rows = store
        .ben
        .run("select max(entry::jsonb->'output'->>'score') filter (where entry_id = 'EXEC-1'), count(*) from executions");
    assert_eq!(rows, [["9", "2499"]]);
    assert_eq!(laptop.json(&["sync", "push"])["pushed"], 0);
}

#[test]
fn secrets_stay_here_and_odd_rows_stay_there() {
    let Some(store) = Store::new() else { return };
    let one = store.laptop(ANN);
    correct(&one, &["Always name the licence of a nurse."]);
    // An older program has let a key through, and another one an odd value.
    let key = ["sk-ant-", "api03-", &"Zq9".repeat(30)].concat();
    let entry = json!({"correction_id": "CORR-002", "skill": format!("hr/{key}"), "correction": format!("use {key}"), "n": 1});
    let mut document = one.stored("corrections.json");
    document["corrections"].as_array_mut().unwrap().push(entry);
    std::fs::write(
        one.memory("corrections.json"),
        document.to_string().replace("\"n\":1", "\"n\":NaN"),
    )
    .unwrap();
    one.json(&["sync"]);
    let sent = store
        .ann
        .value("select entry from corrections where entry_id = 'CORR-002'");
    assert!(sent.contains("NaN") && !sent.contains(&key), "{sent}");
    // Nor does it stand in a column, and what the odd value is not part of does.
    let columns = format!(
        "select (c::text like '%{key}%')::text || correction_id from corrections c where entry_id = 'CORR-002'"
    );
    assert_eq!(store.ann.value(&columns), "falseCORR-002");
    assert_eq!(one.json(&["sync"])["pushed"], 0);
    // Somebody else's program writes what is no record.
    for (id, text) in [
        ("CORR-001", "{\"correction_id\": \"CORR-009\"}"),
        ("CORR-002", "no JSON"),
        (
            "CORR-003",
            "{\"correction_id\": \"CORR-003\"}, {\"correction_id\": \"CORR-004\"}",
        ),
    ] {
        let text = text.replace('\'', "''");
        store.ann.run(&format!(
            "insert into corrections (user_id, origin, entry_id, entry) values ('{ANN}', 'odd', '{id}', '{text}')"
        ));
    }
    let report = one.json(&["sync"]);
    assert!(
        report["warnings"][0]
            .as_str()
            .unwrap()
            .contains("no records with the id that they claim"),
        "{report}"
    );
    assert!(!one.memory("remote/odd/corrections.json").exists());
    one.run(&["doctor"]).succeeds();
}

#[test]
#[ignore = "a minute: make test-database"]
fn a_connection_that_is_cut_anywhere_loses_and_doubles_nothing() {
    let Some(store) = Store::new() else { return };
    let [one, two] = [ANN, ANN].map(|user| store.laptop(user));
    let entries = |of: &str| -> Vec<Value> {
        let text = "what was seen and done ".repeat(40);
        (0..9_000)
            .map(|n| json!({"execution_id": format!("EXEC-{:014}", 20_260_101_000_000_u64 + n), "skill": SKILL, "output": {of: text}}))
            .collect()
    };
    for (laptop, name) in [(&one, "one"), (&two, "two")] {
        let document = json!({"entries": entries(name)});
        std::fs::write(laptop.memory("episodic_memory.json"), document.to_string()).unwrap();
    }
    let done = AtomicBool::new(false);
    let cuts = AtomicU32::new(0);
    let mut failed = 0;
    std::thread::scope(|scope| {
        // From the login to the end of a sync.
        scope.spawn(|| store.cut(700, &done, &cuts));
        let _done = Done(&done);
        // Each pair of syncs begins with new work, so that there is always something to cut.
        let mut round = 0;
        while cuts.load(Ordering::Relaxed) < 50 {
            round += 1;
            assert!(round < 400, "{cuts:?} cuts, {failed} failed");
            for laptop in [&one, &two] {
                let ran = laptop.run(&["sync", "--yes", "--json"]);
                failed += i32::from(ran.code != 0);
                assert!(ran.code == 0 || ran.code == 6, "{ran:?}");
            }
            if round % 3 == 0 {
                let rows = format!(
                    "delete from executions where entry_id < 'EXEC-2026010100{:04}'",
                    round * 9 % 9_000
                );
                store.database.admin().run(&rows);
            }
        }
    });
    assert!(failed >= 10, "only {failed} syncs were cut");
    for laptop in [&one, &two, &one] {
        laptop.json(&["sync", "--yes"]);
    }
    assert_shared(&one, &two);
    assert_shared(&two, &one);
    assert_eq!(
        store
            .ann
            .value("select count(*) from executions where deleted_at is null"),
        "18000"
    );
    for laptop in [&one, &two] {
        assert_eq!(laptop.json(&["sync"])["by_kind"], json!({}));
    }
}

/// Procedures carry the document of the seeds.
#[test]
fn a_procedure_has_its_status_and_its_eight_fields_in_the_database() {
    let Some(store) = Store::new() else { return };
    let laptop = store.laptop(ANN);
    laptop.json(&["learn", "fixtures/sessions"]);
    laptop.json(&["sync"]);
    let own = records(&laptop, "")["procedural_memory.json"].clone();
    assert!(!own.is_empty());
    let admin = store.database.admin();
    let row = |id: &str, column: &str| {
        admin.value(&format!(
            "select {column} from context_eng_memories where entry_id = '{id}'"
        ))
    };
    for (id, entry) in &own {
        let entry: Value = serde_json::from_str(entry).unwrap();
        let metadata: Value = serde_json::from_str(&row(id, "metadata")).unwrap();
        assert_eq!(metadata["status"], entry["status"]);
        assert_eq!(metadata["data"], entry["data"]);
        assert_eq!(metadata["data"].as_object().unwrap().len(), 8);
    }
    assert_eq!(laptop.json(&["sync"])["by_kind"], json!({}));
}

/// Rates at a size that nobody has every day: `make bench-sync`.
#[test]
#[ignore = "takes minutes and some gigabytes: make bench-sync"]
fn rates_at_a_million_rows() {
    let Some(store) = Store::new() else { return };
    for rows in [100_000_u64, 1_000_000] {
        rates(&store, rows);
        store.database.admin().run("truncate executions");
    }
}

fn per_second(rows: u64, took: Duration) -> u128 {
    u128::from(rows) * 1_000 / took.as_millis().max(1)
}

fn rates(store: &Store, rows: u64) {
    use std::fs::File;
    use std::io::{BufWriter, Write as _};
    let [one, two] = [ANN, ANN].map(|user| store.laptop(user));
    store.database.admin().run(
        "do $$ declare r record; begin
           for r in select rolname from pg_roles where rolname like 'memctl\\_%' loop
             execute format('alter role %I set log_statement = none', r.rolname);
           end loop; end $$",
    );
    let path = one.memory("episodic_memory.json");
    let mut file = BufWriter::new(File::create(path).unwrap());
    // Not in memory: what this process has held counts for those that it begins.
    let path = one.root().join("copied");
    let mut copied = BufWriter::new(File::create(&path).unwrap());
    file.write_all(b"{\n  \"entries\": [").unwrap();
    for n in 0..rows {
        let comma = if n == 0 { "" } else { "," };
        let id = format!("EXEC-{:014}", 20_000_101_000_000 + n);
        let text = format!(
            "{{\"execution_id\": \"{id}\", \"skill\": \"{SKILL}\", \"timestamp\": \"2026-01-01T00:00:00+00:00\", \
             \"outcome\": \"accepted\", \"input\": {{\"name\": \"candidate {n}\"}}, \"output\": {{\"score\": {}}}, \
             \"latency_ms\": 812.5, \"cost_usd\": 0.0021}}",
            n % 100
        );
        write!(file, "{comma}\n    {text}").unwrap();
        writeln!(copied, "{ANN}\traw\t{id}\t{SKILL}\t{text}").unwrap();
    }
    file.write_all(b"\n  ]\n}\n").unwrap();
    file.into_inner().unwrap();
    copied.into_inner().unwrap();
    let begun = Instant::now();
    store.database.admin().copy_in(
        "copy executions (user_id, origin, entry_id, skill, entry) from stdin",
        File::open(&path).unwrap(),
    );
    let copy = begun.elapsed();
    store
        .database
        .admin()
        .run("delete from executions where origin = 'raw'");
    println!("{rows} rows: COPY {} rows/s", per_second(rows, copy));
    // memctl keeps the index of a file that it writes; of this one it has to be made.
    for (name, laptop, args) in [
        ("index", &one, ["memory", "status", "--json"]),
        ("push", &one, ["sync", "push", "--json"]),
        ("push again", &one, ["sync", "push", "--json"]),
        ("pull", &two, ["sync", "pull", "--json"]),
        ("pull again", &two, ["sync", "pull", "--json"]),
    ] {
        let begun = Instant::now();
        let child = laptop
            .command()
            .args(args)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let used = crate::wait::wait(child);
        assert!(used.status.success());
        let took = begun.elapsed();
        println!(
            "{rows} rows: {name} {:.1} s, {} rows/s, {} MB",
            took.as_secs_f64(),
            per_second(rows, took),
            used.memory / 1_000_000
        );
    }
    let held = two.memory(&format!("remote/{}/episodic_memory.json", origin(&one)));
    assert!(std::fs::metadata(held).unwrap().len() > rows * 200);
}
