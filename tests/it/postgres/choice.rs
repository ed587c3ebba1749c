//! `DATABASE_URL` chooses the store, as the source document says, and nothing of another program is touched.

use std::time::{Duration, Instant};

use super::{ANN, Store, server};
use crate::workspace::{Ran, Workspace};

const SKILL: &str = "hr/resume-screen";
const COUNT: &str = "select count(*) from executions";

/// A project whose environment names this database, and whose settings say nothing of a store.
fn project(url: &str) -> Workspace {
    let mut project = Workspace::sample();
    project.set("DATABASE_URL", url).set("MEMCTL_STORE", "auto");
    project
}

#[track_caller]
fn run(project: &Workspace) -> Ran {
    let ran = project.run(&["run", SKILL, "--input", "fixtures/sample_input.json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

fn store_of(project: &Workspace) -> (String, String) {
    let status = project.json(&["memory", "status"]);
    let text = |name: &str| status[name].as_str().unwrap().to_owned();
    (text("store"), text("store_reason"))
}

#[test]
fn a_database_of_ours_is_chosen_by_the_first_command_which_says_so() {
    let Some(store) = Store::new() else { return };
    let one = project(&store.login(ANN));
    let first = run(&one);
    assert!(
        first.stderr.contains("this memory is kept in 127.0.0.1")
            && first.stderr.contains("as `project`"),
        "{first:?}"
    );
    assert_eq!(store.ann.value(COUNT), "1");
    let second = run(&one);
    assert!(!second.stderr.contains("is kept in"), "{second:?}");
    assert_eq!(store.ann.value(COUNT), "2");
    assert_eq!(store_of(&one).0, "PgStore");
    // Another machine finds it with its first question.
    let other = project(&store.login(ANN));
    let listed = other.json(&["list", "executions"]);
    assert_eq!(listed["total"], 2, "{listed}");
    // A question creates nothing where nothing is, and the status says what the first record will find.
    let Some(empty) = Store::new() else { return };
    let asked = project(&empty.login(ANN));
    let (kind, reason) = store_of(&asked);
    assert!(
        kind == "PgStore" && reason.contains("the first record begins the memory `project`"),
        "{kind}: {reason}"
    );
    assert_eq!(asked.json(&["list", "executions"])["total"], 0);
    assert!(!asked.memory("workspace.json").exists());
    // `--store json` and the setting choose files.
    let files = project(&empty.login(ANN));
    files.run(&["run", SKILL, "--store", "json"]).succeeds();
    assert_eq!(empty.ann.value(COUNT), "0");
    assert_eq!(store_of(&files).0, "JSONStore");
    // So does who shares them by git.
    let shared = project(&empty.login(ANN));
    let mut git = std::process::Command::new("git");
    git.args(["init", "-q"]).current_dir(shared.root());
    assert!(git.status().unwrap().success());
    shared.run(&["init", "--git"]).succeeds();
    let said = run(&shared).stderr;
    assert!(!said.contains("DATABASE_URL"), "{said}");
    assert_eq!(empty.ann.value(COUNT), "0");
    let (kind, reason) = store_of(&shared);
    assert!(
        kind == "JSONStore" && reason.contains("git shares these files (`.gitattributes`)"),
        "{kind}: {reason}"
    );
}

#[test]
fn records_in_files_stay_there_and_every_command_says_so() {
    let Some(store) = Store::new() else { return };
    let mut laptop = Workspace::sample();
    drop(run(&laptop));
    laptop
        .set("DATABASE_URL", &store.login(ANN))
        .set("MEMCTL_STORE", "auto");
    let said = run(&laptop).stderr;
    assert!(
        said.contains("this memory is in files") && said.contains("`memctl sync` shares it"),
        "{said}"
    );
    assert_eq!(store.ann.value(COUNT), "0");
    assert_eq!(store_of(&laptop).0, "JSONStore");
    // Shared, it is the composite store, of which nothing more is said.
    laptop.run(&["sync"]).succeeds();
    assert_eq!(store.ann.value(COUNT), "2");
    let said = run(&laptop).stderr;
    assert!(!said.contains("DATABASE_URL"), "{said}");
    assert_eq!(store_of(&laptop).0, "CompositeStore");
    // Who demands the database gets it, with the records.
    let mut moved = Workspace::sample();
    drop(run(&moved));
    moved
        .set("DATABASE_URL", &store.login(ANN))
        .set("MEMCTL_STORE", "postgres");
    // A question moves nothing.
    let (kind, _) = store_of(&moved);
    moved.run(&["session", "list"]).succeeds();
    assert_eq!(
        (kind.as_str(), store.ann.value(COUNT)),
        ("JSONStore", "2".to_owned())
    );
    drop(run(&moved));
    assert_eq!(store_of(&moved).0, "PgStore");
    assert_eq!(store.ann.value(COUNT), "4");
    // `--store json` shows the files of the copy, and writes nothing that the database would not have.
    let files = |command: &[&str]| moved.run(&[&["--store", "json"], command].concat());
    let status = files(&["memory", "status", "--json"]).document();
    assert_eq!(
        (&status["store"], &status["executions"]),
        (&"JSONStore".into(), &2.into())
    );
    store
        .database
        .admin()
        .run("alter table executions rename to elsewhere");
    assert_eq!(
        files(&["list", "executions", "--json"]).document()["total"],
        2
    );
    store
        .database
        .admin()
        .run("alter table elsewhere rename to executions");
    files(&["run", SKILL]).fails(6, "memctl remote leave");
}

#[test]
fn a_directory_that_joins_unasked_is_told_what_is_there() {
    let Some(store) = Store::new() else { return };
    let one = project(&store.login(ANN));
    let first = run(&one);
    assert!(!first.stderr.contains("already"), "{first:?}");
    let stranger = project(&store.login(ANN));
    let said = stranger.run(&["memory", "status"]).stderr;
    assert!(
        said.contains("`project` has 1 record already, and was begun by the workspace"),
        "{said}"
    );
    // The way out that it names.
    stranger.run(&["remote", "leave"]).succeeds();
    stranger.run(&["memory", "purge", "--yes"]).succeeds();
    stranger.run(&["remote", "join", "another"]).succeeds();
    assert_eq!(stranger.json(&["list", "executions"])["total"], 0);
    assert_eq!(store.ann.value(COUNT), "1");
}

#[test]
fn a_database_without_our_schema_is_named_once_and_not_touched() {
    let Some(server) = server() else { return };
    let database = server.database();
    let admin = database.admin();
    admin.run("create table invoices (id int primary key)");
    let said = "which has no memctl schema, so records are kept in files";
    let project = project(&database.url);
    let first = run(&project);
    assert!(
        first.stderr.matches(said).count() == 1
            && first
                .stderr
                .contains("`memctl remote init --url ADMIN_URL`"),
        "{first:?}"
    );
    for command in [
        &["run", SKILL][..],
        &["list", "executions"],
        &["search", "design"],
    ] {
        let ran = project.run(command);
        assert!(
            ran.code == 0 && !ran.stderr.contains("DATABASE_URL"),
            "{ran:?}"
        );
    }
    // In a directory that is new, it is said again, whatever the command.
    for command in [&["list", "executions"][..], &["-q", "search", "design"]] {
        let mut other = Workspace::sample();
        other
            .set("DATABASE_URL", &database.url)
            .set("MEMCTL_STORE", "auto")
            .set(
                "XDG_STATE_HOME",
                project.state().parent().unwrap().to_str().unwrap(),
            );
        let ran = other.run(command);
        assert!(ran.code == 0 && ran.stderr.contains(said), "{ran:?}");
    }
    let (store, reason) = store_of(&project);
    assert!(
        store == "JSONStore" && reason.contains("which has no memctl schema"),
        "{store}: {reason}"
    );
    let tables = "select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'";
    assert_eq!(admin.value(tables), "1");
    project
        .run(&["run", SKILL, "--store", "postgres"])
        .fails(6, "has no memctl schema");
    // As soon as it is ours, it is chosen: a login of an administrator is no user of it.
    project
        .run(&["remote", "init", "--url", &database.url])
        .succeeds();
    let (_, reason) = store_of(&project);
    assert!(reason.contains("cannot be used"), "{reason}");
}

#[test]
fn a_database_that_does_not_answer_is_said_once_it_was_ours_and_nobody_waits_twice() {
    // Nothing listens there, and of `DATABASE_URL` nobody knows whose it is: the first command says it.
    let mut unknown = project("postgres://ann@127.0.0.1:1/shop");
    let ran = run(&unknown);
    assert_eq!(
        ran.stderr
            .matches("`DATABASE_URL` names a database that cannot be used")
            .count(),
        1,
        "{ran:?}"
    );
    let ran = run(&unknown);
    assert!(!ran.stderr.contains("DATABASE_URL"), "{ran:?}");
    let (store, reason) = store_of(&unknown);
    assert!(
        store == "JSONStore" && reason.contains("cannot be used"),
        "{store}: {reason}"
    );
    unknown
        .set("MEMCTL_DATABASE_URL", "postgres://ann@127.0.0.1:1/memory")
        .set("MEMCTL_STORE", "auto");
    let ran = run(&unknown);
    assert!(
        ran.stderr.contains("so records are kept in files"),
        "{ran:?}"
    );
    unknown
        .run(&["run", SKILL, "--store", "postgres"])
        .fails(6, "cannot reach");
    // A host that swallows packets costs two seconds an hour.
    let Ok(silent) = std::net::TcpListener::bind("127.0.0.1:0") else {
        return;
    };
    let port = silent.local_addr().unwrap().port();
    let slow = project(&format!("postgres://ann:secret@127.0.0.1:{port}/shop"));
    drop(run(&slow));
    let begun = Instant::now();
    drop(run(&slow));
    assert!(
        begun.elapsed() < Duration::from_millis(1_900),
        "{:?}",
        begun.elapsed()
    );
    let known = std::fs::read_to_string(slow.state().join("databases.json")).unwrap();
    assert!(!known.contains("secret"), "{known}");
}
