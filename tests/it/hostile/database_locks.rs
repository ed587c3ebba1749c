//! A neighbour holds a lock: nothing waits for it without end, and the error says how to find it.

use std::time::{Duration, Instant};

use crate::postgres::{ANN, Client, Store, TABLES};
use crate::workspace::Workspace;

/// Far more than the time limit of a lock, and far less than for ever.
const BOUND: Duration = Duration::from_mins(1);

/// What the error says.
const HELD: &str = "another session holds a lock";

/// A command that has to end with the exit code of the shared store, and to say this.
fn ends(workspace: &Workspace, command: &[&str], said: &[&str]) {
    let begun = Instant::now();
    let ran = workspace.run(command);
    assert!(
        begun.elapsed() < BOUND,
        "{command:?} took {:?}",
        begun.elapsed()
    );
    assert_eq!(ran.code, 6, "{command:?} {ran:?}");
    for said in said {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
}

/// A URL whose sessions wait half a second for a lock, so that the tests need not wait for the usual time.
fn impatient(url: &str) -> String {
    format!("{url}?options=-c%20lock_timeout%3D500")
}

#[test]
fn a_login_cannot_lock_a_table() {
    let Some(store) = Store::new() else { return };
    for table in TABLES.iter().map(|table| format!("public.{table}")).chain(
        [
            "migrations", "logins", "clocks", "origins", "roles", "admin_reads", "token_roles",
        ]
        .map(|table| format!("memctl.{table}")),
    ) {
        for mode in [
            "share", "share row exclusive", "exclusive", "access exclusive",
        ] {
            let lock = format!("begin; lock table {table} in {mode} mode");
            store.ben.refused("42501", &lock);
            store.ben.run("rollback");
        }
    }
    store.ben.refused("42501", "truncate agent_memory");
    // Its own rows it still marks, changes, and lets expire.
    store.ben.run(
        "insert into agent_memory (memory_type, content) values ('task_memory', 'mine');
         update agent_memory set content = 'still mine', expires_at = now() - interval '1 s'",
    );
    assert_eq!(store.ben.value("select memctl.delete_expired()"), "1");
    assert_eq!(store.ben.value("select count(*) from agent_memory"), "0");
}

#[test]
fn no_command_waits_for_ever_for_a_table() {
    let Some(store) = Store::new() else { return };
    let mut laptop = store.laptop(ANN);
    laptop.json(&["run", "hr/resume-screen"]);
    laptop.json(&["sync"]);
    let usual = store.login(ANN);
    laptop.set("MEMCTL_DATABASE_URL", &impatient(&usual));
    // Whoever has more rights than a login of ours: another program of the same database.
    let other = Client::connect(&store.database.url);
    let commands: [&[&str]; 4] = [
        &["remote", "status"],
        &["remote", "check"],
        &["sync"],
        &["memory", "prune", "--remote"],
    ];
    for table in ["corrections", "agent_memory"] {
        other.run(&format!(
            "begin; lock table {table} in access exclusive mode"
        ));
        let touching = |command: &&&[&str]| table == "agent_memory" || command[0] != "memory";
        for command in commands.iter().filter(touching) {
            ends(&laptop, command, &[HELD, "pg_terminate_backend"]);
        }
        other.run("rollback");
    }
    for command in commands {
        laptop.run(command).succeeds();
    }
    // A URL that says nothing of it has the limit too.
    laptop.set("MEMCTL_DATABASE_URL", &usual);
    other.run("begin; lock table executions in access exclusive mode");
    ends(&laptop, &["remote", "status"], &[HELD]);
    other.run("rollback");
    laptop.run(&["remote", "status"]).succeeds();
}

#[test]
fn another_session_of_the_same_user_keeps_a_writer_waiting_for_a_while_and_no_longer() {
    let Some(store) = Store::new() else { return };
    let mut laptop = store.laptop(ANN);
    laptop.set("MEMCTL_DATABASE_URL", &impatient(&store.login(ANN)));
    laptop.json(&["run", "hr/resume-screen"]);
    store.ann.run(
        "begin; insert into corrections (origin, entry_id, entry) values ('o', 'CORR-1', '{}')",
    );
    ends(&laptop, &["sync"], &[HELD]);
    store.ann.run("rollback");
    laptop.run(&["sync"]).succeeds();
}

#[test]
fn the_lock_of_the_schema_can_be_held_by_anybody_and_stops_nobody_for_ever() {
    let Some(store) = Store::new() else { return };
    store
        .ben
        .run("select pg_advisory_lock(hashtext('memctl remote init'))");
    let url = impatient(&store.database.url);
    let init = ["remote", "init", "--url", url.as_str()];
    ends(&store.workspace, &init, &[HELD, "pg_terminate_backend"]);
    let usual = ["remote", "init", "--url", &store.database.url];
    ends(&store.workspace, &usual, &[HELD]);
    store.ben.run("select pg_advisory_unlock_all()");
    store.workspace.run(&init).succeeds();
}
