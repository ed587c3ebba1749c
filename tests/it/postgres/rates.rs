//! Rates of writes through `memctl serve`, beside `pgbench` with the same row: `make bench-remote`.

use std::time::{Duration, Instant};

use super::server::{PASSWORD, measured_server, output};
use super::{ANN, Store};
use crate::serve::load::Client;
use crate::serve::{Served, token};
use crate::workspace::Workspace;

/// Time for each number of clients.
const EACH: Duration = Duration::from_secs(5);
/// Numbers of clients at once.
const CLIENTS: [usize; 3] = [1, 8, 32];

/// Entry of an execution as the server stores it.
const ENTRY: &str = r#"{"execution_id": "EXEC-20260101000000", "skill": "hr/resume-screen",
  "timestamp": "2026-01-01T00:00:00.000000+00:00", "input": {"mark": "12/345"}, "output": {"score": 1},
  "outcome": "pending_review", "model_used": "", "reviewer_notes": ""}"#;

#[test]
#[ignore = "some minutes: make bench-remote"]
fn writes_of_many_clients() {
    let files = Workspace::sample();
    rates("files", &files);
    let Some(server) = measured_server() else {
        return;
    };
    let store = Store::of(server);
    let mut copy = Workspace::sample();
    let login = store.login(ANN);
    copy.set("DATABASE_URL", &login);
    copy.run(&["remote", "join", "support"]).succeeds();
    rates("database", &copy);
    pgbench(&store, server, &login);
}

/// Prints the rate of writes for each number of clients.
fn rates(name: &str, workspace: &Workspace) {
    let served = Served::start(workspace, &["--rate-limit", "0"]);
    let path = std::env::var("BENCH_WRITE").unwrap_or_default();
    for clients in CLIENTS {
        let begun = Instant::now();
        let mut took: Vec<Duration> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..clients)
                .map(|n| {
                    let (served, path) = (&served, &path);
                    let token = token(workspace, &format!("user-{n}"), "hr");
                    scope.spawn(move || {
                        let mut client = Client::new(served, &token);
                        let mut took = Vec::new();
                        while begun.elapsed() < EACH {
                            let start = Instant::now();
                            let mark = format!("{clients}/{n}/{}", took.len());
                            write(&mut client, path, &mark);
                            took.push(start.elapsed());
                        }
                        took
                    })
                })
                .collect();
            let writers = writers.into_iter();
            writers.flat_map(|writer| writer.join().unwrap()).collect()
        });
        let seconds = begun.elapsed().as_secs_f64();
        took.sort();
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = took.len() as f64 / seconds;
        let (median, late) = (took[took.len() / 2], took[took.len() * 99 / 100]);
        println!("{name}, {clients} clients: {rate:.0} writes/s, p50 {median:.1?}, p99 {late:.1?}");
    }
}

/// Stores an execution, or a memory where `path` is `memory`.
fn write(client: &mut Client, path: &str, mark: &str) {
    if path != "memory" {
        client.write(mark).unwrap();
        return;
    }
    let body = serde_json::json!({ "content": format!("A note on {mark}"),
        "memory_type": "user_preferences" });
    let path = "/functions/v1/agent-memory-write";
    let (status, said) = client.ask("POST", path, &body.to_string()).unwrap();
    assert_eq!(status, 200, "{said}");
}

/// Prints the rate of single inserts of the same row by `pgbench`, as the user.
fn pgbench(store: &Store, server: &super::server::Server, login: &str) {
    let script = store.workspace.write(
        "insert.sql",
        format!(
            "insert into executions (user_id, origin, entry_id, skill, entry) values ('{ANN}', 'bench',
             md5(random()::text || :client_id || clock_timestamp()), 'hr/resume-screen', $json${}$json$);\n",
            ENTRY.replace('\n', " ")
        )
        .replace("\n             ", " "),
    );
    for clients in CLIENTS {
        let mut command = server.program("pgbench");
        command.args(["--no-vacuum", "--protocol=prepared", "--time=5", "--jobs=2"]);
        command
            .arg(format!("--client={clients}"))
            .arg("--file")
            .arg(&script)
            .arg(login);
        let said = output(command.env("PGPASSWORD", PASSWORD)).unwrap();
        let of = |name: &str| {
            said.lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default()
        };
        println!(
            "pgbench, {clients} clients: {}, {}",
            of("tps"),
            of("latency average")
        );
    }
}
