//! Users of a memory that a server answers for: each is a user of the database, which keeps them apart by itself.

use serde_json::{Value, json};

use super::{ANN, BEN, Client, Store, done};
use crate::serve::own_data::{delete, files_with};
use crate::serve::{Served, token};
use crate::workspace::Workspace;

/// `insufficient_privilege`: a right is missing, or a policy does not allow the row.
const DENIED: &str = "42501";

impl Store {
    /// A copy of the memory `served`, as the server of Ann's login has it.
    pub(crate) fn server(&self) -> Workspace {
        let mut copy = Workspace::sample();
        copy.set("DATABASE_URL", &self.login(ANN));
        copy.run(&["remote", "join", "served"]).succeeds();
        copy
    }

    /// The user in the database of a name in the server's tokens.
    pub(super) fn hosted(&self, sub: &str) -> String {
        self.ann.value(&format!(
            "select user_id from memctl.hosted_users where sub = '{sub}'"
        ))
    }

    /// A session with a login of this user.
    pub(super) fn login_of(&self, name: &str, user_id: &str) -> Client {
        let name = format!("{name}_{}", self.database.number);
        let added = self.workspace.run(&[
            "remote", "user", "add", &name, "--user-id", user_id, "--url", &self.database.url,
            "--json",
        ]);
        Client::connect(done(&added)["url"].as_str().unwrap())
    }
}

fn remember(served: &Served, token: &str, content: &str) -> String {
    let body = json!({ "content": content, "memory_type": "brand_memory" });
    let kept = served.post(token, "/functions/v1/agent-memory-write", &body);
    kept.is(200).json()["memory"]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn contents(client: &Client) -> Vec<String> {
    client
        .run("select content from agent_memory where deleted_at is null order by content")
        .concat()
}

#[test]
fn rows_of_a_token_belong_to_its_user() {
    let Some(store) = Store::new() else { return };
    let server = store.server();
    let http = Served::start(&server, &[]);
    let (ada, bob) = (token(&server, "ada", "*"), token(&server, "bob", "*"));
    remember(&http, &ada, "Ada's voice is calm.");
    let second = remember(&http, &ada, "Ada's second line.");
    remember(&http, &bob, "Bob's voice is loud.");
    server
        .run(&["session", "start", "--user", "ada"])
        .succeeds();
    server
        .run(&[
            "memory", "add", "--type", "brand_memory", "--content", "Everybody's voice.",
        ])
        .succeeds();

    let (ada_id, bob_id) = (store.hosted("ada"), store.hosted("bob"));
    assert!(ada_id != bob_id && ![ANN, BEN].contains(&ada_id.as_str()));
    let (as_ada, as_bob) = (
        store.login_of("ada", &ada_id),
        store.login_of("bob", &bob_id),
    );
    assert_eq!(
        contents(&as_ada),
        ["Ada's second line.", "Ada's voice is calm."]
    );
    assert_eq!(contents(&as_bob), ["Bob's voice is loud."]);
    assert_eq!(contents(&store.ben), [""; 0]);
    // The holder sees all of it, and what names no user is the holder's.
    assert_eq!(contents(&store.ann).len(), 4);
    let own = format!("select content from agent_memory where user_id = '{ANN}'");
    assert_eq!(store.ann.run(&own).concat(), ["Everybody's voice."]);
    let sessions = "select count(*) from agent_sessions";
    assert_eq!(as_ada.value(sessions), "1");
    assert_eq!(as_bob.value(sessions), "0");

    // A user reads the rows, and changes none: the server's copy would not know.
    for table in ["agent_memory", "agent_sessions"] {
        let change = format!("update {table} set skill = 'x/y'");
        assert_eq!(as_ada.changed(&change), Ok(0), "{table}");
        as_ada.refused(DENIED, &format!("delete from {table}"));
    }
    // Nobody writes a row for a user whom they do not hold, or into the hands of another holder.
    let row = |user: &str, holder: &str| {
        format!(
            "insert into agent_memory (user_id, held_by, memory_type, content)
             values ('{user}', '{holder}', 'brand_memory', 'forged')"
        )
    };
    for (who, user, holder) in [
        (&store.ben, ada_id.as_str(), BEN),
        (&store.ben, ada_id.as_str(), ANN),
        (&store.ben, BEN, ANN),
        (&as_bob, ada_id.as_str(), bob_id.as_str()),
        (&as_bob, bob_id.as_str(), ANN),
        (&store.ann, BEN, ANN),
    ] {
        who.refused(DENIED, &row(user, holder));
    }
    for (who, ours) in [(&store.ben, "0"), (&as_ada, "1"), (&store.ann, "2")] {
        assert_eq!(who.value("select count(*) from memctl.hosted_users"), ours);
        let mine = format!("insert into memctl.hosted_users values ('{BEN}', 'x', '{ada_id}')");
        who.refused(DENIED, &mine);
    }
    // The name of a user in tokens of another server is another user.
    let other = store.ben.value("select memctl.host_user('ada')");
    assert_ne!(other, ada_id);

    // Edits and removals stay the user's.
    let content = "content=Ada's edited line.";
    server
        .run(&["memory", "edit", &second, "--set", content])
        .succeeds();
    assert_eq!(
        contents(&as_ada),
        ["Ada's edited line.", "Ada's voice is calm."]
    );
    server.run(&["memory", "forget", &second]).succeeds();
    assert_eq!(contents(&as_ada), ["Ada's voice is calm."]);
    assert_eq!(
        as_ada.value("select count(*) from agent_memory where content like '%edited%'"),
        "0"
    );
    // Vectors come by `sync`, for the rows of all users, and a user's own search finds them.
    server.run(&["sync"]).succeeds();
    let found = |client: &Client| {
        let sql = "select content from match_memory(
            (select embedding from agent_memory where embedding is not null limit 1), -1)";
        client.run(sql).concat()
    };
    assert_eq!(found(&as_ada), ["Ada's voice is calm."]);
    assert_eq!(found(&as_bob), ["Bob's voice is loud."]);
    assert_eq!(found(&store.ben), [""; 0]);
    // A second server has the same users.
    let second = store.server();
    let again = Served::start(&second, &[]);
    remember(&again, &token(&second, "bob", "*"), "Bob's other line.");
    assert_eq!(store.hosted("bob"), bob_id);
    assert_eq!(
        contents(&as_bob),
        ["Bob's other line.", "Bob's voice is loud."]
    );
    let read = json!({ "query": "voice", "match_threshold": -1 });
    let read = http
        .post(&bob, "/functions/v1/agent-memory-read", &read)
        .is(200)
        .json();
    let mut texts: Vec<&str> = read["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    texts.sort_unstable();
    assert_eq!(texts, ["Bob's other line.", "Bob's voice is loud."]);
    assert_eq!(server.run(&["remote", "check"]).code, 0);
    server
        .run(&["memory", "purge", "--yes", "--user", "bob"])
        .succeeds();
    assert_eq!(contents(&as_bob), [""; 0]);
    assert_eq!(contents(&as_ada), ["Ada's voice is calm."]);
}

fn text(row: &Value) -> &str {
    row["content"].as_str().unwrap()
}

#[test]
fn an_existing_user_is_named_by_id_only_by_those_who_verify_tokens() {
    let Some(store) = Store::new() else { return };
    let server = store.server();
    let write = |content: &str| {
        let add = [
            "memory", "add", "--type", "brand_memory", "--user", BEN, "--content", content,
        ];
        server.run(&add).succeeds();
    };
    write("Not for the real Ben.");
    assert_ne!(store.hosted(BEN), BEN);
    assert_eq!(contents(&store.ben), [""; 0]);

    let admin = store.database.admin();
    admin.run("delete from memctl.hosted_users");
    admin.run(&format!(
        "insert into memctl.token_roles select role_name from memctl.logins where user_id = '{ANN}'"
    ));
    write("For the real Ben.");
    assert_eq!(store.hosted(BEN), BEN);
    assert_eq!(contents(&store.ben), ["For the real Ben."]);
    // Two sessions that name somebody for the first time at once name one user.
    let other = store.login_of("twin", ANN);
    let host = "select memctl.host_user('twin')";
    let first = std::thread::scope(|scope| {
        store.ann.run("begin");
        let first = store.ann.value(host);
        let second = scope.spawn(|| other.value(host));
        std::thread::sleep(std::time::Duration::from_millis(200));
        store.ann.run("commit");
        assert_eq!(second.join().unwrap(), first);
        first
    });
    assert_eq!(store.hosted("twin"), first);
    // An id that nobody has is a name like any other.
    let unknown = "cccccccc-0000-4000-8000-00000000000c";
    assert_ne!(
        store
            .ann
            .value(&format!("select memctl.host_user('{unknown}')")),
        unknown
    );
}

#[test]
fn rows_that_were_shared_by_files_keep_their_users_in_a_joined_memory() {
    let Some(store) = Store::new() else { return };
    let mut server = Workspace::sample();
    server.set("DATABASE_URL", &store.login(ANN));
    let add = |user: &str, content: &str| {
        let add = [
            "memory", "add", "--type", "brand_memory", "--user", user, "--content", content,
        ];
        server.run(&add).succeeds();
    };
    add("ada", "Shared by files first.");
    server.run(&["sync", "push"]).succeeds();
    let owner = "select user_id from agent_memory";
    assert_eq!(store.ann.value(owner), store.hosted("ada"));
    server
        .run(&["remote", "join", "served"])
        .fails(2, "shares its files as");
    let identity = server.stored("workspace.json")["origin"]
        .as_str()
        .unwrap()
        .to_owned();
    server.run(&["remote", "join", &identity]).succeeds();
    assert_eq!(store.ann.value(owner), store.hosted("ada"));
    add("ada", "Written since.");
    let users = "select count(distinct user_id) from agent_memory";
    assert_eq!(store.ann.value(users), "1");
}

#[test]
fn record_deleted_over_http_is_removed_from_the_database_and_every_copy() {
    let Some(store) = Store::new() else { return };
    let (one, two) = (store.server(), store.server());
    let served = Served::start(&one, &[]);
    let (ada, bob) = (token(&one, "ada", "*"), token(&one, "bob", "*"));
    let id = remember(&served, &ada, "Ada likes saffron.");
    remember(&served, &bob, "Bob likes copper.");
    let session = one.json(&["session", "start", "--user", "ada", "--step", "saffron"]);
    let session = session["session_id"].as_str().unwrap();
    // The other copy has a journal and a log of its own.
    two.json(&[
        "memory",
        "edit",
        &id,
        "--set",
        "content=Ada likes saffron most.",
    ]);
    two.json(&[
        "session", "log", session, "--user", "ada", "--step", "saffron", "--action", "decision",
        "--status", "success",
    ]);
    one.json(&["sync"]);
    two.json(&["memory", "search", "saffron"]);
    let admin = store.database.admin();
    let rows = "select (select count(*) from agent_memory t where t::text ~ 'saffron')
        + (select count(*) from agent_sessions t where t::text ~ 'saffron')";
    assert_eq!(admin.value(rows), "2");
    assert!(files_with(&two, "saffron").len() > 2);
    let vectors = "select count(*) from agent_memory where embedding is not null";
    assert_eq!(admin.value(vectors), "2");

    let reply = delete(&served, &ada, "?confirm=ada").is(200).json();
    assert_eq!(reply["records"], json!({ "memories": 1, "sessions": 1 }));
    assert_eq!(admin.value(rows), "0");
    assert_eq!(admin.value(vectors), "1");
    assert_eq!(files_with(&one, "saffron"), [""; 0]);
    // The other copy hears of it with its next call.
    two.json(&["memory", "search", "copper"]);
    assert_eq!(files_with(&two, "saffron"), [""; 0]);
    assert_eq!(
        two.json(&["memory", "list", "memories"])["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    two.run(&["doctor"]).succeeds();
}

#[test]
fn user_who_is_off_at_one_server_is_off_at_every_other() {
    let Some(store) = Store::new() else { return };
    let (one, two) = (store.server(), store.server());
    let (first, second) = (Served::start(&one, &[]), Served::start(&two, &[]));
    let (at_first, at_second) = (token(&one, "ada", "*"), token(&two, "ada", "*"));
    remember(&first, &at_first, "Ada's voice is calm.");
    let read = json!({ "query": "voice", "match_threshold": -1 });
    let read = |status: u16| {
        second
            .post(&at_second, "/functions/v1/agent-memory-read", &read)
            .is(status);
        second
            .post(
                &token(&two, "bob", "*"),
                "/functions/v1/agent-memory-read",
                &read,
            )
            .is(200);
    };
    read(200);
    first
        .post(&at_first, "/v1/users/me/disable", &json!({}))
        .is(200);
    read(403);
    let ada = store.login_of("ada", &store.hosted("ada"));
    let listed = "select sub || ' ' || is_disabled from memctl.disabled_users";
    assert_eq!(ada.value(listed), "ada true");
    ada.refused(DENIED, "update memctl.disabled_users set sub = 'bob'");
    assert_eq!(
        ada.changed("update memctl.disabled_users set is_disabled = false"),
        Ok(0)
    );
    assert_eq!(store.ben.run(listed).len(), 0);
    // A copy that joins later has the list, too, and the command line switches the same.
    let three = store.server();
    three
        .run(&["memory", "list", "--user", "ada"])
        .fails(2, "disabled for the user");
    three.run(&["memory", "enable", "--user", "ada"]).succeeds();
    read(200);
    // A memory takes its list along to the database.
    let mut laptop = Workspace::sample();
    laptop.run(&["init"]).succeeds();
    laptop
        .run(&["memory", "disable", "--user", "carl"])
        .succeeds();
    laptop.set("DATABASE_URL", &store.login(BEN));
    laptop.run(&["remote", "join", "other"]).succeeds();
    laptop
        .run(&["memory", "list", "--user", "carl"])
        .fails(2, "disabled for the user");
    assert_eq!(one.run(&["remote", "check"]).code, 0);
}
