//! Memories that lie in the database: several copies of one, of which nothing is lost or seen too late.
#![allow(clippy::print_stdout, reason = "how much was done is said")]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sync::{CUT, Done, correct, records};
use super::{ANN, BEN, OVER_POSTGRES, Store, server};
use crate::serve::load::Client;
use crate::serve::{Served, execution, token};
use crate::workspace::Workspace;

const SKILL: &str = "hr/resume-screen";

/// What holds of every store: the tests of these modules, once more over the database.
///
/// Left out is what speaks of the files themselves, as a program without a database has them: directories
/// that nothing was ever written to, bytes that somebody else has put there, disks that are full.
const SUITE: [&str; 14] = [
    "conformance::", "approve::", "edit::", "export_import::", "learn::", "learning::",
    "memories::", "merge::", "rules::", "search::", "session::", "undo::", "users::", "why::",
];
const OF_FILES: [&str; 8] = [
    "approve::a_quarantined_fix",
    "conformance::formats::case_01_",
    "conformance::reading::case_10_",
    "conformance::reading::case_38_a_damaged_file",
    // Records without an id: no row can be told by it.
    "export_import::ids_that_clash",
    "export_import::notes_of_others_wait",
    "export_import::exported_memory_is_restored",
    // A hundred logins at once.
    "session::many_processes_at_once",
];

#[test]
#[ignore = "some minutes: make test-database"]
fn the_suite_of_the_json_store_passes_over_the_database() {
    if server().is_none() {
        return;
    }
    let skipped = OF_FILES.iter().flat_map(|name| ["--skip", name]);
    let ran = Command::new(std::env::current_exe().unwrap())
        .env(OVER_POSTGRES, "postgres")
        .args(SUITE)
        .args(skipped)
        .args(["--test-threads", "4"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    let passed = said.lines().filter(|line| line.ends_with("... ok")).count();
    assert!(passed > 100, "{said}");
    println!("{passed} tests over the database");
}

impl Store {
    /// A copy of the memory of this name, for this user: a directory of its own, as on a server of its own.
    pub(super) fn copy(&self, user: &str, memory: &str) -> Workspace {
        let mut copy = Workspace::sample();
        copy.set("DATABASE_URL", &self.login(user));
        copy.run(&["remote", "join", memory]).succeeds();
        copy
    }
}

pub(super) fn ids_of(copy: &Workspace, kind: &str) -> BTreeSet<String> {
    let listed = copy.json(&["memory", "list", kind, "--limit", "100000"]);
    let listed = listed["records"].as_array().unwrap();
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = listed.iter().map(id).collect();
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    distinct
}

#[test]
fn a_memory_of_files_moves_into_the_database_and_other_copies_are_the_same() {
    let Some(store) = Store::new() else { return };
    let mut one = Workspace::sample();
    one.set("DATABASE_URL", &store.login(ANN));
    correct(&one, &["Always name the licence of a nurse."]);
    one.json(&["learn", "fixtures/sessions"]);
    one.json(&[
        "memory", "add", "--type", "brand_memory", "--content", "Our voice is calm.",
    ]);
    one.json(&["session", "start"]);
    // What was forgotten before is forgotten everywhere, and its id is not given again.
    correct(&one, &["Never reject a candidate for a missing photo."]);
    one.json(&["memory", "forget", "REFL-002"]);
    let before = records(&one, "");
    let joined = one.json(&["remote", "join", "support"]);
    assert_eq!(
        (&joined["created"], &joined["memory"]),
        (&json!(true), &json!("support"))
    );
    assert_eq!(records(&one, ""), before);
    assert_eq!(one.json(&["memory", "status"])["store"], "PgStore");
    // Again is no harm.
    assert_eq!(
        one.json(&["remote", "join", "support"])["created"],
        json!(false)
    );

    let two = store.copy(ANN, "support");
    assert_eq!(records(&two, ""), before);
    assert_eq!(
        two.json(&["memory", "list", "reflexions"]),
        one.json(&["memory", "list", "reflexions"])
    );
    correct(&two, &["Interviews must be offered within five days."]);
    let rules = ids_of(&one, "reflexions");
    assert_eq!(rules, ["REFL-001", "REFL-003"].map(str::to_owned).into());
    assert_eq!(records(&one, ""), records(&two, ""));

    // What one copy edits, forgets and takes back, every other one sees.
    one.json(&[
        "memory",
        "edit",
        "REFL-001",
        "--set",
        "rule=Always ask for the licence.",
    ]);
    let shown = two.json(&["memory", "show", "REFL-001"]);
    assert!(
        shown.to_string().contains("Always ask for the licence."),
        "{shown}"
    );
    two.json(&["memory", "forget", "REFL-003"]);
    one.run(&["memory", "show", "REFL-003"])
        .fails(2, "REFL-003");
    two.json(&["memory", "undo"]);
    one.json(&["memory", "show", "REFL-003"]);
    assert_eq!(records(&one, ""), records(&two, ""));
    for copy in [&one, &two] {
        copy.run(&["doctor"]).succeeds();
        copy.run(&["memory", "audit", "verify"]).succeeds();
    }

    // Memories that lie in the database are there for everybody who shares through it, with their vectors.
    let synced = two.json(&["sync"]);
    assert_eq!(
        (&synced["pushed"], &synced["warnings"]),
        (&json!(0), &json!([])),
        "{synced}"
    );
    let laptop = store.laptop(ANN);
    laptop.json(&["sync"]);
    assert_eq!(records(&laptop, "remote/support/"), records(&one, ""));

    two.json(&["remote", "leave"]);
    assert_eq!(records(&two, ""), records(&one, ""));
    correct(&two, &["Always list languages with their level."]);
    assert_eq!(ids_of(&one, "reflexions").len(), 2);
    assert_eq!(two.json(&["memory", "status"])["store"], "CompositeStore");
}

#[test]
fn many_programs_on_many_copies_at_once_lose_and_double_nothing() {
    const EACH: usize = 12;
    let Some(store) = Store::new() else { return };
    let copies = [ANN, ANN, ANN].map(|user| store.copy(user, "crowd"));
    // The clock stands still: all of them want the same id.
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = copies
            .iter()
            .flat_map(|copy| [copy, copy])
            .map(|copy| {
                scope.spawn(move || {
                    let ran = (0..EACH).map(|_| copy.json(&["run", SKILL])["execution_id"].clone());
                    ran.map(|id| id.as_str().unwrap().to_owned())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        writers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let distinct: BTreeSet<String> = acknowledged.iter().cloned().collect();
    assert_eq!(distinct.len(), copies.len() * 2 * EACH);
    for copy in &copies {
        assert_eq!(ids_of(copy, "executions"), distinct);
        assert_eq!(records(copy, ""), records(&copies[0], ""));
    }
    let count = "select count(*) from executions where deleted_at is null";
    assert_eq!(store.ann.value(count), distinct.len().to_string());
}

#[test]
fn a_database_that_goes_away_anywhere_loses_and_doubles_nothing() {
    let Some(store) = Store::new() else { return };
    let copies = [ANN, ANN].map(|user| store.copy(user, "storm"));
    let (done, cuts) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut acknowledged = BTreeSet::new();
    let mut failed = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| store.cut(90, &done, &cuts));
        let _done = Done(&done);
        let mut round = 0;
        while cuts.load(Ordering::Relaxed) < 50 || failed < 5 {
            round += 1;
            assert!(round < 2_000, "{cuts:?} cuts, {failed} failed");
            for copy in &copies {
                let ran = copy.run(&["run", SKILL, "--json"]);
                if ran.code == 0 {
                    let id = ran.document()["execution_id"].as_str().unwrap().to_owned();
                    assert!(acknowledged.insert(id));
                } else {
                    assert_eq!(ran.code, 6, "{ran:?}");
                    failed += 1;
                }
            }
        }
    });
    let [one, two] = copies.each_ref().map(|copy| ids_of(copy, "executions"));
    assert_eq!(one, two);
    assert!(acknowledged.is_subset(&one), "{acknowledged:?} {one:?}");
    // One that was cut off between the database and its answer may be there; nothing else is.
    assert!(
        one.len() <= acknowledged.len() + failed,
        "{} {failed}",
        one.len()
    );
    println!(
        "{cuts:?} cuts, {failed} calls failed, {} were acknowledged",
        acknowledged.len()
    );
}

/// Requests share their commits here, and a failure meets all of them.
#[test]
fn servers_and_sessions_that_are_killed_lose_and_double_nothing() {
    const CLIENTS: usize = 16;
    let Some(store) = Store::new() else { return };
    let copies = [ANN, ANN].map(|user| store.copy(user, "killed"));
    let mut acknowledged = BTreeSet::new();
    let (mut refused, mut asked) = (0, 0);
    for round in 0..4 {
        let copy = &copies[round % 2];
        let served = Served::start(copy, &["--rate-limit", "0"]);
        let (done, cuts) = (AtomicBool::new(false), AtomicU32::new(0));
        let written = AtomicU32::new(0);
        let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
            scope.spawn(|| store.cut(120, &done, &cuts));
            let clients: Vec<_> = (0..CLIENTS)
                .map(|n| {
                    let (served, written) = (&served, &written);
                    scope.spawn(move || {
                        let token = token(copy, &format!("user-{n}"), "hr");
                        let mut client = Client::new(served, &token);
                        let body = json!({"skill": SKILL, "input": {"client": n}, "output": {}});
                        let ask = || {
                            let answer = client.ask("POST", "/v1/executions", &body.to_string())?;
                            written.fetch_add(u32::from(answer.0 == 201), Ordering::Relaxed);
                            Some(answer)
                        };
                        std::iter::from_fn(ask).collect::<Vec<_>>()
                    })
                })
                .collect();
            // On a busy machine the first write takes seconds.
            let start = Instant::now();
            while written.load(Ordering::Relaxed) < 40 && start.elapsed() < Duration::from_mins(1) {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(Duration::from_secs(1));
            served.signal("-KILL");
            done.store(true, Ordering::Relaxed);
            let clients = clients.into_iter();
            clients.flat_map(|client| client.join().unwrap()).collect()
        });
        for (status, answer) in answers {
            match status {
                201 => assert!(
                    acknowledged.insert(answer["execution_id"].as_str().unwrap().to_owned())
                ),
                503 => refused += 1,
                _ => panic!("{status} {answer}"),
            }
        }
        // Each client had one request in flight when the server was killed.
        asked += CLIENTS;
    }
    let [one, two] = copies.each_ref().map(|copy| ids_of(copy, "executions"));
    assert_eq!(one, two);
    let lost: Vec<_> = acknowledged.difference(&one).collect();
    assert!(lost.is_empty(), "{lost:?} of {}", acknowledged.len());
    assert!(
        acknowledged.len() > 100,
        "{} acknowledged, {refused} refused",
        acknowledged.len()
    );
    // What failed or was in flight may be there; nothing else is.
    assert!(one.len() <= acknowledged.len() + refused + asked);
    for copy in &copies {
        copy.run(&["doctor"]).succeeds();
        copy.run(&["memory", "audit", "verify"]).succeeds();
    }
    println!(
        "{} acknowledged, {refused} refused, {} stored",
        acknowledged.len(),
        one.len()
    );
}

#[test]
fn without_its_database_a_copy_writes_nothing_and_says_why() {
    let Some(store) = Store::new() else { return };
    let copy = store.copy(ANN, "support");
    correct(&copy, &["Always name the licence of a nurse."]);
    let before = records(&copy, "");
    let without = |url: &str| {
        let mut command = copy.command();
        command.env_remove("DATABASE_URL");
        if !url.is_empty() {
            command.env("DATABASE_URL", url);
        }
        let ran = command.args(["run", SKILL]).output().unwrap();
        crate::workspace::Ran::of(ran)
    };
    without("").fails(
        6,
        "is stored in a database, and no connection is configured",
    );
    without("postgres://nobody@127.0.0.1:1/none").fails(6, "cannot reach");
    // Another database, and one that is none of ours.
    let other = Store::new().unwrap();
    without(&other.login(ANN)).fails(6, "is not the database of the memory `support`");
    let plain = server().unwrap().database();
    without(&plain.url).fails(6, "has no memctl schema");
    assert_eq!(records(&copy, ""), before);
    // A hint needs no database.
    let mut command = copy.command();
    command.env_remove("DATABASE_URL");
    let hint = command.args([
        "hint",
        "--error",
        "ModuleNotFoundError: No module named 'x'",
    ]);
    assert!(hint.output().unwrap().status.success());

    // Two memories that both hold something are never mixed.
    let mut full = Workspace::sample();
    full.set("DATABASE_URL", &store.login(ANN));
    correct(&full, &["Always list languages with their level."]);
    full.run(&["remote", "join", "support"])
        .fails(2, "records of its own: nothing was changed");
    full.run(&["remote", "join", "no/name"])
        .fails(2, "cannot be the name of a memory");
    full.json(&["sync"]);
    full.run(&["remote", "join", "mine"])
        .fails(2, "this workspace shares its files as");
    let laptop = store.laptop(ANN);
    laptop.json(&["sync"]);
    let shares = laptop.stored("workspace.json")["origin"]
        .as_str()
        .unwrap()
        .to_owned();
    full.run(&["remote", "join", &shares])
        .fails(2, "shares its own files");
    copy.run(&["remote", "join", "other"])
        .fails(2, "is already stored in");
}

#[test]
fn nobody_takes_part_in_a_memory_of_somebody_else() {
    let Some(store) = Store::new() else { return };
    let ann = store.copy(ANN, "support");
    correct(&ann, &["Always name the licence of a nurse."]);
    // The same name is another memory for another user.
    let ben = store.copy(BEN, "support");
    assert_eq!(ids_of(&ben, "reflexions").len(), 0);
    correct(&ben, &["Never reject a candidate for a missing photo."]);
    assert_eq!(ids_of(&ann, "reflexions").len(), 1);
    assert_ne!(ann.stored("workspace.json"), ben.stored("workspace.json"));
    let attempts = [
        "select * from memctl.origins where user_id <> memctl.current_user_id()",
        "select * from memctl.origins where user_id <> memctl.current_user_id() for update",
        "update memctl.origins set tombstone_key = null where user_id <> memctl.current_user_id() returning 1",
    ];
    for attempt in attempts {
        assert_eq!(
            store.ben.run(attempt),
            Vec::<Vec<String>>::new(),
            "{attempt}"
        );
    }
    store
        .ben
        .refused("42501", "update memctl.origins set replica = 'x'");
    store.ben.refused("42501", "delete from memctl.origins");
    store.ben.refused("42501", "select * from memctl.clocks");
    // Whoever listens hears that somebody wrote, and not what.
    let heard = store.database.heard("memctl_written", || {
        correct(&ann, &["Interviews must be offered within five days."]);
    });
    let heard: BTreeSet<String> = heard.into_iter().collect();
    assert_eq!(heard, [ANN.to_owned()].into());
}

#[test]
fn a_database_that_was_put_back_is_followed_and_nothing_is_thrown_away() {
    let Some(store) = Store::new() else { return };
    let copies = [ANN, ANN].map(|user| store.copy(user, "support"));
    correct(
        &copies[0],
        &[
            "Always name the licence of a nurse.",
            "Always list languages.",
        ],
    );
    assert_eq!(ids_of(&copies[1], "reflexions").len(), 2);
    // As from yesterday's backup: the second rule was never there.
    store.database.admin().run(
        "alter table reflexions no force row level security; delete from reflexions where entry_id = 'REFL-002';
         alter table reflexions force row level security;
         alter table memctl.clocks no force row level security; update memctl.clocks set writes = 1;
         alter table memctl.clocks force row level security",
    );
    for copy in &copies {
        assert_eq!(ids_of(copy, "reflexions"), ["REFL-001".to_owned()].into());
        let aside = std::fs::read_dir(copy.memory("recovered")).unwrap();
        let kept = aside.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        assert!(kept.into_iter().any(|text| text.contains("REFL-002")));
    }
    // A damaged copy is made whole from the database.
    std::fs::write(
        copies[1].memory("corrections.json"),
        "{\"corrections\": [{\"corr",
    )
    .unwrap();
    copies[1].run(&["doctor", "--repair"]).succeeds();
    assert_eq!(records(&copies[0], ""), records(&copies[1], ""));
}

#[test]
fn two_servers_are_one_memory() {
    let Some(store) = Store::new() else { return };
    let copies = [ANN, ANN].map(|user| store.copy(user, "served"));
    let servers = copies
        .each_ref()
        .map(|copy| Served::start(copy, &["--rate-limit", "0"]));
    let tokens = copies.each_ref().map(|copy| token(copy, "ann", "*"));
    for n in 0..20 {
        let (here, there) = (n % 2, (n + 1) % 2);
        let id = execution(&servers[here], &tokens[here], SKILL, &format!("mark {n}"));
        // A read at the other one, after the answer, sees it.
        let read = servers[there].get(&tokens[there], "/v1/executions").is(200);
        assert!(read.text.contains(&id), "{read:?}");
    }

    // Many clients at both.
    let posted: BTreeSet<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|n| {
                let (server, token) = (&servers[n % 2], &tokens[n % 2]);
                scope.spawn(move || {
                    (0..10)
                        .map(|m| execution(server, token, SKILL, &format!("{n} {m}")))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|c| c.join().unwrap())
            .collect()
    });
    assert_eq!(posted.len(), 80);
    for copy in &copies {
        assert!(posted.is_subset(&ids_of(copy, "executions")));
    }
    // Without the database nothing is answered from what may be old.
    store.database.close(true);
    let body = json!({ "skill": SKILL, "input": {}, "output": {} });
    for (server, token) in servers.iter().zip(&tokens) {
        for refused in [
            server.get(token, "/v1/executions"),
            server.post(token, "/v1/executions", &body),
        ] {
            assert!(refused.is(503).header("retry-after").is_some());
        }
    }
    store.database.close(false);
    // The database goes away and comes back.
    store.database.admin().run(CUT);
    let id = execution(&servers[0], &tokens[0], SKILL, "after the cut");
    let read = servers[1].get(&tokens[1], "/v1/executions").is(200);
    assert!(read.text.contains(&id), "{read:?}");
}
