//! A login is removed and its name is taken again: the new one is not the old one.

use crate::postgres::server::PASSWORD;
use crate::postgres::{ANN, Client, Store};

#[test]
fn a_login_that_was_removed_is_not_inherited() {
    let Some(store) = Store::new() else { return };
    let admin = store.database.admin();
    let (name, url) = (
        format!("kim_{}", store.database.number),
        &store.database.url,
    );
    let role = format!("memctl_{name}");
    let secret = "select coalesce(string_agg(content, ' '), 'nothing') from agent_memory";
    let add = |rest: &[&str]| {
        let command = [&["remote", "user", "add", &name, "--url", url][..], rest].concat();
        let added = store.workspace.json(&command);
        let url = added["url"].as_str().unwrap().to_owned();
        (added, Client::connect(&url), url)
    };
    let (first, kim, _) = add(&["--user-id", ANN]);
    kim.run("insert into agent_memory (memory_type, content) values ('task_memory', 'of ann')");
    drop(kim);
    assert_eq!(first["warnings"], serde_json::json!([]));

    // A role of the same name is nobody, whoever makes it.
    admin.run(&format!(
        "drop role {role}; create role {role} login password '{PASSWORD}'; grant memctl_user to {role}"
    ));
    let stranger = Client::connect(&store.database.url_of(&role));
    assert_eq!(stranger.value("select memctl.current_user_id()"), "∅");
    assert_eq!(stranger.value(secret), "nothing");
    drop(stranger);
    let ran = store.workspace.run(&[
        "remote",
        "status",
        "--url",
        &store.database.url_of(&role),
        "--json",
    ]);
    assert_eq!(
        ran.document()["user_id"],
        serde_json::Value::Null,
        "{ran:?}"
    );

    // `user add` makes a new user of it, and says whose login it was.
    admin.run(&format!("drop role {role}"));
    let (second, kim, url) = add(&[]);
    assert_ne!(second["user_id"], first["user_id"]);
    let warning = second["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains(ANN) && warning.contains("--user-id"),
        "{warning}"
    );
    assert_eq!(kim.value(secret), "nothing");
    drop(kim);
    assert_eq!(store.check(&url).0, 0);

    // Whoever asks for the same user gets it.
    admin.run(&format!("drop role {role}"));
    let (third, kim, _) = add(&["--user-id", ANN]);
    assert_eq!(third["user_id"], ANN);
    assert_eq!(kim.value(secret), "of ann");

    // As after a database was restored on another server, where roles have other numbers.
    admin.run(&format!(
        "alter table memctl.logins disable trigger memctl_bind_login;
         update memctl.logins set role_oid = 1 where role_name = '{role}';
         alter table memctl.logins enable trigger memctl_bind_login"
    ));
    assert_eq!(kim.value(secret), "nothing");
    admin.run("update memctl.logins set role_name = role_name");
    assert_eq!(kim.value(secret), "of ann");
}
