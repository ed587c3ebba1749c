//! `PgBouncer` in front of the server: in session mode all works, transaction mode is refused by name.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::server::user;
use super::{ANN, Client, Store};
use crate::support::{EVER, free_port, skipped};
use crate::workspace::Workspace;

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running pooler; it ends with the test.
struct Pooler {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Pooler {
    /// `None`, and said so, where there is no `PgBouncer`. Logs the role of this URL in.
    fn start(store: &Store, mode: &str, url: &str) -> Option<Self> {
        if !Path::new(PROGRAM).is_file() {
            skipped("what a pooler does: no PgBouncer here");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let (role, password) = login(url);
        let users = directory.path().join("users.txt");
        fs::write(&users, format!("\"{role}\" \"{password}\"\n")).unwrap();
        let settings = directory.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\n\
             pool_mode = {mode}\nignore_startup_parameters = extra_float_digits,options\n\
             logfile = {}\ndefault_pool_size = 8\n",
            store.database.port(),
            users.display(),
            directory.path().join("log").display(),
        );
        fs::write(&settings, text).unwrap();
        if super::server::is_root() {
            // Another user reads it then.
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        }
        let child = user(PROGRAM, directory.path())
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pooler = Self {
            child,
            port,
            _directory: directory,
        };
        let url = pooler.url(store, url);
        let begun = Instant::now();
        while Client::try_connect(&url).is_err() {
            assert!(begun.elapsed() < EVER, "no pooler");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(pooler)
    }

    /// The URL of a login through the pooler.
    fn url(&self, store: &Store, url: &str) -> String {
        url.replace(
            &format!(":{}/", store.database.port()),
            &format!(":{}/", self.port),
        )
    }
}

/// Role and password of a URL.
fn login(url: &str) -> (String, String) {
    let (_, rest) = url.split_once("://").unwrap();
    let (login, _) = rest.split_once('@').unwrap();
    let (role, password) = login.split_once(':').unwrap();
    (role.to_owned(), password.to_owned())
}

fn laptop(url: &str) -> Workspace {
    let mut laptop = Workspace::sample();
    laptop.set("DATABASE_URL", url);
    laptop.run(&["init"]).succeeds();
    laptop
}

/// The ids of memories in the database.
fn ids(store: &Store) -> String {
    store
        .ann
        .value("select string_agg(entry_id, ' ' order by entry_id) from agent_memory")
}

fn add(laptop: &Workspace, content: &str) {
    laptop.json(&[
        "memory", "add", "--type", "task_memory", "--content", content,
    ]);
}

#[test]
fn everything_works_through_a_pooler_in_session_mode() {
    let Some(store) = Store::new() else { return };
    let login = store.login(ANN);
    let Some(pooler) = Pooler::start(&store, "session", &login) else {
        return;
    };
    let laptop = laptop(&pooler.url(&store, &login));
    laptop.run(&["remote", "check"]).succeeds();
    add(&laptop, "Ship on Friday.");
    laptop.json(&["sync"]);
    assert_eq!(ids(&store), "MEM-001");
    let own = laptop.json(&["memory", "status"]);
    assert_eq!(own["store"], "CompositeStore");
    let origin = laptop.stored("workspace.json")["origin"].clone();
    laptop.json(&["remote", "join", origin.as_str().unwrap()]);
    add(&laptop, "Call on Monday.");
    assert_eq!(ids(&store), "MEM-001 MEM-002");
    let found = laptop.json(&["search", "Monday"]);
    assert_eq!(found["results"][0]["id"], "MEM-002");
}

#[test]
fn pooler_in_transaction_mode_is_named_and_loses_nothing() {
    let Some(store) = Store::new() else { return };
    let login = store.login(ANN);
    let Some(pooler) = Pooler::start(&store, "transaction", &login) else {
        return;
    };
    let url = pooler.url(&store, &login);
    let checked = laptop(&url).run(&["remote", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stdout.contains("failed sessions"), "{checked:?}");
    // Several at once get each other's sessions. Each sync says why not, and is done later.
    let laptops: Vec<Workspace> = (0..4).map(|_| laptop(&url)).collect();
    let refused: usize = std::thread::scope(|scope| {
        let syncing: Vec<_> = laptops
            .iter()
            .map(|laptop| {
                scope.spawn(|| {
                    let mut refused = 0;
                    for _ in 0..6 {
                        add(laptop, "Ship on Friday.");
                        let ran = laptop.run(&["sync", "--json"]);
                        if ran.code != 0 {
                            assert_eq!(ran.code, 6, "{ran:?}");
                            assert!(ran.stdout.contains("pooler in transaction mode"), "{ran:?}");
                            refused += 1;
                        }
                    }
                    refused
                })
            })
            .collect();
        syncing.into_iter().map(|one| one.join().unwrap()).sum()
    });
    // One that happens to be alone keeps its session, and is done.
    assert!(refused > 0);
    for mut laptop in laptops {
        laptop.set("DATABASE_URL", &login);
        laptop.json(&["sync"]);
        let own = laptop.stored("memories.json")["entries"]
            .as_array()
            .unwrap()
            .len();
        let origin = laptop.stored("workspace.json")["origin"].clone();
        let sent = format!(
            "select count(*) from agent_memory where origin = '{}'",
            origin.as_str().unwrap()
        );
        assert_eq!(store.ann.value(&sent), own.to_string());
    }
}
