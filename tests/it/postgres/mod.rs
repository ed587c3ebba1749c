//! The shared store on a real server: its commands, the isolation of its users, and its search.
//!
//! Without a server these tests say "skipped: …" (`server`).
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod audit;
mod choice;
pub(crate) mod client;
mod clients;
mod commands;
mod crashes;
mod foreign;
mod hosted;
mod isolation;
mod logs;
mod other_programs;
mod pooler;
mod primary;
mod rates;
mod sabotage;
mod search;
pub(crate) mod server;
mod sql;
mod supabase;
mod sync;
mod tls;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::workspace::{Ran, Workspace};
pub(crate) use client::Client;
use server::{Database, PASSWORD, Server, server};

/// The tables with rows of all users.
pub(crate) const TABLES: [&str; 7] = [
    "executions", "corrections", "reflexions", "context_eng_memories", "agent_memory",
    "agent_sessions", "agent_execution_logs",
];

/// Two users and an administrator of their own database.
pub(crate) const ANN: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
pub(crate) const BEN: &str = "bbbbbbbb-0000-4000-8000-00000000000b";

/// A prepared database with two users, made by the commands.
pub(crate) struct Store {
    pub(crate) database: Database,
    pub(crate) workspace: Workspace,
    pub(crate) ann: Client,
    pub(crate) ben: Client,
}

impl Store {
    /// `None` where there is no server.
    pub(crate) fn new() -> Option<Self> {
        server().map(Self::of)
    }

    /// A prepared database of this server.
    pub(crate) fn of(server: &Server) -> Self {
        let database = server.database();
        let workspace = Workspace::empty();
        workspace.json(&["remote", "init", "--url", &database.url]);
        let add = |name: &str, id: &str| {
            let name = format!("{name}_{}", database.number);
            let command = [
                "remote", "user", "add", &name, "--user-id", id, "--url", &database.url,
            ];
            Client::connect(workspace.json(&command)["url"].as_str().unwrap())
        };
        Self {
            ann: add("ann", ANN),
            ben: add("ben", BEN),
            database,
            workspace,
        }
    }

    /// A new role of the server with the common password, unknown to the store.
    pub(crate) fn role(&self, name: &str, rest: &str) -> String {
        let role = format!("{name}_{}", self.database.number);
        let create = format!("create role {role} login password '{PASSWORD}' {rest}");
        self.database.admin().run(&create);
        self.database.url_of(&role)
    }

    /// A row of Ann's in each table.
    fn filled(self) -> Self {
        for table in TABLES {
            self.ann.run(&sample(table, ANN));
        }
        self
    }

    /// What `remote check` says of a URL: its exit code and document.
    pub(crate) fn check(&self, url: &str) -> (i32, Value) {
        let ran = self
            .workspace
            .run(&["remote", "check", "--json", "--url", url]);
        (ran.code, ran.document())
    }
}

/// The variable that makes the memories of all tests lie in a database.
const OVER_POSTGRES: &str = "MEMCTL_TEST_STORE";

/// Whether the memories of all tests lie in a database.
pub(crate) fn over_postgres() -> bool {
    std::env::var_os(OVER_POSTGRES).is_some()
}

/// The URL of a user of one's own in the database that memories lie in, where the tests are run over one. Users hear
/// of nothing that others do, so that no test sees what another one leaves.
pub(crate) fn login_of_a_test() -> Option<String> {
    static DATABASE: OnceLock<Database> = OnceLock::new();
    static LOGINS: AtomicU32 = AtomicU32::new(0);
    if !over_postgres() {
        return None;
    }
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_memctl"));
        let ran = Ran::of(command.env_clear().args(args).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
    };
    let database = DATABASE.get_or_init(|| {
        let database = server().unwrap().database();
        run(&["remote", "init", "--url", &database.url]);
        database
    });
    let name = format!("test_{}", LOGINS.fetch_add(1, Ordering::Relaxed));
    run(&["remote", "user", "add", &name, "--url", &database.url]);
    Some(database.cheap_url_of(&format!("memctl_{name}")))
}

/// A row of this user for a table. Log lines stand in the user's newest session.
fn sample(table: &str, user: &str) -> String {
    match table {
        "context_eng_memories" => format!(
            "insert into {table} (user_id, content, embedding) values ('{user}', 'the secret of {user}', {})",
            vector(1.0)
        ),
        "agent_memory" => format!(
            "insert into {table} (user_id, memory_type, content, embedding)
             values ('{user}', 'brand_memory', 'the secret of {user}', {})",
            vector(1.0)
        ),
        "agent_sessions" => {
            format!("insert into {table} (user_id, current_step) values ('{user}', 'the secret of {user}')")
        }
        "agent_execution_logs" => format!(
            "insert into {table} (user_id, session_id, step_name, action_type, status)
             select '{user}', id, 'the secret of {user}', 'decision', 'success' from agent_sessions limit 1"
        ),
        _ => format!(
            "insert into {table} (user_id, origin, entry_id, skill, entry)
             values ('{user}', 'laptop', 'CORR-001', 'hr/resume-screen', '{{\"secret\": \"{user}\"}}')"
        ),
    }
}

/// A vector that points one way.
pub(crate) fn vector(first: f64) -> String {
    format!("array_prepend({first}::real, array_fill(0.1::real, array[1535]))::vector")
}

/// The program's answer as a document, if it succeeded.
fn done(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.document()
}
