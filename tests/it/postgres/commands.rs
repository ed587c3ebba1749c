//! `remote init`, `user add`, `check` and `status`, as somebody types them.

use serde_json::json;

use super::{ANN, Client, PASSWORD, Store, TABLES, done, sample, server};
use crate::workspace::Workspace;

#[test]
fn a_database_is_prepared_once_and_a_user_finds_it_sound() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut workspace = Workspace::empty();
    let first = workspace.json(&["remote", "init", "--url", &database.url]);
    assert_eq!(
        json!(first["applied"].as_array().unwrap().len()),
        first["schema"],
        "{first}"
    );
    let again = workspace.json(&["remote", "init", "--url", &database.url]);
    assert_eq!(
        (&again["applied"], &again["schema"]),
        (&json!([]), &first["schema"])
    );

    let name = format!("eve_{}", database.number);
    let added = workspace.json(&["remote", "user", "add", &name, "--url", &database.url]);
    let url = added["url"].as_str().unwrap().to_owned();
    let password = url.split([':', '@']).nth(2).unwrap().to_owned();
    assert!(password.len() >= 60, "{added}");
    workspace.set("DATABASE_URL", &url);
    let checked = workspace.json(&["remote", "check"]);
    assert_eq!(
        (&checked["passed"], &checked["user_id"]),
        (&json!(true), &added["user_id"])
    );
    assert!(
        checked["checks"].as_array().unwrap().len() >= 11,
        "{checked}"
    );

    // The proof leaves nothing behind.
    let status = workspace.json(&["remote", "status"]);
    for (table, count) in TABLES.iter().zip(status["tables"].as_array().unwrap()) {
        assert_eq!(count, &json!({"table": table, "rows": 0}));
    }
    Client::connect(&url).run(&sample("reflexions", added["user_id"].as_str().unwrap()));
    let status = workspace.json(&["remote", "status"]);
    assert_eq!(
        status["tables"][2],
        json!({"table": "reflexions", "rows": 1})
    );

    // The variable of this program's own wins.
    workspace.set("MEMCTL_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none");
    workspace
        .run(&["remote", "status"])
        .fails(6, "cannot reach `127.0.0.1:1/none`");

    // The page for people has the URL whole; the server has never seen the password.
    let name = format!("fay_{}", database.number);
    let ran = workspace.run(&["remote", "user", "add", &name, "--url", &database.url]);
    let line = ran
        .succeeds()
        .stdout
        .lines()
        .find(|line| line.starts_with("postgres://"));
    assert_eq!(
        Client::connect(line.unwrap()).value("select count(*) from reflexions"),
        "0"
    );
    assert!(
        server.log().contains("create role"),
        "the log holds statements"
    );
    assert!(!server.log().contains(&password));
}

#[test]
fn machines_of_one_user_see_the_same() {
    let Some(store) = Store::new().map(Store::filled) else {
        return;
    };
    let name = format!("ann_laptop_{}", store.database.number);
    let url = &store.database.url;
    let added = store.workspace.json(&[
        "remote", "user", "add", &name, "--user-id", ANN, "--url", url,
    ]);
    let laptop = Client::connect(added["url"].as_str().unwrap());
    assert_eq!(laptop.value("select count(*) from agent_memory"), "1");
    // The same name again is refused.
    let ran = store
        .workspace
        .run(&["remote", "user", "add", &name, "--url", url]);
    ran.fails(2, &format!("the login `memctl_{name}` exists already"));
    // Who leaves loses what was theirs, and their logins are nobody's.
    store
        .database
        .admin()
        .run(&format!("delete from auth.users where id = '{ANN}'"));
    assert_eq!(laptop.value("select memctl.current_user_id()"), "∅");
    let admin = store.database.admin();
    for table in TABLES {
        assert_eq!(
            admin.value(&format!("select count(*) from {table}")),
            "0",
            "{table}"
        );
    }
}

#[test]
fn a_password_is_said_to_nobody() {
    let Some(server) = server() else { return };
    let database = server.database();
    let workspace = Workspace::empty();
    let wrong = database.url.replace(PASSWORD, "hunter2hunter2");
    let nowhere = "postgres://ann:hunter2hunter2@127.0.0.1:1/memory";
    let no_tls = format!("{wrong}?sslmode=require");
    let odd = format!("{wrong}?sslmode=hunter2hunter2");
    let no_database = format!("{wrong}x");
    for (url, code, said) in [
        (wrong.as_str(), 6, "refuses the login"),
        (nowhere, 6, "cannot reach `127.0.0.1:1/memory`"),
        (&no_tls, 6, "TLS"),
        (&odd, 2, "sslmode"),
        (&no_database, 6, "refuses the login"),
        ("hunter2hunter2", 2, "postgres://user@host/name"),
    ] {
        for command in [
            &["remote", "status", "-v"][..],
            &["remote", "check"],
            &["remote", "init"],
            &["remote", "user", "add", "ann"],
            &["remote", "status", "--json"],
        ] {
            let ran = workspace.run(&[command, &["--url", url]].concat());
            let text = format!("{}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.code, code, "{command:?} {ran:?}");
            assert!(text.contains(said), "{said}: {ran:?}");
            let secret = text.replace("sslmode=hunter2hunter2", "");
            assert!(!secret.contains("hunter2"), "{ran:?}");
        }
    }
    workspace
        .run(&["remote", "status"])
        .fails(2, "no database URL");
    assert!(!workspace.root().join(".agentura").exists());
}

#[test]
fn an_administrator_need_not_be_a_superuser() {
    let Some(server) = server() else { return };
    let database = server.database();
    let role = format!("keeper_{}", database.number);
    let admin = database.admin();
    admin.run(&format!(
        "create role {role} login createrole password '{PASSWORD}';
         alter database {} owner to {role};
         create extension vector",
        admin.value("select current_database()")
    ));
    // The groups are there already from another database of the server, and are not this role's own.
    admin.run(&format!(
        "do $$ begin create role memctl_user; exception when duplicate_object or unique_violation then null; end $$;
         do $$ begin create role memctl_definer; exception when duplicate_object or unique_violation then null; end $$;
         grant memctl_user, memctl_definer to {role} with admin option"
    ));
    let url = database.url_of(&role);
    let workspace = Workspace::empty();
    done(&workspace.run(&["remote", "init", "--json", "--url", &url]));
    let name = format!("gus_{}", database.number);
    let added = workspace.json(&["remote", "user", "add", &name, "--url", &url]);
    let user = added["url"].as_str().unwrap();
    let checked = workspace.json(&["remote", "check", "--url", user]);
    assert_eq!(checked["passed"], json!(true), "{checked}");
    // Not even the owner of the tables sees what is in them.
    Client::connect(user).run(&sample("agent_memory", added["user_id"].as_str().unwrap()));
    let keeper = Client::connect(&url);
    assert_eq!(keeper.value("select count(*) from agent_memory"), "0");
    assert_eq!(keeper.changed("delete from agent_memory"), Ok(0));
    keeper.run("select cleanup_expired_memory()");
    let ran = workspace.run(&["remote", "check", "--url", &url]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("failed owner"), "{ran:?}");
}

/// A regular expression that counts to a length costs as much as the rest of a row.
#[test]
fn names_are_checked_by_characters_and_length() {
    let Some(store) = Store::new() else { return };
    let counting =
        "select count(*) from pg_constraint where pg_get_constraintdef(oid) like '%]{0,%'";
    assert_eq!(store.database.admin().value(counting), "0");
    let insert = |origin: &str, id: &str| {
        format!(
            "insert into corrections (user_id, origin, entry_id, entry) values ('{ANN}', '{origin}', '{id}', '{{}}')"
        )
    };
    let long = |length: usize| "x".repeat(length);
    store.ann.run(&insert("a.B_c-1", "CORR-001"));
    store.ann.run(&insert(&long(64), &long(128)));
    for (origin, id) in [
        ("", "CORR-001"),
        ("-a", "CORR-001"),
        ("a b", "CORR-001"),
        ("a\n", "CORR-001"),
        (&long(65), "CORR-001"),
        ("a", ""),
        ("a", ".a"),
        ("a", "a/b"),
        ("a", "é"),
        ("a", &long(129)),
    ] {
        store.ann.refused("23514", &insert(origin, id));
    }
}
